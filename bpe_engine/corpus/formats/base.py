"""`Format`, `Writer` and `Reader`: the interface of every token file format."""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ...common.system import open_to_read, read_at
from ...texts.errors import CorpusError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["Array", "Documents", "Format", "Layout", "Reader", "Writer", "damaged"]


class Layout(NamedTuple):
    """What a format needs to know about ids and documents."""

    #: Largest possible id, added tokens included; decides the width of ids.
    largest_id: int
    eod: int | None
    bos: int | None
    #: True if each id has a loss mask: 1 for ids to train on.
    has_loss: bool
    #: True if documents have names.
    has_names: bool
    #: True if a chat template, instead of `eod` and `bos`, delimits documents.
    is_templated: bool
    #: Name of the tokenizer.
    tokenizer: str

    def uint(self) -> str:
        """Returns the dtype ``uint16`` if every id fits, else ``uint32``."""
        return "<u2" if self.largest_id < 1 << 16 else "<u4"


class Documents(NamedTuple):
    """Consecutive encoded documents, with their BOS and EOD."""

    ids: npt.NDArray[np.uint32]
    #: End of each document in `ids`.
    ends: npt.NDArray[np.int64]
    #: One byte per id, or None.
    loss: npt.NDArray[np.uint8] | None = None
    #: A pyarrow ``string`` array, or None.
    names: Any = None
    #: Line of each document in its input, or None; the input, or an array with the input of each
    #: document.
    lines: npt.NDArray[np.int64] | None = None
    uri: Any = ""


def damaged(path: str, why: str) -> CorpusError:
    """Returns the error for a file that violates its format."""
    return CorpusError(f"{path} is damaged: {why}; `bpe-engine corpus verify` says what to do")


class Array:
    """An array of numbers in a file, read on demand. Picklable, and usable after a fork."""

    def __init__(self, path: str, dtype: str, offset: int = 0, count: int | None = None):
        import numpy as np

        self.path: str = path
        self.offset: int = offset
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        size = os.path.getsize(path) - offset
        if count is None:
            count, rest = divmod(size, self.dtype.itemsize)
            if rest:
                raise damaged(path, f"it has {rest} bytes too many")
        if count * self.dtype.itemsize > size:
            raise damaged(path, f"it has {size:,} of {count * self.dtype.itemsize:,} bytes")
        self._count = count
        self._file: int | None = None

    def __len__(self) -> int:
        return self._count

    def read(self, first: int, last: int) -> npt.NDArray[Any]:
        """Returns the numbers ``[first, last)``."""
        import numpy as np

        if not 0 <= first <= last <= self._count:
            raise IndexError(f"{first}:{last} of {self._count} numbers")
        if self._file is None:
            self._file = open_to_read(self.path)
        width = self.dtype.itemsize
        wanted = (last - first) * width
        parts: list[bytes] = []
        position = self.offset + first * width
        while wanted:
            data = read_at(self._file, wanted, position)
            if not data:
                raise damaged(self.path, "it became shorter while it was read")
            parts.append(data)
            position += len(data)
            wanted -= len(data)
        return np.frombuffer(parts[0] if len(parts) == 1 else b"".join(parts), self.dtype)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_file": None}

    def __del__(self) -> None:
        if getattr(self, "_file", None) is not None:
            os.close(self._file)  # type: ignore[arg-type]
            self._file = None


class Writer(ABC):
    """Writes the files of a format to a folder, with names that begin with a stem."""

    #: Numbers of documents and ids written so far.
    documents: int = 0
    tokens: int = 0

    def add(self, documents: Documents) -> None:
        """Appends documents."""
        if len(documents.ends):
            self._add(documents)
            self.documents += len(documents.ends)
            self.tokens += len(documents.ids)

    @abstractmethod
    def _add(self, documents: Documents) -> None: ...

    @abstractmethod
    def close(self) -> list[str]:
        """Completes the files, and returns their paths."""


