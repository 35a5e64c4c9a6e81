"""Text out of files: plain, JSON lines, Parquet; packed with gzip or not."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

#: Text comes in blocks of about this many characters, to bound memory.
BLOCK_CHARACTERS = 1 << 20

#: The endings of files with one JSON object a line.
JSON_LINES = (".jsonl", ".ndjson")


def read_texts(path: str | os.PathLike[str], field: str = "text") -> Iterator[list[str]]:
    """The texts of a file, in blocks of about a million characters.

    A plain file is one text; it is cut where every published pattern cuts: between a newline that
    stands behind text and a letter. In ``.jsonl`` and ``.parquet`` files every row is a text.

    Args:
        path: a file in UTF-8; ``.gz`` behind its other ending says that it is packed.
        field: the name of the JSON field or the Parquet column that has the text.

    Raises:
        ValueError: the file is not UTF-8, a line is no JSON object, or it has no such field.
        ImportError: reading Parquet needs the package pyarrow.
        OSError: the file cannot be read.
    """
    name = Path(path).name.lower()
    if name.endswith(".parquet"):
        return _blocks_of_rows(_parquet_rows(path, field))
    if name.removesuffix(".gz").endswith(JSON_LINES):
        return _blocks_of_rows(_json_rows(path, field))
    return ([block] for block in _blocks_of_text(path))


@contextlib.contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    try:
        with open(path, "rb") as file:
            packed = file.peek(2)[:2] == b"\x1f\x8b"
            yield gzip.open(file) if packed else file  # type: ignore[misc]
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{path}: the gzip compression is broken: {error}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8: {error}; give a text file in UTF-8") from error


def _blocks_of_text(path: str | os.PathLike[str]) -> Iterator[str]:
    rest = ""
    with _opened(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        while block := text.read(BLOCK_CHARACTERS):
            rest += block
            end = _cut(rest)
            if end:
                yield rest[:end]
                rest = rest[end:]
    if rest:
        yield rest


def _cut(text: str) -> int:
    """The last place to cut, or 0."""
    end = text.rfind("\n", 1, len(text) - 1)
    while end > 0:
        if text[end + 1].isalpha() and not text[end - 1].isspace():
            return end + 1
        end = text.rfind("\n", 1, end)
    return 0


def _blocks_of_rows(rows: Iterator[str]) -> Iterator[list[str]]:
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


def _json_rows(path: str | os.PathLike[str], field: str) -> Iterator[str]:
    with _opened(path) as file:
        for number, line in enumerate(io.TextIOWrapper(file, encoding="utf-8"), 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except json.JSONDecodeError as error:
                raise ValueError(f"{path}, line {number}: the JSON is broken: {error}") from error
            yield _field(row, field, f"{path}, line {number}")


def _field(row: Any, field: str, where: str) -> str:
    if not isinstance(row, dict):
        raise ValueError(f"{where}: expected a JSON object, not {type(row).__name__}")
    if field not in row:
        has = ", ".join(map(repr, list(row)[:8])) or "none"
        raise ValueError(f"{where}: there is no field {field!r}, only {has}; name it with --field")
    if not isinstance(row[field], str):
        raise ValueError(f"{where}: the field {field!r} is {type(row[field]).__name__}, not text")
    # Escapes may make surrogates without their other half, which no text has.
    return str(row[field]).encode("utf-8", "replace").decode()


def _parquet_rows(path: str | os.PathLike[str], field: str) -> Iterator[str]:
    try:
        from pyarrow import ArrowInvalid, parquet
    except ImportError as error:
        raise ImportError(
            f"reading {path} needs the package pyarrow; install it with "
            f"pip install 'bpe-engine[parquet]'"
        ) from error
    try:
        with parquet.ParquetFile(path) as file:
            names = file.schema_arrow.names
            if field not in names:
                has = ", ".join(map(repr, names[:8])) or "none"
                raise ValueError(
                    f"{path}: there is no column {field!r}, only {has}; name it with --field"
                )
            for batch in file.iter_batches(batch_size=1024, columns=[field]):
                for text in batch.column(0).to_pylist():
                    if not isinstance(text, str) and text is not None:
                        kind = type(text).__name__
                        raise ValueError(f"{path}: the column {field!r} has {kind}, not text")
                    if text:
                        yield text
    except ArrowInvalid as error:
        raise ValueError(f"{path} is no Parquet file: {error}") from error
