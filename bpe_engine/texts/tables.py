"""Reads Parquet, Arrow and CSV: row groups, record batches, whole files."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Any

from .access import cannot_read, opened, unpacked
from .block import AT_ONCE, LONGEST, Block, block_of, check_field, checked_names
from .errors import CorpusError
from .fields import Fields, field_path, joined_path

__all__ = ["arrow_batches", "arrow_blocks", "parquet_groups", "table_blocks"]

#: pyarrow's error for a CSV record that has a different number of values from the first.
_WRONG_COUNT = re.compile(r"Row #(\d+): Expected (\d+) columns, got (\d+)")

#: Maximum length of a CSV record in bytes.
_RECORD = 1 << 24

#: Maximum number of rows per read, as text and as objects.
_MOST_ROWS, _OBJECTS = 1 << 16, 1 << 10


def table_blocks(
    uri: str, kind: str, fields: Fields, first: int = 0, last: int | None = None
) -> Iterator[Block]:
    """Yields the rows of a table.

    Args:
        uri: The path or URI.
        kind: "parquet", "arrow" or "csv", which may be packed.
        fields: The fields to read.
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
    """Returns the number of rows and of bytes in each row group of a Parquet file."""
    import pyarrow.parquet as parquet

    metadata = parquet.read_metadata(stream)
    groups = (metadata.row_group(number) for number in range(metadata.num_row_groups))
    return [(int(group.num_rows), int(group.total_byte_size)) for group in groups]


def parquet_blocks(
    stream: Any, uri: str, first: int, last: int | None, fields: Fields
) -> Iterator[Block]:
    """Yields the rows of some row groups, without holding a whole group in memory."""
    import pyarrow.parquet as parquet

    with parquet.ParquetFile(stream, buffer_size=AT_ONCE, pre_buffer=False) as file:
        metadata = file.metadata
        last = metadata.num_row_groups if last is None else last
        _check_fields(file.schema_arrow, fields, uri)
        names = _read_fields(file.schema_arrow, fields)
        wanted = [".".join(field_path(name)) for name in names]
        row = 1 + sum(metadata.row_group(number).num_rows for number in range(first))
        # The share of the wanted columns in the last group: pyarrow ends the process on reading the
        # size of a column with damaged metadata.
        share = 1.0
        for number in range(first, last):
            group = metadata.row_group(number)
            size = max(group.total_byte_size, 1)
            rows = max(1, min(_MOST_ROWS, int(AT_ONCE * group.num_rows / (size * share))))
            taken = 0
            for batch in file.iter_batches(
                rows, row_groups=[number], columns=wanted, use_threads=False
            ):
                taken += batch.nbytes
                yield from _blocks(batch, row, uri, fields)
                row += batch.num_rows
            share = max(taken / size, 1e-3)


def arrow_batches(stream: Any) -> int | None:
    """Returns the number of record batches in an Arrow file; None for a stream."""
    import pyarrow as pa

    try:
        return int(pa.ipc.open_file(stream).num_record_batches)
    except pa.ArrowInvalid:
        return None


def arrow_blocks(
    stream: Any, uri: str, first: int, last: int | None, fields: Fields
) -> Iterator[Block]:
    """Yields the rows in some record batches of a file, or all rows of a stream."""
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
    roots = {field_path(name)[0] for name in _read_fields(schema, fields)}
    wanted = [at for at, name in enumerate(schema.names) if name in roots]
    # Counts the rows of earlier batches by reading a numeric column, if any.
    numbers = [at for at, kind in enumerate(schema.types) if pa.types.is_primitive(kind)]
    before = _arrow_columns(stream, (numbers or wanted)[:1])
    row += sum(before.get_batch(number).num_rows for number in range(first))
    file = _arrow_columns(stream, wanted)
    for number in range(first, file.num_record_batches if last is None else last):
        batch = file.get_batch(number)
        yield from _blocks(batch, row, uri, fields)
        row += batch.num_rows


def _arrow_columns(stream: Any, columns: list[int]) -> Any:
    import pyarrow as pa

    return pa.ipc.open_file(stream, options=pa.ipc.IpcReadOptions(included_fields=columns))


def csv_blocks(stream: Any, uri: str, fields: Fields) -> Iterator[Block]:
    """Yields the records of a CSV file with a header. Values may contain line ends."""
    import pyarrow as pa
    from pyarrow import csv

    if fields.as_objects:
        raise CorpusError(f"{uri}: segments and messages are read from JSON lines and Parquet")
    path = field_path(fields.text)
    if len(path) > 1:
        raise CorpusError(f"{uri}: a CSV file has no nested field {fields.text!r}")
    wanted = path + ([] if fields.name is None else field_path(fields.name))
    row = 1
    try:
        reader = csv.open_csv(
            stream,
            csv.ReadOptions(use_threads=False, block_size=_RECORD),
            csv.ParseOptions(newlines_in_values=True),
            csv.ConvertOptions(
                include_columns=wanted,
                column_types={name: pa.binary() for name in wanted},
                strings_can_be_null=False,
                check_utf8=False,
            ),
        )
        with reader:
            for batch in reader:
                yield from _blocks(batch, row, uri, fields)
                row += batch.num_rows
    except (KeyError, pa.ArrowKeyError) as error:
        raise CorpusError(f"{uri}: {str(error).strip()}; name the field with --field") from error
    except pa.ArrowInvalid as error:
        # The error quotes the record, which may be a whole document.
        wrong = _WRONG_COUNT.search(str(error))
        if wrong is None:
            raise
        number, expected, actual = wrong.groups()
        raise CorpusError(
            f"{uri}, record {number}: {actual} values, not {expected}; correct the quotes"
        ) from error


