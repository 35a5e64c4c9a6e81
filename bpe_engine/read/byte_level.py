"""GPT-2's table, which writes each byte of a token as one printable character.

A byte that is a printable Latin-1 character other than the space is written as itself; the other
bytes, in order, are written as the characters from U+0100 on.
"""

from __future__ import annotations

__all__ = ["ORDER", "bytes_of", "text_of", "try_bytes_of"]

_PRINTABLE = [byte for byte in range(256) if chr(byte).isprintable() and byte != 0x20]
_OTHERS = [byte for byte in range(256) if byte not in _PRINTABLE]

#: All bytes, in the order of ids in byte-level vocabularies.
ORDER = _PRINTABLE + _OTHERS

_CHARACTER_OF = {byte: chr(byte) for byte in _PRINTABLE}
_CHARACTER_OF.update({byte: chr(256 + place) for place, byte in enumerate(_OTHERS)})
_BYTE_OF = {character: byte for byte, character in _CHARACTER_OF.items()}
_TEXT = "".join(_CHARACTER_OF[byte] for byte in range(256))


def text_of(token: bytes) -> str:
    """Converts bytes to characters.

    >>> text_of(b" hello")
    'Ġhello'
    """
    return token.decode("latin-1").translate(_TEXT)


def bytes_of(text: str) -> bytes:
    """Converts characters back to bytes.

    Raises:
        KeyError: A character is not in the table.

    >>> bytes_of("Ġhello")
    b' hello'
    """
    return bytes([_BYTE_OF[character] for character in text])


def try_bytes_of(text: str) -> bytes | None:
    """Converts characters back to bytes; returns None if a character is not in the table.

    >>> try_bytes_of("Ġhello"), try_bytes_of("▁hello")
    (b' hello', None)
    """
    try:
        return bytes_of(text)
    except KeyError:
        return None
