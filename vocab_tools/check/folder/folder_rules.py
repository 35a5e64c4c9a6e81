"""The list of rules for model folders."""

from __future__ import annotations

from ..findings import Rules
from .model_folder import ModelFolder

#: Rules for model folders, in the order of their definitions.
FOLDER_RULES: Rules[ModelFolder] = Rules()
