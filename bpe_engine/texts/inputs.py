"""Recognizes the kinds of inputs, cuts inputs into parts, and yields blocks of rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from .access import opened, packing_of, size_of
from .block import Block
from .documents import text_blocks
from .errors import CorpusError
from .fields import Fields
from .json_lines import line_blocks, lines_before
from .kinds import PACKED, kind_of
from .tables import arrow_batches, parquet_groups, table_blocks
from .utf8 import NOT_UTF_16, UTF_16

__all__ = ["Input", "Part", "blocks", "first_line", "found", "parts_of_input", "row_name"]


class Input(NamedTuple):
    """A file of a corpus."""

    uri: str
    #: "jsonl", "text", "parquet", "arrow" or "csv".
    kind: str
    #: "gzip", "zstd" or None.
    compression: str | None
    #: Size in bytes.
    size: int
    #: Number of rows, if the file states it.
    rows: int | None


class Part(NamedTuple):
    """A piece of an input: bytes of JSON lines, row groups of Parquet, record batches of Arrow."""

    #: The index of the input in the plan.
    input: int
    first: int
    #: End of the part; None for the end of the input.
    last: int | None


def found(uri: str, kind: str | None) -> Input:
    """Finds the kind (by name unless given), compression, size and number of rows of a file."""
    size = size_of(uri)
    with opened(uri) as stream:
        start = stream.read(4)
        compression = packing_of(start)
        if not size and PACKED.search(uri):
            raise CorpusError(f"{uri} has no bytes, which no packed file has; copy it again")
        kind = kind or kind_of(uri)[1]
        if compression is not None and kind in ("parquet", "arrow"):
            raise CorpusError(
                f"{uri}: unpack the file first; Parquet and Arrow are read at any offset"
            )
        if kind in ("jsonl", "csv", "text") and start[:2] in UTF_16:
            raise CorpusError(NOT_UTF_16.format(uri))
        if kind == "text" and compression is None and (b"\0" in start or start == b"PAR1"):
            raise CorpusError(f"{uri} is not text; name its kind with --input-kind")
        rows = None
        if kind == "parquet":
            stream.seek(0)
            rows = sum(count for count, _ in parquet_groups(stream))
    return Input(uri, kind, compression, size, rows)


def parts_of_input(
    source: Input, number: int, unit_bytes: int, whole: bool
) -> Iterator[tuple[Part, int]]:
    """Cuts an input into parts of at most about `unit_bytes`, and yields each with its size."""
    if source.kind == "jsonl" and source.compression is None and not whole:
        for start in range(0, max(source.size, 1), unit_bytes):
            end = min(start + unit_bytes, source.size)
            yield Part(number, start, end), end - start
    elif source.kind == "parquet":
        with opened(source.uri) as stream:
            sizes = [size for _, size in parquet_groups(stream)]
        yield from _grouped(number, sizes, unit_bytes)
    elif source.kind == "arrow":
        with opened(source.uri) as stream:
            count = arrow_batches(stream)
        if count is None:
            yield Part(number, 0, None), source.size
        else:
            yield from _grouped(number, [source.size // max(count, 1)] * count, unit_bytes)
    else:
        yield Part(number, 0, None), source.size


def _grouped(number: int, sizes: list[int], unit_bytes: int) -> Iterator[tuple[Part, int]]:
    first = total = 0
    for place, size in enumerate(sizes):
        if total and total + size > unit_bytes:
            yield Part(number, first, place), total
            first, total = place, 0
        total += size
    yield Part(number, first, len(sizes)), total


def blocks(source: Input, part: Part, fields: Fields, separator: str | None) -> Iterator[Block]:
    """Yields the rows in a part of an input.

    Raises:
        CorpusError: The input cannot be read, is damaged, or lacks a field; its name is in the
            message.
    """
    if source.kind not in ("jsonl", "text"):
        yield from table_blocks(source.uri, source.kind, fields, part.first, part.last)
        return
    import pyarrow as pa

    with opened(source.uri) as file:
        stream = file
        if source.compression is not None:  # Faster than `unpacked`, which avoids pyarrow.
            stream = pa.CompressedInputStream(file, source.compression)
        if source.kind == "text":
            yield from text_blocks(stream, source.uri, separator, fields)
            return
        if part.first > 0:
            stream.seek(part.first - 1)
        yield from line_blocks(stream, source.uri, part.first, part.last, fields)


def first_line(source: Input, part: Part) -> int:
    """Returns the line offset of a part's blocks, nonzero for a byte range."""
    if source.kind != "jsonl" or part.first == 0:
        return 0
    with opened(source.uri) as stream:
        return lines_before(stream, part.first - 1) + 1


def row_name(kind: str) -> str:
    """Returns the word for a row in messages, by the kind of input."""
    return {"jsonl": "line", "csv": "record", "text": "document"}.get(kind, "row")
