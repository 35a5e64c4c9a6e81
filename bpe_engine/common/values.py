"""Describes values in error messages, and checks columns, without reading damaged Arrow data."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Mapping
from typing import TypeVar

__all__ = [
    "check_choice",
    "check_column",
    "checked",
    "describe",
    "for_json",
    "is_arrow",
    "listed",
    "safe_repr",
    "with_text",
]

#: Types and packages whose objects have a safe repr. The repr of another object may read a damaged
#: column, run for seconds or raise.
_PLAIN = {str, bytes, bytearray, int, float, complex, bool, range, type, type(None)}
_PACKAGES = {"pathlib", "numpy", "decimal", "fractions"}

#: Packages whose columns are checked.
_COLUMNS = ("pyarrow", "pandas", "polars")

_LONGEST = 60

_T = TypeVar("_T")
_V = TypeVar("_V")


def is_arrow(value: object) -> bool:
    """Returns True for a pyarrow object, whose data can crash the process if damaged."""
    return type(value).__module__.startswith("pyarrow")


def check_column(column: object) -> None:
    """Checks a column of pyarrow, pandas or polars before its items are read.

    Raises:
        ValueError: The column is damaged.
    """
    try:
        import pyarrow as pa
    except ImportError:
        return
    inner = getattr(column, "array", column)  # The array inside a pandas Series.
    try:
        if hasattr(inner, "__arrow_array__"):
            column = pa.array(inner)
        elif hasattr(column, "__arrow_c_stream__") and not is_arrow(column):
            column = pa.chunked_array(column)
        if hasattr(column, "validate"):
            column.validate(full=True)
    except pa.ArrowException as error:
        raise ValueError(f"the column is damaged: {error}") from error


def checked(values: _V) -> _V:
    """Returns an argument; raises ValueError for a damaged column, also inside a list or a dict."""
    given: Iterable[object] = (values,)
    if isinstance(values, (list, tuple)):
        given = values
    elif isinstance(values, dict):
        given = values.values()
    if any(kind.__module__.partition(".")[0] in _COLUMNS for kind in {*map(type, given)}):
        for column in given:
            check_column(column)
    return values


def listed(values: Iterable[_T]) -> list[_T]:
    """Checks an argument with `checked`, and returns its items."""
    return list(checked(values))


def for_json(value: object) -> object:
    """Converts a mapping to a dict, and other values to text, as ``default`` of ``json.dumps``."""
    return dict(value) if isinstance(value, Mapping) else str(checked(value))


def safe_repr(value: object) -> str:
    """Returns the repr of plain Python data, and the type's name of any other object.

    >>> safe_repr(["a", 1]), safe_repr(object())
    ("['a', 1]", '<object>')
    """
    return _REPR.repr(value)


def check_choice(
    name: str, value: object, known: Iterable[str], error: type[Exception] = ValueError
) -> None:
    """Raises an error for an argument that is not a known choice."""
    if not isinstance(value, str) or value not in known:
        raise error(f"{name} is {safe_repr(value)}; choose one of {', '.join(known)}")


def describe(value: object) -> str:
    """Describes a value and its type, for messages.

    >>> describe(None), describe("Latn"), describe([1, 2])
    ('None', "the str 'Latn'", 'the list [1, 2]')
    """
    if value is None:
        return "None"
    kind, text = type(value).__name__, safe_repr(value)
    if text == f"<{kind}>":
        return f"the {kind}"
    return f"the {kind} {text if len(text) <= _LONGEST else f'{text[: _LONGEST - 1]}…'}"


def with_text(error: ValueError, text: str) -> ValueError:
    """Returns an error of the same class with a different text. A class whose constructor takes
    more than a text, such as JSONDecodeError, becomes ValueError."""
    try:
        return type(error)(text)
    except TypeError:
        return ValueError(text)


class _Repr(reprlib.Repr):
    """Shortens containers, and shows other objects by type."""

    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxother = self.maxlong = 200

    def repr1(self, x: object, level: int) -> str:
        kind = type(x)
        for plain in (list, tuple, dict, set, frozenset):
            if isinstance(x, plain) and (plain is tuple or kind.__repr__ is plain.__repr__):
                return str(getattr(self, f"repr_{plain.__name__}")(x, level))
        package = str(kind.__module__).partition(".")[0]
        has_objects = getattr(getattr(x, "dtype", None), "hasobject", False)
        if kind not in _PLAIN and package not in _PACKAGES or has_objects:
            return f"<{kind.__name__}>"
        return super().repr1(x, level)

    def repr_int(self, x: int, level: int) -> str:
        try:
            return super().repr_int(x, level)
        except ValueError:
            return "of thousands of digits"


_REPR = _Repr()
