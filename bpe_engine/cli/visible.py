"""Makes text visible: spaces, control characters, and bytes of characters that tokens split."""

from __future__ import annotations

import unicodedata

_ESCAPES = {" ": "·", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\\": "\\\\", "·": "\\u00b7"}


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
