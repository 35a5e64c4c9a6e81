"""The text that a template writes before an answer: where the model's part of a turn begins."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from os.path import commonprefix
from typing import Any, NamedTuple

from .samples import ANSWER, ASKS, REFUSALS, RESULT, TOOL, USER
from .segments import Segment, whole_text

__all__ = ["Header", "headers", "turns_of"]

#: The parts of a generation prompt: a tag, a line end, or other text.
_PARTS = re.compile(r"<[^<>]*>|\n|[^<\n]+|<")
_TOOL_ROLES = frozenset(["function", "ipython", "tool"])


class Header(NamedTuple):
    """The text of the template before an answer."""

    #: All text after the message before the answer.
    whole: str
    #: Beginnings of the generation prompt that end with a tag, a line or a word, the longest first.
    beginnings: list[str]


def headers(render: Callable[..., list[Segment]], has_tools: bool) -> list[Header]:
    """Returns the headers after a question and after the result of a tool.

    Renders short conversations with and without a generation prompt. Without a generation prompt, the
    text before a plain answer is the header.

    Args:
        render: Renders messages, with the caller's variables.
        has_tools: Whether the caller gives tools.
    """
    tools = [TOOL] if has_tools else None

    def header(messages: list[dict[str, Any]]) -> Header | None:
        try:
            without, prompt = (
                whole_text(render(messages, tools=tools, add_generation_prompt=is_open))
                for is_open in (False, True)
            )
        except REFUSALS:
            return None
        _, _, whole = prompt.rpartition(messages[-1]["content"])
        return Header(whole, _beginnings(prompt[len(commonprefix([without, prompt])) :]))

    question = header([USER])
    if question is not None and question.beginnings:
        return [question, header([USER, ASKS, RESULT]) or question]
    try:
        segments = render([USER, ANSWER], tools=tools, add_generation_prompt=False)
    except REFUSALS:
        segments = []
    own = whole_text([part for part in segments if part.origin and part.origin.message == 1])
    return [Header("", _beginnings(own.partition(ANSWER["content"])[0]))] * 2


def turns_of(roles: Sequence[Any]) -> list[int | None]:
    """Returns the place in `headers` of the header of each message of the assistant; None for others."""
    return [
        int(place > 0 and roles[place - 1] in _TOOL_ROLES) if role == "assistant" else None
        for place, role in enumerate(roles)
    ]


def _beginnings(prompt: str) -> list[str]:
    ends = [part.end() for part in _PARTS.finditer(prompt)]
    return [prompt[:end] for end in reversed(ends)]
