"""Reads the text files of tokenizers, which must be UTF-8 without a byte order mark."""

from __future__ import annotations

import codecs
import os
from pathlib import Path

__all__ = ["check_marks", "decode_file", "read_text"]


def check_marks(contents: bytes, name: str) -> None:
    """Raises ValueError for UTF-16, for UTF-32, and for a byte order mark, which would become part
    of the first token."""
    start = contents[:4]
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or b"\0" in start:
        raise ValueError(f"{name} is UTF-16 or UTF-32; convert it: iconv -f utf-16 -t utf-8")
    if start.startswith(codecs.BOM_UTF8):
        raise ValueError(f"{name} begins with a byte order mark; save it as UTF-8 without one")


def decode_file(contents: bytes, name: str) -> str:
    """Returns the text of a file. Raises ValueError if the text is not UTF-8."""
    check_marks(contents, name)
    try:
        return contents.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"{name} is not UTF-8 (byte {error.start})") from None


def read_text(path: str | os.PathLike[str]) -> str:
    """Returns the text of a file. Raises ValueError as `decode_file` does, and OSError."""
    return decode_file(Path(path).read_bytes(), os.fspath(path))
