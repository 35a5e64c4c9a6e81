"""Rows for new tokens in an embedding table.

Four sizes are often taken for each other: how many *ranks* a vocabulary has, how many *special
tokens*, its *largest id plus one* (ids have gaps), and the *rows* of the table (often padded). A
plan tells them apart, and has a row for every id up to the new maximum.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import bpe_engine
from bpe_engine import _core

from .ranks import (
    RankSource,
    as_sources,
    check_special_tokens,
    count_ids,
    find_pattern,
    free_ranges,
    load_ranks,
    read_rank_file,
)

#: How :func:`extend_embeddings` makes a row.
METHODS = ("mean", "mean-raw", "zeros")

#: The most rows without a token that :func:`extend_embeddings` appends: a table of 4096 numbers a
#: row grows by 8 GiB in half precision.
MOST_UNUSED_ROWS = 2**20


class EmbeddingPlan(dict[int, list[int]]):
    """For every new id, the base ids that made it up: a dict, with the sizes beside it."""

    #: What the vocabulary has before and after; see :func:`embedding_plan`.
    sizes: dict[str, int]
    #: Ids from the base's maximum to the new maximum that stand for no token: ranges of first and
    #: last id.
    gaps: list[tuple[int, int]]
    #: The ids of the base's tokens, whose rows are trained.
    base_ids: list[int]


def embedding_plan(
    base: RankSource,
    extra: RankSource | Sequence[RankSource],
    *,
    special_tokens: Mapping[str, int] | str | None = None,
) -> EmbeddingPlan:
    """For every new id, the ids of the base whose tokens made it up.

    Args:
        base: a rank file, ranks, or an encoding.
        extra: the file, ranks, or list of them, with the new tokens.
        special_tokens: names and ids, or the name of an encoding that has them. By default those
            of the encoding that ``base`` is, when it is one.

    Returns:
        A mapping of new id to base ids, in the order of ids. Its ``sizes`` are ``base_ranks``,
        ``extra_ranks``, ``special_tokens``, ``base_max_id_plus_one`` and ``max_id_plus_one``
        (special tokens included), and ``rows``, how many rows the table needs. Its ``gaps`` are
        the ids between the two maxima that stand for nothing, as ranges of first and last id;
        they get rows too.

    Raises:
        ValueError: a token has two ids, or an id two tokens, or a byte of a new token is no token
            of the base, or an id is not from 0 to 2**32 - 2.
        TypeError: ``extra`` is no source of ranks.

    >>> base = {bytes([byte]): byte for byte in range(256)}
    >>> plan = embedding_plan({**base, b"ab": 256}, {b"abc": 260})
    >>> dict(plan), plan.gaps, plan.sizes["rows"]
    ({260: [256, 99]}, [(257, 259)], 261)
    """
    extras = as_sources(extra)
    ranks = load_ranks(base)
    specials = _special_tokens(base, special_tokens, ranks)
    check_special_tokens(specials)
    both = load_ranks(ranks, *extras)
    taken = {number: name for name, number in specials.items()}
    new = {token: number for token, number in both.items() if token not in ranks}
    for token, number in new.items():
        if number in taken:
            raise ValueError(
                f"the id {number} of {token!r} is taken by the special token {taken[number]}"
            )
    plan = EmbeddingPlan()
    made_of = _core.merge_bytes(ranks, list(new)) if new else []
    for (token, number), parts in zip(new.items(), made_of):
        if parts is None:
            raise ValueError(
                f"{token!r} has a byte that is no token of the base, so nothing says what its "
                f"row is made of; add the single byte to the base"
            )
        plan[number] = parts
    base_size = max([*ranks.values(), *specials.values()]) + 1
    size = max([base_size, *(number + 1 for number in plan)])
    plan.gaps = free_ranges(plan, base_size, size)
    plan.base_ids = list(ranks.values())
    plan.sizes = {
        "base_ranks": len(ranks),
        "extra_ranks": len(plan),
        "special_tokens": len(specials),
        "base_max_id_plus_one": base_size,
        "max_id_plus_one": size,
        "rows": size,
    }
    return plan


def _special_tokens(
    base: RankSource, special_tokens: Mapping[str, int] | str | None, ranks: Mapping[bytes, int]
) -> Mapping[str, int]:
    if isinstance(special_tokens, str):
        return find_pattern(special_tokens, ranks).special_tokens
    if special_tokens is not None:
        return special_tokens
    if isinstance(base, bpe_engine.Encoding):
        return base._special_tokens
    if not isinstance(base, Mapping):
        name = read_rank_file(base).encoding_name
        if name is not None:
            return find_pattern(name, ranks).special_tokens
    return {}


def extend_embeddings(matrix: Any, plan: EmbeddingPlan, method: str = "mean") -> Any:
    """A copy of an embedding table with rows for the new ids.

    Args:
        matrix: numpy array or torch tensor of shape (rows, width), with floating-point numbers.
            The rows of the base's tokens must be there; rows behind them that were only padding
            are filled in where the plan has ids for them.
        plan: from :func:`embedding_plan`.
        method: ``mean``, the mean of the rows that made the token up, scaled to the mean norm of
            the base's rows; ``mean-raw``, the same without scaling (a mean is shorter than what it
            is made of); ``zeros``. Ids that stand for nothing get the mean of all base rows.

    Returns:
        An array or tensor of the same kind and number type, of shape
        (max(rows, plan.sizes["rows"]), width).

    Raises:
        ValueError: the method is none of these, the table has not two dimensions, or it lacks
            rows of the base; or ids far above the others would append more than 2**20 rows
            that stand for no token.
        TypeError: the table does not hold floating-point numbers, or the plan is none.

    >>> import numpy
    >>> base = {bytes([byte]): byte for byte in range(256)}
    >>> plan = embedding_plan(base, {b"ab": 256})
    >>> extend_embeddings(numpy.ones((256, 8)), plan).shape
    (257, 8)
    """
    if method not in METHODS:
        raise ValueError(f"{method!r} is no method; the methods are {', '.join(METHODS)}")
    if not isinstance(plan, EmbeddingPlan):
        raise TypeError(
            f"the plan is a {type(plan).__name__}; make one with embedding_plan(base, extra), which "
            f"also knows the ids of the base"
        )
    arrays: Any = _Torch() if _is_torch(matrix) else _Numpy()
    matrix = arrays.check(matrix)
    if len(matrix.shape) != 2:
        raise ValueError(f"the table has shape {tuple(matrix.shape)}; expected (rows, width)")
    rows = matrix.shape[0]
    if max(plan.base_ids) >= rows:
        raise ValueError(
            f"the table has {rows} rows, and the base has the id {max(plan.base_ids)}; give the "
            f"table that belongs to the base"
        )
    size = max(rows, plan.sizes["rows"])
    unused = free_ranges(plan, rows, size)
    if count_ids(unused) > MOST_UNUSED_ROWS:
        raise ValueError(
            f"the largest id is {size - 1}, so the table of {rows} rows would get {size - rows} "
            f"more, {count_ids(unused)} of them for no new token (at most {MOST_UNUSED_ROWS} are "
            f"made); number the new tokens from {plan.sizes['base_max_id_plus_one']} on"
        )
    table = arrays.grown(matrix, size)
    trained = arrays.wide(matrix[plan.base_ids])
    norm = float(arrays.norms(trained).mean())
    average = trained.mean(0)

    def made(row: Any) -> Any:
        if method == "zeros":
            row = row * 0
        elif method == "mean":
            length = float(arrays.norms(row[None])[0])
            row = row * (norm / length) if length > 0 else row
        return arrays.narrow(row, table)

    for number, parts in plan.items():
        table[number] = made(arrays.wide(matrix[parts]).mean(0))
    for first, last in unused:
        table[first : last + 1] = made(average)
    return table


def _is_torch(matrix: object) -> bool:
    """Whether it is a torch tensor; torch is not imported for the question."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(matrix, torch.Tensor)


