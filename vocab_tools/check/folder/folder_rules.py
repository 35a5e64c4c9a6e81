"""The list of rules for model folders."""

from __future__ import annotations

from ..findings import Rules
from .model_folder import ModelFolder

#: The rules for model folders, in the order in which they were defined.
FOLDER_RULES: Rules[ModelFolder] = Rules()
