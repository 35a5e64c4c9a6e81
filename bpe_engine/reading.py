"""Reads text from files: plain text, JSON lines or Parquet, also compressed."""

from __future__ import annotations

import codecs
import contextlib
import glob
import gzip
import importlib
import io
import json
import os
import re
import shutil
import stat
import sys
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Union

#: A path, or several.
Paths = Union[str, "os.PathLike[str]", Iterable[Union[str, "os.PathLike[str]"]]]

#: Standard input and standard output.
STANDARD = "-"

#: Text comes in blocks of about this many characters, to bound memory.
BLOCK_CHARACTERS = 1 << 18

#: The endings of files with one JSON object a line.
JSON_LINES = (".jsonl", ".ndjson")

#: How to handle bytes that are not UTF-8.
ERRORS = ("strict", "replace")

#: The most rows of a Parquet file at a time.
_MOST_ROWS = 1024

#: Packed bytes that are unpacked at once: 2 KB of Zstandard may hold 64 MB.
_PACKED_BYTES = 1 << 11

#: The characters that decide whether a text is cut at a line end, and those round it.
_CONTEXT = 4

#: Letters and digits that every published pattern, of any version of Unicode, takes for such.
_WORD_CHARACTERS = (
    "0-9A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02af\u0391-\u03a1\u03a3-\u03c9\u0410-\u044f"
    "\u05d0-\u05ea\u0621-\u063a\u0641-\u064a\u0904-\u0939\u0e01-\u0e30\u3041-\u3096\u4e00-\u9fa5"
    "\uac00-\ud7a3"
)
_IN_WORD = re.compile(f"[{_WORD_CHARACTERS}]")

#: Characters that end a word inside a line, and are never in its piece.
BEHIND_WORDS = " \u3001\u3002\uff01\uff0c\uff1a\uff1b\uff1f"

#: The text up to the last end of a word.
_WORD_END = re.compile(f".*[{_WORD_CHARACTERS}](?=[{BEHIND_WORDS}])", re.DOTALL)

#: After this many blocks without a line end to cut at, text is cut inside a line.
_MOST_UNCUT = 4


def read_texts(
    path: str | os.PathLike[str],
    field: str = "text",
    errors: str = "strict",
    *,
    inside_lines: bool = False,
) -> Iterator[list[str]]:
    """Returns the texts of a file, in blocks of some 250,000 characters.

    A plain file is one text; it is cut where every published pattern cuts, at most line ends. A
    stretch without such a place, such as paragraphs that end in full stops with empty lines between
    them, is one block; with ``inside_lines`` it is cut after a word. In ``.jsonl`` and ``.parquet``
    files every row is a text; null rows are skipped.

    Args:
        path: a file in UTF-8; one that is packed with gzip or Zstandard is known by its first
            bytes. ``-`` is standard input, which is plain text, packed or not.
        field: the name of the JSON field or the Parquet column that has the text.
        errors: "strict", or "replace" to read bytes that are not UTF-8 as U+FFFD.
        inside_lines: cut long stretches between a word and a space or a full stop of Chinese, too,
            where every published pattern cuts.

    Raises:
        ValueError: the file is not UTF-8, or a line is not a JSON object or lacks the field.
        ImportError: reading Parquet or Zstandard needs a package.
        OSError: the file cannot be read.
    """
    if errors not in ERRORS:
        raise ValueError(f"errors is {errors!r}; choose one of {', '.join(ERRORS)}")
    if has_rows(path):
        return _blocks_of_rows(read_rows(path, field, errors))
    return ([block] for block in _blocks_of_text(path, errors, inside_lines))


def has_rows(path: str | os.PathLike[str]) -> bool:
    """True if a file has rows with fields, by its name.

    >>> has_rows("a.jsonl.gz"), has_rows("a.parquet"), has_rows("a.txt")
    (True, True, False)
    """
    name = Path(path).name.lower()
    return name.removesuffix(".gz").removesuffix(".zst").endswith((*JSON_LINES, ".parquet"))


def read_rows(path: str | os.PathLike[str], field: str, errors: str = "strict") -> Iterator[str]:
    """Returns the text of each row of a ``.parquet`` file, or of JSON lines; null rows are empty or
    skipped. Raises as :func:`read_texts` does."""
    if Path(path).name.lower().endswith(".parquet"):
        return _parquet_rows(path, field)
    return _json_rows(path, field, errors)


