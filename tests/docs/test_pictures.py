"""Tests that charts show the figures of docs/benchmarks.csv, and that pictures load nothing."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest
from pages import ROOT

PICTURES = sorted((ROOT / "docs" / "_static").glob("*.svg"))


def test_charts_are_those_of_the_benchmarks(tmp_path: Path) -> None:
    """The charts in docs/_static are up to date; `make bench` and `make pictures` draw them."""
    script = runpy.run_path(str(ROOT / "docs" / "pictures.py"))
    script["speed"].__globals__["OUT"] = tmp_path
    script["speed"]()
    for path in tmp_path.iterdir():
        assert path.read_text() == (ROOT / "docs" / "_static" / path.name).read_text(), path.name
    assert len([*tmp_path.iterdir()]) == 2


@pytest.mark.parametrize("path", PICTURES, ids=lambda path: path.name)
def test_drawings_load_nothing(path: Path) -> None:
    text = path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?:|@import|@font-face|<script|<image|\bhref=", text)
