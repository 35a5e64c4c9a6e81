"""datatrove's token files: ``X.ds``, ``X.ds.index``, ``X.ds.metadata`` and ``X.ds.loss``.

An empty document is EOD alone, or has no ids without EOD.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from .base import (
    Array,
    Documents,
    Format,
    Layout,
    Reader,
    Writer,
    check_ends,
    damaged,
    write_ids,
    written,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["FORMAT"]


def _for_people(count: int) -> str:
    for size, unit in ((10**12, "T"), (10**9, "B"), (10**6, "M"), (10**3, "K")):
        if count >= size:
            return f"{count / size:.1f}{unit}"
    return str(count)


class _Writer(Writer):
    def __init__(self, path: str, layout: Layout):
        self.path, self.dtype = path, layout.uint()
        # The field ends at the first "|".
        self.tokenizer = layout.tokenizer.replace("|", "_") or "unknown"
        self.paths = [f"{path}.ds", f"{path}.ds.index"] + [f"{path}.ds.loss"] * layout.has_loss
        self.files = [open(name, "wb") for name in self.paths]

    def _add(self, documents: Documents) -> None:
        write_ids(self.files[0], documents.ids, self.dtype)
        self.files[1].write((documents.ends + self.tokens).astype("<u8").data)
        if documents.loss is not None:
            self.files[2].write(documents.loss.data)

    def close(self) -> list[str]:
        metadata = f"{self.path}.ds.metadata"
        with open(metadata, "w", encoding="utf-8", newline="\n") as file:
            width = int(self.dtype[-1])
            file.write(f"{self.tokenizer}|{width}\n{self.tokens}\n{_for_people(self.tokens)}")
        return written([*self.paths, metadata], self.files)


class _Reader(Reader):
    def __init__(self, path: str, layout: Layout):
        metadata = f"{path}.ds.metadata"
        with open(metadata, encoding="utf-8") as file:
            lines = file.read().split("\n")
        width = int(layout.uint()[-1])
        self._ids = Array(f"{path}.ds", layout.uint())
        self.tokens = len(self._ids)
        if lines[0].rpartition("|")[2] != str(width) or lines[1:2] != [str(self.tokens)]:
            raise damaged(metadata, f"it tells of other files: {lines[:2]}")
        self._ends = Array(f"{path}.ds.index", "<u8")
        self.documents = len(self._ends)
        check_ends(f"{path}.ds.index", self._ends, self.tokens)
        self._loss = Array(f"{path}.ds.loss", "u1") if layout.has_loss else None
        if self._loss is not None and len(self._loss) != self.tokens:
            raise damaged(f"{path}.ds.loss", f"{len(self._loss):,} masks for {self.tokens:,} ids")

    def ends(self, first: int, last: int) -> npt.NDArray[np.int64]:
        return self._ends.read(first, last).astype("i8")

    def ids(self, first: int, last: int) -> npt.NDArray[Any]:
        return self._ids.read(first, last)

    def loss(self, first: int, last: int) -> npt.NDArray[np.uint8] | None:
        return None if self._loss is None else self._loss.read(first, last)


class _Datatrove(Format):
    name = "datatrove"
    has_loss = True

    def stem(self, number: int | None) -> str:
        return "corpus" if number is None else f"{number:05d}"

    def writer(self, folder: str, stem: str, layout: Layout, *, is_merged: bool = False) -> Writer:
        return _Writer(os.path.join(folder, stem), layout)

    def reader(self, folder: str, stem: str, layout: Layout) -> Reader:
        return _Reader(os.path.join(folder, stem), layout)


FORMAT = _Datatrove()
