"""Dependencies point one way: vocab_tools -> bpe_engine -> _core, and bindings -> core."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# What each package may import of this project.
MAY_IMPORT = {"bpe_engine": {"bpe_engine"}, "vocab_tools": {"bpe_engine", "vocab_tools"}}

# Modules for the command line and the reference may need packages that the library does not.
OPTIONAL = {"click", "rich", "regex"}
MAY_NEED_OPTIONAL = {"reference.py", "_educational.py", "__main__.py"}

SOURCES = [path for package in MAY_IMPORT for path in sorted((ROOT / package).rglob("*.py"))]


def imports(tree: ast.AST) -> Iterator[str]:
    """The modules that a module imports, those of its own package as `.`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." if node.level else (node.module or "").split(".")[0]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_python_packages(path: Path) -> None:
    package = path.relative_to(ROOT).parts[0]
    found = set(imports(ast.parse(path.read_text(encoding="utf-8"))))
    assert found & MAY_IMPORT.keys() <= MAY_IMPORT[package]
    assert not found & {"tests", "benchmarks", "conftest", "oracles", "tiktoken"}


def test_importing_the_library_needs_nothing_else() -> None:
    """At the top of a module: inside a function an optional package may be asked for."""
    for path in (ROOT / "bpe_engine").glob("*.py"):
        if path.name not in MAY_NEED_OPTIONAL:
            tree = ast.parse(path.read_text(encoding="utf-8"))
            top = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
            assert not OPTIONAL & set(imports(ast.Module(top, []))), path.name


def test_crates() -> None:
    core = (ROOT / "core" / "Cargo.toml").read_text(encoding="utf-8")
    bindings = (ROOT / "bindings" / "Cargo.toml").read_text(encoding="utf-8")
    assert not re.search(r"^(pyo3|numpy|bpe-bindings)\b", core, re.MULTILINE)
    assert "bindings" not in core
    assert re.search(r'^bpe-core = \{ path = "\.\./core"', bindings, re.MULTILINE)
    for path in (ROOT / "core" / "src").rglob("*.rs"):
        assert "pyo3" not in path.read_text(encoding="utf-8"), path


# What rooms of the core may use of the others, beside `ablation` and `error`.
ROOMS = {
    "hash": set(),
    "memory": set(),
    "cache": {"hash", "memory", "vocabulary"},
    "lookup": {"cache", "memory", "merge", "split", "tier", "vocabulary"},
    "pool": {"cache", "lookup", "split", "vocabulary"},
}


@pytest.mark.parametrize("room", ROOMS)
def test_rooms_of_the_core(room: str) -> None:
    source = ROOT / "core" / "src"
    paths = [source / f"{room}.rs", *(source / room).rglob("*.rs")]
    texts = [path.read_text(encoding="utf-8") for path in paths if path.exists()]
    assert texts
    used = {name for text in texts for name in re.findall(r"\bcrate::(\w+)", text)}
    assert used <= ROOMS[room] | {room, "ablation", "error"}
