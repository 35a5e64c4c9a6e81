"""Runs every cell of every notebook in docs/notebooks, and shows its value."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest
from pages import ROOT

NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


def run_cell(source: str, session: dict[str, Any]) -> None:
    """Runs a cell as a notebook does, and renders the value of the last expression."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "<cell>", "exec"), session)
    if isinstance(last, ast.Expr):
        value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), session)
        show = getattr(value, "_repr_html_", None)
        assert value is None or repr(value)
        assert show is None or "<" in show()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    session: dict[str, Any] = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [] and cell["execution_count"] is None
            run_cell("".join(cell["source"]), session)


def test_there_are_notebooks_and_the_manual_lists_them() -> None:
    page = (ROOT / "docs" / "notebooks.md").read_text(encoding="utf-8")
    assert NOTEBOOKS
    assert all(f"notebooks/{path.name}" in page for path in NOTEBOOKS)
