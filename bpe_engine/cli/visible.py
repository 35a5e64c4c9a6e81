"""Text made visible: spaces, control characters, bytes of characters that a token cuts."""

from __future__ import annotations

import unicodedata

_ESCAPES = {" ": "·", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\\": "\\\\", "·": "\\u00b7"}


def visible(text: str) -> str:
    """`text` with everything made visible, and no two texts alike: a space is a middle dot, what
    cannot be seen is an escape, and a mark at the start sits on a dotted circle.

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
    # Two hexadecimal digits are for the bytes of a character that a token cuts.
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def visible_bytes(token: bytes) -> str:
    """The bytes of a token made visible. Bytes of a character that is not whole are escapes.

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
