"""Converts lists and matrices to tensors of numpy, torch or tensorflow, imported on demand."""

from __future__ import annotations

import importlib
from typing import Any

from ..common.values import safe_repr

__all__ = ["as_tensor", "framework", "matrix_as_tensor"]

_MODULES = {"np": "numpy", "pt": "torch", "tf": "tensorflow"}
_INSTALL = {
    "numpy": "pip install 'bpe-engine[arrays]'",
    "torch": "see https://pytorch.org",
    "tensorflow": "pip install tensorflow",
}


def framework(tensor_type: Any) -> Any:
    """Imports and returns the package for ``"np"``, ``"pt"`` or ``"tf"``.

    Raises:
        ValueError: The name is not one of the three.
        ImportError: The package is missing.
    """
    name = getattr(tensor_type, "value", tensor_type)
    if name not in _MODULES:
        raise ValueError(f'return_tensors must be "np", "pt" or "tf", not {safe_repr(tensor_type)}')
    module = _MODULES[name]
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(
            f'return_tensors="{name}" needs {module}, which is not installed: {_INSTALL[module]}'
        ) from error


def matrix_as_tensor(module: Any, data: bytearray, shape: tuple[int, ...]) -> Any:
    """Returns a tensor of the 64-bit integers in `data`."""
    if module.__name__ == "torch":
        if not data:
            return module.empty(shape, dtype=module.int64)
        return module.frombuffer(data, dtype=module.int64).reshape(shape)
    numpy = module if module.__name__ == "numpy" else framework("np")
    array = numpy.ndarray(shape, numpy.int64, data)
    return array if module is numpy else module.constant(array)


def as_tensor(module: Any, name: str, value: Any) -> Any:
    """Converts the lists of a field to a tensor; returns tensors unchanged."""
    if not isinstance(value, (list, tuple)):
        return value
    try:
        if module.__name__ == "torch":
            return module.tensor(value, dtype=None if _has_items(value) else module.int64)
        if module.__name__ == "tensorflow":
            return module.constant(value, dtype=None if _has_items(value) else module.int64)
        return _as_array(module, value)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name} has rows of different lengths, which a tensor cannot have; pass padding=True, "
            "and truncation=True with max_length, to make them of one length"
        ) from error


def _has_items(value: Any) -> bool:
    return bool(value) and (not isinstance(value[0], (list, tuple)) or any(map(_has_items, value)))


def _as_array(numpy: Any, value: Any) -> Any:
    """Converts lists to an array, or rows of different lengths to an array of arrays."""
    if value and isinstance(value[0], (list, tuple)) and len({len(row) for row in value}) > 1:
        rows = numpy.empty(len(value), dtype=object)
        for place, row in enumerate(value):
            rows[place] = numpy.asarray(row, dtype=None if row else numpy.int64)
        return rows
    return numpy.asarray(value, dtype=None if _has_items(value) else numpy.int64)
