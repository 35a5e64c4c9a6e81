"""OLMo's and dolma's token files: ``part-DD-MMMMM.npy`` without a header, and ``.csv.gz``.

The csv has a row ``start,end,id,src,loc`` for each document: its range of ids, name, file and line.
Label masks have one byte per id. An empty document is EOD alone, or has no ids without EOD.
"""

from __future__ import annotations

import functools
import gzip
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ...texts.errors import CorpusError
from .base import Array, Documents, Format, Layout, Reader, Writer, damaged, write_ids, written

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["FORMAT"]


class _Writer(Writer):
    def __init__(self, path: str, layout: Layout):
        self.dtype = layout.uint()
        self.paths = [f"{path}.npy", f"{path}.csv.gz"]
        self.paths += [f"{path}.label_mask.npy"] * layout.has_loss
        self.raw = [open(name, "wb") for name in self.paths]
        # The header contains no time and no name, so that the bytes are reproducible.
        self.csv = gzip.GzipFile("", "wb", 6, self.raw[1], mtime=0)

    def _add(self, documents: Documents) -> None:
        import numpy as np
        import pyarrow as pa
        import pyarrow.compute as compute
        from pyarrow import csv

        write_ids(self.raw[0], documents.ids, self.dtype)
        if documents.loss is not None:
            self.raw[2].write(documents.loss.data)
        ends = documents.ends + self.tokens
        count = len(ends)
        names = documents.names
        if names is None:
            names = pa.array(np.arange(self.documents, self.documents + count)).cast(pa.string())
        if compute.any(compute.match_substring_regex(names, r"[\r\n]")).as_py():
            # OLMo-core reads the index line by line.
            raise CorpusError(
                f"{documents.uri}: the name of a document holds a line end, and olmo's index has "
                "a line for each document; choose another --id-field"
            )
        lines = np.zeros(count, np.int64) if documents.lines is None else documents.lines
        columns = {
            "start": np.concatenate([[self.tokens], ends[:-1]]),
            "end": ends,
            "id": names.fill_null(""),
            "src": _repeated(documents.uri, count),
            "loc": lines,
        }
        options = csv.WriteOptions(include_header=False, quoting_style="needed")
        csv.write_csv(pa.table(columns), self.csv, options)

    def close(self) -> list[str]:
        return written(self.paths, [self.csv, *self.raw])


def _repeated(uri: Any, count: int) -> Any:
    import pyarrow as pa

    return pa.repeat(uri, count) if isinstance(uri, str) else uri


class _Reader(Reader):
    """Checks the index once, and reads the index again when a column is needed."""

    def __init__(self, path: str, layout: Layout):
        self._ids = Array(f"{path}.npy", layout.uint())
        self._csv = f"{path}.csv.gz"
        self.documents = before = 0
        for batch in self._batches():
            starts, stops = batch.column(0).to_numpy(), batch.column(1).to_numpy()
            is_next = starts[0] == before and (starts[1:] == stops[:-1]).all()
            if not is_next or (stops < starts).any():
                raise damaged(self._csv, "its documents do not follow one another")
            before = int(stops[-1])
            self.documents += len(stops)
        self.tokens = len(self._ids)
        if before != self.tokens:
            raise damaged(f"{path}.npy", f"it has {self.tokens:,} ids, and its index {before:,}")
        mask = f"{path}.label_mask.npy"
        self._loss = Array(mask, "u1") if layout.has_loss else None
        if self._loss is not None and len(self._loss) != self.tokens:
            raise damaged(mask, f"{len(self._loss):,} masks for {self.tokens:,} ids")

    def _batches(self) -> Iterator[Any]:
        import pyarrow as pa
        from pyarrow import csv

        kinds = {"start": pa.int64(), "end": pa.int64(), "id": pa.string()}
        kinds |= {"src": pa.dictionary(pa.int32(), pa.string()), "loc": pa.int64()}
        options = csv.ReadOptions(use_threads=False, column_names=[*kinds], block_size=1 << 24)
        try:
            with gzip.open(self._csv) as file:
                if file.peek(1):
                    yield from csv.open_csv(
                        file,
                        options,
                        csv.ParseOptions(newlines_in_values=True),
                        csv.ConvertOptions(column_types=kinds),
                    )
        except (pa.ArrowException, EOFError, OSError) as error:
            raise damaged(self._csv, str(error)) from error

    @functools.cached_property
    def _index(self) -> Any:
        import pyarrow as pa

        batches = [batch.select(["end", "id", "src", "loc"]) for batch in self._batches()]
        if not batches:
            kinds = [pa.int64(), pa.string(), pa.string(), pa.int64()]
            return [pa.nulls(0, kind) for kind in kinds]
        table = pa.Table.from_batches(batches).unify_dictionaries()
        return [column.combine_chunks() for column in table.columns]

    def ends(self, first: int, last: int) -> npt.NDArray[np.int64]:
        return self._index[0].slice(first, last - first).to_numpy()  # type: ignore[no-any-return]

    def ids(self, first: int, last: int) -> npt.NDArray[Any]:
        return self._ids.read(first, last)

    def loss(self, first: int, last: int) -> npt.NDArray[np.uint8] | None:
        return None if self._loss is None else self._loss.read(first, last)

    def names(self, first: int, last: int) -> Any:
        return self._index[1].slice(first, last - first)

    def sources(self, first: int, last: int) -> tuple[npt.NDArray[np.int64], Any]:
        import pyarrow as pa

        _, _, uris, lines = (column.slice(first, last - first) for column in self._index)
        return lines.to_numpy(), uris.cast(pa.string())


class _Olmo(Format):
    name = "olmo"
    has_loss = True
    has_names = True
    needs_lines = True

    def stem(self, number: int | None) -> str:
        return f"part-00-{number or 0:05d}"

    def writer(self, folder: str, stem: str, layout: Layout, *, is_merged: bool = False) -> Writer:
        return _Writer(os.path.join(folder, stem), layout)

    def reader(self, folder: str, stem: str, layout: Layout) -> Reader:
        return _Reader(os.path.join(folder, stem), layout)


FORMAT = _Olmo()