class _Numpy:
    """What is needed of numpy."""

    def __init__(self) -> None:
        import numpy

        self.numpy = numpy

    def check(self, matrix: Any) -> Any:
        matrix = self.numpy.asarray(matrix)
        if not self.numpy.issubdtype(matrix.dtype, self.numpy.floating):
            raise TypeError(f"the table holds {matrix.dtype}; expected floating-point numbers")
        return matrix

    def wide(self, matrix: Any) -> Any:
        """In single precision at least: half precision overflows in norms."""
        return matrix.astype(self.numpy.promote_types(matrix.dtype, "float32"), copy=False)

    def narrow(self, row: Any, table: Any) -> Any:
        return row.astype(table.dtype)

    def norms(self, matrix: Any) -> Any:
        return self.numpy.linalg.norm(matrix, axis=1)

    def grown(self, matrix: Any, size: int) -> Any:
        table = self.numpy.zeros((size, matrix.shape[1]), dtype=matrix.dtype)
        table[: len(matrix)] = matrix
        return table


class _Torch:
    """The same of torch."""

    def __init__(self) -> None:
        self.torch = sys.modules["torch"]

    def check(self, matrix: Any) -> Any:
        if not matrix.is_floating_point():
            raise TypeError(f"the table holds {matrix.dtype}; expected floating-point numbers")
        return matrix.detach()

    def wide(self, matrix: Any) -> Any:
        return matrix.to(self.torch.promote_types(matrix.dtype, self.torch.float32))

    def narrow(self, row: Any, table: Any) -> Any:
        return row.to(table.dtype)

    def norms(self, matrix: Any) -> Any:
        return matrix.norm(dim=1)

    def grown(self, matrix: Any, size: int) -> Any:
        table = matrix.new_zeros((size, matrix.shape[1]))
        table[: matrix.shape[0]] = matrix
        return table
