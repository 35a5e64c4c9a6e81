"""`ShownTokens`: the tokens of a text for display, as colored chips in a notebook."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator
from html import escape
from itertools import accumulate
from typing import NamedTuple

from .visible import CONTINUED, SIGNS, visible

__all__ = ["ShownToken", "ShownTokens"]

#: Maximum number of tokens drawn.
MOST_TOKENS = 5000

#: Backgrounds of neighboring chips, readable on white and on black pages.
_COLORS = ("59,130,246", "234,138,0", "34,160,84", "214,73,131")


class ShownToken(NamedTuple):
    """A token and its span in the text."""

    id: int
    #: Bytes of the token.
    token: bytes
    #: Characters that begin in the token; "" if the token only continues a character.
    text: str
    #: Character range, end exclusive.
    start: int
    end: int
    is_special: bool
    #: True if the first character begins in an earlier token; true if the last character ends in a
    #: later token.
    continues: bool
    is_continued: bool


class ShownTokens:
    """The tokens of a text: colored chips in a notebook, text between bars elsewhere.

    A space is ``·`` and a line end ``⏎``. A character split between tokens is shown in the first
    token; the following tokens show ``‥``. Made by `Encoding.show`.
    """

    def __init__(self, name: str, tokens: list[ShownToken]):
        #: The name of the encoding.
        self.name = name
        #: The tokens, in the order of the text.
        self.tokens = tokens

    def __len__(self) -> int:
        return len(self.tokens)

    def __iter__(self) -> Iterator[ShownToken]:
        return iter(self.tokens)

    def __repr__(self) -> str:
        shown = "|".join(map(_visible, self.tokens[:MOST_TOKENS]))
        return f"{shown}{self._rest()}\n{self._summary()}"

    def _repr_html_(self) -> str:
        """Returns the chips as HTML, for notebooks."""
        chips = "".join(_chip(place, it) for place, it in enumerate(self.tokens[:MOST_TOKENS]))
        return (
            '<div style="line-height:2;font-family:ui-monospace,Menlo,Consolas,monospace;'
            f'white-space:normal;overflow-wrap:anywhere;unicode-bidi:plaintext">{chips}{self._rest()}</div>'
            f'<div style="opacity:.7;font-size:90%">{escape(self._summary())}</div>'
        )

    def _rest(self) -> str:
        hidden = len(self.tokens) - MOST_TOKENS
        return f" and {hidden:,} more" if hidden > 0 else ""

    def _summary(self) -> str:
        return f"{len(self.tokens):,} token{'' if len(self.tokens) == 1 else 's'}, {self.name}"


def place_tokens(tokens: list[bytes]) -> tuple[str, list[tuple[int, int]]]:
    r"""Decodes tokens, with a surrogate for each invalid byte; also returns the character span of
    each token.

    >>> place_tokens([b"a\xc3", b"\xa9", b"\xff"])
    ('aé\udcff', [(0, 2), (1, 2), (2, 3)])
    """
    text = b"".join(tokens).decode("utf-8", "surrogateescape")
    starts = [0]
    for character in text:
        starts.append(starts[-1] + len(character.encode("utf-8", "surrogateescape")))
    ends = list(accumulate(map(len, tokens)))
    begun = [0, *ends][: len(ends)]
    return text, [
        (bisect_right(starts, first) - 1, bisect_left(starts, end))
        for first, end in zip(begun, ends)
    ]


def shown_tokens(
    text: str,
    ids: list[int],
    tokens: list[bytes],
    spans: list[tuple[int, int]],
    special: Collection[int],
) -> list[ShownToken]:
    """Returns the tokens, each with the characters that begin in it."""
    made = []
    reached = 0
    for place, (id, token, (start, end)) in enumerate(zip(ids, tokens, spans)):
        following = spans[place + 1][0] if place + 1 < len(spans) else end
        begun = text[max(start, reached) : end]
        made.append(
            ShownToken(
                id, token, begun, start, end, id in special, start < reached, following < end
            )
        )
        reached = max(reached, end)
    return made


def _visible(token: ShownToken) -> str:
    return CONTINUED * token.continues + visible(token.text, SIGNS)


def _chip(place: int, token: ShownToken) -> str:
    color = _COLORS[place % len(_COLORS)]
    edges = (token.continues, "left"), (token.is_continued, "right")
    dotted = "".join(f"border-{side}:2px dotted rgb({color});" for cut, side in edges if cut)
    bold = f"outline:1px solid rgb({color});font-weight:bold;" if token.is_special else ""
    title = f"id {token.id}, {token.token!r}, characters {token.start} to {token.end}"
    ends_line = "<br>" if token.text.endswith("\n") else "<wbr>"
    return (
        f'<span title="{escape(title)}" style="background:rgba({color},.28);{dotted}{bold}'
        f'padding:.15em .1em;border-radius:.25em">{escape(_visible(token))}</span>{ends_line}'
    )
