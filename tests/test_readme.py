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

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def blocks(language: str) -> list[str]:
    return [body for found, body in BLOCKS if found == language]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder where the examples may write, with the files that they read."""
    folder = tmp_path_factory.mktemp("readme")
    (folder / "data").symlink_to(ROOT / "data")
    return folder


def differs(expected: str, found: str) -> bool:
    """Whether an output is another, where `...` stands for anything."""
    checker = doctest.OutputChecker()
    options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    return not checker.check_output(expected.strip(), found.strip(), options)


@pytest.mark.skipif(os.name == "nt", reason="examples for a POSIX shell")
def test_examples(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the shell first, then those of Python as one session."""
    scripts = sysconfig.get_path("scripts")
    examples = re.split(r"^\$ ", "".join(blocks("console")), flags=re.MULTILINE)[1:]
    assert len(examples) > 6
    for example in examples:
        command, expected = example.split("\n", 1)
        done = subprocess.run(
            ["sh", "-c", command],
            capture_output=True,
            cwd=folder,
            env={**os.environ, "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}"},
        )
        assert done.returncode == 0, done.stderr.decode()
        assert not differs(expected, done.stdout.decode()), command

    monkeypatch.chdir(folder)
    session = "\n".join(blocks("pycon"))
    saved = {name: sys.modules[name] for name in sys.modules if name.split(".")[0] == "tiktoken"}
    try:
        test = doctest.DocTestParser().get_doctest(session, {}, "README.md", "README.md", 0)
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
        report: list[str] = []
        runner.run(test, out=report.append)
        assert runner.summarize(verbose=False).failed == 0, "".join(report)
        assert len(test.examples) > 20
    finally:
        for name in [name for name in sys.modules if name.split(".")[0] == "tiktoken"]:
            del sys.modules[name]
        sys.modules.update(saved)


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
    for path in re.findall(r"`((?:core|bpe_engine|data)/[\w./]*)`", README):
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