def corpus_files(paths: Paths) -> list[str]:
    """Expands a path or several, folders and globs, to files, in a fixed order.

    A folder becomes all files in it and below it, but for those whose names begin with a dot. A path
    that does not exist and has ``*``, ``?`` or ``[`` becomes the files that it matches; ``**``
    matches any folders.

    Raises:
        FileNotFoundError: a file does not exist, or a glob matches none.
        ValueError: a folder has no files.
    """
    files: list[str] = []
    for given in [paths] if isinstance(paths, (str, os.PathLike)) else paths:
        path = os.fspath(given)
        if path != STANDARD and not os.path.exists(path) and glob.has_magic(path):
            found = sorted(filter(_is_text_file, glob.glob(path, recursive=True)))
            if not found:
                raise FileNotFoundError(2, "matches no file", path)
        elif os.path.isdir(path):
            found = sorted(_files_below(path))
            if not found:
                raise ValueError(f"{path}: the folder has no files")
        elif path == STANDARD or os.path.exists(path):
            found = [path]
        else:
            raise FileNotFoundError(2, "no such file", path)
        files += found
    return files


@contextlib.contextmanager
def naming(path: str) -> Iterator[None]:
    """Makes errors name ``path``: the file that was given, not a temporary one."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), path) from error


@contextlib.contextmanager
def readable_again(paths: Iterable[str]) -> Iterator[list[str]]:
    """Yields paths that can be read more than once: the contents of pipes are copied to files.

    The paths keep their order and their endings. Raises OSError, naming the folder, if it has no
    room for the copies.
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
                with naming(folder), open(kept, "xb") as file:
                    shutil.copyfileobj(given, file, BLOCK_CHARACTERS)
            found.append(kept)
        yield found


def _files_below(folder: str) -> Iterator[str]:
    for where, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        paths = (os.path.join(where, name) for name in names if not name.startswith("."))
        yield from filter(_is_text_file, paths)


def _is_text_file(path: str) -> bool:
    """True if a path that was found, not given, belongs to the corpus: a regular file, since a pipe
    may never end; or a broken link, which fails when it is opened."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return True


@contextlib.contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    try:
        with contextlib.ExitStack() as stack:
            is_standard = os.fspath(path) == STANDARD
            file: Any = sys.stdin.buffer if is_standard else stack.enter_context(open(path, "rb"))
            start = file.peek(4)[:4] if hasattr(file, "peek") else b""
            if start[:2] == b"\x1f\x8b":
                yield stack.enter_context(gzip.open(file))  # type: ignore[misc]
            elif start == b"\x28\xb5\x2f\xfd":
                yield stack.enter_context(_zstandard(file, path))
            else:
                yield file
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{path}: the gzip compression is broken: {error}") from error
    except OSError as error:
        if error.filename is None:
            error.filename = _label(path)
        raise


def _label(path: str | os.PathLike[str]) -> str:
    """Returns the name of a file in messages."""
    return "standard input" if os.fspath(path) == STANDARD else os.fspath(path)


@contextlib.contextmanager
def _zstandard(file: BinaryIO, path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    try:
        package = importlib.import_module("zstandard")
    except ImportError as error:
        raise ImportError(
            f"reading {path} needs the package zstandard; install it with "
            f"pip install 'bpe-engine[vocab-tools]'"
        ) from error
    try:
        with io.BufferedReader(_ZstandardFrames(package, file), BLOCK_CHARACTERS) as lines:
            yield lines
    except package.ZstdError as error:
        raise ValueError(f"{path}: the Zstandard compression is broken: {error}") from error


class _ZstandardFrames(io.RawIOBase):
    """Reads one frame after the other. The package's own reader does not notice that a file was cut
    off."""

    def __init__(self, package: Any, file: BinaryIO) -> None:
        self.package, self.file = package, file
        self.frame: Any = None
        self.packed = b""
        self.plain = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self.plain:
            self.packed = self.packed or self.file.read(_PACKED_BYTES)
            if not self.packed:
                if self.frame is not None:
                    raise self.package.ZstdError("the file ends within a frame")
                return 0
            if self.frame is None:
                self.frame = self.package.ZstdDecompressor().decompressobj()
            self.plain = memoryview(self.frame.decompress(self.packed))
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


def _blocks_of_text(path: str | os.PathLike[str], errors: str, inside_lines: bool) -> Iterator[str]:
    # Text that waits for a place to cut, and its end, where a place may depend on what follows.
    parts: list[str] = []
    rest = ""
    with _opened(path) as file:
        for block in _decoded(file, path, errors):
            rest += block
            end = _cut(rest)
            if not end and inside_lines and len(parts) >= _MOST_UNCUT:
                end = _end_of_word(rest)
            if end:
                yield "".join([*parts, rest[:end]])
                parts, rest = [], rest[end:]
            # Every part is searched once, however long a line is.
            parts.append(rest[:-_CONTEXT])
            rest = rest[-_CONTEXT:]
    if parts or rest:
        yield "".join([*parts, rest])


def _decoded(file: BinaryIO, path: str | os.PathLike[str], errors: str) -> Iterator[str]:
    offset, rest = 0, b""
    while True:
        block = file.read(BLOCK_CHARACTERS)
        data = rest + block
        try:
            text, used = codecs.utf_8_decode(data, errors, not block)
        except UnicodeDecodeError as error:
            raise _not_utf8(_label(path), error, offset + error.start) from error
        if text:
            yield text
        if not block:
            return
        offset += used
        rest = data[used:]


def _cut(text: str) -> int:
    """Returns the last place where every published pattern cuts, or 0.

    It follows a line end between text and text (a slash may belong to the punctuation before the
    line end); or else, for line ends of Windows, it is between a word and a line end.
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
    """Returns the last end of a word inside a line where every published pattern cuts, or 0."""
    found = _WORD_END.match(text)
    return found.end() if found else 0


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
            where = f"{_label(path)}, line {number}"
            try:
                line = data.decode("utf-8", errors)
            except UnicodeDecodeError as error:
                raise _not_utf8(where, error, offset + error.start) from error
            offset += len(data)
            if number == 1:
                line = line.removeprefix("\ufeff")
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except ValueError as error:
                raise ValueError(f"{where}: the JSON is broken: {error}") from error
            except RecursionError as error:
                raise ValueError(f"{where}: the JSON is nested too deeply") from error
            yield _field(row, field, where)


