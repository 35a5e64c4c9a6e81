"""Columns of text, however they are stored, for native code: Arrow's are read in place."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["parts_of"]


def parts_of(texts: Any) -> list[Any]:
    """What `CoreBPE.encode_ragged` takes: lists of ``str``, and tuples with the buffers of an Arrow
    array.

    Args:
        texts: ``str`` in a list or another iterable; a numpy array of strings; or a column of
            pyarrow, pandas, polars or whatever else gives out Arrow data.

    Raises:
        TypeError: It is something else.
    """
    if isinstance(texts, (list, tuple)):
        return [list(texts)]
    is_column = _is_arrow(texts)
    if isinstance(texts, Mapping):
        raise TypeError('texts must be one column, not a mapping; pick one, as in batch["text"]')
    if isinstance(texts, (str, bytes)) or not (is_column or isinstance(texts, Iterable)):
        hint = "; for one text pass [text]" if isinstance(texts, str) else ""
        raise TypeError(
            f"texts must be a list of str or a column of strings, not {type(texts).__name__}{hint}"
        )
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(texts, numpy.ndarray):
        return [_of_numpy(texts)]
    if is_column:
        chunks = _chunks(texts)
        if chunks is not None:
            return [part for chunk in chunks for part in _buffers(chunk)]
    return [list(texts)]


def _of_numpy(array: Any) -> list[Any]:
    if array.ndim != 1:
        raise TypeError(f"an array of texts must have one dimension, not {array.ndim}")
    if array.size == 0:
        return []
    if array.dtype.kind not in "UOT":
        hint = "; decode it first, as with numpy.char.decode" if array.dtype.kind == "S" else ""
        raise TypeError(f"an array of texts must hold str, not {array.dtype}{hint}")
    return list(array.tolist())


def _is_arrow(texts: Any) -> bool:
    if str(getattr(texts, "dtype", "")) == "object":
        return False  # A column of pandas that holds Python objects.
    return hasattr(texts, "__arrow_c_stream__") or hasattr(texts, "__arrow_c_array__")


def _chunks(column: Any) -> list[Any] | None:
    """The arrays of a column; None where pyarrow is missing."""
    try:
        import pyarrow as pa
    except ImportError:
        # Whoever has no pyarrow has a column of another package, which can be iterated over.
        return None
    if not isinstance(column, (pa.Array, pa.ChunkedArray)):
        if isinstance(column, (pa.Table, pa.RecordBatch)):
            raise TypeError('texts must be one column, not a table; pick one, as in table["text"]')
        make = pa.chunked_array if hasattr(column, "__arrow_c_stream__") else pa.array
        column = make(column)
    types = pa.types
    if types.is_struct(column.type):
        raise TypeError('texts must be one column, not a table; pick one, as in table["text"]')
    if isinstance(column.type, pa.BaseExtensionType):
        column = column.cast(column.type.storage_type)
    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    elif types.is_run_end_encoded(column.type):
        import pyarrow.compute

        column = pyarrow.compute.run_end_decode(column)
    if not _is_text(pa, column.type) and not types.is_null(column.type):
        hint = (
            "; cast it first: column.cast(pyarrow.string())" if _is_bytes(pa, column.type) else ""
        )
        raise TypeError(f"a column of texts must have the type string, not {column.type}{hint}")
    if not (types.is_string(column.type) or types.is_large_string(column.type)):
        column = column.cast(pa.large_string())
    return list(column.chunks) if isinstance(column, pa.ChunkedArray) else [column]


def _is_text(pa: Any, type: Any) -> bool:
    is_view = getattr(pa.types, "is_string_view", lambda type: False)
    return bool(pa.types.is_string(type) or pa.types.is_large_string(type) or is_view(type))


def _is_bytes(pa: Any, type: Any) -> bool:
    return bool(pa.types.is_binary(type) or pa.types.is_large_binary(type))


def _buffers(array: Any) -> list[tuple[Any, ...]]:
    """The buffers of an array of strings, as `Column` of the bindings takes them."""
    if len(array) == 0:
        return []
    validity, offsets, values = (
        None if buffer is None else memoryview(buffer).cast("B") for buffer in array.buffers()
    )
    is_wide = str(array.type) == "large_string"
    return [(validity, offsets, values, array.offset, len(array), is_wide)]
