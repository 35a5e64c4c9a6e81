"""Appends rows to embedding tables that are numpy arrays or torch tensors."""

from __future__ import annotations

from typing import Any

from bpe_engine.common.values import check_choice

from ..arguments import number_of
from ..ranks import count_ids, free_ranges
from .arrays import Numpy, Torch, is_torch
from .plan import EmbeddingPlan

#: Methods for making a row; see :func:`extend_embeddings`.
METHODS = ("mean", "mean-raw", "zeros")

#: Maximum number of rows without a token that :func:`extend_embeddings` appends: a table with 4096
#: numbers per row would grow by 8 GiB in half precision.
MOST_UNUSED_ROWS = 2**20


def extend_embeddings(
    table: Any,
    plan: EmbeddingPlan,
    method: str = "mean",
    *,
    pad_to_multiple_of: int | None = None,
) -> Any:
    """Returns a copy of an embedding table with rows for the new ids.

    Args:
        table: a numpy array or torch tensor of shape (rows, width) with floating-point numbers. The
            table must have rows for the base's tokens and special tokens; padding rows after these
            are filled if the plan has ids for them.
        plan: the result of :func:`embedding_plan`.
        method: ``mean``, the mean of the rows of the token's parts, scaled to the mean norm of the
            base's rows; ``mean-raw``, the same without scaling (a mean is shorter than the rows);
            ``zeros``. Unused ids get the mean of all base rows.
        pad_to_multiple_of: also append rows, as for unused ids, up to a multiple of this number.

    Returns:
        An array or tensor with the same number type, of shape (max(rows, plan.sizes["rows"]) padded,
        width), on the same device.

    Raises:
        ValueError: the method is unknown; the table does not have two dimensions, or lacks rows of
            the base or of its special tokens; or ids far above the other ids would append more
            than 2**20 unused rows.
        TypeError: the table has no floating-point numbers, or ``plan`` is not a plan.

    >>> import numpy
    >>> from vocab_tools import embedding_plan
    >>> base = {bytes([byte]): byte for byte in range(256)}
    >>> plan = embedding_plan(base, {b"ab": 256})
    >>> extend_embeddings(numpy.ones((256, 8)), plan).shape
    (257, 8)
    >>> extend_embeddings(numpy.ones((256, 8)), plan, pad_to_multiple_of=64).shape
    (320, 8)
    """
    check_choice("method", method, METHODS)
    if not isinstance(plan, EmbeddingPlan):
        raise TypeError(
            f"the plan is a {type(plan).__name__}; make one with embedding_plan(base, extra), which "
            f"also knows the ids of the base"
        )
    if pad_to_multiple_of is not None:
        pad_to_multiple_of = number_of("pad_to_multiple_of", pad_to_multiple_of, 1)
    arrays = Torch() if is_torch(table) else Numpy()
    matrix = arrays.check(table)
    if len(matrix.shape) != 2:
        raise ValueError(f"the table has shape {tuple(matrix.shape)}; expected (rows, width)")
    rows = matrix.shape[0]
    if max(plan.base_ids) >= rows:
        raise ValueError(
            f"the table has {rows} rows, and the base has the id {max(plan.base_ids)}; give "
            f"the table that belongs to the base"
        )
    if plan.sizes["base_max_id_plus_one"] > rows:
        raise ValueError(
            f"the table has {rows} rows, and the special tokens of the base go up to the id "
            f"{plan.sizes['base_max_id_plus_one'] - 1}: their rows, which are trained, would be "
            f"made up; give the table that belongs to the base, or make the plan with the "
            f"special tokens that it has, embedding_plan(..., special_tokens=...)"
        )
    size = max(rows, plan.sizes["rows"])
    unused = free_ranges(plan, rows, size)
    if count_ids(unused) > MOST_UNUSED_ROWS:
        raise ValueError(
            f"the largest id is {size - 1}, so the table of {rows} rows would get "
            f"{size - rows} more, {count_ids(unused)} of them for no new token (at most "
            f"{MOST_UNUSED_ROWS} are made); number the new tokens from "
            f"{plan.sizes['base_max_id_plus_one']} on"
        )
    size += -size % (pad_to_multiple_of or 1)
    grown = arrays.zeros(matrix, size)
    grown[:rows] = matrix
    trained = arrays.wide(matrix[plan.base_ids])
    norm = float(arrays.norms(trained).mean())
    average = trained.mean(0)

    def made(row: Any) -> Any:
        if method == "zeros":
            row = row * 0
        elif method == "mean":
            length = float(arrays.norms(row[None])[0])
            row = row * (norm / length) if length > 0 else row
        return arrays.to(row, grown.dtype)

    for number, parts in plan.items():
        grown[number] = made(arrays.wide(matrix[parts]).mean(0))
    for first, last in free_ranges(plan, rows, size):
        grown[first : last + 1] = made(average)
    return grown
