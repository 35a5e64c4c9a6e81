"""Conversations that the checkers of chat templates try, and `Sample`, which renders them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from jinja2 import TemplateError

from .segments import Segment, special
from .template import ChatTemplate

if TYPE_CHECKING:
    from .encode import Engine

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
#: The errors of a template that refuses a conversation.
REFUSALS = (TemplateError, TypeError, ValueError, ArithmeticError, LookupError)


def control_tokens_of(segments: Sequence[Segment]) -> list[str]:
    """Returns the control tokens in the text of the template."""
    return [
        name
        for segment in segments
        if segment.allowed_special
        for name in CONTROL.findall(segment.text)
    ]


class Sample:
    """A template with all that it asks for, so that it renders a plain question of the user.

    Args:
        template: A chat template, or its text.
        tokenizer: The model's.
        variables: Other variables of the template. Those that it asks for and that are missing
            are "[]".

    Raises:
        ValueError: The template refuses a plain question, or is too large.
        jinja2.TemplateError: The template has errors.
    """

    def __init__(
        self,
        template: str | ChatTemplate,
        tokenizer: Engine | None,
        variables: Mapping[str, Any],
    ):
        if not isinstance(template, ChatTemplate):
            template = ChatTemplate(template)
        self.template: ChatTemplate = template
        self._tokenizer = tokenizer
        self._given = {"bos_token": special(BOS), "eos_token": special(EOS), **variables}
        self._needs_tools = False
        #: A question of the user.
        self.plain: list[Segment] = self._first()

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Any] | None = None,
        add_generation_prompt: bool = True,
        **variables: Any,
    ) -> list[Segment]:
        """Renders a conversation, as `ChatTemplate.render` does."""
        return self.template.render(
            messages,
            tools=[TOOL] if tools is None and self._needs_tools else tools,
            add_generation_prompt=add_generation_prompt,
            tokenizer=self._tokenizer,
            **{**self._given, **variables},
        )

    def _first(self) -> list[Segment]:
        while True:
            try:
                return self.render([USER])
            except REFUSALS as error:
                missing = re.fullmatch(r"'(\w+)' is undefined", str(error))
                if missing and missing[1] not in self._given:
                    self._given[missing[1]] = "[]"
                elif not self._needs_tools:
                    self._needs_tools = True
                else:
                    raise ValueError(
                        f"the template refuses a question of the user: {error}"
                    ) from error
