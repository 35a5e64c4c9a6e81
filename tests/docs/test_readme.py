"""Every example in README.md runs and gives what it says."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import bpe_engine

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def blocks(language: str) -> list[str]:
    return [body for found, body in BLOCKS if found == language]


@pytest.mark.skipif(os.name == "nt", reason="examples for a POSIX shell")
def test_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them, in the order of the page, in one Python session and one directory."""
    (tmp_path / "data").symlink_to(ROOT / "data")
    monkeypatch.chdir(tmp_path)
    scripts = sysconfig.get_path("scripts")
    monkeypatch.setenv("PATH", f"{scripts}{os.pathsep}{os.environ['PATH']}")
    saved = {name: sys.modules[name] for name in sys.modules if name.split(".")[0] == "tiktoken"}
    session: dict[str, object] = {}
    try:
        for language, body in BLOCKS:
            if language == "pycon":
                run_python(body, session)
            elif language == "console":
                run_shell(body)
    finally:
        for name in [name for name in sys.modules if name.split(".")[0] == "tiktoken"]:
            del sys.modules[name]
        sys.modules.update(saved)


def run_python(body: str, session: dict[str, object]) -> None:
    """Runs a block of a session, which knows the names of the blocks before it."""
    test = doctest.DocTestParser().get_doctest(body, session, "README.md", "README.md", 0)
    assert test.examples
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    report: list[str] = []
    runner.run(test, out=report.append, clear_globs=False)
    assert runner.summarize(verbose=False).failed == 0, "".join(report)
    session.update(test.globs)


def run_shell(body: str) -> None:
    """Runs each command of a block; `...` stands for any output."""
    for example in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
        command, expected = example.split("\n", 1)
        done = subprocess.run(
            ["sh", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        output = done.stdout.decode()
        assert done.returncode == 0, output
        # A terminal adds the newline that `decode` leaves out in a pipe.
        got = "".join(f"{line.rstrip()}\n" for line in output.splitlines())
        assert doctest.OutputChecker().check_output(expected, got, doctest.ELLIPSIS), (
            f"{command}\n{got}"
        )


def test_no_other_kind_of_example() -> None:
    """Blocks of Python or shell that no test runs would rot: only the two set-up commands may."""
    assert {language for language, _ in BLOCKS} <= {"pycon", "console", "sh", "text"}
    assert len(blocks("sh")) == 2
    assert all(body.startswith("pip install ") and body.count("\n") == 1 for body in blocks("sh"))


def test_table_of_encodings() -> None:
    rows = re.findall(r"^\| (`.*`) \| (\d+) \| (\d+) \| (\d+) \|", README, re.MULTILINE)
    found = {
        name: (int(tokens), int(specials), int(largest))
        for names, tokens, specials, largest in rows
        for name in re.findall(r"`(\w+)`", names)
    }
    for name, row in found.items():
        enc = bpe_engine.get_encoding(name)
        assert row == (
            len(enc.token_byte_values()),
            len(enc.special_tokens_set),
            enc.max_token_value,
        )
    assert found.keys() == set(bpe_engine.list_encoding_names())


def test_files_that_are_named_exist() -> None:
    for path in re.findall(r"`((?:core|bpe_engine|benchmarks|data)/[\w./]*)`", README):
        assert (ROOT / path).exists(), path
    for path in re.findall(r"\]\(([\w./]+)\)", README):
        assert (ROOT / path).exists(), path


def test_versions_that_are_asked_for() -> None:
    cargo = (ROOT / "Cargo.toml").read_text(encoding="utf-8")
    python = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    rust = re.search(r'rust-version = "([\d.]+)"', cargo)
    least = re.search(r'requires-python = ">=([\d.]+)"', python)
    assert rust and f"Rust toolchain ({rust[1]} or later)" in README
    assert least and f"Python {least[1]} or later" in README


def test_there_is_a_place_for_the_table_of_benchmarks() -> None:
    source = (ROOT / "benchmarks" / "render.py").read_text(encoding="utf-8")
    markers = re.findall(r"<!-- benchmarks:\w+ -->", source)
    assert len(markers) == 2
    assert all(README.count(marker) == 1 for marker in markers)
