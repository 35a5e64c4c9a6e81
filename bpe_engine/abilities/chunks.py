"""Cuts a text into chunks for retrieval, preferably at paragraph and sentence ends."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from functools import partial
from typing import Any, Literal, NamedTuple, TypeVar

from ..common.values import checked
from ._markdown import Whole

__all__ = ["ChunkSpan", "EncodedChunk"]

Names = Literal["all"] | Collection[str]

#: Patterns of chunk ends by preference: paragraph; line or sentence; word. Spaces belong to the
#: text after them, as in tokens, and line ends to the text before them.
_ENDS = (
    re.compile(r"\n[^\S\n]*\n\s*"),
    re.compile(r"\n|[.!?…؟।۔][\"'”’»)\]]*(?=[^\S\n])|[。！？｡][”’」』）]*"),
    re.compile(r"\S(?=\s)"),
)

#: Length of the window in characters per token of a chunk, and length of the margin after it. The
#: margin keeps together characters that normalization rewrites together.
_WINDOW, _MARGIN = 8, 64


class ChunkSpan(NamedTuple):
    """A chunk of a text: ``text[start:end]``."""

    #: Index of the first character.
    start: int
    #: Index after the last character.
    end: int
    #: Number of tokens if the chunk is encoded on its own.
    tokens: int


class EncodedChunk(NamedTuple):
    """A chunk of a text, ``text[start:end]``, with the ids of the chunk encoded on its own."""

    #: Index of the first character.
    start: int
    #: Index after the last character.
    end: int
    #: Ids of the chunk, without special tokens around them.
    ids: list[int]

    @property
    def tokens(self) -> int:
        """The number of ids."""
        return len(self.ids)


_Chunk = TypeVar("_Chunk", ChunkSpan, EncodedChunk)


def counted(
    encoding: Any, allowed_special: Names | None, text: str, start: int, end: int
) -> ChunkSpan:
    """Returns a chunk with its number of tokens."""
    return ChunkSpan(start, end, encoding.count(text[start:end], allowed_special=allowed_special))


def encoded(
    encoding: Any, allowed_special: Names | None, text: str, start: int, end: int
) -> EncodedChunk:
    """Returns a chunk with its ids."""
    [ids] = encoding._encode_each(
        [text[start:end]], 1, allowed_special=allowed_special, disallowed_special=()
    )
    return EncodedChunk(start, end, ids)


def chunk_spans(
    encoding: Any,
    text: str,
    max_tokens: int,
    overlap: int,
    allowed_special: Names | None,
    whole: Whole | None,
    chunk: Callable[[Any, Names | None, str, int, int], _Chunk],
) -> list[_Chunk]:
    """Returns the chunks of `Encoding.chunk_spans`, each made by `chunk` (`counted` or `encoded`).
    The arguments must have been checked."""
    made = partial(chunk, encoding, allowed_special, text)
    # A character that does not fit after one chunk end may fit after another.
    with suppress(ValueError):
        return list(_preferred(encoding, text, max_tokens, overlap, allowed_special, whole, made))
    spans = encoding._chunk_spans(text, max_tokens, overlap, allowed_special=allowed_special)
    return [made(start, end) for start, end in spans]


def _preferred(
    encoding: Any,
    text: str,
    max_tokens: int,
    overlap: int,
    allowed_special: Names | None,
    whole: Whole | None,
    made: Callable[[int, int], _Chunk],
) -> Iterator[_Chunk]:
    """Yields chunks that end at preferred boundaries.

    Raises:
        ValueError: A character does not fit into a chunk.
    """
    names = checked(allowed_special)
    if names is None or isinstance(names, str):
        margin = max(_MARGIN, encoding._longest_special)
    else:
        margin = max(_MARGIN, *map(len, names), 0)

    def longest(part: str) -> int:
        return len(encoding.truncate(part, max_tokens, allowed_special=allowed_special))

    def first(part: str) -> int:
        spans = encoding._chunk_spans(part, max_tokens, 0, allowed_special=allowed_special)
        return spans[0][1]  # type: ignore[no-any-return]

    start = reached = apart = 0
    window = max_tokens
    while reached < len(text):
        if start < apart:
            most = _reach(first, text, start, window, margin)
            window = 2 * (most - start)
        else:
            most = _reach(longest, text, start, max_tokens * _WINDOW, margin)
        if most <= reached:
            if start < reached:
                start = reached  # The overlap would leave no room for new text.
            else:
                # No token ends at a chunk boundary, so `first` splits tokens up to `apart`.
                # `longest` would read the whole window again for each chunk.
                apart = start + max_tokens * _WINDOW
            continue
        end = most
        if most < len(text):
            least = max(start, reached) + 1
            end = _good_end(text, least, max((start + most) // 2, least), most, whole)
        found = made(start, end)
        if found.tokens > max_tokens:
            found = made(start, end := most)
        yield found
        reached = end
        if overlap == 0:
            # With a limit of zero, `truncate` may keep text at the end that has no tokens.
            start = end
            continue
        tail = encoding.truncate(
            text[start:end], overlap, side="left", allowed_special=allowed_special
        )
        repeated = end - len(tail)
        start = max(start + 1, _good_start(text, repeated, end))
        if counted(encoding, allowed_special, text, start, end).tokens > overlap:
            start = repeated


def _reach(cut: Callable[[str], int], text: str, start: int, window: int, margin: int) -> int:
    """Finds the end of the chunk that begins at `start` by applying `cut` to a growing window, at
    first of `window` characters and a margin.
    """
    window += margin
    while True:
        end = cut(text[start : start + window])
        if end + margin <= window or start + window >= len(text):
            return start + end
        window *= 2


def _good_end(text: str, least: int, middle: int, last: int, whole: Whole | None) -> int:
    """Returns the last preferred chunk end: after a paragraph or sentence from `middle` to `last`,
    after a word from `least` on, or `last`. A `whole` range is cut only as a last resort."""
    if whole is not None:
        firsts = (middle, middle, least, least, least)
        for pattern, first in zip((*_ENDS[:2], *_ENDS), firsts):
            if places := [p for p in _places(pattern, text, first, last) if whole.allows(p)]:
                return places[-1]
    for pattern, first in zip(_ENDS, (middle, middle, least)):
        if places := _places(pattern, text, first, last):
            return places[-1]
    return last


def _good_start(text: str, first: int, end: int) -> int:
    """Returns the first start of a sentence or word from `first` on, or `end`."""
    for pattern in _ENDS[1:]:
        for place in _places(pattern, text, first, end - 1):
            if text[place] != "\n":
                return place
    return end


def _places(pattern: re.Pattern[str], text: str, first: int, last: int) -> list[int]:
    # A match may begin before the first candidate and inspects the character after it.
    found = pattern.finditer(text, max(first - 2, 0), last + 1)
    return [match.end() for match in found if first <= match.end() <= last]
