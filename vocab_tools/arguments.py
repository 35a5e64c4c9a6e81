"""Checks arguments, and raises errors that name the argument, the value and the remedy."""

from __future__ import annotations

import functools
import operator
import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, SupportsIndex, TypeVar

from bpe_engine.common.values import describe, listed

_Options = TypeVar("_Options")

_SURROGATE = re.compile("[\ud800-\udfff]")

#: Maximum value of every numeric argument.
_LARGEST = (1 << 63) - 1


def is_text(value: object) -> bool:
    """Returns True for a str without surrogates, which UTF-8 can express."""
    return isinstance(value, str) and (value.isascii() or not _SURROGATE.search(value))


def several_names(name: str, value: Iterable[str], example: str) -> list[str]:
    """Checks that an argument is a list of names, and returns the list.

    Raises TypeError for a single name, which would pass as a list of letters, and for items other
    than text; ValueError for text with surrogates.
    """
    if isinstance(value, (str, bytes)):
        raise TypeError(f"{name} is a list of names, not {describe(value)}; give [{value!r}]")
    if not isinstance(value, Iterable):
        raise TypeError(f"{name} is a list of names, as in {example}, not {describe(value)}")
    names = listed(value)
    for each in names:
        if not isinstance(each, str):
            raise TypeError(f"{name} has {describe(each)}; names are text, as in {example}")
        if not is_text(each):
            raise ValueError(f"{name} has {each!r} with a surrogate, which UTF-8 cannot express")
    return names


def check_progress(progress: Callable[..., None] | None) -> None:
    """Raises TypeError for an argument that is not a function, and not None."""
    if progress is not None and not callable(progress):
        raise TypeError(f"progress is {describe(progress)}; it must be a function")


def progress_of(
    progress: Callable[[str, int, int], None] | None, step: str
) -> Callable[[int, int], None] | None:
    """Returns the progress function of a step, or None. Raises TypeError for any other object."""
    check_progress(progress)
    return None if progress is None else functools.partial(progress, step)


def number_of(name: str, value: SupportsIndex, at_least: int) -> int:
    """Checks that an argument is a whole number. Raises TypeError or ValueError otherwise."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is {describe(value)}; it must be an int") from None
    if number < at_least:
        least = "it cannot be negative" if at_least == 0 else f"it must be {at_least} or more"
        raise ValueError(f"{name} is {number}; {least}")
    if number > _LARGEST:
        raise ValueError(f"{name} is {number}; it can be at most {_LARGEST:,}")
    return number


def checked_options(value: _Options | None, kind: type[_Options]) -> _Options:
    """Checks that an argument is an options object; returns the defaults for None. Raises TypeError
    otherwise."""
    if value is not None and not isinstance(value, kind):
        raise TypeError(f"options are {kind.__name__}(...), not {describe(value)}")
    return kind() if value is None else value


def checked_path(value: Any, what: str = "the path of a file") -> str:
    """Checks that an argument is a path. Raises TypeError otherwise."""
    if not isinstance(value, (str, os.PathLike)):
        raise TypeError(f"expected {what}, as a str or a Path, not {describe(value)}")
    return os.fspath(value)


def checked_special_tokens(value: Mapping[str, int]) -> dict[str, int]:
    """Copies names and ids of special tokens to a new dict. Raises TypeError if the argument is not
    a mapping."""
    if not isinstance(value, Mapping):
        raise TypeError(
            'special_tokens are names and their ids, as in {"<sep>": 300}, not ' + describe(value)
        )
    return dict(value)


def given_texts(value: str | Iterable[str]) -> Iterable[str]:
    """Returns the texts of an argument: one text or several. Raises TypeError otherwise."""
    if isinstance(value, (bytes, Mapping)) or not isinstance(value, Iterable):
        raise TypeError(f"texts are a str or a list of them, not {describe(value)}")
    return [value] if isinstance(value, str) else value
