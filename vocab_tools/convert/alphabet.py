"""Bytes as the characters that stand for them in GPT-2's files and in every byte-level
``tokenizer.json``."""

from __future__ import annotations

#: Bytes that are printable characters of Latin-1 other than the space stand for themselves.
_PRINTABLE = [byte for byte in range(256) if chr(byte).isprintable() and byte != 0x20]
_OTHERS = [byte for byte in range(256) if byte not in set(_PRINTABLE)]

_CHARACTERS = {byte: chr(byte) for byte in _PRINTABLE}
#: The others are the characters from U+0100 on.
_CHARACTERS.update({byte: chr(0x100 + place) for place, byte in enumerate(_OTHERS)})
_BYTES = {character: byte for byte, character in _CHARACTERS.items()}
_WRITTEN = "".join(_CHARACTERS[byte] for byte in range(256))


def written(token: bytes) -> str:
    """A token as these files spell it.

    >>> written(b" the\\n")
    '\u0120the\u010a'
    """
    return token.decode("latin-1").translate(_WRITTEN)


def read(text: str) -> bytes | None:
    """The bytes that a spelling stands for; None where a character stands for no byte.

    >>> read("\u0120the"), read("\u2581the")
    (b' the', None)
    """
    try:
        return bytes([_BYTES[character] for character in text])
    except KeyError:
        return None
