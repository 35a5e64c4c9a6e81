"""Runs every example in README.md and docs/, and compares the output with the page."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sysconfig
from pathlib import Path

import pytest
from pages import ROOT, Page, manual

PAGES = [page for page in manual() if any(name in ("pycon", "console") for name, _ in page.blocks)]


@pytest.mark.skipif(os.name == "nt", reason="examples for a POSIX shell")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
@pytest.mark.usefixtures("undo_install")
def test_examples(page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs the examples of a page in order, in one Python session and one directory."""
    # Readers of the manual have only the wheel, but the README uses a file from the repository.
    (tmp_path / "LICENSE").symlink_to(ROOT / "LICENSE")
    monkeypatch.chdir(tmp_path)
    scripts = sysconfig.get_path("scripts")
    monkeypatch.setenv("PATH", f"{scripts}{os.pathsep}{os.environ['PATH']}")
    session: dict[str, object] = {}
    for language, body in page.blocks:
        if language == "pycon":
            run_python(page.name, body, session)
        elif language == "console":
            run_shell(body)


def run_python(page: str, body: str, session: dict[str, object]) -> None:
    """Runs a block of a Python session with the names that earlier blocks defined."""
    test = doctest.DocTestParser().get_doctest(body, session, page, page, 0)
    assert test.examples
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    report: list[str] = []
    runner.run(test, out=report.append, clear_globs=False)
    assert runner.summarize(verbose=False).failed == 0, "".join(report)
    session.update(test.globs)


def run_shell(body: str) -> None:
    """Runs each command of a block; `...` matches any output."""
    for example in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
        command, expected = example.split("\n", 1)
        done = subprocess.run(
            ["sh", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        output = done.stdout.decode()
        assert done.returncode == 0, output
        # The manual shows a line end after the output of `decode`, which a pipe does not get.
        got = "".join(f"{line.rstrip()}\n" for line in output.splitlines())
        assert doctest.OutputChecker().check_output(expected, got, doctest.ELLIPSIS), (
            f"{command}\n{got}"
        )
