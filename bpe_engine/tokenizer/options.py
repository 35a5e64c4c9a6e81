"""Resolves truncation and padding of a call from `padding`, `truncation`, `max_length` and other
arguments."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Hashable
from typing import Any, NamedTuple

from ..common.values import check_choice, safe_repr

__all__ = [
    "LARGEST",
    "NO_LIMIT",
    "Layout",
    "RowPadding",
    "RowTruncation",
    "Strategies",
    "checked_side",
    "resolve",
]

#: `model_max_length` of a tokenizer without a limit.
NO_LIMIT = int(1e30)
#: Maximum length in native code; longer than any row.
LARGEST = 2**63 - 1
# A larger `model_max_length` means no limit.
_LARGE = int(1e20)

_PADDINGS = ("longest", "max_length", "do_not_pad")
_TRUNCATIONS = ("longest_first", "only_first", "only_second", "do_not_truncate")


class RowTruncation(NamedTuple):
    """Truncation settings for native code."""

    max_length: int
    stride: int
    strategy: str
    direction: str


class RowPadding(NamedTuple):
    """Padding settings for native code."""

    #: Target length; None for the longest row.
    length: int | None
    direction: str
    pad_to_multiple_of: int | None
    pad_id: int
    pad_type_id: int
    pad_token: str


class Layout(NamedTuple):
    """Truncation and padding of a call's rows."""

    truncation: RowTruncation | None = None
    padding: RowPadding | None = None


class Strategies(NamedTuple):
    """The padding and truncation strategies, and the length."""

    padding: str
    truncation: str
    max_length: int | None
    #: True if the arguments caused a warning.
    warned: bool = False


def resolve(
    padding: Any,
    truncation: Any,
    max_length: Any,
    pad_to_multiple_of: Any,
    model_max_length: int,
    pad_token: str | None,
    verbose: bool = True,
) -> Strategies:
    """Returns the strategies for the arguments of a call, by the rules of transformers.

    Raises:
        ValueError: A strategy is unknown, the pad token is missing, or `max_length` is not a
            multiple of `pad_to_multiple_of`.
        TypeError: A length is not an int.
    """
    padding = _plain("padding", padding, _PADDINGS)
    truncation = _plain("truncation", truncation, _TRUNCATIONS)
    max_length = _length("max_length", max_length)
    multiple = _length("pad_to_multiple_of", pad_to_multiple_of)
    # Compares by value, like the keys of plans: 0 equals False.
    if max_length is not None and padding == 0 and truncation is None:
        truncation = "longest_first"
    warned = False
    if padding == 1 and verbose and max_length is not None:
        if truncation in (None, False, "do_not_truncate"):
            warned = True
            warnings.warn(
                "`max_length` is ignored when `padding`=`True` and there is no truncation strategy. "
                "To pad to max length, use `padding='max_length'`.",
                stacklevel=4,
            )
    padding = {True: "longest", False: "do_not_pad"}.get(padding, padding)
    truncation = {True: "longest_first", False: "do_not_truncate"}.get(truncation, truncation)
    truncation = "do_not_truncate" if truncation is None else truncation
    _check("padding", padding, _PADDINGS)
    _check("truncation", truncation, _TRUNCATIONS)
    if max_length is None:
        has_limit = model_max_length <= _LARGE
        if padding == "max_length" and not has_limit:
            padding = "do_not_pad"
        if truncation != "do_not_truncate" and not has_limit:
            truncation = "do_not_truncate"
        if has_limit and (padding == "max_length" or truncation != "do_not_truncate"):
            max_length = model_max_length
    if padding != "do_not_pad" and pad_token is None:
        raise ValueError(
            "Asking to pad but the tokenizer does not have a padding token. Please select a token "
            "to use as `pad_token` `(tokenizer.pad_token = tokenizer.eos_token e.g.)` or add a new "
            "pad token via `tokenizer.add_special_tokens({'pad_token': '[PAD]'})`."
        )
    if "do_not_pad" != padding and truncation != "do_not_truncate" and max_length is not None:
        if multiple and max_length % multiple:
            raise ValueError(
                "Truncation and padding are both activated but truncation length "
                f"({max_length}) is not a multiple of pad_to_multiple_of ({multiple})."
            )
    return Strategies(padding, truncation, max_length, warned)


def _plain(name: str, value: Any, known: tuple[str, ...]) -> Any:
    """Returns the name of a strategy, given by name or as a member of an enumeration."""
    if not isinstance(value, Hashable):  # Comparing would read a damaged column.
        _check(name, value, known)
    return getattr(value, "value", value)


def _check(name: str, value: Any, known: tuple[str, ...]) -> None:
    if not isinstance(value, Hashable) or value not in known:
        raise ValueError(
            f"{name} must be a bool or one of {', '.join(known)}, not {safe_repr(value)}"
        )


def _length(name: str, value: Any) -> int | None:
    if value is None:
        return None
    try:
        length = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an int or None, not {type(value).__name__}") from None
    if length < 0:
        raise ValueError(f"{name} must be at least 0, but is {length}")
    return min(length, LARGEST)


def checked_side(name: str, side: str) -> str:
    """Returns a side after checking it.

    Raises:
        ValueError: The side is neither ``"right"`` nor ``"left"``.
    """
    check_choice(name, side, ("right", "left"))
    return side
