"""Running the command ``vocab-tools`` as people do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

COMMAND = [sys.executable, "-m", "vocab_tools.cli"]


def run(*arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
    """Runs the command with these arguments, and returns what it printed."""
    return subprocess.run(  # type: ignore[call-overload, no-any-return]
        [*COMMAND, *map(str, arguments)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        **options,
    )


def listed(folder: Path, *lines: str) -> Path:
    """A word list with these lines."""
    path = folder / "list.txt"
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path
