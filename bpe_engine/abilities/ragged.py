"""`TokenBatch`: rows of token ids in one numpy array."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, SupportsIndex, overload

from .._arguments import whole_number
from ..common.values import check_choice, checked, listed
from .columns import has_arrow_array

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["TokenBatch"]

_LARGEST_ID = 2**32 - 1
_LARGEST_INT64 = 2**63 - 1


class TokenBatch:
    """Rows of token ids, concatenated in one array.

    Returned by `Encoding.encode_batch_to_numpy`. Slices and rows share the batch's memory. Needs
    numpy.

    Args:
        values: The ids of all rows: ``uint32[n]``, or integers that numpy can convert to it.
        row_splits: Row boundaries: ``int64[rows + 1]``. The ids of row
            ``i`` are ``values[row_splits[i]:row_splits[i + 1]]``.

    Raises:
        ValueError: The splits do not begin with 0, do not ascend or do not end with ``n``, or a
            value is outside the range of ids.
        TypeError: The values or the splits are not integers.

    >>> from bpe_engine.abilities.ragged import TokenBatch
    >>> batch = TokenBatch([31373, 995, 11274, 16390, 0], [0, 2, 4, 5])
    >>> len(batch), batch[1].tolist(), batch[1:].to_lists()
    (3, [11274, 16390], [[11274, 16390], [0]])
    >>> batch.lengths.tolist()
    [2, 2, 1]
    """

    __slots__ = ("_row_splits", "_values")

    def __init__(self, values: Any, row_splits: Any):
        self._values = _ids(values)
        self._row_splits = _splits(row_splits, len(self._values))

    @classmethod
    def _of(cls, values: npt.NDArray[np.uint32], row_splits: npt.NDArray[np.int64]) -> TokenBatch:
        """Makes a batch from arrays known to be valid."""
        self = cls.__new__(cls)
        self._values, self._row_splits = values, _read_only(row_splits)
        return self

    @classmethod
    def from_lists(cls, rows: Iterable[Sequence[int]]) -> TokenBatch:
        """Makes a batch from lists, tuples or arrays of ids.

        >>> TokenBatch.from_lists([[1, 2], [], [3]]).row_splits.tolist()
        [0, 2, 2, 3]
        """
        np = _numpy()
        arrays = [_ids(row) for row in checked(rows)]
        lengths = [len(array) for array in arrays]
        values = np.concatenate(arrays) if arrays else np.empty(0, np.uint32)
        return cls._of(values, _cumulated(lengths))

    @property
    def values(self) -> npt.NDArray[np.uint32]:
        """The ids of all rows: ``uint32[n]``."""
        return self._values

    @property
    def row_splits(self) -> npt.NDArray[np.int64]:
        """Row boundaries: ``int64[rows + 1]``, read-only."""
        return self._row_splits

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """The number of ids in each row: ``int64[rows]``."""
        return _numpy().diff(self._row_splits)  # type: ignore[no-any-return]

    # ---- Rows ----

    def __len__(self) -> int:
        return len(self._row_splits) - 1

    @overload
    def __getitem__(self, index: SupportsIndex) -> npt.NDArray[np.uint32]: ...
    @overload
    def __getitem__(self, index: slice | Sequence[int]) -> TokenBatch: ...

    def __getitem__(self, index: Any) -> Any:
        """Returns a row for an int; a batch for a slice, row numbers or an array of bool."""
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step == 1:
                splits = self._row_splits[start : max(start, stop) + 1]
                return self._of(self._values[splits[0] : splits[-1]], splits - splits[0])
            return self._take(_numpy().arange(start, stop, step))
        if hasattr(index, "__len__"):
            return self._take(_row_numbers(index, len(self)))
        row = operator.index(index)
        if not -len(self) <= row < len(self):
            raise IndexError(f"row {row} of {len(self)} rows")
        row += len(self) if row < 0 else 0
        return self._values[self._row_splits[row] : self._row_splits[row + 1]]

    def __iter__(self) -> Iterator[npt.NDArray[np.uint32]]:
        """Yields the ids of each row."""
        splits = self._row_splits.tolist()
        for start, end in zip(splits, splits[1:]):
            yield self._values[start:end]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TokenBatch):
            return NotImplemented
        np = _numpy()
        return bool(
            np.array_equal(self._row_splits, other._row_splits)
            and np.array_equal(self._values, other._values)
        )

    __hash__: ClassVar[None]  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<TokenBatch of {len(self)} rows, {len(self._values)} ids>"

    def __reduce__(self) -> tuple[Any, ...]:
        return TokenBatch, (self._values, self._row_splits)

    def _take(self, rows: npt.NDArray[np.int64]) -> TokenBatch:
        return self._gather(self._row_splits[rows], self.lengths[rows])

    def _gather(self, starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]) -> TokenBatch:
        np = _numpy()
        splits = _cumulated(lengths)
        places = np.repeat(starts - splits[:-1], lengths) + np.arange(splits[-1])
        return self._of(self._values[places], splits)

    # ---- Truncating, padding and joining ----

    def truncate(
        self, max_length: SupportsIndex, side: Literal["left", "right"] = "right"
    ) -> TokenBatch:
        """Truncates each row to at most `max_length` ids, on the given side.

        >>> TokenBatch.from_lists([[1, 2, 3], [4]]).truncate(2).to_lists()
        [[1, 2], [4]]
        """
        np = _numpy()
        # No row is longer than the whole batch.
        most = min(whole_number("max_length", max_length), len(self._values))
        lengths = np.minimum(self.lengths, most)
        is_left = _is_left(side)
        return self._gather(
            self._row_splits[1:] - lengths if is_left else self._row_splits[:-1], lengths
        )

    def pad(
        self,
        length: SupportsIndex | None = None,
        id: SupportsIndex = 0,
        side: Literal["left", "right"] = "right",
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Pads the rows to one length.

        Args:
            length: The number of columns; by default, the length of the longest row.
            id: The padding id; may be negative, such as -100 for labels.
            side: The end of a row to pad.

        Returns:
            The matrix, and a mask with 1 for ids and 0 for padding: both ``int64[rows, length]``.

        Raises:
            ValueError: A row is longer than `length`, or `id` does not fit into int64.

        >>> matrix, mask = TokenBatch.from_lists([[1, 2, 3], [4]]).pad(id=9, side="left")
        >>> matrix.tolist(), mask.tolist()
        ([[1, 2, 3], [9, 9, 4]], [[1, 1, 1], [0, 0, 1]])
        """
        np = _numpy()
        lengths = self.lengths
        longest = int(lengths.max()) if len(self) else 0
        columns = longest if length is None else whole_number("length", length)
        if longest > columns:
            row = int(lengths.argmax())
            raise ValueError(
                f"row {row} has {longest} ids, more than {columns}; truncate it first: "
                f"batch.truncate({columns})"
            )
        filler = operator.index(id)
        if not -_LARGEST_INT64 <= filler <= _LARGEST_INT64:
            raise ValueError(f"the padding id {filler} does not fit into int64")
        if columns > _LARGEST_INT64:
            raise MemoryError(f"rows of {columns} ids do not fit into memory")
        places = np.arange(columns)
        if _is_left(side):
            is_id = places >= (columns - lengths)[:, None]
        else:
            is_id = places < lengths[:, None]
        matrix = np.full((len(self), columns), filler, np.int64)
        matrix[is_id] = self._values
        return matrix, is_id.astype(np.int64)

    @classmethod
    def concat(cls, batches: Iterable[TokenBatch]) -> TokenBatch:
        """Joins the rows of several batches.

        Raises:
            TypeError: An item is not a `TokenBatch`.

        >>> one, two = TokenBatch.from_lists([[1, 2]]), TokenBatch.from_lists([[], [3]])
        >>> TokenBatch.concat([one, two]).to_lists()
        [[1, 2], [], [3]]
        """
        np = _numpy()
        batches = listed(batches)
        for place, batch in enumerate(batches):
            if not isinstance(batch, TokenBatch):
                raise TypeError(
                    f"batch {place} must be a TokenBatch, not {type(batch).__name__}; make one "
                    "from lists with TokenBatch.from_lists"
                )
        if not batches:
            return cls.from_lists([])
        values = np.concatenate([batch._values for batch in batches])
        return cls._of(values, _cumulated(np.concatenate([batch.lengths for batch in batches])))

    # ---- Conversion ----

    def to_lists(self) -> list[list[int]]:
        """Returns the rows as lists of ``int``."""
        values, splits = self._values.tolist(), self._row_splits.tolist()
        return [values[start:end] for start, end in zip(splits, splits[1:])]

    def to_arrow(self, *, large: bool | None = None) -> Any:
        """Returns the rows as a pyarrow array of lists of uint32, which shares `values`.

        Args:
            large: False for a ``ListArray``, whose 32-bit offsets are copied; True for a
                ``LargeListArray``, which also shares `row_splits`. By default True only if there
                are too many values for 32 bits.

        Raises:
            ImportError: pyarrow is missing (the extra ``arrays``).
            ValueError: A ``ListArray`` cannot have so many values.

        >>> TokenBatch.from_lists([[1, 2], [3]]).to_arrow().to_pylist()
        [[1, 2], [3]]
        """
        pa, np = _pyarrow("TokenBatch.to_arrow"), _numpy()
        fits = len(self._values) < 2**31
        if not fits and large is False:
            raise ValueError(f"a ListArray cannot have {len(self._values)} values; pass large=True")
        # pyarrow trusts the splits, and the caller may have changed them since.
        _check_splits(self._row_splits, len(self._values))
        splits, kind = self._row_splits, pa.large_list(pa.uint32())
        if not large and fits:
            splits, kind = splits.astype(np.int32), pa.list_(pa.uint32())
        buffers = [None, pa.py_buffer(np.ascontiguousarray(splits))]
        values = pa.Array.from_buffers(
            pa.uint32(), len(self._values), [None, pa.py_buffer(np.ascontiguousarray(self._values))]
        )
        return pa.Array.from_buffers(kind, len(self), buffers, children=[values])

    @classmethod
    def from_arrow(cls, array: Any) -> TokenBatch:
        """Makes a batch from an Arrow array or column whose items are lists of integers, made by
        pyarrow, polars or another package. The uint32 ids of a single ``ListArray`` or
        ``LargeListArray`` are shared, not copied.

        Raises:
            TypeError: The array has another type.
            ValueError: The array is damaged, a row or an id is null, or a number is outside the
                range of ids.
            ImportError: pyarrow is missing (the extra ``arrays``).

        >>> import pyarrow
        >>> TokenBatch.from_arrow(pyarrow.array([[1, 2], []])).to_lists()
        [[1, 2], []]
        """
        pa, np = _pyarrow("TokenBatch.from_arrow"), _numpy()
        if isinstance(array, pa.ChunkedArray):
            if array.num_chunks != 1:
                return cls.concat(cls.from_arrow(chunk) for chunk in array.chunks)
            array = array.chunk(0)
        elif hasattr(array, "__arrow_c_stream__"):
            return cls.from_arrow(pa.chunked_array(array))
        elif has_arrow_array(array):
            return cls.from_arrow(pa.array(array))
        elif not isinstance(array, pa.Array):
            raise TypeError(
                f"expected an Arrow array of lists of integers, not {type(array).__name__}"
            )
        array.validate(full=True)
        if array.null_count:
            raise ValueError("a row is null; replace it with an empty list first, or drop it")
        kind = array.type
        if pa.types.is_fixed_size_list(kind):
            array = array.cast(pa.large_list(kind.value_type))
        if not isinstance(array, (pa.ListArray, pa.LargeListArray)):
            raise TypeError(f"expected an Arrow array of lists of integers, not {kind}")
        splits = array.offsets.to_numpy().astype(np.int64)
        values = array.values.slice(int(splits[0]), int(splits[-1] - splits[0]))
        if pa.types.is_null(values.type):
            values = values.cast(pa.uint32())  # pyarrow infers this type for empty lists.
        if values.null_count:
            raise ValueError("an id is null; drop it first")
        if not pa.types.is_integer(values.type):
            raise TypeError(f"ids must be integers, not {values.type}")
        return cls(values.to_numpy(), splits - splits[0])


