"""Makes text visible: spaces, control characters, and characters that tokens split."""

from __future__ import annotations

import contextlib
import unicodedata
from collections import deque
from collections.abc import Iterable, Iterator, Mapping

__all__ = [
    "CONTINUED",
    "SIGNS",
    "joins",
    "plural",
    "shorten",
    "visible",
    "visible_bytes",
    "whole_characters",
    "with_base",
]

#: Sign for a character that an earlier token begins.
CONTINUED = "‥"

#: Signs for whitespace in displayed text.
SIGNS = {" ": "·", "\n": "⏎", "\t": "⇥", "\r": "␍"}

#: Unambiguous signs, which programs can read: a sign in the text becomes an escape.
ESCAPES = {" ": "·", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\\": "\\\\"}
ESCAPES |= {"·": "\\u00b7", CONTINUED: "\\u2025"}


def with_base(text: str) -> str:
    """Returns text for display on its own: puts a leading combining mark on a dotted circle."""
    return "◌" + text if unicodedata.category(text[:1] or " ").startswith("M") else text


def joins(text: str, place: int) -> bool:
    """Returns True if the character at `place` joins letters or emoji."""
    around = (text[max(place - 1, 0) : place], text[place + 1 : place + 2])
    return text[place] in "\u200c\u200d" and all(
        one > "\x7f" and not "\ud800" <= one <= "\udfff" for one in around
    )


def visible(text: str, signs: Mapping[str, str] = ESCAPES) -> str:
    """Makes all of `text` visible; with `ESCAPES`, distinct texts stay distinct.

    Invisible characters are escapes, and a combining mark at the start gets a dotted circle. A
    surrogate becomes the escape of the byte it represents.

    >>> visible(" tab\\there"), visible(" end\\n\\udce4", SIGNS)
    ('·tab\\\\there', '·end⏎\\\\xe4')
    """
    return with_base(
        "".join(
            signs.get(one) or (one if _is_seen(text, place, signs) else _escape(one))
            for place, one in enumerate(text)
        )
    )


def _is_seen(text: str, place: int, signs: Mapping[str, str]) -> bool:
    return text[place].isprintable() or (signs is not ESCAPES and joins(text, place))


def _escape(character: str) -> str:
    # Two hexadecimal digits are reserved for the bytes of a character that a token splits.
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def visible_bytes(token: bytes) -> str:
    """Makes the bytes of a token visible, with the bytes of incomplete characters as escapes.

    >>> visible_bytes("根".encode()[:2] + b" a")
    '\\\\xe6\\\\xa0·a'
    """
    return visible(token.decode(errors="surrogateescape"))


def whole_characters(tokens: Iterable[bytes]) -> Iterator[tuple[bool, bytes]]:
    """Yields for each token whether the token continues an earlier character, and the whole
    characters that begin in the token. Invalid bytes stay in their token.

    >>> list(whole_characters([b"a \\xe6", b"\\xa0", b"\\xb9!", b"\\xff"]))
    [(False, b'a \\xe6\\xa0\\xb9'), (True, b''), (True, b'!'), (False, b'\\xff')]
    """
    source, ahead = iter(tokens), deque[bytes]()
    taken = 0  # Number of upcoming bytes that an earlier token has already shown.
    while (token := ahead.popleft() if ahead else next(source, None)) is not None:
        shown, continued = token[taken:], taken > 0
        taken = max(taken - len(token), 0)
        present, lacking = (0, 0) if taken else _unfinished(shown)
        while sum(map(len, ahead)) < lacking and (more := next(source, None)) is not None:
            ahead.append(more)
        rest = b"".join(ahead)[:lacking]
        with contextlib.suppress(UnicodeDecodeError):
            (shown[len(shown) - present :] + rest).decode()
            shown, taken = shown + rest, taken + lacking
        yield continued, shown


def _unfinished(token: bytes) -> tuple[int, int]:
    """Returns how many bytes of an incomplete last character are present and missing."""
    for size, byte in enumerate(token[-1:-4:-1], 1):
        if byte & 0xC0 != 0x80:
            length = 1 + (byte >= 0xC0) + (byte >= 0xE0) + (byte >= 0xF0)
            return size, max(length - size, 0)
    return 0, 0


def shorten(text: str, limit: int = 60) -> str:
    """Shortens text to at most ``limit`` characters, for messages.

    >>> shorten("abcdef", 4)
    'abc…'
    """
    return text if len(text) <= limit else text[: limit - 1] + "…"


def plural(count: int, noun: str, nouns: str | None = None) -> str:
    """Returns a count with its noun, such as "2 tokens".

    >>> plural(1, "word"), plural(2500, "word"), plural(0, "entry", "entries")
    ('1 word', '2,500 words', '0 entries')
    """
    return f"{count:,} {noun if count == 1 else nouns or noun + 's'}"
