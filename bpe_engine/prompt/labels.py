"""Origins of a caller's template input, by message, role and field."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from jinja2 import Environment

from .._core import Labels
from .fields import BY_KEY
from .segments import Origin

__all__ = [
    *("each_opened", "finding", "found", "label_tests", "new_labels", "opened", "values"),
]


class Scalar:
    """A number, bool or None from the caller, whose text has flags."""

    __slots__ = ()
    text_flags: int
    #: Original value.
    plain: Any


class _Int(Scalar, int):
    """A number in the arguments of a call."""


class _Float(Scalar, float):
    """A number in the arguments of a call."""


class _Bool(Scalar, int):
    """True or False in the arguments of a call."""

    def __repr__(self) -> str:
        return "True" if self else "False"

    __str__ = __repr__


class _None(Scalar):
    """None in the arguments of a call."""

    def __repr__(self) -> str:
        return "None"

    def __bool__(self) -> bool:
        return False

    def __eq__(self, other: object) -> bool:
        return other is None or type(other) is _None

    def __hash__(self) -> int:
        return hash(None)


_SCALARS: dict[type, Callable[[Any], Any]] = {
    int: _Int,
    float: _Float,
    bool: _Bool,
    type(None): lambda value: _None(),
}
# Error messages show the original types of the caller's values.
for _kind, _own in ((int, _Int), (float, _Float), (bool, _Bool), (type(None), _None)):
    _own.__name__ = _kind.__name__


def new_labels(environment: Environment, traced: type[str]) -> Labels:
    """Returns an empty table of value origins for one rendering."""
    look_up = environment.getattr, environment.getitem
    call: Any = environment.call  # type: ignore[attr-defined]
    return Labels(traced, Origin, _SCALARS, BY_KEY, *look_up, call)


def label_tests() -> dict[str, Callable[..., bool]]:
    """Returns the template language's identity tests, which also accept labeled values."""

    def plain(value: Any) -> Any:
        return value.plain if isinstance(value, Scalar) else value

    return {
        "boolean": lambda value: type(plain(value)) is bool,
        "true": lambda value: plain(value) is True,
        "false": lambda value: plain(value) is False,
        "none": lambda value: plain(value) is None,
        "integer": lambda value: isinstance(value, int) and type(plain(value)) is not bool,
        "sameas": lambda value, other: plain(value) is plain(other),
    }


class _Values(threading.local):
    #: Caller's values in this thread's rendering.
    labels: Labels | None = None


values: _Values = _Values()


@contextmanager
def finding(labels: Labels) -> Iterator[None]:
    """Context manager in which `found` and `opened` have access to the caller's values."""
    before, values.labels = values.labels, labels
    try:
        yield
    finally:
        values.labels = before


def found(value: object) -> tuple[int, Any]:
    """Returns the flags of text made from a non-string value, and the plain data."""
    if isinstance(value, Scalar):
        return value.text_flags, value.plain
    if values.labels is None:
        return 0, value
    return values.labels.found(value)


def opened(value: Any) -> Any:
    """Returns a caller's list or dict with labeled items. Other values are unchanged."""
    if (type(value) is dict or type(value) is list) and values.labels is not None:
        return values.labels.opened(value)
    return value


def each_opened(items: Any) -> Any:
    """Returns the labeled items of a loop that unpacks its items."""
    items = opened(items)
    return list(map(opened, items)) if type(items) is list else items