def _imported(module: str, what: str, how: str) -> Any:
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(f"{what} needs {module}, which is not installed: {how}") from error


def _numpy() -> Any:
    return _imported("numpy", "TokenBatch", "pip install 'bpe-engine[arrays]'")


def _pyarrow(what: str) -> Any:
    return _imported("pyarrow", what, "pip install 'bpe-engine[arrays]'")


def _integers(name: str, values: Any) -> Any:
    np = _numpy()
    array = np.asarray(checked(values))
    if array.size == 0 and array.ndim == 1:
        return array.astype(np.int64)
    if array.dtype.kind not in "iu":
        # Python ints over 64 bits make numpy choose dtype object.
        raise TypeError(f"{name} must be integers of 64 bits or fewer, not {array.dtype}")
    if array.ndim != 1:
        raise TypeError(f"{name} must have one dimension, not {array.ndim}")
    return array


def _ids(values: Any) -> npt.NDArray[np.uint32]:
    np = _numpy()
    array = _integers("token ids", values)
    if array.dtype != np.uint32 and array.size:
        for number in (array.min(), array.max()):
            if not 0 <= number <= _LARGEST_ID:
                raise ValueError(
                    f"the token id {number} is out of range: ids are 0 to {_LARGEST_ID}"
                )
    return array.astype(np.uint32, copy=False)  # type: ignore[no-any-return]


