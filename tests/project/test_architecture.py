"""Tests that dependencies point one way: vocab_tools -> bpe_engine -> _core, and bindings ->
core. A crate's modules use only modules listed earlier; cycles are found at every depth."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator
from itertools import takewhile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# For each package, the packages of this project that it may import.
MAY_IMPORT = {"bpe_engine": {"bpe_engine"}, "vocab_tools": {"bpe_engine", "vocab_tools"}}

# Modules for the command line or for comparison may need packages that the library never imports.
OPTIONAL = {"click", "rich", "regex"}
MAY_NEED_OPTIONAL = {"reference.py", "_educational.py", "__main__.py"}

SOURCES = [path for package in MAY_IMPORT for path in sorted((ROOT / package).rglob("*.py"))]


def imports(tree: ast.AST) -> Iterator[str]:
    """Yields the packages that a module imports; `.` stands for the module's own package."""
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
    """Yields private modules and private names that a module uses from other modules."""
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
    assert found <= {"_replace", "_exit"}  # Public names of named tuples and `os`.


def test_importing_the_library_needs_nothing_else() -> None:
    """Modules import no optional packages at module level; a function may import them."""
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


# Modules of the core. Each module may use only earlier modules, so there are no cycles.
CORE_ROOMS = [
    "error", "hash", "once", "polling", "ablation", "tier", "system", "memory", "threads",
    "char_boundary", "code_points", "fixed", "special_tokens", "request", "normalize", "sink", "split", "rule", "vocabulary",
    "sorted_tokens", "rank_file", "merge", "cache", "lookup", "pool", "token_table", "offsets",
    "direct", "fingerprint", "stops", "stream_pool", "train", "audit", "components", "models", "pipeline",
    "abilities",
]  # fmt: skip

# Modules of the bindings, ordered in the same way.
BINDINGS_ROOMS = [
    "interned", "buffer_pool", "objects", "errors", "int_cache", "strings", "columns", "text",
    "gil", "ids", "request", "ranks", "builtin", "buffer", "environment", "taint", "labels",
    "template", "methods",
    "progress", "shared", "pipeline", "fingerprint", "ranks_only", "rows", "encode",
    "caches", "decode", "truncate", "inspect",
    "vocab_tools", "hf", "train", "prompt", "audit", "answers", "prefix_cache",
    "batch",
    "token_table", "token_trie", "stream_pool",
]  # fmt: skip

# Names that `lib.rs` re-exports, and their modules.
RUST_NAMES = {
    "Direct": "direct", "Error": "error", "Result": "error", "Normalization": "normalize",
    "Pipeline": "pipeline", "Request": "request", "Sink": "sink", "SpecialTokens": "special_tokens",
    "Splitter": "split", "Vocabulary": "vocabulary",
}  # fmt: skip


def rust_modules(crate: str) -> dict[str, str]:
    """Returns the code of a crate's modules by path (``a::b``), without tests and comments."""
    source = ROOT / crate / "src"
    modules = {}
    for path in sorted(source.rglob("*.rs")):
        parts = path.relative_to(source).with_suffix("").parts
        if "tests" not in parts and parts != ("lib",):
            code = path.read_text(encoding="utf-8").split("\n#[cfg(test)]\nmod tests {")[0]
            name = "::".join(parts[:-1] if parts[-1] == "mod" else parts)
            modules[name] = re.sub(r"//.*", "", code)
    return modules


def flattened(tree: str) -> Iterator[str]:
    """Yields each path of a ``use`` tree: ``a::{b, c::{d, e}}`` gives a::b, a::c::d, a::c::e."""
    prefix, brace, rest = tree.partition("{")
    if not brace:
        yield tree.split(" as ")[0].strip()
        return
    depth, item = 0, ""
    for letter in rest:
        depth += (letter == "{") - (letter == "}")
        if depth < 0 or (letter == "," and depth == 0):
            if item.strip():
                yield from (prefix.strip() + path for path in flattened(item.strip()))
            item = ""
        else:
            item += letter


