"""Prints to terminals and pipes whose encoding may not be UTF-8."""

from __future__ import annotations

import io
import re
import sys
from typing import TextIO

__all__ = ["escape_unencodable", "for_terminal", "printable", "write"]

#: Characters that a terminal interprets instead of showing: control characters except line ends,
#: and direction marks; also lone surrogates, which file names can hold.
_OBEYED = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)


def printable(text: str) -> str:
    """Returns text that is safe to print: control characters except line ends are escaped.

    >>> printable("a\\x1b[31mb\\n")
    'a\\\\x1b[31mb\\n'
    """
    return _OBEYED.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def for_terminal(text: str, stream: TextIO) -> str:
    """Returns text with its lines broken between words if the stream is a terminal."""
    if not stream.isatty():
        return text
    import shutil

    columns = shutil.get_terminal_size().columns
    return "\n".join(_broken(line, columns) for line in text.split("\n"))


def _broken(line: str, columns: int) -> str:
    import textwrap

    indent = " " * (len(line) - len(line.lstrip()) + 2)
    return textwrap.fill(
        line, columns, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def escape_unencodable() -> None:
    """Makes standard output and error escape characters that their encoding lacks: ``\\u6839``.

    Without this call, printing such a character raises UnicodeEncodeError. Call once, before the
    first line is printed; covers print, click and rich.
    """
    for stream in (sys.stdout, sys.stderr):
        # The program may have replaced the stream with an object of another class.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def write(contents: bytes) -> None:
    """Writes bytes to standard output.

    Raises BrokenPipeError if the reader has closed the pipe, and OSError if the disk is full.
    """
    sys.stdout.flush()
    rest = memoryview(contents)
    while rest:
        # Under PYTHONUNBUFFERED, a call may write only a part.
        rest = rest[sys.stdout.buffer.write(rest) :]
    sys.stdout.buffer.flush()
