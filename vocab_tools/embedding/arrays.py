"""Table operations that differ between numpy and torch."""

from __future__ import annotations

import sys
from typing import Any


def is_torch(matrix: object) -> bool:
    """Returns True for a torch tensor, without importing torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(matrix, torch.Tensor)


class Numpy:
    """Operations on tables that are numpy arrays."""

    def __init__(self) -> None:
        import numpy

        self.package: Any = numpy

    def check(self, matrix: Any) -> Any:
        """Returns the table as an array. Raises TypeError unless it has floating-point numbers."""
        matrix = self.package.asarray(matrix)
        if not self.package.issubdtype(matrix.dtype, self.package.floating):
            raise TypeError(f"the table holds {matrix.dtype}; expected floating-point numbers")
        return matrix

    def wide(self, matrix: Any) -> Any:
        """Converts to at least single precision, because norms overflow in half precision."""
        single = self.package.float32
        return self.to(matrix, self.package.promote_types(matrix.dtype, single))

    def to(self, matrix: Any, kind: Any) -> Any:
        return matrix.astype(kind, copy=False)

    def norms(self, matrix: Any) -> Any:
        return self.package.linalg.norm(matrix, axis=1)

    def zeros(self, matrix: Any, size: int) -> Any:
        """Returns a table of zeros with ``size`` rows, and the width and type of ``matrix``."""
        return self.package.zeros((size, matrix.shape[1]), dtype=matrix.dtype)


class Torch(Numpy):
    """Operations on tables that are torch tensors."""

    def __init__(self) -> None:
        self.package: Any = sys.modules["torch"]

    def check(self, matrix: Any) -> Any:
        if not matrix.is_floating_point():
            raise TypeError(f"the table holds {matrix.dtype}; expected floating-point numbers")
        return matrix.detach()

    def to(self, matrix: Any, kind: Any) -> Any:
        return matrix.to(kind)

    def norms(self, matrix: Any) -> Any:
        return matrix.norm(dim=1)

    def zeros(self, matrix: Any, size: int) -> Any:
        return matrix.new_zeros((size, matrix.shape[1]))
