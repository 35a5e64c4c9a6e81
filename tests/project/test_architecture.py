"""Dependencies point one way: vocab_tools -> bpe_engine -> _core, bindings -> core, and within each
from the rooms that come later in the lists below to those that come earlier."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
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


def private_names(tree: ast.AST) -> Iterator[str]:
    """Private modules and names that a module takes from others: what it has itself is its own."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            names = [*(node.module or "").split("."), *(alias.name for alias in node.names)]
            yield from (name for name in names if node.level == 0 and is_private(name))
        elif isinstance(node, ast.Import):
            for alias in node.names:
                yield from filter(is_private, alias.name.split("."))
        elif isinstance(node, ast.Attribute) and is_private(node.attr):
            if not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")):
                yield node.attr


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


@pytest.mark.parametrize(
    "path",
    sorted((ROOT / "vocab_tools").rglob("*.py")),
    ids=lambda path: f"{path.parent.name}/{path.name}",
)
def test_vocab_tools_uses_what_is_public(path: Path) -> None:
    found = set(private_names(ast.parse(path.read_text(encoding="utf-8"))))
    assert found <= {"_replace", "_exit"}  # Of named tuples and of os; both are public.


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


# The modules of the core: each may use those before it, so that there are no circles.
CORE_ROOMS = [
    "error", "hash", "once", "polling", "ablation", "tier", "memory", "code_points",
    "special_tokens", "request", "normalize", "sink", "split", "rule", "vocabulary",
    "sorted_tokens", "longest_tokens", "rank_file", "merge", "cache", "lookup", "pool", "encoding", "threads",
    "offsets", "inspect", "truncate", "unstable", "segments", "conversation", "strip", "audit", "train",
]  # fmt: skip

# The same for the bindings.
BINDINGS_ROOMS = [
    "interned", "buffer_pool", "errors", "objects", "int_cache", "strings", "columns", "text", "gil", "ids", "request", "ranks",
    "builtin", "buffer", "environment", "core_bpe", "rows", "encode", "decode", "truncate", "inspect",
    "vocabulary", "caches", "facade", "prompt", "template", "progress", "vocab_tools", "train", "hf", "batch",
]  # fmt: skip

# The same for the crate that reads tokenizer files.
HF_ROOMS = [
    "error", "spec", "regex", "bytes", "aligned", "normalize", "split", "names", "added", "listed",
    "lists", "build", "model", "runs", "encoding", "post", "decode", "tokenizer", "encode", "detail", "fast", "to_text", "file",
]  # fmt: skip

# What `lib.rs` offers under the name of the crate.
RUST_NAMES = {
    "Encoding": "encoding", "Error": "error", "Result": "error", "Normalization": "normalize",
    "Request": "request", "Sink": "sink", "SpecialTokens": "special_tokens",
    "Splitter": "split", "Vocabulary": "vocabulary",
}  # fmt: skip


def rust_imports(source: str) -> set[str]:
    """The modules of its crate that a Rust file uses, its tests and comments aside."""
    code = source.split("\n#[cfg(test)]\nmod tests {")[0]
    code = re.sub(r"//.*", "", code)
    found = set(re.findall(r"\bcrate::(\w+)", code))
    for group in re.findall(r"\bcrate::\{([^;]*)\};", code):
        found |= set(re.findall(r"(?:^|,)\s*(\w+)", group))
    return {RUST_NAMES.get(name, name) for name in found}


@pytest.mark.parametrize(
    "crate, rooms", [("core", CORE_ROOMS), ("bindings", BINDINGS_ROOMS), ("hf", HF_ROOMS)]
)
def test_no_import_of_a_crate_runs_up(crate: str, rooms: list[str]) -> None:
    source = ROOT / crate / "src"
    for path in sorted(source.rglob("*.rs")):
        room = path.relative_to(source).parts[0].removesuffix(".rs")
        if room == "lib" or "tests" in path.parts or path.name == "tests.rs":
            continue
        assert room in rooms, f"{path} is new: give it a place in the list"
        for used in rust_imports(path.read_text(encoding="utf-8")) - {room}:
            assert used in rooms, f"{path} uses crate::{used}"
            assert rooms.index(used) < rooms.index(room), (
                f"{path} uses crate::{used}, which is above"
            )


def module_imports(tree: ast.AST, package: str) -> Iterator[str]:
    """The modules of its own package that a module imports, also inside functions and for types."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level == 1:
            yield from [node.module.split(".")[0]] if node.module else (a.name for a in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith(package + "."):
            yield node.module.split(".")[1]


def test_no_circles_of_python_modules() -> None:
    modules = {
        path.stem: path
        for path in (ROOT / "bpe_engine").glob("*.py")
        if path.stem not in {"__init__", "__main__"}
    }
    graph = {
        name: set(
            module_imports(ast.parse(path.read_text(encoding="utf-8")), "bpe_engine")
        ) & modules.keys()
        for name, path in modules.items()
    }  # fmt: skip
    try:
        list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail(f"a circle: {' -> '.join(error.args[1])}")