def _splits(row_splits: Any, count: int) -> npt.NDArray[np.int64]:
    splits = _integers("row_splits", row_splits).astype(_numpy().int64)
    _check_splits(splits, count)
    return _read_only(splits)


def _check_splits(splits: npt.NDArray[np.int64], count: int) -> None:
    ends_well = len(splits) > 0 and splits[0] == 0 and splits[-1] == count
    if not ends_well or (splits[1:] < splits[:-1]).any():
        raise ValueError(
            f"row_splits must begin with 0, ascend and end with {count}, the number of values; "
            f"not {_shown(splits)}"
        )


def _read_only(splits: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    splits.flags.writeable = False
    return splits


def _shown(splits: Any) -> str:
    shown = [str(split) for split in splits[:4].tolist()]
    return f"[{', '.join(shown)}{', ...' if len(splits) > 4 else ''}]"


def _cumulated(lengths: Any) -> npt.NDArray[np.int64]:
    np = _numpy()
    splits = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=splits[1:])
    return splits  # type: ignore[no-any-return]


def _row_numbers(index: Any, count: int) -> npt.NDArray[np.int64]:
    np = _numpy()
    rows = np.asarray(index)
    if rows.dtype == bool:
        if rows.shape != (count,):
            raise IndexError(f"a mask for {count} rows must have {count} items, not {rows.shape}")
        return np.flatnonzero(rows)  # type: ignore[no-any-return]
    rows = _integers("row numbers", rows).astype(np.int64, copy=False)
    if rows.size and not (-count <= rows.min() and rows.max() < count):
        raise IndexError(f"rows from {rows.min()} to {rows.max()} of {count} rows")
    return rows + (rows < 0) * count  # type: ignore[no-any-return]


def _is_left(side: str) -> bool:
    check_choice("side", side, ("left", "right"))
    return side == "left"
