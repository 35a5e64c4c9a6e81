"""The characters that stand for bytes in byte-level vocabularies: GPT-2's table.

A byte that is a printable Latin-1 character other than the space stands for itself; the others, in
order, are the characters from U+0100 on.
"""

from __future__ import annotations

__all__ = ["ORDER", "bytes_of", "text_of"]

_PRINTABLE = [byte for byte in range(256) if chr(byte).isprintable() and byte != 0x20]
_OTHERS = [byte for byte in range(256) if byte not in _PRINTABLE]

#: All bytes, in the order in which such vocabularies number them.
ORDER = _PRINTABLE + _OTHERS

_CHARACTER_OF = {byte: chr(byte) for byte in _PRINTABLE}
_CHARACTER_OF.update({byte: chr(256 + place) for place, byte in enumerate(_OTHERS)})
_BYTE_OF = {character: byte for byte, character in _CHARACTER_OF.items()}


def text_of(token: bytes) -> str:
    """The characters that stand for these bytes.

    >>> text_of(b" hello")
    'Ġhello'
    """
    return "".join([_CHARACTER_OF[byte] for byte in token])


def bytes_of(text: str) -> bytes:
    """The bytes that these characters stand for.

    Raises:
        KeyError: A character stands for no byte.

    >>> bytes_of("Ġhello")
    b' hello'
    """
    return bytes([_BYTE_OF[character] for character in text])
