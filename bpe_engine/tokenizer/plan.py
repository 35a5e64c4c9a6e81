"""`Plan`: the shared state of `Tokenizer` calls with the same arguments."""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

from .._core import RowEncoder
from .options import LARGEST, Layout, RowPadding, RowTruncation, Strategies, checked_side

__all__ = ["MOST", "Plan", "layout_of"]

#: Maximum number of plans that a tokenizer keeps.
MOST = 64


class Plan(NamedTuple):
    """The parsed arguments of a call."""

    encoder: RowEncoder
    #: Names of the fields.
    names: tuple[str, ...]
    #: The `model_input_names` on which the field names depend.
    input_names: list[str]
    #: Tensor package, or None.
    module: Any
    is_pretokenized: bool
    has_offsets: bool
    has_overflow: bool
    #: Number of ids above which a row causes a warning, or None.
    limit: int | None
    #: True if later calls may reuse the plan.
    is_kept: bool


def layout_of(
    strategies: Strategies,
    stride: int,
    pad_to_multiple_of: int | None,
    sides: tuple[str, str],
    pad_token: tuple[str | None, int | None],
) -> Layout:
    """Returns the layout of rows.

    Args:
        strategies: The strategies and the length.
        stride, pad_to_multiple_of: As in a call.
        sides: The side to truncate, and the side to pad.
        pad_token: The pad token and its id.

    Raises:
        ValueError: A side or the stride is wrong, or the pad token is not in the vocabulary.
    """
    cut = fill = None
    if strategies.truncation != "do_not_truncate" and strategies.max_length is not None:
        if operator.index(stride) < 0:
            raise ValueError(f"stride must be at least 0, but is {stride}")
        stride = min(operator.index(stride), LARGEST)
        side = checked_side("truncation_side", sides[0])
        cut = RowTruncation(strategies.max_length, stride, strategies.truncation, side)
    if strategies.padding != "do_not_pad":
        side = checked_side("padding_side", sides[1])
        length = strategies.max_length if strategies.padding == "max_length" else None
        token, id = pad_token
        if id is None or token is None:
            raise ValueError(f"the pad_token {token!r} is not a token; add it first")
        multiple = min(pad_to_multiple_of or 0, LARGEST) or None
        fill = RowPadding(length, side, multiple, id, 0, token)
    return Layout(cut, fill)
