"""The origins of what a caller gives to a template, by message, role and field."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jinja2 import Environment

from .._core import Labels
from .fields import BY_KEY
from .origin import Scalar, Traced
from .segments import Origin

__all__ = ["label_tests", "new_labels"]


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
# Errors name the types of the caller's values.
for _kind, _own in ((int, _Int), (float, _Float), (bool, _Bool), (type(None), _None)):
    _own.__name__ = _kind.__name__


def new_labels(environment: Environment) -> Labels:
    """Returns the origins of what a caller gives to one rendering: none so far."""
    look_up = environment.getattr, environment.getitem
    call: Any = environment.call  # type: ignore[attr-defined]
    return Labels(Traced, Origin, _SCALARS, BY_KEY, *look_up, call)


def label_tests() -> dict[str, Callable[..., bool]]:
    """Returns the tests of the template language that compare identities, for labeled values."""

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