class Reader(ABC):
    """Reads the files of a format: documents are spans in one sequence of ids."""

    documents: int
    tokens: int

    @abstractmethod
    def ends(self, first: int, last: int) -> npt.NDArray[np.int64]:
        """Returns the ends of the documents ``[first, last)``, in ids."""

    @abstractmethod
    def ids(self, first: int, last: int) -> npt.NDArray[Any]:
        """Returns the ids ``[first, last)``."""

    def loss(self, first: int, last: int) -> npt.NDArray[np.uint8] | None:
        """Returns the loss mask of these ids, or None."""
        return None

    def names(self, first: int, last: int) -> Any:
        """Returns the names of documents as an Arrow array, or None."""
        return None

    def sources(self, first: int, last: int) -> tuple[npt.NDArray[np.int64], Any] | None:
        """Returns the line and the input of each document, if the format records them."""
        return None

    def spans(self, first: int, last: int) -> npt.NDArray[np.int64]:
        """Returns the ``last - first + 1`` document boundaries."""
        import numpy as np

        before = self.ends(first - 1, first) if first else np.zeros(1, np.int64)
        return np.concatenate([before, self.ends(first, last)]).astype(np.int64)


class Format(ABC):
    """A format of token files."""

    name: str
    #: Whether the format stores loss masks; whether it stores document names.
    has_loss = False
    has_names = False
    #: True if EOD precedes a document, as in llm.c.
    eod_first = False
    #: True if the format stores the input line of each document.
    needs_lines = False
    #: Largest id the format can hold.
    largest_id = 2**31 - 1

    def check_layout(self, layout: Layout) -> None:
        """Raises CorpusError if the format cannot store the documents."""
        if layout.largest_id > self.largest_id:
            raise CorpusError(
                f"{self.name} holds ids up to {self.largest_id:,}, and this tokenizer has "
                f"{layout.largest_id:,}; choose another format"
            )
        if layout.has_loss and not self.has_loss:
            raise CorpusError(
                f"{self.name} cannot store loss masks; choose datatrove, olmo, parquet or arrow"
            )
        if layout.has_names and not self.has_names:
            raise CorpusError(
                f"{self.name} cannot store the names of documents; choose olmo, parquet or "
                "arrow, or leave --id-field out"
            )

    @abstractmethod
    def stem(self, number: int | None) -> str:
        """Returns the name prefix of a part's files, or of the merged files."""

    @property
    def held_out_stem(self) -> str:
        """Name prefix of merged files with held-out documents."""
        return re.sub("^(corpus|train|part)", "val", self.stem(None))

    @abstractmethod
    def writer(self, folder: str, stem: str, layout: Layout, *, is_merged: bool = False) -> Writer:
        """Creates the files of a part, or the merged files."""

    @abstractmethod
    def reader(self, folder: str, stem: str, layout: Layout) -> Reader:
        """Opens the files of a part. Raises CorpusError if their structure is damaged."""


def lengths_of(ends: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Returns the lengths of documents, given their ends."""
    import numpy as np

    return np.diff(ends, prepend=0)


def check_ends(path: str, ends: Any, tokens: int) -> None:
    """Raises CorpusError unless the ends of documents ascend up to the number of ids."""
    import numpy as np

    at_once, last = 1 << 20, 0
    for first in range(0, len(ends), at_once):
        some = ends.read(first, min(first + at_once, len(ends))).astype(np.int64)
        if some[0] < last or (np.diff(some) < 0).any():
            raise damaged(path, f"the ends of documents {first:,} and after do not ascend")
        last = int(some[-1])
    if last != tokens:
        raise damaged(path, f"the last document ends at id {last:,} of {tokens:,}")


def write_ids(file: Any, ids: npt.NDArray[np.uint32], dtype: str) -> None:
    """Writes ids with a different width, converted block by block."""
    at_once = 1 << 20
    for first in range(0, len(ids), at_once):
        file.write(ids[first : first + at_once].astype(dtype).data)


def written(paths: Sequence[str], files: Sequence[Any]) -> list[str]:
    """Closes files, and returns their paths."""
    for file in files:
        file.close()
    return list(paths)
