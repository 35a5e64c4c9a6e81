"""Runs the command ``vocab-tools`` as a user does."""

from __future__ import annotations

import sys
from pathlib import Path
from subprocess import CompletedProcess
from typing import BinaryIO
from unittest import mock

from in_process import call

from vocab_tools.cli import app

#: The command as a child process.
COMMAND = [sys.executable, "-m", "vocab_tools.cli"]


def run(
    *arguments: object,
    input: str = "",
    stdin: BinaryIO | None = None,
) -> CompletedProcess[str]:
    """Runs the command with these arguments in this process, and returns its output."""
    words = [*map(str, arguments)]
    with mock.patch.object(sys, "argv", ["vocab-tools", *words]):
        # Calls `app.run`, because `main` changes how the process handles Ctrl-C.
        done = call(app.run, input=input.encode(), stdin=stdin)
    return CompletedProcess(words, done.returncode, done.stdout.decode(), done.stderr.decode())


def listed(folder: Path, *lines: str) -> Path:
    """Writes a word list with these lines."""
    path = folder / "list.txt"
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path
