"""Makes embedding rows: in arrays, tensors, parameters, and layers of torch."""

from __future__ import annotations

import sys
from typing import Any

from ..arguments import number_of
from ..ranks import count_ids, free_ranges
from .arrays import Numpy, Torch, is_torch
from .plan import EmbeddingPlan

#: Ways to make a row; see :func:`extend_embeddings`.
METHODS = ("mean", "mean-raw", "zeros", "covariance")

#: The factor of the covariance, as in transformers' ``resize_token_embeddings(mean_resizing=True)``.
COVARIANCE_SCALE = 1e-9

#: The most rows without a token that :func:`extend_embeddings` appends: a table of 4096 numbers a
#: row grows by 8 GiB in half precision.
MOST_UNUSED_ROWS = 2**20


def extend_embeddings(
    table: Any,
    plan: EmbeddingPlan,
    method: str = "mean",
    *,
    pad_to_multiple_of: int | None = None,
    seed: int = 0,
) -> Any:
    """Returns a copy of an embedding table with rows for the new ids.

    Args:
        table: numpy array or torch tensor of shape (rows, width), with floating-point numbers; or
            ``torch.nn.Parameter``, ``torch.nn.Embedding`` or, for the head of a model,
            ``torch.nn.Linear``, whose weight it is; or a tuple of these, such as ``(embedding,
            head)``. The rows of the base's tokens and special tokens must be there; rows after
            them that were only padding are filled in where the plan has ids for them.
        plan: from :func:`embedding_plan`.
        method: ``mean``, the mean of the rows that made the token up, scaled to the mean norm of
            the base's rows; ``mean-raw``, the same without scaling (a mean is shorter than what it
            is made of); ``zeros``; ``covariance``, samples around the mean of all base rows with
            1e-9 of their covariance, as transformers takes them for ``mean_resizing`` (the mean
            itself where that covariance is not positive definite). Unused ids get
            the mean of all base rows.
        pad_to_multiple_of: append rows, as for unused ids, until the number of rows
            is a multiple of this.
        seed: of the samples of ``covariance``.

    Returns:
        The same kind of object with the same number type, of shape
        (max(rows, plan.sizes["rows"]) padded, width), on the same device. Parameters and layers
        keep their gradient flag, layers their other settings; a bias is padded with zeros. What
        shares one parameter in a tuple shares one afterwards: a tied head stays tied.

    Raises:
        ValueError: the method is unknown, the table does not have two dimensions, or it lacks
            rows of the base or of its special tokens; or ids far above the others would append
            more than 2**20 unused rows.
        TypeError: the table does not hold floating-point numbers, or the plan is not one.

    >>> import numpy
    >>> from vocab_tools import embedding_plan
    >>> base = {bytes([byte]): byte for byte in range(256)}
    >>> plan = embedding_plan(base, {b"ab": 256})
    >>> extend_embeddings(numpy.ones((256, 8)), plan).shape
    (257, 8)
    >>> extend_embeddings(numpy.ones((256, 8)), plan, pad_to_multiple_of=64).shape
    (320, 8)
    """
    if method not in METHODS:
        raise ValueError(f"unknown method {method!r}; choose from {', '.join(METHODS)}")
    if not isinstance(plan, EmbeddingPlan):
        raise TypeError(
            f"the plan is a {type(plan).__name__}; make one with embedding_plan(base, extra), which "
            f"also knows the ids of the base"
        )
    if pad_to_multiple_of is not None:
        pad_to_multiple_of = number_of("pad_to_multiple_of", pad_to_multiple_of, 1)
    seed = number_of("seed", seed, 0)
    maker = _Maker(plan, method, pad_to_multiple_of or 1, seed)
    if isinstance(table, tuple):
        return tuple(map(maker.extend, table))
    return maker.extend(table)


class _Maker:
    """Extends tables in one way, and remembers the parameters that it has extended."""

    def __init__(self, plan: EmbeddingPlan, method: str, multiple: int, seed: int) -> None:
        self.plan = plan
        self.method = method
        self.multiple = multiple
        self.seed = seed
        #: By the identity of the old parameter, which is kept so that no other one takes it.
        self.parameters: dict[int, tuple[Any, Any]] = {}

    def extend(self, table: Any) -> Any:
        torch = sys.modules.get("torch")
        nn = getattr(torch, "nn", None)
        if nn is None:
            return self.rows(table)
        if isinstance(table, nn.Parameter):
            return self.parameter(table)
        if isinstance(table, nn.Embedding):
            return self.embedding(table)
        if isinstance(table, nn.Linear):
            return self.linear(table)
        return self.rows(table)

    def parameter(self, old: Any) -> Any:
        if id(old) not in self.parameters:
            new = sys.modules["torch"].nn.Parameter(self.rows(old), requires_grad=old.requires_grad)
            self.parameters[id(old)] = (old, new)
        return self.parameters[id(old)][1]

    def embedding(self, old: Any) -> Any:
        weight = self.parameter(old.weight)
        new = sys.modules["torch"].nn.Embedding(
            weight.shape[0],
            weight.shape[1],
            padding_idx=old.padding_idx,
            max_norm=old.max_norm,
            norm_type=old.norm_type,
            scale_grad_by_freq=old.scale_grad_by_freq,
            sparse=old.sparse,
            _weight=weight,
        )
        new.weight = weight
        return new.train(old.training)

    def linear(self, old: Any) -> Any:
        nn = sys.modules["torch"].nn
        weight = self.parameter(old.weight)
        new = nn.Linear(weight.shape[1], 1, bias=False)
        new.out_features = weight.shape[0]
        new.weight = weight
        if old.bias is not None:
            bias = old.bias.detach().new_zeros((weight.shape[0],))
            bias[: old.bias.shape[0]] = old.bias.detach()
            new.bias = nn.Parameter(bias, requires_grad=old.bias.requires_grad)
        return new.train(old.training)

    def rows(self, matrix: Any) -> Any:
        """Returns the table with its new rows."""
        arrays: Any = Torch() if is_torch(matrix) else Numpy()
        matrix = arrays.check(matrix)
        plan = self.plan
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
        size += -size % self.multiple
        table = arrays.grown(matrix, size)
        self._fill(arrays, matrix, table, free_ranges(plan, rows, size))
        return table

    def _fill(self, arrays: Any, matrix: Any, table: Any, unused: list[tuple[int, int]]) -> None:
        trained = arrays.wide(matrix[self.plan.base_ids])
        norm = float(arrays.norms(trained).mean())
        average = trained.mean(0)

        def made(row: Any) -> Any:
            if self.method == "zeros":
                row = row * 0
            elif self.method == "mean":
                length = float(arrays.norms(row[None])[0])
                row = row * (norm / length) if length > 0 else row
            return arrays.narrow(row, table)

        if self.method == "covariance":
            rows = arrays.samples(trained, COVARIANCE_SCALE, len(self.plan), self.seed)
            for number, row in zip(self.plan, rows):
                table[number] = arrays.narrow(row, table)
        else:
            for number, parts in self.plan.items():
                table[number] = made(arrays.wide(matrix[parts]).mean(0))
        for first, last in unused:
            table[first : last + 1] = made(average)
