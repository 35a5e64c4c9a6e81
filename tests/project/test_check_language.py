"""Tests check_language.py, which `make lint` runs."""

from __future__ import annotations

from pathlib import Path

import check_language
import pytest

RUST = """//! What a module is for.

/// Returns a number.
///
/// The same as elsewhere.
#[test]
#[ignore = "slow"]
fn {name}() {{}}
// There is no longer a clock; nothing is no good here.
"""
PYTHON = '''"""Returns nothing."""

#: Of the names, the longest.
x = None

def test_{name}():
    """As many as there are."""
    assert x is None
'''


def reasons(path: Path) -> list[str]:
    return [line.split(":", 2)[1] for line in check_language.findings(path)]


@pytest.mark.parametrize(
    ("name", "text", "lines"),
    [
        ("a.rs", RUST, ["1", "9"]),
        ("a.py", PYTHON, ["3", "7"]),
        ("a.md", "There is no way.\n", ["1"]),
    ],
)
def test_findings(tmp_path: Path, name: str, text: str, lines: list[str]) -> None:
    path = tmp_path / name
    path.write_text(text.replace("{name}", "short").replace("{{}}", "{}"), encoding="utf-8")
    assert reasons(path) == lines


@pytest.mark.parametrize(("name", "text", "line"), [("a.rs", RUST, "8"), ("a.py", PYTHON, "6")])
def test_long_names_of_tests(tmp_path: Path, name: str, text: str, line: str) -> None:
    path = tmp_path / name
    path.write_text(text.replace("{name}", "x" * 61).replace("{{}}", "{}"), encoding="utf-8")
    assert line in reasons(path)
