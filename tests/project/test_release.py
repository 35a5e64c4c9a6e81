"""Tests what a release requires: versions, extras, the toolchain, sources without a build."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from pages import ROOT, manual

import bpe_engine

PROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
EXTRAS = re.search(r"\[project\.optional-dependencies\]\n(.*?)\n\n", PROJECT, re.DOTALL)


def script(name: str) -> ModuleType:
    """Imports release/NAME.py."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "release" / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_one_version() -> None:
    names = "Cargo.toml CITATION.cff release/conda/recipe.yaml release/pyodide/meta.yaml".split()
    texts = [PROJECT, *((ROOT / name).read_text(encoding="utf-8") for name in names)]
    version = re.compile(r'^ *version(?: =|:) "?(\d[\d.]*)"?$', re.MULTILINE)
    found = {version.findall(text)[0] for text in texts}
    assert found == {bpe_engine.__version__}


def test_extras_that_are_named_exist() -> None:
    assert EXTRAS
    known = set(re.findall(r"^([\w-]+) = \[", EXTRAS[1], re.MULTILINE))
    sources = [*ROOT.glob("bpe_engine/**/*.py"), *ROOT.glob("vocab_tools/**/*.py")]
    for path in [*sources, *(page.path for page in manual())]:
        text = path.read_text(encoding="utf-8")
        for names in re.findall(r"(?:bpe-engine\[|\bextra\s+`+)([\w,-]+)[`\]]", text):
            assert set(names.split(",")) <= known, f"{path.name}: {names}"


def test_extras_of_users_are_in_the_readme() -> None:
    assert EXTRAS
    users = EXTRAS[1].split("# For those who change the package.")[0]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for name in re.findall(r"^([\w-]+) = \[", users, re.MULTILINE):
        assert f"| `{name}` |" in readme


def test_sources_that_are_not_built_say_what_to_do(tmp_path: Path) -> None:
    ignored = shutil.ignore_patterns("_core*.so", "_core*.pyd", "__pycache__")
    shutil.copytree(ROOT / "bpe_engine", tmp_path / "bpe_engine", ignore=ignored)
    for file, way in [("", "pip install --force-reinstall"), ("Cargo.toml", "pip install -e .")]:
        if file:
            (tmp_path / file).touch()
        code = "import sys; sys.path.insert(0, sys.argv[1]); import bpe_engine"
        done = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True
        )
        last = done.stderr.splitlines()[-1]
        assert last.startswith("ImportError: the native module") and way in last, done.stderr
        assert "During handling" not in done.stderr


def test_links_of_a_description_are_absolute() -> None:
    with_home = script("wheels").with_home
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)]*)\)", with_home(text, "https://home.example/"))
    assert len(links) > 10
    assert all(link.startswith(("https://", "#")) for link in links)


@pytest.mark.skipif(os.name == "nt", reason="a shell script takes the place of rustc")
def test_old_toolchains_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("maturin", reason="maturin is not installed: it builds the package")
    check = script("backend").check_toolchain
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("RUSTC", raising=False)
    for name, version in [("cargo", "1.63.0"), ("rustc", "1.63.0"), ("rustc", "2.0.0")]:
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\necho '{name} {version} (abc 2022-08-08)'\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        if (name, version) == ("rustc", "1.63.0"):
            with pytest.raises(SystemExit, match=r"is 1\.63\.0.*rustup\.rs.*--only-binary"):
                check()
    check()
