"""llm.c's and nanoGPT's token files, with the ends of documents in separate files.

llm.c: a header of 1,024 bytes, then ids; EOD comes before each document. Merged, the files are
shards of 100,000,000 ids, the first for validation, and a document may continue in the next. A
part is one shard. nanoGPT: ids of 16 bits without a header, EOD after each document. Neither format
has an index, so a ``.docs`` file lists the end of each document in ids (64 bits) for packing and
`verify`. An empty document is EOD alone, or has no ids without EOD.
"""

from __future__ import annotations

import os
import re
import struct
from typing import TYPE_CHECKING, Any

from .base import Array, Documents, Format, Layout, Reader, Writer, check_ends, damaged, write_ids

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["LLMC", "NANOGPT"]

SHARD_TOKENS = 10**8

_HEADER = 1024
#: Magic number and version of each id type.
_TYPES = {"<u2": (20240520, 1), "<u4": (20240801, 7)}


def _shards(folder: str, stem: str) -> list[str]:
    pattern = re.compile(rf"{re.escape(stem)}_(val|train)_\d+\.bin")
    names = [name for name in os.listdir(folder) if pattern.fullmatch(name)]
    return sorted(names, key=lambda name: ("_val_" not in name, name))


class _Writer(Writer):
    def __init__(self, folder: str, stem: str, dtype: str, has_header: bool, is_sharded: bool):
        self.folder, self.stem, self.dtype = folder, stem, dtype
        self.has_header, self.is_sharded = has_header, is_sharded
        self.paths = [os.path.join(folder, f"{stem}.docs")]
        self.docs = open(self.paths[0], "wb")
        self.room = 0
        self.file: Any = None
        self._next()

    def _next(self) -> None:
        self._finish()
        name = f"{self.stem}.bin"
        if self.is_sharded:
            number = len(self.paths) - 1
            name = f"{self.stem}_{'train' if number else 'val'}_{number:06d}.bin"
        self.paths.append(os.path.join(self.folder, name))
        self.file = open(self.paths[-1], "wb")
        if self.has_header:
            self.file.write(b"\0" * _HEADER)
        self.count = 0
        self.room = SHARD_TOKENS if self.is_sharded else 1 << 62

    def _finish(self) -> None:
        if self.file is not None:
            if self.has_header:
                magic, version = _TYPES[self.dtype]
                self.file.seek(0)
                self.file.write(struct.pack("<iiI", magic, version, self.count))
            self.file.close()

    def _add(self, documents: Documents) -> None:
        self.docs.write((documents.ends + self.tokens).astype("<u8").data)
        ids = documents.ids
        while len(ids):
            if not self.room:
                self._next()
            part, ids = ids[: self.room], ids[self.room :]
            write_ids(self.file, part, self.dtype)
            self.room -= len(part)
            self.count += len(part)

    def close(self) -> list[str]:
        self._finish()
        self.docs.close()
        return self.paths


class _Reader(Reader):
    def __init__(self, folder: str, stem: str, dtype: str, has_header: bool):
        names = _shards(folder, stem) or [f"{stem}.bin"]
        paths = [os.path.join(folder, name) for name in names]
        self.shards = [Array(path, dtype, _HEADER * has_header) for path in paths]
        for path, shard in zip(paths, self.shards):
            if has_header:
                with open(path, "rb") as file:
                    header = struct.unpack("<iiI", file.read(12))
                if header != (*_TYPES[dtype], len(shard)):
                    raise damaged(path, f"its header is {header}, for {len(shard):,} ids")
        self.tokens = sum(map(len, self.shards))
        docs = os.path.join(folder, f"{stem}.docs")
        self._ends = Array(docs, "<u8")
        self.documents = len(self._ends)
        check_ends(docs, self._ends, self.tokens)

    def ends(self, first: int, last: int) -> npt.NDArray[np.int64]:
        return self._ends.read(first, last).astype("i8")

    def ids(self, first: int, last: int) -> npt.NDArray[Any]:
        import numpy as np

        parts = []
        for shard in self.shards:
            if first < len(shard) and last > 0:
                parts.append(shard.read(max(first, 0), min(last, len(shard))))
            first, last = first - len(shard), last - len(shard)
        return np.concatenate(parts) if len(parts) != 1 else parts[0]


class _Llmc(Format):
    name = "llm.c"
    eod_first = True

    def stem(self, number: int | None) -> str:
        return "corpus" if number is None else f"corpus_train_{number:06d}"

    def writer(self, folder: str, stem: str, layout: Layout, *, is_merged: bool = False) -> Writer:
        return _Writer(folder, stem, layout.uint(), True, is_merged)

    def reader(self, folder: str, stem: str, layout: Layout) -> Reader:
        return _Reader(folder, stem, layout.uint(), True)


class _NanoGpt(Format):
    name = "nanogpt"
    largest_id = 2**16 - 1

    def stem(self, number: int | None) -> str:
        return "train" if number is None else f"{number:05d}"

    def writer(self, folder: str, stem: str, layout: Layout, *, is_merged: bool = False) -> Writer:
        return _Writer(folder, stem, "<u2", False, False)

    def reader(self, folder: str, stem: str, layout: Layout) -> Reader:
        return _Reader(folder, stem, "<u2", False)


LLMC = _Llmc()
NANOGPT = _NanoGpt()
