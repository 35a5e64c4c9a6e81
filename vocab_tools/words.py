"""Reads word lists: each line is a word, or a word, a tab and a frequency."""

from __future__ import annotations

import codecs
import io
import os
import re
import unicodedata
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Union

from bpe_engine.common.values import checked, describe
from bpe_engine.texts.listed import looks_like_text

from .notes import Note
from .text import quoted, shorten

if TYPE_CHECKING:
    from .extend.propose import Proposal

#: A source of words: the path of a list, an open binary file, or lines.
WordSource = Union[str, "os.PathLike[str]", BinaryIO, Iterable[str]]

#: Maximum number of bad lines to name in an error.
MOST_LINES_NAMED = 10

#: Scripts without spaces between words: the first words in the names of their characters.
SPACELESS_SCRIPTS = frozenset(
    ["CJK", "HIRAGANA", "KATAKANA", "BOPOMOFO", "THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN", "YI"]
)


class WordListError(ValueError):
    """Error for a word list with unusable lines. The message names the line numbers."""


def read_words(
    source: WordSource,
    *,
    lenient: bool = False,
    notes: list[Note] | None = None,
) -> dict[str, int]:
    """Reads words and their frequencies.

    A line is cut at its tab; in a list without tabs, every line is a word with the frequency 1.
    Spaces before a word are part of the word, because words within text are ``" word"``. Words are
    normalized to NFC, frequencies of repeated words are added, and empty lines are skipped.

    Args:
        source: the path of a file, an open binary file, or lines.
        lenient: use 1 for a missing frequency, for a frequency that is not a positive integer, and
            for a line with two or more tabs, whose word is the text before the first tab.
        notes: a list that receives notes for the user.

    Returns:
        The frequency of each word, in the order of first occurrence. A frequency is a whole number,
        which can also be written like ``12.0``.

    Raises:
        WordListError: only some lines have a tab, or a line has two tabs, no word, or a frequency
            that is not a positive integer. The message names the lines.
        TypeError: a line is not a str.
        OSError: the file cannot be read.

    >>> read_words(["一只\\t200", "一只猫\\t100", "一只\\t7"])
    {'一只': 207, '一只猫': 100}
    >>> read_words([" the\\t5"])
    {' the': 5}
    """
    notes = [] if notes is None else notes
    words: dict[str, int] = {}
    bad: list[str] = []
    lines = list(_lines(source, notes))
    if not any("\t" in line for line in lines):
        lines = [f"{line.rstrip()}\t1" if line.strip() else "" for line in lines]
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        fields = line.rstrip().lstrip("\t").split("\t")
        word = unicodedata.normalize("NFC", fields[0])
        frequency, problem = _frequency(fields, lenient)
        if not word or _lacks_word(line):
            problem = "the word before the tab is missing"
        elif word.isspace():
            problem = "the word is all spaces"
        if problem:
            bad.append(f"line {number}: {problem}: {quoted(shorten(line.strip()))}")
            continue
        if word in words:
            text = f"line {number}: {quoted(shorten(word))} is repeated; the frequencies add up"
            notes.append(Note("repeated word", text))
        words[word] = words.get(word, 0) + frequency
    if bad:
        raise WordListError(_bad_lines(bad))
    return words


def _bad_lines(bad: list[str]) -> str:
    named = bad[:MOST_LINES_NAMED]
    if len(bad) > len(named):
        named.append(f"and {len(bad) - len(named)} more lines")
    hint = "; correct the lines, or take 1 with --lenient"
    return "\n  ".join([f"the word list has bad lines{hint}:", *named])


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except FileNotFoundError as error:
        if not looks_like_text(path):
            raise
        hint = f"{error.strerror}; this is the path of a list: give words as lines, in a list"
        raise FileNotFoundError(error.errno, hint, shorten(path)) from None


