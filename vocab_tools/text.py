"""Tokens, numbers and lists in messages for people.

Nothing that comes from outside goes to a terminal as it is: :func:`visible` has the last word.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

#: What a terminal would obey, or take as the direction of the text behind it, in place of showing
#: it: control characters but line ends, marks of direction, and halves of surrogate pairs, which
#: names of files can have.
_OBEYED = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)

#: What joins letters and emoji, and is part of how they look.
JOINERS = "\u200c\u200d"

#: What stands for spaces where they are to be seen.
_SIGNS = {" ": "\u2423", "\n": "\u23ce", "\t": "\u21e5"}

#: What stands for a letter that a combining mark would sit on.
MARK_BASE = "\u25cc"


def visible(text: str) -> str:
    """Text that may go to a terminal: what that would obey is escaped, lines stay lines.

    >>> visible("a\\x1b[31mb\\n")
    'a\\\\x1b[31mb\\n'
    """
    return _OBEYED.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def quoted(text: str) -> str:
    """Text in quotes, as Python writes it; but no quote in it is escaped, nor what joins emoji.

    >>> print(quoted("it's"), quoted("a\\nb"), quoted("\\U0001f469\\u200d\\U0001f4bb"))
    "it's" 'a\\nb' '👩‍💻'
    """
    quote = '"' if "'" in text and '"' not in text else "'"
    return quote + "".join(_seen(text, place) for place in range(len(text))) + quote


def _seen(text: str, place: int) -> str:
    """A character as it is, or escaped where it cannot be seen: what joins, too, with nothing to
    join."""
    character = text[place]
    joins = character in JOINERS and 0 < place < len(text) - 1
    if character == "\\" or not (character.isprintable() or joins):
        return character.encode("unicode_escape").decode()
    return character


def quoted_list(texts: Sequence[str]) -> str:
    """Pieces of a text, with a circle under a mark that begins one of them.

    >>> quoted_list(["\u0e01", "\u0e34\u0e19"])
    "['\u0e01', '\u25cc\u0e34\u0e19']"
    """
    return "[" + ", ".join(quoted(with_base(text)) for text in texts) + "]"


def with_base(text: str) -> str:
    """Text to show by itself: a mark at its beginning would sit on what stands before it."""
    return MARK_BASE + text if text and unicodedata.category(text[0])[0] == "M" else text


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
        return quoted(shorten(token.decode(), limit))
    except UnicodeDecodeError:
        return shorten(repr(token), limit)


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


def token_text(token: bytes) -> str:
    """A token where its borders can be seen: without quotes, spaces as signs.

    >>> token_text(b" it's\\n"), token_text("\u0e34\u0e19".encode()), token_text(b"\\xe4a")
    ("\u2423it's\u23ce", '\u25cc\u0e34\u0e19', '\\\\xe4a')
    """
    text = with_base(token.decode(errors="backslashreplace"))
    return "".join(
        _SIGNS.get(one) or (one if one == "\\" else _seen(text, place))
        for place, one in enumerate(text)
    )


def text_of(token: bytes) -> str | None:
    """The text of a token, or None when it is no valid UTF-8."""
    try:
        return token.decode()
    except UnicodeDecodeError:
        return None
