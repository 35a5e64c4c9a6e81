"""Reads the texts of files in blocks, for counting, training and comparing."""

from __future__ import annotations

import os
from collections.abc import Iterator

from ..common.values import check_choice, describe
from .access import label, unpacked
from .errors import CorpusError
from .fields import Fields
from .json_row import Null, Refused, row_of
from .kinds import kind_of
from .plain_text import BLOCK_CHARACTERS, parts_of_text

__all__ = ["ERRORS", "has_rows", "read_rows", "read_texts"]

#: Ways to handle invalid UTF-8.
ERRORS = ("strict", "replace")


def read_texts(
    path: str | os.PathLike[str],
    field: str = "text",
    errors: str = "strict",
    *,
    inside_lines: bool = False,
) -> Iterator[list[str]]:
    """Returns the texts of a file, in blocks of some 250,000 characters.

    A plain file is one text, cut at boundaries of every published pattern, mostly line ends. In
    files of JSON lines, Parquet, Arrow and CSV every row is a text; null rows are skipped.

    Args:
        path: A file or a URI in UTF-8; gzip and Zstandard are recognized by the first bytes. ``-``
            is standard input, which is plain text, packed or not.
        field: The field with the text, such as ``meta.text``.
        errors: "strict", or "replace" to read bytes that are not UTF-8 as U+FFFD.
        inside_lines: Also cut long runs between a word and a space or a Chinese full stop, where
            every published pattern cuts.

    Raises:
        ValueError: The file is not UTF-8, or a line is not a JSON object or lacks the field.
        ImportError: Reading tables, Zstandard or URIs needs a package.
        OSError: The file cannot be read.
    """
    check_choice("errors", errors, ERRORS)
    if not isinstance(field, str):
        raise TypeError(f"field is {describe(field)}; give a name, such as text or meta.text")
    if has_rows(path):
        return _blocks(read_rows(path, field, errors))
    return ([text] for text in parts_of_text(path, errors, inside_lines=inside_lines))


def has_rows(path: str | os.PathLike[str]) -> bool:
    """Returns True if a file has rows with fields, judging by the name. A ``.json`` is text,
    because its value may span many lines.

    >>> has_rows("a.jsonl.gz"), has_rows("a.parquet"), has_rows("a.txt"), has_rows("a.json")
    (True, True, False, False)
    """
    ending, kind = kind_of(os.fspath(path))
    return kind != "text" and ending != ".json"


def read_rows(path: str | os.PathLike[str], field: str, errors: str = "strict") -> Iterator[str]:
    """Yields the text in each row of a table or of JSON lines, skipping null rows. Raises like
    :func:`read_texts`."""
    if kind_of(os.fspath(path))[1] in ("parquet", "arrow", "csv"):
        return _table_rows(os.fspath(path), field)
    return _json_rows(path, field, errors)


def _json_rows(path: str | os.PathLike[str], field: str, errors: str) -> Iterator[str]:
    fields = Fields(field)
    with unpacked(path) as file:
        for number, line in enumerate(file, 1):
            line = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
            if not line.strip(b" \t\r\n"):
                continue
            try:
                yield row_of(line, fields, errors)[0]
            except Null:
                continue
            except Refused as error:
                way_out = "; --errors replace reads it as U+FFFD"
                hint = way_out if "UTF-8" in str(error) or "surrogate" in str(error) else ""
                raise CorpusError(f"{label(path)}, line {number}: {error}{hint}") from None
            except RecursionError:
                raise CorpusError(
                    f"{label(path)}, line {number}: broken JSON: it is nested too deeply"
                ) from None


def _table_rows(path: str, field: str) -> Iterator[str]:
    from .tables import table_blocks

    for block in table_blocks(path, kind_of(path)[1], Fields(field)):
        for row, reason in block.bad:
            if not reason.endswith("is null"):
                raise CorpusError(f"{path}, row {block.lines[row]}: {reason}")
        yield from filter(None, block.texts.to_pylist())


def _blocks(rows: Iterator[str]) -> Iterator[list[str]]:
    block: list[str] = []
    size = 0
    for text in rows:
        block.append(text)
        size += len(text) + 1
        if size >= BLOCK_CHARACTERS:
            yield block
            block, size = [], 0
    if block:
        yield block
