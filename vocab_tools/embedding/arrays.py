"""The operations of numpy and torch that are needed, under common names."""

from __future__ import annotations

import sys
from typing import Any


def is_torch(matrix: object) -> bool:
    """True for a torch tensor. Does not import torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(matrix, torch.Tensor)


class Numpy:
    """Tables that are numpy arrays."""

    def __init__(self) -> None:
        import numpy

        self.numpy = numpy

    def check(self, matrix: Any) -> Any:
        matrix = self.numpy.asarray(matrix)
        if not self.numpy.issubdtype(matrix.dtype, self.numpy.floating):
            raise TypeError(f"the table holds {matrix.dtype}; expected floating-point numbers")
        return matrix

    def wide(self, matrix: Any) -> Any:
        """Converts to single precision at least: half precision overflows in norms."""
        return matrix.astype(self.numpy.promote_types(matrix.dtype, "float32"), copy=False)

    def narrow(self, row: Any, table: Any) -> Any:
        return row.astype(table.dtype)

    def norms(self, matrix: Any) -> Any:
        return self.numpy.linalg.norm(matrix, axis=1)

    def grown(self, matrix: Any, size: int) -> Any:
        table = self.numpy.zeros((size, matrix.shape[1]), dtype=matrix.dtype)
        table[: len(matrix)] = matrix
        return table


class Torch:
    """Tables that are torch tensors."""

    def __init__(self) -> None:
        self.torch: Any = sys.modules["torch"]

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
