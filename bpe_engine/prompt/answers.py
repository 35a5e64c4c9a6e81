"""Marks what the model writes in each turn of the assistant: markup of calls, tags around reasoning."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import groupby
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

    #: All text behind the message before the answer.
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
            own = _text([part for part in segments if _message(part) == 1])
            before = own.partition(ANSWER["content"])[0]
            question = Header("", tuple(_PARTS.findall(before)))
            return cls(question, question)
        return cls(question, header([USER, ASKS, RESULT]) or question)


def marked(segments: list[Segment], roles: Sequence[Any], headers: Headers) -> list[Segment]:
    """Sets `Origin.is_answer` for the template's text inside of the assistant's turns.

    `roles` are the roles of the messages. A segment that holds both the header of a turn and what the model writes next is cut in two.
    """
    result: list[Segment] = []
    # The template's text since the last text of a message: where its segments are in `result`.
    gap: list[int] = []
    for turn, group in groupby(segments, _Turns()):
        run = list(group)
        is_assistant = turn >= 0 and roles[turn] == "assistant"
        spoken = next((at for at, part in enumerate(run) if _field(part) in FIELDS), len(run))
        begin = len(result)
        result += run
        if is_assistant:
            after_tool = turn > 0 and roles[turn - 1] in _TOOL_ROLES
            header = headers.result if after_tool else headers.question
            _mark(result, [*gap, *range(begin, begin + spoken)], begin, header)
        ends = [at for at in range(begin, len(result)) if _field(result[at]) != "template"]
        gap = [] if ends else gap
        gap += range(ends[-1] + 1 if ends else begin, len(result))
    return result


def _mark(result: list[Segment], before: list[int], begin: int, header: Header) -> None:
    """Marks a turn at the end of `result`.

    Args:
        before: The places of the template's text before the message's own.
        begin: The first place of the turn.
        header: The text before the answer.
    """
    end = header.end_in("".join(result[at].text for at in before))
    if end is None:
        if header.parts:
            return  # Unknown: the answer begins with the message's own text.
        end = 0
    first = begin
    for at in before:
        part = result[at]
        if 0 < end < len(part.text) and at >= begin:
            pieces = part.text[:end], part.text[end:]
            result[at : at + 1] = [part._replace(text=piece) for piece in pieces]
        if end > 0:
            first = max(at + 1, begin)
        end -= len(part.text)
        if end <= 0:
            break
    for at in range(first, len(result)):
        origin = result[at].origin
        if origin is not None and origin.field == "template":
            result[at] = result[at]._replace(origin=origin._replace(is_answer=True))


class _Turns:
    """Gives each segment the index of the message around which the template writes it, or -1."""

    def __init__(self) -> None:
        self._turn = -1

    def __call__(self, segment: Segment) -> int:
        message = _message(segment)
        if _field(segment) == "template":
            self._turn = -1 if message is None else message
        elif message is not None and message > self._turn and _field(segment) in FIELDS:
            self._turn = message
        return self._turn


def _text(segments: Sequence[Segment]) -> str:
    return "".join(segment.text for segment in segments)


def _message(segment: Segment) -> int | None:
    return None if segment.origin is None else segment.origin.message


def _field(segment: Segment) -> str:
    return "template" if segment.origin is None else segment.origin.field
