"""Marks what the model writes in each turn of the assistant: markup of calls, tags around reasoning."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from os.path import commonprefix
from typing import Any, NamedTuple

from .fields import FIELDS
from .samples import ANSWER, ASKS, REFUSALS, RESULT, TOOL, USER
from .segments import Segment

__all__ = ["Headers", "marked"]

#: The parts of a generation prompt: a tag, a line end, or other text.
_PARTS = re.compile(r"<[^<>]*>|\n|[^<\n]+|<")
_TOOL_ROLES = frozenset(["function", "ipython", "tool"])


class Header(NamedTuple):
    """The text of the template before an answer."""

    #: All text after the message before the answer.
    whole: str
    #: The parts of the generation prompt.
    parts: tuple[str, ...]

    def end_in(self, text: str) -> int | None:
        """Returns where the header ends in the template's text before an answer."""
        if self.whole and text.startswith(self.whole):
            return len(self.whole)
        for count in range(len(self.parts), 0, -1):
            name = "".join(self.parts[:count])
            if name in text:
                return text.index(name) + len(name)
        return None


class Headers(NamedTuple):
    """The headers of a template with the variables of a caller."""

    #: After a question.
    question: Header
    #: After the result of a tool.
    result: Header

    @classmethod
    def of(cls, render: Callable[..., list[Segment]], has_tools: bool) -> Headers:
        """Renders short conversations with and without a generation prompt.

        Args:
            render: Renders messages, with the caller's variables.
            has_tools: Whether the caller gives tools.
        """
        tools = [TOOL] if has_tools else None

        def header(messages: list[dict[str, Any]]) -> Header | None:
            try:
                without, prompt = (
                    _text(render(messages, tools=tools, add_generation_prompt=is_open))
                    for is_open in (False, True)
                )
            except REFUSALS:
                return None
            _, _, whole = prompt.rpartition(messages[-1]["content"])
            own = prompt[len(commonprefix([without, prompt])) :]
            return Header(whole, tuple(_PARTS.findall(own)))

        question = header([USER])
        if question is None or not question.parts:
            # Without a generation prompt, the text before a plain answer is the header.
            try:
                segments = render([USER, ANSWER], tools=tools, add_generation_prompt=False)
            except REFUSALS:
                segments = []
            own = _text([part for part in segments if part.origin and part.origin.message == 1])
            before = own.partition(ANSWER["content"])[0]
            question = Header("", tuple(_PARTS.findall(before)))
            return cls(question, question)
        return cls(question, header([USER, ASKS, RESULT]) or question)


def marked(segments: list[Segment], roles: Sequence[Any], headers: Headers) -> list[Segment]:
    """Sets `Origin.is_answer` for the template's text inside of the assistant's turns.

    `roles` are the roles of the messages. A segment that holds both the header of a turn and what the
    model writes next is cut in two.
    """
    result: list[Segment] = []
    done, before = 0, -1
    turns = _turns(segments)
    for (begin, turn), (end, _) in zip(turns, [*turns[1:], (len(segments), -1)]):
        if turn >= 0 and roles[turn] == "assistant":
            after_tool = turn > 0 and roles[turn - 1] in _TOOL_ROLES
            header = headers.result if after_tool else headers.question
            result += segments[done:begin]
            result += _answer(segments, begin, end, header, before)
            done, before = end, begin
    return result + segments[done:]


def _turns(segments: list[Segment]) -> list[tuple[int, int]]:
    """Returns where the template begins to write around another message, and the message or -1."""
    turns: list[tuple[int, int]] = []
    turn, last = -1, None
    for at, segment in enumerate(segments):
        origin = segment[6]
        # Neighbors of the template share one origin.
        if origin is last or origin is None:
            continue
        last = origin
        message = -1 if origin[0] is None else origin[0]
        field = origin[2]
        if message != turn if field == "template" else message > turn and field in FIELDS:
            turn = message
            turns.append((at, turn))
    return turns


def _answer(
    segments: list[Segment], begin: int, end: int, header: Header, before: int
) -> list[Segment]:
    """Returns the segments of a turn, from `begin` to `end`, with what the model writes marked.

    `before` is the beginning of the turn of the assistant before, or -1.
    """
    first = spoken = begin
    while first > 0 and _field(segments[first - 1]) == "template":
        first -= 1
    if first <= before:  # A turn without text: its header is not that of this one.
        first = begin
    while spoken < end and _field(segments[spoken]) not in FIELDS:
        spoken += 1
    turn = segments[begin:end]
    rest = header.end_in(_text(segments[first:spoken]))
    if rest is None:
        if header.parts:
            return turn  # Unknown: the answer begins with the message's own text.
        rest, first = 0, begin
    while first < spoken and rest >= len(segments[first].text):
        rest -= len(segments[first].text)
        first += 1
    start = max(first - begin, 0)
    if rest > 0 and begin <= first < spoken:
        part = turn[start]
        pieces = part.text[:rest], part.text[rest:]
        turn[start : start + 1] = [part._replace(text=piece) for piece in pieces]
        start += 1
    known = answer = None
    for at in range(start, len(turn)):
        part = turn[at]
        origin = part[6]
        if origin is not None and origin[2] == "template":
            if origin is not known:
                known, answer = origin, origin._replace(is_answer=True)
            turn[at] = tuple.__new__(Segment, (*part[:6], answer, part[7]))
    return turn


def _text(segments: Sequence[Segment]) -> str:
    return "".join(segment.text for segment in segments)


def _field(segment: Segment) -> str:
    return "template" if segment.origin is None else segment.origin.field
