"""Cuts text into segments; a segment counts for one script, and may be shown as a difference."""

from __future__ import annotations

import re
import threading
from collections import Counter
from dataclasses import dataclass

from ..corpus.scripts import script_of

#: Matches between a newline after text and a letter. Every published pattern cuts there, so
#: segments have the same tokens as the whole text.
_CUT = re.compile(r"(?<=\S\n)(?=[^\W\d_])")

#: Script of text without letters.
OTHER = "other"

#: A line with its line ends.
_LINE = re.compile(r"[^\n]*\n+|[^\n]+")

_LATIN = re.compile("[A-Za-z]")

#: Maximum length in characters of a shown segment; longer segments are shown line by line.
MOST_SHOWN = 240


@dataclass
class Size:
    """The size of a text, which does not depend on a tokenizer."""

    texts: int = 0
    bytes: int = 0
    characters: int = 0
    #: Number of words, separated by whitespace.
    words: int = 0

    def add(self, text: str) -> None:
        """Adds the size of a text."""
        self.texts += 1
        self.bytes += len(text.encode())
        self.characters += len(text)
        self.words += len(text.split())

    def __iadd__(self, other: Size) -> Size:
        self.texts += other.texts
        self.bytes += other.bytes
        self.characters += other.characters
        self.words += other.words
        return self


def segments_of(texts: list[str]) -> list[str]:
    """Cuts texts into lines or paragraphs.

    >>> segments_of(["a line\\nand one\\n\\nmore\\n  indented", "b"])
    ['a line\\n', 'and one\\n\\nmore\\n  indented', 'b']
    """
    return [segment for text in texts for segment in _CUT.split(text) if segment]


def lines_of(text: str) -> list[str]:
    """Cuts a text into lines, each with its line ends.

    >>> lines_of("a line.\\n\\nmore\\n  indented")
    ['a line.\\n\\n', 'more\\n', '  indented']
    """
    return _LINE.findall(text)


class _Scripts(dict[int, str]):
    """Table for `str.translate`: maps a letter to a character for its script, and drops the
    rest."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.lock = threading.Lock()

    def __missing__(self, code: int) -> str:
        script = script_of(chr(code))
        with self.lock:
            if script not in self.names:
                self.names.append(script)
            self[code] = "" if script == OTHER else chr(self.names.index(script))
        return self[code]


_SCRIPTS = _Scripts()


def main_script(text: str) -> str:
    """Returns the script of most letters in a text; "other" for text without letters.

    >>> main_script("the word 猫"), main_script("12:30")
    ('latin', 'other')
    """
    if text.isascii():
        return "latin" if _LATIN.search(text) else OTHER
    marks = Counter(text.translate(_SCRIPTS))
    return _SCRIPTS.names[ord(max(marks, key=marks.__getitem__))] if marks else OTHER


def script_parts(text: str) -> list[tuple[str, str]]:
    """Cuts a text into groups of lines with the same main script.

    A line without letters joins the previous line, or at the start the next line.

    >>> script_parts("12\\nthe word\\n42\\n还有一行\\n")
    [('latin', '12\\nthe word\\n42\\n'), ('cjk', '还有一行\\n')]
    """
    parts: list[tuple[str, list[str]]] = []
    for line in lines_of(text):
        script = main_script(line)
        if not parts or OTHER not in (script, parts[-1][0]) and script != parts[-1][0]:
            parts.append((script, []))
        elif script != OTHER:
            parts[-1] = (script, parts[-1][1])
        parts[-1][1].append(line)
    return [(script, "".join(lines)) for script, lines in parts]
