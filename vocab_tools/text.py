"""Formats tokens, numbers and lists for messages.

Untrusted text never reaches a terminal unescaped: `bpe_engine.cli.printing.printable` escapes last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from bpe_engine.abilities.visible import (
    CONTINUED,
    SIGNS,
    joins,
    visible,
    whole_characters,
    with_base,
)
from bpe_engine.abilities.visible import plural as plural
from bpe_engine.abilities.visible import shorten as shorten

#: Signs that make spaces visible; a sign that occurs in the text is escaped.
_SIGNS = {**SIGNS, "\u00b7": "\\u00b7", CONTINUED: "\\u2025"}


def quoted(text: str) -> str:
    """Quotes text like Python, but leaves quotes and emoji joiners unescaped.

    >>> print(quoted("it's"), quoted("a\\nb"), quoted("\\U0001f469\\u200d\\U0001f4bb"))
    "it's" 'a\\nb' '👩‍💻'
    """
    quote = '"' if "'" in text and '"' not in text else "'"
    return quote + "".join(_seen(text, place) for place in range(len(text))) + quote


def _seen(text: str, place: int) -> str:
    """Returns a character, escaped if it is invisible, or is a joiner that joins nothing: at the
    start, at the end, or next to an escape."""
    character = text[place]
    if character == "\\" or not (character.isprintable() or joins(text, place)):
        return character.encode("unicode_escape").decode()
    return character


def quoted_list(texts: Sequence[str]) -> str:
    """Quotes the pieces of a text; a combining mark at the start of a piece gets a dotted circle.

    >>> quoted_list(["\u0e01", "\u0e34\u0e19"])
    "['\u0e01', '\u25cc\u0e34\u0e19']"
    """
    return "[" + ", ".join(quoted(with_base(text)) for text in texts) + "]"


def show(token: bytes, limit: int = 60) -> str:
    """Returns a token for messages: its text in quotes, or its bytes if they are not text.

    >>> show("一只".encode()), show(b" \\xe4")
    ("'一只'", "b' \\\\xe4'")
    """
    try:
        return quoted(shorten(token.decode(), limit))
    except UnicodeDecodeError:
        return shorten(repr(token), limit)


def id_range(ids: Sequence[int]) -> str:
    """Formats the ids of new tokens, given in ascending order.

    >>> id_range([7]), id_range([7, 8, 9]), id_range([])
    ('id 7', 'ids 7 to 9', 'no ids')
    """
    if not ids:
        return "no ids"
    return f"id {ids[0]}" if len(ids) == 1 else f"ids {ids[0]} to {ids[-1]}"


def parting(one: Sequence[int], other: Sequence[int], most: int = 6) -> tuple[str, str]:
    """Formats two lists of ids from the first difference on, with at most ``most`` ids of each.

    >>> parting([1, 2, 3, 4, 5], [1, 2, 3, 9])
    ('[…, 3, 4, 5]', '[…, 3, 9]')
    """
    alike = next((place for place, (a, b) in enumerate(zip(one, other)) if a != b), None)
    start = max((min(len(one), len(other)) if alike is None else alike) - 1, 0)

    def some(ids: Sequence[int]) -> str:
        shown = ["…"] if start else []
        shown += [str(number) for number in ids[start : start + most]]
        shown += ["…"] if len(ids) > start + most else []
        return "[" + ", ".join(shown) + "]"

    return some(one), some(other)


def few(words: Sequence[str], most: int = 5) -> str:
    """Formats the first words of a list for a sentence.

    >>> few(["a", "b", "c"], 2)
    'a, b, …'
    """
    return ", ".join(map(shorten, words[:most])) + (", …" if len(words) > most else "")


def token_text(token: bytes) -> str:
    """Returns a token with visible boundaries: without quotes, and with signs for spaces.

    >>> token_text(b" it's\\n"), token_text("\u0e34\u0e19".encode()), token_text(b"\\xe4a")
    ("\u00b7it's\u23ce", '\u25cc\u0e34\u0e19', '\\\\xe4a')
    >>> token_text(b"\\xa9\\xe2\\x80\\x8d\\xf0")  # a joiner between halves of characters
    '\\\\xa9\\\\u200d\\\\xf0'
    """
    return visible(token.decode(errors="surrogateescape"), _SIGNS)


def in_order(tokens: Iterable[bytes], shown: Callable[[bytes], str] = token_text) -> list[str]:
    """Returns consecutive tokens; the first of several tokens that share a character shows it.

    >>> in_order([b" a", b"\\xe4\\xb8", b"\\x80"])
    ['\u00b7a', '一', '‥']
    """
    return [
        CONTINUED * continued + (shown(characters) if characters or not continued else "")
        for continued, characters in whole_characters(tokens)
    ]


def literal(token: bytes) -> str:
    """Returns a token as a Python literal: its text, or its bytes if they are not text.

    >>> literal(b"a"), literal(b"\\xff")
    ("'a'", "b'\\\\xff'")
    """
    text = text_of(token)
    return repr(token if text is None else text)


def text_of(token: bytes) -> str | None:
    """Returns the text of a token; None if it is not valid UTF-8."""
    try:
        return token.decode()
    except UnicodeDecodeError:
        return None
