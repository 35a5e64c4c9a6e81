"""Spans of Markdown that chunks keep whole: a heading with the next block, and a code fence."""

from __future__ import annotations

import bisect
import re

__all__ = ["Whole"]

_HEADING = re.compile(r"^ {0,3}#{1,6}(?:[ \t][^\n]*)?$\s*", re.MULTILINE)
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})[^\n]*$", re.MULTILINE)


class Whole:
    """Finds the spans of a Markdown text that chunks keep whole.

    >>> text = "one\\n\\n# Two\\n\\nthree\\n```\\ncode\\n```\\n"
    >>> whole = Whole(text)
    >>> [place for place in range(len(text)) if whole.allows(place)] == [
    ...     *range(6), *range(13, 19), *range(30, len(text))]
    True
    """

    def __init__(self, text: str):
        fences = _fences(text)
        headings = [
            (found.start(), found.end() + 1)
            for found in _HEADING.finditer(text)
            if not _inside(fences, found.start())
        ]
        parts = sorted([*fences, *headings])
        self._starts: list[int] = []
        self._ends: list[int] = []
        for start, end in parts:
            # The block after a heading may be another heading or a fence.
            if self._ends and start < self._ends[-1]:
                self._ends[-1] = max(self._ends[-1], end)
            else:
                self._starts.append(start)
                self._ends.append(end)

    def allows(self, place: int) -> bool:
        """Returns True if a chunk can end at this offset."""
        number = bisect.bisect_left(self._starts, place) - 1
        return number < 0 or place >= self._ends[number]


def _fences(text: str) -> list[tuple[int, int]]:
    fences: list[tuple[int, int]] = []
    opened: re.Match[str] | None = None
    for found in _FENCE.finditer(text):
        if opened is None:
            opened = found
        elif found[1].startswith(opened[1]) and found[0].strip() == found[1]:
            fences.append((opened.start(), found.end()))
            opened = None
    if opened is not None:
        fences.append((opened.start(), len(text)))
    return fences


def _inside(parts: list[tuple[int, int]], place: int) -> bool:
    number = bisect.bisect_right(parts, (place, place)) - 1
    return number >= 0 and place < parts[number][1]
