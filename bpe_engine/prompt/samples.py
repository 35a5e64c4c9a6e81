"""Sample conversations for checks of chat templates."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from jinja2 import TemplateError

from .segments import Segment

# Text that looks like a control token.
CONTROL = re.compile(
    r"<[|｜][^\s<>{}'\"]{1,40}[|｜]>|<\|[a-z_]+>|<[a-z_]+\|>|\[/?[A-Z_]{3,20}\]|</?s>|<[a-z]+_of_[a-z]+>"
)
BOS, EOS = "<s>", "</s>"
TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "look_up",
        "description": "Looks a word up",
        "parameters": {
            "type": "object",
            "properties": {"word": {"type": "string", "description": "Which word"}},
            "required": ["word"],
        },
    },
}
CALL: dict[str, Any] = {
    "id": "abcdefghi",
    "type": "function",
    "function": {"name": "look_up", "arguments": {"word": "sea"}},
}
SYSTEM = {"role": "system", "content": "Zephyr rules."}
USER = {"role": "user", "content": "Quince asks."}
MORE = {"role": "user", "content": "Walnut asks more."}
RESULT = {
    "role": "tool",
    "name": "look_up",
    "tool_call_id": "abcdefghi",
    "content": "Salt water.",
}
ANSWER = {"role": "assistant", "content": "Plum answers."}
THOUGHT = {**ANSWER, "reasoning_content": "Fig thinks."}
ASKS: dict[str, Any] = {"role": "assistant", "content": "", "tool_calls": [CALL]}
ASKS_THOUGHT: dict[str, Any] = {**ASKS, "reasoning_content": "Fig thinks."}
#: Errors of a template that rejects a conversation.
REFUSALS = (TemplateError, TypeError, ValueError, ArithmeticError, LookupError, RuntimeError)


def control_tokens_of(segments: Sequence[Segment]) -> list[str]:
    """Returns the control tokens in the text of the template."""
    return [
        name
        for segment in segments
        if segment.allowed_special
        for name in CONTROL.findall(segment.text)
    ]