def _field(row: Any, field: str, where: str) -> str:
    if not isinstance(row, dict):
        raise ValueError(f"{where}: expected a JSON object, not {type(row).__name__}")
    if field not in row:
        has = ", ".join(map(repr, list(row)[:8])) or "none"
        raise ValueError(f"{where} has no field {field!r}, only {has}; name it with --field")
    if row[field] is None:
        return ""
    if not isinstance(row[field], str):
        raise ValueError(f"{where}: the field {field!r} is {type(row[field]).__name__}, not text")
    # Escapes may make lone surrogates, which are not text.
    return str(row[field]).encode("utf-8", "replace").decode()


def _parquet_rows(path: str | os.PathLike[str], field: str) -> Iterator[str]:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError as error:
        raise ImportError(
            f"reading {path} needs the package pyarrow; install it with "
            f"pip install 'bpe-engine[vocab-tools]'"
        ) from error
    try:
        # A megabyte of the file at a time, not all of a group of rows.
        with parquet.ParquetFile(path, buffer_size=1 << 20, pre_buffer=False) as file:
            names = file.schema_arrow.names
            if field not in names:
                has = ", ".join(map(repr, names[:8])) or "none"
                raise ValueError(
                    f"{path} has no column {field!r}, only {has}; name it with --field"
                )
            rows = _rows_at_a_time(file.metadata, field)
            for batch in file.iter_batches(batch_size=rows, columns=[field]):
                for text in batch.column(0).to_pylist():
                    if not isinstance(text, str) and text is not None:
                        kind = type(text).__name__
                        raise ValueError(f"{path}: the column {field!r} has {kind}, not text")
                    if text:
                        yield text
    except ArrowException as error:
        raise ValueError(f"{path} is not a Parquet file: {error}") from error
    except OSError as error:
        if error.errno is not None:
            raise
        raise ValueError(f"{path}: the Parquet file is damaged: {str(error).strip()}") from error


def _rows_at_a_time(metadata: Any, field: str) -> int:
    """Returns the number of rows with about as much text as a block."""
    size, row_count = 0, int(metadata.num_rows)
    for group in range(metadata.num_row_groups):
        columns = (
            metadata.row_group(group).column(number) for number in range(metadata.num_columns)
        )
        size += sum(int(c.total_uncompressed_size) for c in columns if c.path_in_schema == field)
    average = size // max(row_count, 1)
    return max(1, min(_MOST_ROWS, BLOCK_CHARACTERS // max(average, 1)))