def _given(lines: Any) -> Iterable[str]:
    """Yields the given lines. Raises TypeError for an item that is not text."""
    if isinstance(lines, (bytes, bytearray)) or not isinstance(lines, Iterable):
        raise TypeError(
            "words are the path of a list, a file that is open, lines, or a dict of words and "
            f"frequencies, not {describe(lines)}"
        )
    if isinstance(lines, Mapping):
        raise TypeError("words in a dict are read already; give the dict to learn_merges")
    for line in checked(lines):
        if isinstance(line, tuple):
            raise TypeError(
                f"a line of words is a str, not {describe(line)}; give pairs of a word and its frequency "
                "as a dict: dict(pairs)"
            )
        if not isinstance(line, str):
            raise TypeError(f"a line of words is a str, not {describe(line)}")
        yield line


def _lines(source: WordSource, notes: list[Note]) -> Iterable[str]:
    if isinstance(source, (str, os.PathLike)):
        contents, name = _read(os.fspath(source)), os.fspath(source)
    elif isinstance(source, (io.RawIOBase, io.BufferedIOBase)):
        contents, name = source.read(), str(getattr(source, "name", "the list"))
    else:
        return _given(source)
    if contents.startswith(codecs.BOM_UTF8):
        notes.append(Note("encoding of the list", "line 1: the byte order mark is dropped"))
        contents = contents[len(codecs.BOM_UTF8) :]
    if contents[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) or 0 in contents[:256]:
        raise WordListError(
            f"{name} has zero bytes or a mark of UTF-16, and so is not UTF-8; save the list as UTF-8"
        )
    try:
        text = contents.decode()
    except UnicodeDecodeError as error:
        line = contents.count(b"\n", 0, error.start) + 1
        raise WordListError(
            f"line {line} of {name} is not UTF-8 (byte {error.start}); save the list as UTF-8"
        ) from error
    # Cuts only at line ends: str.splitlines would also cut at form feeds and similar characters.
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _lacks_word(line: str) -> bool:
    """Returns True if a line's only tab comes before any word, so that stripping would remove the
    tab."""
    return line.lstrip(" ").startswith("\t") and "\t" not in line.strip()


def _frequency(fields: list[str], lenient: bool) -> tuple[int, str | None]:
    """Returns the frequency in a line, and a description of the error, if any."""
    if len(fields) != 2:
        problem = "no tab" if len(fields) == 1 else f"{len(fields) - 1} tabs instead of one"
        return 1, None if lenient else problem
    text = fields[1].strip()
    # Spreadsheets write whole numbers as 12.0.
    text = re.sub(r"^([0-9]+)\.0*$", r"\1", text)
    if re.fullmatch(r"[0-9]{1,3}([,_. '\u00a0\u2019\u202f][0-9]{3})+", text):
        digits = "".join(filter(str.isdigit, text))
        return 1, None if lenient else f"the frequency is not a plain number; write {digits}"
    try:
        frequency = int(text) if re.fullmatch(r"[+-]?[0-9]+", text) else 0
    except ValueError:  # Python limits the number of digits.
        return 1, None if lenient else "the frequency is above 2**63"
    if frequency.bit_length() > 63:
        return 1, None if lenient else "the frequency is above 2**63"
    if frequency < 1:
        return 1, None if lenient else "the frequency is not a positive integer"
    return frequency, None


def is_spaced(word: str) -> bool:
    """Returns True if running text puts a space before the word, because its script uses spaces.

    >>> is_spaced("token"), is_spaced("一只"), is_spaced(" token")
    (True, False, False)
    """
    first = word[:1]
    if not first.isalpha():
        return False
    return unicodedata.name(first, "").split(" ")[0].split("-")[0] not in SPACELESS_SCRIPTS


def listed_words(source: WordSource | Proposal) -> list[str]:
    """Returns the words of a list without frequencies, and without normalizing them.

    Returns the keys of a mapping from :func:`read_words`, and the words of a result of
    :func:`vocab_tools.propose_words`.

    >>> listed_words(["一只\\t200", "", " 猫"])
    ['一只', ' 猫']
    >>> listed_words({" the": 5})
    [' the']
    """
    words: Any = getattr(source, "frequencies", source)
    if isinstance(words, Mapping):
        return list(words)
    lines = [line for line in _lines(words, []) if line.strip()]
    return [line.rstrip().split("\t")[0] for line in lines]
