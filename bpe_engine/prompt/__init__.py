"""Prompts in which text from outside can never become a control token."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .conversation import Change, Conversation
from .encode import Audit, ControlString
from .formats import FORMATS, ChatFormat, Turn, render_chat
from .segments import Segment, special, tokens, trusted, untrusted

if TYPE_CHECKING:
    from .template import ChatTemplate, TemplateLimitError, render_template

_TEMPLATE = ("ChatTemplate", "TemplateLimitError", "render_template")

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
    # jinja2 is only needed where templates are rendered.
    if name in _TEMPLATE:
        from . import template

        return getattr(template, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
