"""Tests that all random tests share one seed, and that failures print the seed."""

from __future__ import annotations

import doctest
import re
import subprocess
import sys
from pathlib import Path

import seeds

ROOT = Path(__file__).parents[2]
FAILS = """
from seeds import seeded

def test_fails():
    assert seeded("x").random() == 2
"""


def test_no_other_generators() -> None:
    """No test creates its own random generator; hypothesis prints how to repeat a failure."""
    own = re.compile(r"random\.(Random|seed)\(|default_rng\((?!seed_for)|from random import")
    for path in (ROOT / "tests").rglob("*.py"):
        if path.name not in ("seeds.py", Path(__file__).name):
            found = own.search(path.read_text(encoding="utf-8"))
            assert not found, f"{path}: {found[0]}: use seeds.seeded or seeds.seed_for"


def test_a_failure_prints_the_seed(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text("utf-8"))
    (tmp_path / "test_it.py").write_text(FAILS)
    support = ROOT / "tests" / "support"
    program = (
        f"import os, sys; sys.path.insert(0, {str(support)!r}); os.environ[{seeds.VARIABLE!r}] = '41'; "
        f"import pytest; sys.exit(pytest.main(['-q', '-p', 'no:cacheprovider', {str(tmp_path)!r}]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"{seeds.VARIABLE}=41" in done.stdout


def test_examples() -> None:
    assert doctest.testmod(seeds).failed == 0
