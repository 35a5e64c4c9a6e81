"""Prepares columns of text for native code, which reads Arrow buffers in place."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["check_structure", "parts_of"]

_ONE_COLUMN = 'texts must be one column, not a table; pick one, as in table["text"]'


def parts_of(texts: Any) -> list[Any]:
    """Returns lists of ``str`` and the buffers of Arrow arrays, for `Pipeline._encode_ragged`.

    Args:
        texts: ``str`` in a list or another iterable; a numpy array of strings; or a column of
            pyarrow, pandas, polars or another package that exports Arrow data.

    Raises:
        TypeError: The texts have another type.
        ValueError: A column is damaged: its views, indices or offsets do not fit its buffers.
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


def check_structure(array: Any) -> None:
    """Checks the offsets, views and indices of an Arrow array against its buffers, before pyarrow
    uses them. The text itself may be any bytes.

    Raises:
        ValueError: The array is damaged.
    """
    import pyarrow as pa

    try:
        array.validate()
        _with_bytes(pa, array).validate(full=True)
    except pa.ArrowException as error:
        raise ValueError(f"the column is damaged: {error}") from error


def _with_bytes(pa: Any, array: Any) -> Any:
    """Returns the array with a binary type, so that full validation skips the check of UTF-8."""
    types, kind = pa.types, array.type
    if isinstance(kind, pa.BaseExtensionType):
        return _with_bytes(pa, array.storage)
    if types.is_dictionary(kind):
        values = _with_bytes(pa, array.dictionary)
        return pa.DictionaryArray.from_arrays(array.indices, values, safe=False)
    if types.is_string(kind):
        return array.view(pa.binary())
    if types.is_large_string(kind):
        return array.view(pa.large_binary())
    if is_string_view(pa, kind):
        return array.view(pa.binary_view())
    return array


def is_string_view(pa: Any, kind: Any) -> bool:
    """Returns True for a string view type, which pyarrow has from version 16 on."""
    return bool(getattr(pa.types, "is_string_view", lambda kind: False)(kind))


def _is_arrow(texts: Any) -> bool:
    if str(getattr(texts, "dtype", "")) == "object":
        return False  # A pandas column of Python objects needs no conversion.
    exports = hasattr(texts, "__arrow_c_stream__") or hasattr(texts, "__arrow_c_array__")
    return exports or has_arrow_array(texts)


def has_arrow_array(column: Any) -> bool:
    """Returns True for a pandas 2 column that does not export Arrow data although its inner array
    does: ``pyarrow.array(column)`` converts the column."""
    return hasattr(getattr(column, "array", None), "__arrow_array__")


def _chunks(column: Any) -> list[Any] | None:
    """Returns the arrays of a column as ``string`` or ``large_string``; None without pyarrow."""
    try:
        import pyarrow as pa
    except ImportError:
        # Without pyarrow, the column comes from another package and can be iterated.
        return None
    if isinstance(column, (pa.Table, pa.RecordBatch)):
        raise TypeError(_ONE_COLUMN)
    try:
        if not isinstance(column, (pa.Array, pa.ChunkedArray)):
            make = pa.chunked_array if hasattr(column, "__arrow_c_stream__") else pa.array
            column = make(column)
        column.validate()
        column = _as_strings(pa, column)
    except (pa.ArrowInvalid, pa.ArrowIndexError) as error:
        raise ValueError(f"the column is damaged: {error}") from error
    return list(column.chunks) if isinstance(column, pa.ChunkedArray) else [column]


def _as_strings(pa: Any, column: Any) -> Any:
    types = pa.types
    if types.is_string(column.type) or types.is_large_string(column.type):
        return column  # The bindings check each row against the buffers.
    # pyarrow converts without checks: wrong views and indices would read other memory.
    column.validate(full=True)
    if isinstance(column.type, pa.BaseExtensionType):
        return _as_strings(pa, column.cast(column.type.storage_type))
    if types.is_dictionary(column.type):
        return _as_strings(pa, column.cast(column.type.value_type))
    if types.is_run_end_encoded(column.type):
        import pyarrow.compute

        return _as_strings(pa, pyarrow.compute.run_end_decode(column))
    if types.is_null(column.type):
        # The first null raises, so one row is enough; a huge array of nulls is never allocated.
        return column.slice(0, 1).cast(pa.string())
    if types.is_struct(column.type):
        raise TypeError(_ONE_COLUMN)
    if not is_string_view(pa, column.type):
        is_bytes = types.is_binary(column.type) or types.is_large_binary(column.type)
        hint = "; cast it first: column.cast(pyarrow.string())" if is_bytes else ""
        raise TypeError(f"a column of texts must have the type string, not {column.type}{hint}")
    return column.cast(pa.large_string())


def _buffers(array: Any) -> list[tuple[Any, ...]]:
    if len(array) == 0:
        return []
    validity, offsets, values = (
        None if buffer is None else memoryview(buffer).cast("B") for buffer in array.buffers()
    )
    is_wide = str(array.type) == "large_string"
    return [(validity, offsets, values, array.offset, len(array), is_wide)]
