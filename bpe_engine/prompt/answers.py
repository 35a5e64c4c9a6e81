"""Finds the template text before an answer, which determines where the model's part starts."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import takewhile
from os.path import commonprefix
from typing import Any, NamedTuple

from .fields import FIELDS
from .samples import ANSWER, ASKS, REFUSALS, RESULT, TOOL, USER
from .segments import Segment, whole_text

__all__ = ["Answers", "Header", "answers", "turns_of"]

#: Parts of a generation prompt: tags, line ends and other text.
_PARTS = re.compile(r"<[^<>]*>|\n|[^<\n]+|<")
_TOOL_ROLES = frozenset(["function", "ipython", "tool"])


class Header(NamedTuple):
    """The template text before an answer."""

    #: All text between the preceding message and the answer.
    whole: str
    #: Prefixes of the generation prompt that end with a tag, line or word, longest first.
    beginnings: list[str]
    #: Whether the model continues the open turn without a generation prompt.
    is_open: bool = False


class Answers(NamedTuple):
    """The template text around the model's answers."""

    #: Headers of answers after a question and after a tool result.
    headers: tuple[Header, Header]
    #: Endings of a call whose result is inside the turn, longest first. Empty if results have
    #: separate turns.
    endings: list[str]


def answers(render: Callable[..., list[Segment]], has_tools: bool) -> Answers:
    """Returns the template text around answers.

    Renders short conversations with and without a generation prompt. Without a generation prompt, the
    text before a plain answer is the header.

    Args:
        render: Renders messages with the caller's variables.
        has_tools: Whether the caller passes tools.
    """
    tools = [TOOL] if has_tools else None

    def rendered(messages: list[dict[str, Any]], is_open: bool = False) -> list[Segment] | None:
        try:
            return render(messages, tools=tools, add_generation_prompt=is_open)
        except REFUSALS:
            return None

    def header(messages: list[dict[str, Any]]) -> Header | None:
        closed, opened = rendered(messages), rendered(messages, True)
        if closed is None or opened is None:
            return None
        prompt = whole_text(opened)
        _, _, whole = prompt.rpartition(messages[-1]["content"])
        return Header(whole, _beginnings(prompt[len(commonprefix([whole_text(closed), prompt])) :]))

    endings = _endings(rendered([USER, ASKS]) or [], rendered([USER, ASKS, RESULT]) or [])
    question = header([USER])
    if question is not None and question.beginnings:
        after = header([USER, ASKS, RESULT]) or question
        if not after.beginnings:
            after = Header(after.whole, question.beginnings[:1], True)
        return Answers((question, after), endings)
    own = whole_text(_of_message(rendered([USER, ANSWER]) or [], 1))
    beginnings = _beginnings(own.partition(ANSWER["content"])[0])
    return Answers((Header("", beginnings, not beginnings),) * 2, endings)


def _of_message(segments: Sequence[Segment], message: int) -> list[Segment]:
    return [part for part in segments if part.origin and part.origin.message == message]


def _endings(call: list[Segment], answered: list[Segment]) -> list[str]:
    """Returns the endings of the template text after a call, with and without its result."""
    before = list(takewhile(lambda part: RESULT["content"] not in part.text, answered))
    if len(before) == len(answered) or not before or before[-1:] != _of_message(before[-1:], 1):
        return []
    text = whole_text(before)
    written = text[: len(commonprefix([whole_text(call), text]))]
    own = _of_message(call, 1)
    spoken = [part.text for part in own if part.origin and part.origin.field in FIELDS]
    written = written.rpartition(spoken[-1])[2] if spoken else ""
    return [written[part.start() :] for part in _PARTS.finditer(written) if part[0] != "<"]


def turns_of(roles: Sequence[Any]) -> list[int | None]:
    """Returns the index in `Answers.headers` for each assistant message, else None."""
    return [
        int(place > 0 and roles[place - 1] in _TOOL_ROLES) if role == "assistant" else None
        for place, role in enumerate(roles)
    ]


def _beginnings(prompt: str) -> list[str]:
    ends = [part.end() for part in _PARTS.finditer(prompt)]
    return [prompt[:end] for end in reversed(ends)]
