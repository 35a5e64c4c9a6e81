"""`PackedRows`: packed documents as rows of numpy arrays."""

from __future__ import annotations

import operator
import os
import re
from types import EllipsisType
from typing import TYPE_CHECKING, Any, SupportsIndex

from ..texts.errors import CorpusError
from .corpus_reader import CorpusReader
from .formats.base import Array
from .pack import HEADER, METHODS, read_header
from .shuffle import Permutation

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["PackedRows"]


class PackedRows:
    """The rows of a corpus that was packed with `pack_rows`.

    Works as a map-style data set of torch: has ``__len__`` and ``__getitem__``, and can be pickled
    for workers. Ids are read on access to a row.

    Args:
        out: The folder of the corpus.
        length: The length of rows; optional if the corpus was packed once.
        method: "best-fit" or "wrap"; optional if the corpus was packed once.
        seed: The seed of the shuffle, None if not shuffled; optional if the corpus was packed once.

    Raises:
        CorpusError: The index is missing or belongs to another plan, or several indices match.

    >>> rows = PackedRows("corpus", 4096)  # doctest: +SKIP
    >>> rows[0]["input_ids"].shape  # doctest: +SKIP
    (4096,)
    """

    def __init__(
        self,
        out: str | os.PathLike[str],
        length: int | None = None,
        method: str | None = None,
        seed: int | None | EllipsisType = ...,
    ):
        self._reader = CorpusReader(out)
        path = _found(self._reader.plan.out, length, method, seed)
        header = read_header(path)
        if header["plan"] != self._reader.plan.sha256 or header["tokens"] != self._reader.tokens:
            raise CorpusError(f"{path} belongs to another corpus; pack this one again")
        #: Maximum number of ids in a row.
        self.length: int = int(header["length"])
        self.method: str = str(header["method"])
        rows, pieces = int(header["rows"]), int(header["pieces"])
        self._rows = Array(path, "<i8", HEADER, rows + 1)
        self._pieces = [
            Array(path, "<i8", HEADER + 8 * (rows + 1 + at * pieces), pieces) for at in range(3)
        ]
        shuffled = header["seed"] is not None and self.method == "best-fit"
        self._order = Permutation(rows, header["seed"]) if shuffled else None

    def __len__(self) -> int:
        """Returns the number of rows."""
        return len(self._rows) - 1

    def pieces(self, row: SupportsIndex) -> list[tuple[int, int, int]]:
        """Returns the pieces of a row: document, first id in the corpus, number of ids."""
        number = operator.index(row)
        if not -len(self) <= number < len(self):
            raise IndexError(f"row {number} of {len(self)}")
        number %= len(self)
        if self._order is not None:
            number = int(self._order.of([number])[0])
        first, last = self._rows.read(number, number + 2).tolist()
        if not 0 <= first < last <= len(self._pieces[0]):
            raise self._damaged(number)
        pieces = list(zip(*(column.read(first, last).tolist() for column in self._pieces)))
        total = sum(count for *_, count in pieces)
        inside = (count >= 0 <= at and at + count <= self._reader.tokens for _, at, count in pieces)
        if total > self.length or not all(inside):
            raise self._damaged(number)
        return pieces

    def _damaged(self, number: int) -> CorpusError:
        return CorpusError(
            f"row {number} of {self!r} has pieces that its corpus cannot have: the index is damaged; "
            "look with `bpe-engine corpus verify`, and pack the rows again"
        )

    def __getitem__(self, row: SupportsIndex) -> dict[str, npt.NDArray[Any]]:
        """Returns a row.

        Returns:
            ``input_ids`` (int64, at most `length` ids), ``position_ids`` (int64; restarting with
            each piece), ``cu_seqlens`` (int32; the piece boundaries), and ``loss_mask`` (uint8; 1
            for ids to train on), all of numpy.

        Raises:
            IndexError: The row does not exist.
            CorpusError: The index is damaged: the row has impossible pieces.
        """
        import numpy as np

        pieces = self.pieces(row)
        ids, masks, positions = [], [], []
        for _, first, count in pieces:
            ids.append(self._reader.ids(first, first + count).astype(np.int64))
            positions.append(np.arange(count, dtype=np.int64))
            if (mask := self._reader.loss(first, first + count)) is not None:
                masks.append(mask)
        input_ids = np.concatenate(ids)
        loss: npt.NDArray[np.uint8] = (
            np.concatenate(masks) if masks else np.ones(len(input_ids), np.uint8)
        )
        ends = np.cumsum([0, *(count for _, _, count in pieces)]).astype(np.int32)
        return {
            "input_ids": input_ids,
            "position_ids": np.concatenate(positions),
            "cu_seqlens": ends,
            "loss_mask": loss,
        }

    def __repr__(self) -> str:
        return f"<PackedRows of {len(self)} rows, up to {self.length} ids, {self.method}>"


def _found(out: str, length: int | None, method: str | None, seed: Any) -> str:
    names = {
        name: index.groups()
        for name in sorted(os.listdir(out))
        if (index := re.fullmatch(r"packed-(\d+)-(best-fit|wrap)(?:-seed(-?\d+))?\.idx", name))
    }
    wanted = [
        name
        for name, (its_length, its_method, its_seed) in names.items()
        if length in (None, int(its_length))
        and method in (None, its_method)
        and seed in (..., None if its_seed is None else int(its_seed))
    ]
    if len(wanted) != 1:
        has = ", ".join(names) or "none"
        what = "no such index" if not wanted else "more than one index"
        raise CorpusError(
            f"{out} has {what} (there are: {has}); pack it, or name length, method "
            f"({', '.join(METHODS)}) and seed"
        )
    return os.path.join(out, wanted[0])
