"""Makes text visible: spaces, control characters, and characters that tokens split."""

from __future__ import annotations

import contextlib
import unicodedata
from collections import deque
from collections.abc import Iterable, Iterator

from ..shown import CONTINUED

_ESCAPES = {" ": "·", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\\": "\\\\"}
_ESCAPES |= {"·": "\\u00b7", CONTINUED: "\\u2025"}


def visible(text: str) -> str:
    """Makes all of `text` visible, and different texts different: spaces are middle dots, invisible
    characters are escapes, and a combining mark at the start gets a dotted circle.

    >>> visible(" tab\\there")
    '·tab\\\\there'
    """
    shown = "".join(_visible_character(character) for character in text)
    return "◌" + shown if unicodedata.category(text[:1] or " ").startswith("M") else shown


def _visible_character(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character.isprintable():
        return character
    # Escapes with two hexadecimal digits are bytes of a character that a token splits.
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def visible_bytes(token: bytes) -> str:
    """Makes the bytes of a token visible, with the bytes of incomplete characters as escapes.

    >>> visible_bytes("根".encode()[:2] + b" a")
    '\\\\xe6\\\\xa0·a'
    """
    shown = []
    while token:
        try:
            whole, rest = token.decode(), b""
            bad = b""
        except UnicodeDecodeError as error:
            whole = token[: error.start].decode()
            bad, rest = token[error.start : error.end], token[error.end :]
        shown.append(visible(whole) + "".join(f"\\x{byte:02x}" for byte in bad))
        token = rest
    return "".join(shown)


def whole_characters(tokens: Iterable[bytes]) -> Iterator[tuple[bool, bytes]]:
    """Yields for each token whether it continues a character of the token before, and the characters
    that begin in it, whole. Bytes that are not UTF-8 stay where they are.

    >>> list(whole_characters([b"a \\xe6", b"\\xa0", b"\\xb9!", b"\\xff"]))
    [(False, b'a \\xe6\\xa0\\xb9'), (True, b''), (True, b'!'), (False, b'\\xff')]
    """
    source, ahead = iter(tokens), deque[bytes]()
    taken = 0  # Bytes of the next tokens that an earlier one shows.
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
    """Returns how many bytes of its last character a token has, and how many it lacks."""
    for size, byte in enumerate(token[-1:-4:-1], 1):
        if byte & 0xC0 != 0x80:
            length = 1 + (byte >= 0xC0) + (byte >= 0xE0) + (byte >= 0xF0)
            return size, max(length - size, 0)
    return 0, 0
