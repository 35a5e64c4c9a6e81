"""Segments: text that says for itself whether special tokens are looked for in it."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Literal, NamedTuple, SupportsIndex

__all__ = ["Segment", "special", "tokens", "trusted", "untrusted"]


class Segment(NamedTuple):
    """A part of a prompt. Made by `special`, `trusted`, `untrusted` and `tokens`.

    Wherever segments are taken, a plain tuple of the first two items, or of more, will do.
    """

    text: str
    #: Which special tokens are looked for in `text`: none, all, or these.
    allow_special: bool | frozenset[str]
    #: Whose words these are, for `Audit.mask`.
    role: str | None = None
    #: Where they came from, for people.
    source: str | None = None
    kind: Literal["text", "special", "tokens"] = "text"
    #: The ids of the kind "tokens".
    ids: tuple[int, ...] = ()


def special(name: str, *, role: str | None = None, source: str | None = None) -> Segment:
    """One special token, by its name. To encode it is an error if there is no such token.

    >>> import bpe_engine
    >>> from bpe_engine.prompt import special
    >>> bpe_engine.get_encoding("gpt2").encode_segments([special("<|endoftext|>")])
    [50256]
    """
    return Segment(_text("special", name), frozenset((name,)), role, source, "special")


def trusted(text: str, *, role: str | None = None, source: str | None = None) -> Segment:
    """Text of the program's own: the names of special tokens in it are special tokens.

    >>> import bpe_engine
    >>> from bpe_engine.prompt import trusted
    >>> bpe_engine.get_encoding("gpt2").encode_segments([trusted("<|endoftext|>Hi")])
    [50256, 17250]
    """
    return Segment(_text("trusted", text), True, role, source)


def untrusted(text: str, *, role: str | None = None, source: str | None = None) -> Segment:
    """Text from outside: nothing in it is ever a special token.

    >>> import bpe_engine
    >>> from bpe_engine.prompt import untrusted
    >>> bpe_engine.get_encoding("gpt2").encode_segments([untrusted("<|endoftext|>Hi")])
    [27, 91, 437, 1659, 5239, 91, 29, 17250]
    """
    return Segment(_text("untrusted", text), False, role, source)


def tokens(
    ids: Iterable[SupportsIndex], *, role: str | None = None, source: str | None = None
) -> Segment:
    """Token ids as they are, such as those that a model generated. Nothing merges with them.

    >>> import bpe_engine
    >>> from bpe_engine.prompt import tokens, trusted
    >>> bpe_engine.get_encoding("gpt2").encode_segments([trusted("Hi"), tokens([0, 50256])])
    [17250, 0, 50256]
    """
    if isinstance(ids, (str, bytes)) or not isinstance(ids, Iterable):
        raise TypeError(f"tokens takes ids, not {type(ids).__name__}")
    numbers = []
    for place, id in enumerate(ids):
        try:
            numbers.append(operator.index(id))
        except TypeError:
            raise TypeError(
                f"tokens takes ids, each an int, but the one at index {place} is {id!r}"
            ) from None
    return Segment("", False, role, source, "tokens", tuple(numbers))


def _text(name: str, text: str) -> str:
    if not isinstance(text, str):
        raise TypeError(f"{name} takes a str, not {type(text).__name__}")
    return text
