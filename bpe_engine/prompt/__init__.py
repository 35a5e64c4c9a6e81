"""Prompts in which untrusted text can never become a control token."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .audit import Audit, ControlString, Unseen
from .conversation import Change, Conversation, stable_prefix
from .encode import count_segments, encode_segments_to_numpy
from .segments import Origin, Segment, special, tokens, trusted, untrusted

if TYPE_CHECKING:
    from .account import Account, Comparison, Fitted, Part, PartChange, Side, account_prompt, fit
    from .auditor import audit_template
    from .formats import FORMATS, render_chat
    from .lint import TemplateReport, stable_prefix_check
    from .openai_count import ChatTokens, count_chat_tokens
    from .rollout import Drift, Rollout, TemplateNotStable
    from .template import ChatTemplate, TemplateLimitError, render_template
    from .template_audit import TemplateAudit

# Modules that `import bpe_engine` does not need are imported on demand; `template` needs jinja2.
_ACCOUNT = "Account Comparison Fitted Part PartChange Side account_prompt fit".split()
_MODULES = {
    **dict.fromkeys(_ACCOUNT, "account"),
    "audit_template": "auditor",
    **dict.fromkeys(("FORMATS", "render_chat"), "formats"),
    **dict.fromkeys(("TemplateReport", "stable_prefix_check"), "lint"),
    "ChatTokens": "openai_count",
    "count_chat_tokens": "openai_count",
    **dict.fromkeys(("Drift", "Rollout", "TemplateNotStable"), "rollout"),
    **dict.fromkeys(("ChatTemplate", "TemplateLimitError", "render_template"), "template"),
    "TemplateAudit": "template_audit",
}

__all__ = [
    "Account",
    "ChatTokens",
    "Comparison",
    "FORMATS",
    "Audit",
    "Change",
    "ChatTemplate",
    "ControlString",
    "Conversation",
    "Drift",
    "Fitted",
    "Origin",
    "Part",
    "PartChange",
    "Rollout",
    "Segment",
    "Side",
    "TemplateAudit",
    "TemplateLimitError",
    "TemplateNotStable",
    "TemplateReport",
    "Unseen",
    "account_prompt",
    "audit_template",
    "count_chat_tokens",
    "count_segments",
    "encode_segments_to_numpy",
    "fit",
    "render_chat",
    "render_template",
    "special",
    "stable_prefix",
    "stable_prefix_check",
    "tokens",
    "trusted",
    "untrusted",
]


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f".{module}", __name__), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
