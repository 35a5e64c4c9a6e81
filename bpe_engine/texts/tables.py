"""Reads Parquet, Arrow and CSV: row groups, record batches, whole files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .access import cannot_read, opened, unpacked
from .block import AT_ONCE, LONGEST, Block, block_of, checked_names
from .errors import CorpusError
from .fields import Fields, field_path

__all__ = ["arrow_batches", "arrow_blocks", "parquet_groups", "table_blocks"]

#: The longest record of CSV, in bytes.
_RECORD = 1 << 24

#: Rows that are taken at once at most.
_MOST_ROWS = 1 << 16


def table_blocks(
    uri: str, kind: str, fields: Fields, first: int = 0, last: int | None = None
) -> Iterator[Block]:
    """Yields the rows of a table.

    Args:
        uri: Its path or URI.
        kind: "parquet", "arrow" or "csv", which may be packed.
        fields: What to read.
        first, last: The row groups of Parquet, or record batches of Arrow; all by default.

    Raises:
        CorpusError: The file cannot be read, a field is missing, or a record is broken.
    """
    if kind == "csv":
        with cannot_read(uri), unpacked(uri) as stream:
            yield from csv_blocks(stream, uri, fields)
        return
    read = parquet_blocks if kind == "parquet" else arrow_blocks
    with opened(uri) as file:
        yield from read(file, uri, first, last, fields)


def parquet_groups(stream: Any) -> list[tuple[int, int]]:
    """Returns the rows and the bytes of each row group of a Parquet file."""
    import pyarrow.parquet as parquet

    metadata = parquet.read_metadata(stream)
    groups = (metadata.row_group(number) for number in range(metadata.num_row_groups))
    return [(int(group.num_rows), int(group.total_byte_size)) for group in groups]


def parquet_blocks(
    stream: Any, uri: str, first: int, last: int | None, fields: Fields
) -> Iterator[Block]:
    """Yields the rows of some row groups, without a whole group in memory."""
    import pyarrow.parquet as parquet

    with parquet.ParquetFile(stream, buffer_size=AT_ONCE, pre_buffer=False) as file:
        metadata = file.metadata
        last = metadata.num_row_groups if last is None else last
        _check_fields(file.schema_arrow, fields, uri)
        wanted = [".".join(field_path(fields.text))]
        if fields.name is not None:
            wanted.append(".".join(field_path(fields.name)))
        row = 1 + sum(metadata.row_group(number).num_rows for number in range(first))
        rows = _rows_at_once(metadata, first, last, wanted)
        groups = list(range(first, last))
        for batch in file.iter_batches(rows, row_groups=groups, columns=wanted, use_threads=False):
            yield from _blocks(batch, row, uri, fields)
            row += batch.num_rows


def _rows_at_once(metadata: Any, first: int, last: int, wanted: list[str]) -> int:
    """Returns the number of rows that have about as many bytes as a block."""
    size = count = 0
    for number in range(first, last):
        group = metadata.row_group(number)
        count += group.num_rows
        columns = (group.column(place) for place in range(group.num_columns))
        size += sum(
            column.total_uncompressed_size
            for column in columns
            if any(column.path_in_schema.startswith(name) for name in wanted)
        )
    return max(1, min(_MOST_ROWS, AT_ONCE * count // max(size, 1)))


def arrow_batches(stream: Any) -> int | None:
    """Returns the number of record batches of an Arrow file; None for a stream."""
    import pyarrow as pa

    try:
        return int(pa.ipc.open_file(stream).num_record_batches)
    except pa.ArrowInvalid:
        return None


def arrow_blocks(
    stream: Any, uri: str, first: int, last: int | None, fields: Fields
) -> Iterator[Block]:
    """Yields the rows of some record batches of a file, or of all of a stream."""
    import pyarrow as pa

    row = 1
    try:
        schema = pa.ipc.open_file(stream).schema
    except pa.ArrowInvalid:
        stream.seek(0)
        with pa.ipc.open_stream(stream) as batches:
            for batch in batches:
                yield from _blocks(batch, row, uri, fields)
                row += batch.num_rows
        return
    _check_fields(schema, fields, uri)
    roots = {field_path(name)[0] for name in (fields.text, fields.name) if name is not None}
    wanted = [at for at, name in enumerate(schema.names) if name in roots]
    # Rows of the batches before are counted by a column of numbers, if there is one.
    numbers = [at for at, kind in enumerate(schema.types) if pa.types.is_primitive(kind)]
    before = _arrow_columns(stream, (numbers or wanted)[:1])
    row += sum(before.get_batch(number).num_rows for number in range(first))
    file = _arrow_columns(stream, wanted)
    for number in range(first, file.num_record_batches if last is None else last):
        batch = file.get_batch(number)
        yield from _blocks(batch, row, uri, fields)
        row += batch.num_rows


def _arrow_columns(stream: Any, columns: list[int]) -> Any:
    """Opens an Arrow file of which only some columns are read."""
    import pyarrow as pa

    return pa.ipc.open_file(stream, options=pa.ipc.IpcReadOptions(included_fields=columns))


def csv_blocks(stream: Any, uri: str, fields: Fields) -> Iterator[Block]:
    """Yields the records of a CSV file whose first one has the names. Values may hold line ends."""
    import pyarrow as pa
    from pyarrow import csv

    if fields.as_objects:
        raise CorpusError(f"{uri}: segments and messages are read from JSON lines and Parquet")
    path = field_path(fields.text)
    if len(path) > 1:
        raise CorpusError(f"{uri}: a CSV file has no nested field {fields.text!r}")
    wanted = path + ([] if fields.name is None else field_path(fields.name))
    broken: list[tuple[int, str]] = []

    def on_broken(record: Any) -> str:
        broken.append(
            (record.number or 0, f"{record.actual_columns} values, not {record.expected_columns}")
        )
        return "skip"

    row = 1
    try:
        reader = csv.open_csv(
            stream,
            csv.ReadOptions(use_threads=False, block_size=_RECORD),
            csv.ParseOptions(newlines_in_values=True, invalid_row_handler=on_broken),
            csv.ConvertOptions(
                include_columns=wanted,
                column_types={name: pa.binary() for name in wanted},
                strings_can_be_null=False,
                check_utf8=False,
            ),
        )
    except (KeyError, pa.ArrowKeyError) as error:
        raise CorpusError(f"{uri}: {str(error).strip()}; name the field with --field") from error
    with reader:
        for batch in reader:
            yield from _blocks(batch, row, uri, fields)
            row += batch.num_rows
            if broken:
                break
    # Not only in the loop, which never runs if all records of a file are broken.
    if broken:
        number, reason = broken[0]
        raise CorpusError(f"{uri}, record {number or row}: {reason}; correct the quotes")


def _check_fields(schema: Any, fields: Fields, uri: str) -> None:
    """Raises CorpusError unless a schema has the fields that are read, each once."""
    _check_field(schema, fields.text, uri, "--field")
    if fields.name is not None:
        _check_field(schema, fields.name, uri, "--id-field")


def _check_field(schema: Any, field: str, uri: str, option: str) -> None:
    import pyarrow as pa

    path = field_path(field)
    names, kind = schema.names, None
    for place, name in enumerate(path):
        here = ".".join(path[: place + 1])
        if name not in names:
            has = f"only {', '.join(map(repr, names[:8]))}" if names else "and no others"
            raise CorpusError(f"{uri} has no field {here!r}, {has}; name it with {option}")
        if names.count(name) > 1:
            raise CorpusError(f"{uri} has {names.count(name)} fields {here!r}; rename one")
        kind = schema.field(name).type if kind is None else kind.field(name).type
        names = (
            [kind.field(at).name for at in range(kind.num_fields)]
            if pa.types.is_struct(kind)
            else []
        )


def _blocks(batch: Any, row: int, uri: str, fields: Fields) -> Iterator[Block]:
    """Yields the rows of a record batch, about `AT_ONCE` bytes of text at a time."""
    import numpy as np

    _check_fields(batch.schema, fields, uri)
    texts = _column(batch, fields.text)
    names = None if fields.name is None else _column(batch, fields.name)
    if fields.as_objects:
        for start in range(0, batch.num_rows, 1024):
            rows = texts.slice(start, 1024).to_pylist()
            bad = {
                at: f"the field {fields.text!r} is null" for at, it in enumerate(rows) if it is None
            }
            lines = np.arange(row + start, row + start + len(rows), dtype=np.int64)
            part_names = None if names is None else names.slice(start, 1024)
            part_names, nameless = checked_names(part_names, uri, fields)
            yield Block(rows, part_names, lines, sorted({**dict(nameless), **bad}.items()))
        return
    step = max(1, min(_MOST_ROWS, AT_ONCE * max(batch.num_rows, 1) // max(texts.nbytes, 1)))
    for start in range(0, batch.num_rows, step):
        part = texts.slice(start, step)
        lines = np.arange(row + start, row + start + len(part), dtype=np.int64)
        part_names = None if names is None else names.slice(start, step)
        block = block_of(part, part_names, lines, uri, fields)
        yield _without_longest(block)


def _without_longest(block: Block) -> Block:
    import pyarrow as pa
    import pyarrow.compute as compute

    if block.texts.nbytes <= LONGEST:
        return block
    is_long = compute.fill_null(compute.greater(compute.binary_length(block.texts), LONGEST), False)
    rows = is_long.to_numpy(zero_copy_only=False).nonzero()[0].tolist()
    texts = compute.if_else(is_long, pa.scalar(None, pa.large_string()), block.texts)
    reason = f"the document is longer than {LONGEST:,} bytes"
    return block._replace(texts=texts, bad=sorted([*block.bad, *((at, reason) for at in rows)]))


def _column(batch: Any, field: str) -> Any:
    import pyarrow.compute as compute

    path = field_path(field)
    column = batch.column(path[0])
    return compute.struct_field(column, path[1:]) if path[1:] else column
