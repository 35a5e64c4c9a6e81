"""Text out of files: plain, JSON lines, Parquet; packed with gzip or Zstandard, or not."""

from __future__ import annotations

import codecs
import contextlib
import glob
import gzip
import importlib
import io
import json
import os
import shutil
import sys
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

#: Text comes in blocks of about this many characters, to bound memory.
BLOCK_CHARACTERS = 1 << 18

#: The endings of files with one JSON object a line.
JSON_LINES = (".jsonl", ".ndjson")

#: Standard input, as a path.
STANDARD = "-"

#: What to do with bytes that are no UTF-8.
ERRORS = ("strict", "replace")


def read_texts(
    path: str | os.PathLike[str], field: str = "text", errors: str = "strict"
) -> Iterator[list[str]]:
    """The texts of a file, in blocks of some 250,000 characters.

    A plain file is one text; it is cut where every published pattern cuts: between a newline that
    stands behind text and a letter. In ``.jsonl`` and ``.parquet`` files every row is a text.

    Args:
        path: a file in UTF-8; one that is packed with gzip or Zstandard is known by its first
            bytes. ``-`` is standard input, plain text.
        field: the name of the JSON field or the Parquet column that has the text.
        errors: "replace" puts U+FFFD where bytes are no UTF-8.

    Raises:
        ValueError: the file is not UTF-8, a line is no JSON object, or it has no such field.
        ImportError: reading Parquet or Zstandard needs a package.
        OSError: the file cannot be read.
    """
    if errors not in ERRORS:
        raise ValueError(f"errors is {errors!r}; choose one of {', '.join(ERRORS)}")
    name = Path(path).name.lower()
    if name.endswith(".parquet"):
        return _blocks_of_rows(_parquet_rows(path, field))
    if name.removesuffix(".gz").removesuffix(".zst").endswith(JSON_LINES):
        return _blocks_of_rows(_json_rows(path, field, errors))
    return ([block] for block in _blocks_of_text(path, errors))


def corpus_files(paths: Iterable[str | os.PathLike[str]]) -> list[str]:
    """The files that paths stand for, in a fixed order.

    A folder stands for all files in it and below it, but for those whose names begin with a dot;
    a path that does not exist and has ``*``, ``?`` or ``[`` for the files that it matches, ``**``
    for any folders.

    Raises:
        FileNotFoundError: there is no such file, or none that matches.
        ValueError: a folder has no files.
    """
    files: list[str] = []
    for given in paths:
        path = os.fspath(given)
        if path != STANDARD and not os.path.exists(path) and glob.has_magic(path):
            found = sorted(filter(os.path.isfile, glob.glob(path, recursive=True)))
            if not found:
                raise FileNotFoundError(2, "matches no file", path)
        elif os.path.isdir(path):
            found = sorted(_files_below(path))
            if not found:
                raise ValueError(f"{path}: there are no files in this folder")
        elif path == STANDARD or os.path.exists(path):
            found = [path]
        else:
            raise FileNotFoundError(2, "there is no such file", path)
        files += found
    return files


@contextlib.contextmanager
def readable_again(paths: Iterable[str]) -> Iterator[list[str]]:
    """Paths that can be read more than once: what comes out of a pipe goes to a file first.

    They are in the order of ``paths``, and end as these do. Raises ValueError for a pipe that is
    given twice, and OSError where there is no room for what it holds.
    """
    with contextlib.ExitStack() as stack:
        found: list[str] = []
        folder = ""
        for number, path in enumerate(paths):
            if os.path.isfile(path):
                found.append(path)
                continue
            folder = folder or stack.enter_context(tempfile.TemporaryDirectory(prefix="corpus-"))
            kept = os.path.join(folder, f"{number}-{Path(path).name}")
            with contextlib.ExitStack() as files:
                standard = path == STANDARD
                given = sys.stdin.buffer if standard else files.enter_context(open(path, "rb"))
                with open(kept, "xb") as file:
                    shutil.copyfileobj(given, file, BLOCK_CHARACTERS)
            found.append(kept)
        yield found


