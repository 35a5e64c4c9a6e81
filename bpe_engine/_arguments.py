"""Checks arguments, and raises errors that name the argument and the value."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any, SupportsIndex, TypeVar

from .common.values import describe

_Key = TypeVar("_Key", str, bytes)


def whole_number(name: str, value: SupportsIndex, at_least: int = 0) -> int:
    """Checks that an argument is a count, and returns it."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an int, not {type(value).__name__}") from None
    if number < at_least:
        raise ValueError(f"{name} must be at least {at_least}, but is {number}")
    return number


def truth(name: str, value: bool) -> bool:
    """Checks that an argument is a bool, Python's or numpy's, and returns it."""
    if type(value).__name__ not in ("bool", "bool_"):
        raise TypeError(f"{name} must be True or False, not {describe(value)}")
    return bool(value)


def check_pattern(name: str, pattern: object) -> None:
    if not isinstance(pattern, str):
        raise TypeError(f"{name} must be a str with a regular expression, not {describe(pattern)}")


def check_errors(errors: object) -> None:
    if not isinstance(errors, str):
        raise TypeError(f'errors must be a str such as "replace", not {describe(errors)}')


def copied_dict(name: str, value: Mapping[_Key, int]) -> dict[_Key, int]:
    if not isinstance(value, Mapping):
        raise TypeError(f"{name} must be a dict, not {describe(value)}")
    return dict(value)


def copied_special_tokens(special_tokens: Mapping[str, int]) -> dict[str, int]:
    """Copies the special tokens, after checking that their names can occur in text."""
    copy = copied_dict("special_tokens", special_tokens)
    for name in copy:
        if isinstance(name, str) and any("\ud800" <= letter <= "\udfff" for letter in name):
            raise ValueError(
                f"the name {name!r} in special_tokens contains a surrogate, which UTF-8 cannot "
                "represent; use another name"
            )
    return copy


def numpy_for(method: str, instead: str) -> Any:
    """Returns numpy, or raises an ImportError that names a method that does not need numpy."""
    try:
        import numpy
    except ImportError as error:
        raise ImportError(
            f"Encoding.{method} needs numpy, which is not installed: run `pip install numpy`, or "
            f"call Encoding.{instead}, which returns lists"
        ) from error
    return numpy