def _check_fields(schema: Any, fields: Fields, uri: str) -> None:
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
    import numpy as np

    _check_fields(batch.schema, fields, uri)
    texts = _column(batch, fields.text, uri)
    names = None if fields.name is None else _column(batch, fields.name, uri)
    if fields.as_objects:
        yield from _object_blocks(batch, texts, names, row, uri, fields)
        return
    step = max(1, min(_MOST_ROWS, AT_ONCE * max(batch.num_rows, 1) // max(texts.nbytes, 1)))
    for start in range(0, batch.num_rows, step):
        part = texts.slice(start, step)
        lines = np.arange(row + start, row + start + len(part), dtype=np.int64)
        part_names = None if names is None else names.slice(start, step)
        block = block_of(part, part_names, lines, uri, fields)
        yield _without_longest(block)


def _object_blocks(
    batch: Any, texts: Any, names: Any, row: int, uri: str, fields: Fields
) -> Iterator[Block]:
    import numpy as np
    import pyarrow as pa

    columns = {fields.text: texts}
    for name in _other_fields(batch.schema, fields):
        columns[name] = _column(batch, name, uri)
    for name, column in columns.items():
        try:
            column.validate(full=True)
        except pa.ArrowException as error:
            raise CorpusError(
                f"{uri}, field {name!r}: the column is damaged or not UTF-8: {error}; make the file "
                "again"
            ) from error
    for start in range(0, batch.num_rows, _OBJECTS):
        parts = {
            name: [_without_nulls(it) for it in column.slice(start, _OBJECTS).to_pylist()]
            for name, column in columns.items()
        }
        values = parts.pop(fields.text)
        rows = [
            (value, {name: part[at] for name, part in parts.items() if part[at] is not None})
            for at, value in enumerate(values)
        ]
        bad = {
            at: f"the field {fields.text!r} is null" for at, it in enumerate(values) if it is None
        }
        lines = np.arange(row + start, row + start + len(rows), dtype=np.int64)
        part_names = None if names is None else names.slice(start, _OBJECTS)
        part_names, nameless = checked_names(part_names, uri, fields)
        yield Block(rows, part_names, lines, sorted({**dict(nameless), **bad}.items()))


def _without_nulls(value: Any) -> Any:
    """Drops null members of structs, because a column has the members of all rows."""
    if isinstance(value, dict):
        return {name: _without_nulls(it) for name, it in value.items() if it is not None}
    return [_without_nulls(it) for it in value] if isinstance(value, list) else value


def _read_fields(schema: Any, fields: Fields) -> list[str]:
    names = [] if fields.name is None else [fields.name]
    return [fields.text, *names, *_other_fields(schema, fields)]


def _other_fields(schema: Any, fields: Fields) -> list[str]:
    found = [name for name in fields.others if _has_field(schema, name)]
    if fields.siblings:
        *above, text = field_path(fields.text)
        holder = list(schema)
        for name in above:
            kind = next(field.type for field in holder if field.name == name)
            holder = [kind.field(at) for at in range(kind.num_fields)]
        names = [field.name for field in holder]
        found += [
            joined_path([*above, field.name])
            for field in holder
            if field.name != text and names.count(field.name) == 1 and _is_plain(field.type)
        ]
    return [*dict.fromkeys(found)]


def _is_plain(kind: Any) -> bool:
    """Returns False for images and numeric vectors, which are large and useless to templates."""
    import pyarrow as pa

    types = pa.types
    if types.is_struct(kind):
        return all(_is_plain(kind.field(at).type) for at in range(kind.num_fields))
    if types.is_list(kind) or types.is_large_list(kind):
        return not types.is_primitive(kind.value_type) and _is_plain(kind.value_type)
    checks = (types.is_primitive, types.is_string, types.is_large_string)
    return any(check(kind) for check in checks)


def _has_field(schema: Any, field: str) -> bool:
    with contextlib.suppress(CorpusError):
        _check_field(schema, field, "", "")
        return True
    return False


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


def _column(batch: Any, field: str, uri: str) -> Any:
    import pyarrow.compute as compute

    path = field_path(field)
    column = batch.column(path[0])
    # Even reading the size of a column follows its offsets.
    check_field(column, uri, field)
    return compute.struct_field(column, path[1:]) if path[1:] else column
