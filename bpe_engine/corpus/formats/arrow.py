"""Arrow files and Parquet: ``input_ids`` (list of int32), ``id`` and ``loss_mask``.

The schema's metadata names the tokenizer. An empty document is EOD alone, or an empty list without
EOD.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from .base import Documents, Format, Layout, Reader, Writer, damaged

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["ARROW", "PARQUET", "batch_of", "schema_of"]

#: Maximum number of ids in a record batch or row group, unless one document is longer.
_GROUP = 1 << 22


def schema_of(layout: Layout) -> Any:
    """Returns the schema of encoded documents."""
    import pyarrow as pa

    fields = [pa.field("input_ids", pa.list_(pa.int32()), nullable=False)]
    if layout.has_loss:
        fields.append(pa.field("loss_mask", pa.list_(pa.uint8()), nullable=False))
    if layout.has_names:
        fields.append(pa.field("id", pa.string()))
    return pa.schema(fields, {"tokenizer": layout.tokenizer})


def batch_of(documents: Documents, schema: Any) -> Any:
    """Returns documents as a record batch; ids and masks are copied only if their type changes."""
    import numpy as np
    import pyarrow as pa

    offsets = np.zeros(len(documents.ends) + 1, np.int32)
    offsets[1:] = documents.ends

    def lists(values: Any, kind: Any) -> Any:
        flat = pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)])
        buffers = [None, pa.py_buffer(offsets)]
        return pa.Array.from_buffers(pa.list_(kind), len(offsets) - 1, buffers, children=[flat])

    # Ids below 2**31 have the same bits as int32.
    columns = [lists(np.ascontiguousarray(documents.ids, np.uint32).view(np.int32), pa.int32())]
    if documents.loss is not None:
        columns.append(lists(np.ascontiguousarray(documents.loss), pa.uint8()))
    if "id" in schema.names:
        columns.append(documents.names)
    return pa.record_batch(columns, schema=schema)


class _Writer(Writer):
    def __init__(self, path: str, layout: Layout, is_parquet: bool):
        import pyarrow as pa
        import pyarrow.parquet as parquet

        self.path, self.schema, self.is_parquet = path, schema_of(layout), is_parquet
        if is_parquet:
            self.file = parquet.ParquetWriter(path, self.schema, compression="zstd")
        else:
            self.file = pa.ipc.new_file(path, self.schema)
        self.waiting: list[Documents] = []
        self.count = 0

    def _add(self, documents: Documents) -> None:
        self.waiting.append(documents)
        self.count += len(documents.ids)
        if self.count >= _GROUP:
            self._write()

    def _write(self) -> None:
        # Input blocks are small, so each row group collects several blocks.
        import pyarrow as pa

        batches = [batch_of(documents, self.schema) for documents in self.waiting]
        table = pa.Table.from_batches(batches, self.schema).combine_chunks()
        if self.is_parquet:
            self.file.write_table(table, row_group_size=max(table.num_rows, 1))
        else:
            self.file.write_table(table)
        self.waiting, self.count = [], 0

    def close(self) -> list[str]:
        if self.waiting:
            self._write()
        self.file.close()
        del self.file  # Dropping the last reference also closes the underlying stream.
        return [self.path]


class _Reader(Reader):
    def __init__(self, path: str, layout: Layout, is_parquet: bool):
        import numpy as np
        import pyarrow as pa
        import pyarrow.parquet as parquet

        self.path, self.layout, self.is_parquet = path, layout, is_parquet
        try:
            if is_parquet:
                self._file = parquet.ParquetFile(path)
                count, schema = self._file.metadata.num_row_groups, self._file.schema_arrow
            else:
                self._file = pa.ipc.open_file(pa.memory_map(path))
                count, schema = self._file.num_record_batches, self._file.schema
            if schema.names != schema_of(layout).names:
                raise damaged(path, f"its columns are {schema.names}")
            ends, rows, tokens, self._starts = [], 0, 0, []
            self._number = -1
            self._held: dict[str, Any] = {}
            for number in range(count):
                batch = self._batch(number)
                offsets = np.asarray(batch["input_ids"].offsets)
                if layout.has_loss and (np.asarray(batch["loss_mask"].offsets) != offsets).any():
                    raise damaged(path, "the masks are not as long as the ids")
                self._starts.append((rows, tokens))
                ends.append(tokens + offsets[1:].astype(np.int64) - offsets[0])
                rows, tokens = rows + len(offsets) - 1, tokens + int(offsets[-1] - offsets[0])
        except (pa.ArrowException, OSError) as error:
            raise damaged(path, str(error).strip()) from error
        self._ends = np.concatenate([np.zeros(0, np.int64), *ends])
        self.documents, self.tokens = rows, tokens

    def _batch(self, number: int) -> dict[str, Any]:
        if number != self._number:
            if self.is_parquet:
                table = self._file.read_row_group(number, use_threads=False)
                columns = [column.combine_chunks() for column in table.columns]
                self._held = dict(zip(table.column_names, columns))
            else:
                batch = self._file.get_batch(number)
                self._held = dict(zip(batch.schema.names, batch.columns))
            for column in self._held.values():
                column.validate(full=True)
            self._number = number
        return self._held

    def _flat(self, name: str, first: int, last: int) -> Any:
        import numpy as np

        parts = []
        for number in range(self._holding(first, 1), len(self._starts)):
            start = self._starts[number][1]
            if start >= last:
                break
            column = self._batch(number)[name]
            values = np.asarray(column.flatten())
            parts.append(values[max(first - start, 0) : last - start])
        return np.concatenate(parts) if len(parts) != 1 else parts[0]

    def _holding(self, place: int, axis: int) -> int:
        import bisect

        return max(bisect.bisect_right(self._starts, place, key=lambda start: start[axis]) - 1, 0)

    def ends(self, first: int, last: int) -> npt.NDArray[np.int64]:
        return self._ends[first:last]

    def ids(self, first: int, last: int) -> npt.NDArray[Any]:
        import numpy as np

        return self._flat("input_ids", first, last) if last > first else np.zeros(0, np.int32)

    def loss(self, first: int, last: int) -> npt.NDArray[np.uint8] | None:
        import numpy as np

        if not self.layout.has_loss:
            return None
        return self._flat("loss_mask", first, last) if last > first else np.zeros(0, np.uint8)

    def names(self, first: int, last: int) -> Any:
        import pyarrow as pa

        if not self.layout.has_names:
            return None
        parts = [pa.nulls(0, pa.string())]
        for number in range(self._holding(first, 0), len(self._starts)):
            start = self._starts[number][0]
            if start >= last:
                break
            column = self._batch(number)["id"]
            begin = max(first - start, 0)
            parts.append(column.slice(begin, last - start - begin))
        return pa.concat_arrays(parts)

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path, "layout": self.layout, "is_parquet": self.is_parquet}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]


class _Table(Format):
    has_loss = True
    has_names = True

    def __init__(self, name: str):
        self.name = name

    def stem(self, number: int | None) -> str:
        return "corpus" if number is None else f"{number:05d}"

    def _path(self, folder: str, stem: str) -> str:
        return os.path.join(folder, f"{stem}.{self.name}")

    def writer(self, folder: str, stem: str, layout: Layout, *, is_merged: bool = False) -> Writer:
        return _Writer(self._path(folder, stem), layout, self.name == "parquet")

    def reader(self, folder: str, stem: str, layout: Layout) -> Reader:
        return _Reader(self._path(folder, stem), layout, self.name == "parquet")


ARROW = _Table("arrow")
PARQUET = _Table("parquet")
