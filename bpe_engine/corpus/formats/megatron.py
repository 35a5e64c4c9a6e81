"""Megatron's indexed data set: ``PREFIX.bin`` and ``PREFIX.idx``.

A document is a sequence. An empty document is a sequence of EOD alone, or of length 0 without EOD,
as in Megatron's fast script, NeMo and datatrove.
"""

from __future__ import annotations

import os
import struct
from typing import TYPE_CHECKING, Any

from .base import (
    Array,
    Documents,
    Format,
    Layout,
    Reader,
    Writer,
    damaged,
    lengths_of,
    write_ids,
    written,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["FORMAT"]

_MAGIC = b"MMIDIDX\x00\x00"
_HEADER = struct.Struct("<9sQBQQ")
_TYPES = {4: "<i4", 8: "<u2"}
#: Megatron's writer uses 16 bits up to this vocabulary size.
_FEW_IDS = 65_500
_AT_ONCE = 1 << 20


class _Writer(Writer):
    def __init__(self, path: str, layout: Layout):
        self.code = 8 if layout.largest_id + 1 < _FEW_IDS else 4
        self.paths = [f"{path}.bin", f"{path}.idx"]
        self.bin = open(self.paths[0], "wb")
        self.idx = open(self.paths[1], "w+b")
        # The header's counts are known only at the end.
        self.idx.write(b"\0" * _HEADER.size)

    def _add(self, documents: Documents) -> None:
        write_ids(self.bin, documents.ids, _TYPES[self.code])
        self.idx.write(lengths_of(documents.ends).astype("<i4").data)

    def close(self) -> list[str]:
        import numpy as np

        count, width = self.documents, int(_TYPES[self.code][-1])
        start = 0
        for first in range(0, count, _AT_ONCE):
            some = min(_AT_ONCE, count - first)
            self.idx.seek(_HEADER.size + 4 * first)
            lengths = np.frombuffer(self.idx.read(4 * some), "<i4").astype(np.int64)
            ends = start + np.cumsum(lengths)
            self.idx.seek(_HEADER.size + 4 * count + 8 * first)
            self.idx.write(((ends - lengths) * width).astype("<i8").data)
            start = int(ends[-1])
        self.idx.seek(_HEADER.size + 12 * count)
        for first in range(0, count + 1, _AT_ONCE):
            self.idx.write(np.arange(first, min(first + _AT_ONCE, count + 1), dtype="<i8").data)
        self.idx.seek(0)
        self.idx.write(_HEADER.pack(_MAGIC, 1, self.code, count, count + 1))
        return written(self.paths, [self.bin, self.idx])


class _Reader(Reader):
    def __init__(self, path: str):
        import numpy as np

        index = f"{path}.idx"
        with open(index, "rb") as file:
            header = file.read(_HEADER.size)
        if len(header) < _HEADER.size:
            raise damaged(index, "its header is cut off")
        magic, version, code, count, documents = _HEADER.unpack(header)
        if magic != _MAGIC or version != 1 or code not in _TYPES:
            raise damaged(index, f"its header is {header[:18].hex(' ')}")
        if documents != count + 1:
            raise damaged(index, f"{documents:,} ends of documents for {count:,} sequences")
        size = _HEADER.size + 20 * count + 8
        if os.path.getsize(index) != size:
            raise damaged(index, f"it has {os.path.getsize(index):,} bytes, not {size:,}")
        self._ids = Array(f"{path}.bin", _TYPES[code])
        self.documents, self.tokens = count, len(self._ids)
        self.width = self._ids.dtype.itemsize
        self.lengths = Array(index, "<i4", _HEADER.size, count)
        self.starts = Array(index, "<i8", _HEADER.size + 4 * count, count)
        numbers = Array(index, "<i8", _HEADER.size + 12 * count, count + 1)
        position = 0
        for first in range(0, count + 1, _AT_ONCE):
            last = min(first + _AT_ONCE, count)
            lengths, starts = self.lengths.read(first, last), self.starts.read(first, last)
            expected = position + np.cumsum(lengths, dtype=np.int64) - lengths
            if (lengths < 0).any() or (starts != expected * self.width).any():
                raise damaged(index, f"sequences {first:,} and after are not where they should be")
            position += int(lengths.sum(dtype=np.int64))
            last = min(first + _AT_ONCE, count + 1)
            if (numbers.read(first, last) != np.arange(first, last)).any():
                raise damaged(index, "its documents are not its sequences")
        if position != self.tokens:
            raise damaged(f"{path}.bin", f"it has {self.tokens:,} ids, and its index {position:,}")

    def ends(self, first: int, last: int) -> npt.NDArray[np.int64]:
        starts = self.starts.read(first, last) // self.width
        return starts + self.lengths.read(first, last)  # type: ignore[no-any-return]

    def ids(self, first: int, last: int) -> npt.NDArray[Any]:
        return self._ids.read(first, last)


class _Megatron(Format):
    name = "megatron"

    def stem(self, number: int | None) -> str:
        return "corpus_text_document" if number is None else f"{number:05d}_text_document"

    def writer(self, folder: str, stem: str, layout: Layout, *, is_merged: bool = False) -> Writer:
        return _Writer(os.path.join(folder, stem), layout)

    def reader(self, folder: str, stem: str, layout: Layout) -> Reader:
        return _Reader(os.path.join(folder, stem))


FORMAT = _Megatron()