def _files_below(folder: str) -> Iterator[str]:
    for where, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (os.path.join(where, name) for name in names if not name.startswith("."))


@contextlib.contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    try:
        with contextlib.ExitStack() as stack:
            if os.fspath(path) == STANDARD:
                yield sys.stdin.buffer
                return
            file = stack.enter_context(open(path, "rb"))
            start = file.peek(4)[:4]
            if start[:2] == b"\x1f\x8b":
                yield stack.enter_context(gzip.open(file))  # type: ignore[misc]
            elif start == b"\x28\xb5\x2f\xfd":
                yield stack.enter_context(_zstandard(file, path))
            else:
                yield file
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{path}: the gzip compression is broken: {error}") from error


@contextlib.contextmanager
def _zstandard(file: BinaryIO, path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    try:
        package = importlib.import_module("zstandard")
    except ImportError as error:
        raise ImportError(
            f"reading {path} needs the package zstandard; install it with "
            f"pip install 'bpe-engine[zstd]'"
        ) from error
    try:
        with io.BufferedReader(_ZstandardFrames(package, file), BLOCK_CHARACTERS) as lines:
            yield lines
    except package.ZstdError as error:
        raise ValueError(f"{path}: the Zstandard compression is broken: {error}") from error


class _ZstandardFrames(io.RawIOBase):
    """Frames, one behind the other. The package's own reader does not tell a file that was cut off
    from a whole one."""

    def __init__(self, package: Any, file: BinaryIO) -> None:
        self.package, self.file = package, file
        self.frame: Any = None
        self.packed = self.plain = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self.plain:
            self.packed = self.packed or self.file.read(1 << 17)
            if not self.packed:
                if self.frame is not None:
                    raise self.package.ZstdError("the file ends within a frame")
                return 0
            if self.frame is None:
                self.frame = self.package.ZstdDecompressor().decompressobj()
            self.plain = self.frame.decompress(self.packed)
            self.packed = self.frame.unused_data
            if self.frame.eof:
                self.frame = None
        size = min(len(buffer), len(self.plain))
        buffer[:size], self.plain = self.plain[:size], self.plain[size:]
        return size


def _not_utf8(where: str, error: UnicodeDecodeError, offset: int) -> ValueError:
    return ValueError(
        f"{where} is not UTF-8: byte 0x{error.object[error.start]:02x} at offset {offset:,} "
        f"({error.reason}); give text in UTF-8, or --errors replace to have U+FFFD in its place"
    )


def _blocks_of_text(path: str | os.PathLike[str], errors: str) -> Iterator[str]:
    rest = ""
    with _opened(path) as file:
        for block in _decoded(file, path, errors):
            rest += block
            end = _cut(rest)
            if end:
                yield rest[:end]
                rest = rest[end:]
    if rest:
        yield rest


def _decoded(file: BinaryIO, path: str | os.PathLike[str], errors: str) -> Iterator[str]:
    offset, rest = 0, b""
    while True:
        block = file.read(BLOCK_CHARACTERS)
        data = rest + block
        try:
            text, used = codecs.utf_8_decode(data, errors, not block)
        except UnicodeDecodeError as error:
            raise _not_utf8(os.fspath(path), error, offset + error.start) from error
        if text:
            yield text
        if not block:
            return
        offset += used
        rest = data[used:]


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


def _json_rows(path: str | os.PathLike[str], field: str, errors: str) -> Iterator[str]:
    offset = 0
    with _opened(path) as file:
        for number, data in enumerate(file, 1):
            where = f"{path}, line {number}"
            try:
                line = data.decode("utf-8", errors)
            except UnicodeDecodeError as error:
                raise _not_utf8(where, error, offset + error.start) from error
            offset += len(data)
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except json.JSONDecodeError as error:
                raise ValueError(f"{where}: the JSON is broken: {error}") from error
            yield _field(row, field, where)


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
