"""Reads plain text in parts, cut only at boundaries of every published pattern."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from .access import label, unpacked
from .utf8 import decoded

__all__ = ["BEHIND_WORDS", "BLOCK_CHARACTERS", "parts_of_text"]

#: Approximate size of a block in characters, which bounds memory.
BLOCK_CHARACTERS = 1 << 18

#: Number of characters around a line end that decide whether to cut there.
_CONTEXT = 4

#: Letters and digits in every published pattern and version of Unicode.
_WORD_CHARACTERS = (
    "0-9A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02af\u0391-\u03a1\u03a3-\u03c9\u0410-\u044f"
    "\u05d0-\u05ea\u0621-\u063a\u0641-\u064a\u0904-\u0939\u0e01-\u0e30\u3041-\u3096\u4e00-\u9fa5"
    "\uac00-\ud7a3"
)
_IN_WORD = re.compile(f"[{_WORD_CHARACTERS}]")

#: Characters that end a word inside a line and never belong to its piece.
BEHIND_WORDS = " \u3001\u3002\uff01\uff0c\uff1a\uff1b\uff1f"

#: Matches up to the last word end.
_WORD_END = re.compile(f".*[{_WORD_CHARACTERS}](?=[{BEHIND_WORDS}])", re.DOTALL)

#: Number of blocks without a cut at a line end; after these, a cut inside a line is allowed.
_MOST_UNCUT = 4


def parts_of_text(
    path: str | os.PathLike[str], errors: str = "strict", *, inside_lines: bool = False
) -> Iterator[str]:
    """Yields the text of a file in parts of about `BLOCK_CHARACTERS`. A part without a safe cut,
    such as paragraphs that end with a full stop and an empty line, stays whole.

    Args:
        path: A file, a URI or ``-``, packed or not.
        errors: "strict", or "replace" to read bytes that are not UTF-8 as U+FFFD.
        inside_lines: Also cut long runs after a word.

    Raises:
        CorpusError: The file is not UTF-8, or its compressed data is damaged.
        OSError: The file cannot be read.
    """
    # Text that waits for a cut, and its end, where a cut may depend on later text.
    parts: list[str] = []
    rest = ""
    with unpacked(path) as file:
        chunks = iter(lambda: file.read(BLOCK_CHARACTERS), b"")
        for block in decoded(chunks, label(path), errors):
            rest += block
            end = _cut(rest)
            if not end and inside_lines and len(parts) >= _MOST_UNCUT:
                end = _end_of_word(rest)
            if end:
                yield "".join([*parts, rest[:end]])
                parts, rest = [], rest[end:]
            # Each part is searched only once, so that a long line takes linear time.
            parts.append(rest[:-_CONTEXT])
            rest = rest[-_CONTEXT:]
    if parts or rest:
        yield "".join([*parts, rest])


def _cut(text: str) -> int:
    """Returns the last boundary of every published pattern, or 0.

    The boundary follows a line end between two texts (a slash may belong to the punctuation before
    the line end); or else, for Windows line ends, is between a word and a line end.
    """
    end = text.rfind("\n", 1, len(text) - 1)
    while end > 0:
        following = text[end + 1]
        if not (text[end - 1].isspace() or following.isspace() or following == "/"):
            return end + 1
        before = end - 1 if text[end - 1] == "\r" else end
        if before > 0 and _IN_WORD.match(text, before - 1):
            return before
        end = text.rfind("\n", 1, end)
    return 0


def _end_of_word(text: str) -> int:
    """Returns the last word end inside a line that is a boundary of every published pattern, or
    0."""
    found = _WORD_END.match(text)
    return found.end() if found else 0
