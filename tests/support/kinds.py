"""The kinds of tokenizers that `tests/frontend/test_matrix.py` declares, for other tests."""

from __future__ import annotations

import importlib.util

from pages import ROOT

_spec = importlib.util.spec_from_file_location(
    "declared_kinds", ROOT / "tests" / "frontend" / "test_matrix.py"
)
assert _spec is not None and _spec.loader is not None
_matrix = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_matrix)

CASES = _matrix.CASES
texts = _matrix.texts
