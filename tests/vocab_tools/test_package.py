"""Tests the examples, exports and imports of the package."""

from __future__ import annotations

import doctest
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import vocab_tools

FOLDER = Path(vocab_tools.__file__).parent
PATHS = sorted(path.relative_to(FOLDER.parent) for path in FOLDER.rglob("*.py"))
MODULES = [".".join(path.with_suffix("").parts).removesuffix(".__init__") for path in PATHS]


@pytest.mark.parametrize("name", [name for name in MODULES if not name.endswith("__main__")])
def test_examples(name: str) -> None:
    module = importlib.import_module(name)
    assert doctest.testmod(module).failed == 0


def test_exports() -> None:
    assert sorted(vocab_tools.__all__) == vocab_tools.__all__
    for name in vocab_tools.__all__:
        assert getattr(vocab_tools, name).__doc__


def test_importing_needs_no_numpy_or_command_line() -> None:
    code = (
        "import sys, vocab_tools;"
        "print([m for m in ('numpy', 'torch', 'click', 'rich') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr
