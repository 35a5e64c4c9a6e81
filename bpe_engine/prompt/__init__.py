"""Prompts in which text from outside can never become a control token."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .conversation import Change, Conversation
from .encode import Audit, ControlString
from .segments import Segment, special, tokens, trusted, untrusted

if TYPE_CHECKING:
    from .formats import FORMATS, ChatFormat, Turn, render_chat
    from .template import ChatTemplate, TemplateLimitError, render_template

# What `import bpe_engine` does not need: the modules of these are imported with their names. Those
# of templates ask for jinja2.
_MODULES = {
    **dict.fromkeys(("FORMATS", "ChatFormat", "Turn", "render_chat"), "formats"),
    **dict.fromkeys(("ChatTemplate", "TemplateLimitError", "render_template"), "template"),
}

__all__ = [
    "FORMATS",
    "Audit",
    "Change",
    "ChatFormat",
    "ChatTemplate",
    "ControlString",
    "Conversation",
    "Segment",
    "TemplateLimitError",
    "Turn",
    "render_chat",
    "render_template",
    "special",
    "tokens",
    "trusted",
    "untrusted",
]


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f".{module}", __name__), name)