def rust_imports(code: str, module: str, modules: Collection[str]) -> set[str]:
    """Returns the modules of the same crate that a module uses.

    A name that a parent module re-exports (`pub use`) counts as a use of the parent, and so does
    `super::Name` in a child.
    """
    parts = module.split("::")
    paths = [path for tree in re.findall(r"\buse\s+([^;]+);", code) for path in flattened(tree)]
    rest = re.sub(r"\buse\s+[^;]+;", "", code)
    paths += re.findall(r"\b(?:crate|super)(?:::\w+)+", rest)
    found = set()
    for path in paths:
        names = path.split("::")
        if names[0] == "crate":
            names = [RUST_NAMES.get(names[1], names[1]), *names[2:]]
        elif names[0] == "super":
            above = 0
            while names[above] == "super":
                above += 1
            names = [*parts[:-above], *names[above:]]
        elif "::".join([*parts, names[0]]) in modules:
            names = [*parts, *names]
        else:
            continue
        while names and "::".join(names) not in modules:
            names.pop()
        if names:
            found.add("::".join(names))
    return found - {module}


@pytest.mark.parametrize("crate, rooms", [("core", CORE_ROOMS), ("bindings", BINDINGS_ROOMS)])
def test_no_import_of_a_crate_runs_up(crate: str, rooms: list[str]) -> None:
    modules = rust_modules(crate)
    for module, code in modules.items():
        room = module.split("::")[0]
        assert room in rooms, f"{module} is new: give it a place in the list"
        for used in {used.split("::")[0] for used in rust_imports(code, module, modules)} - {room}:
            assert used in rooms, f"{module} uses crate::{used}"
            assert rooms.index(used) < rooms.index(room), (
                f"{module} uses crate::{used}, which is above"
            )


@pytest.mark.parametrize("crate", ["core", "bindings"])
def test_no_circles_of_rust_modules(crate: str) -> None:
    """Siblings below each parent have no cycles; a module includes all modules below it."""
    modules = rust_modules(crate)
    graphs: dict[str, dict[str, set[str]]] = {}
    for module, code in modules.items():
        for used in rust_imports(code, module, modules):
            one, other = module.split("::"), used.split("::")
            same = sum(takewhile(bool, (a == b for a, b in zip(one, other))))
            if same < min(len(one), len(other)):
                parent = graphs.setdefault("::".join(one[:same]), {})
                parent.setdefault(one[same], set()).add(other[same])
    for parent, graph in graphs.items():
        assert not circles(graph), f"{crate}::{parent}: {circles(graph)}"


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Returns groups of modules that depend on each other."""

    def reached(start: str) -> set[str]:
        found: set[str] = set()
        ahead = [start]
        while ahead:
            for name in graph.get(ahead.pop(), set()) - found:
                found.add(name)
                ahead.append(name)
        return found

    reach = {name: reached(name) for name in graph}
    groups = {
        frozenset(other for other in reach[name] if name in reach.get(other, ()))
        for name in graph
        if name in reach[name]
    }
    return sorted(sorted(group) for group in groups)


def called_import(node: ast.Call) -> str:
    """Returns the constant name that a call imports; empty for any other call."""
    function = (
        node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    )
    if function in ("import_module", "__import__") and node.args:
        name = node.args[0]
        if isinstance(name, ast.Constant) and isinstance(name.value, str):
            return name.value
    return ""


def test_calls_that_import_are_followed(tmp_path: Path) -> None:
    for code, name in [
        ("importlib.import_module('a.b')", "a.b"),
        ("import_module('.c', __name__)", ".c"),
        ("__import__('d')", "d"),
        ("import_module(name)", ""),
        ("load('e')", ""),
    ]:
        (call,) = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call)]
        assert called_import(call) == name


def python_imports(path: Path, modules: Collection[str]) -> set[str]:
    """Returns the modules of the same package that a module imports, also inside functions, for
    type checking, or through `import_module` or `__import__` with a constant name."""
    package = list(path.relative_to(ROOT).parent.parts)
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) + 1 - node.level] if node.level else []
            base = [*base, *(node.module.split(".") if node.module else [])]
            names = [".".join([*base, alias.name]) for alias in node.names]
        elif isinstance(node, ast.Call) and (name := called_import(node)):
            level = len(name) - len(name.lstrip("."))
            base = package[: len(package) + 1 - level] if level else []
            names = [".".join([*base, name.lstrip(".")])]
        else:
            continue
        for name in names:
            while name and name not in modules:
                name = name.rpartition(".")[0]
            found.add(name)
    return found - {""}


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_no_circles_of_python_modules(package: str) -> None:
    """The modules of all subpackages have no cycles. `__init__` only exports names of a package's
    modules."""
    paths = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for path in SOURCES
        if path.name != "__main__.py"
    }
    graph = {
        name: {
            used
            for used in python_imports(path, paths)
            if used != name and not used.startswith(f"{name}.") and not name.startswith(f"{used}.")
        }
        for name, path in paths.items()
        if name.split(".")[0] == package and name != package
    }
    assert not circles(graph)
