"""Tokens, numbers and lists in messages for people."""

from __future__ import annotations

from collections.abc import Sequence


def shorten(text: str, limit: int = 60) -> str:
    """Text of at most ``limit`` characters, for messages.

    >>> shorten("abcdef", 4)
    'abc…'
    """
    return text if len(text) <= limit else text[: limit - 1] + "…"


def show(token: bytes, limit: int = 60) -> str:
    """A token for people: its text in quotes, or its bytes when they are no text.

    >>> show("一只".encode()), show(b" \\xe4")
    ("'一只'", "b' \\\\xe4'")
    """
    try:
        text = repr(token.decode())
    except UnicodeDecodeError:
        text = repr(token)
    return shorten(text, limit)


def plural(count: int, noun: str, nouns: str | None = None) -> str:
    """A number and its noun.

    >>> plural(1, "word"), plural(2500, "word"), plural(0, "entry", "entries")
    ('1 word', '2,500 words', '0 entries')
    """
    return f"{count:,} {noun if count == 1 else nouns or noun + 's'}"


def id_range(ids: Sequence[int]) -> str:
    """The ids of new tokens, given in their order.

    >>> id_range([7]), id_range([7, 8, 9]), id_range([])
    ('id 7', 'ids 7 to 9', 'no ids')
    """
    if not ids:
        return "no ids"
    return f"id {ids[0]}" if len(ids) == 1 else f"ids {ids[0]} to {ids[-1]}"


def few(words: Sequence[str], most: int = 5) -> str:
    """The first words of a list, for a sentence.

    >>> few(["a", "b", "c"], 2)
    'a, b, …'
    """
    return ", ".join(map(shorten, words[:most])) + (", …" if len(words) > most else "")


def text_of(token: bytes) -> str | None:
    """The text of a token, or None when it is no valid UTF-8."""
    try:
        return token.decode()
    except UnicodeDecodeError:
        return None
