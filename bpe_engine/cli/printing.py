"""Prints to terminals and pipes whose encoding may not be UTF-8."""

from __future__ import annotations

import io
import sys

__all__ = ["escape_unencodable"]


def escape_unencodable() -> None:
    """Makes standard output and error escape what their encoding lacks, as in ``\\u6839``.

    Without it, printing such a character raises UnicodeEncodeError. Call it once, before the first
    line is printed: it then holds for print, click and rich alike.
    """
    for stream in (sys.stdout, sys.stderr):
        # A program that replaced a stream may have put anything there.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
