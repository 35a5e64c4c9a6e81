"""How long whole commands of vocab-tools take, from the start of Python to the last line.

    python -m benchmarks.vocab_commands

Wall-clock and processor time of the best of several runs, in seconds. The goal for the check of
o200k_base is 2 seconds. Build with `maturin develop --release` first.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def commands(folder: Path) -> list[list[str]]:
    """The commands that are timed."""
    names = ("o200k_base", "qwen", "cl100k_base")
    checks = [["check", str(ROOT / "data" / f"{name}.tiktoken")] for name in names]
    return [*checks, ["convert", "o200k_base", str(folder / "tokenizer.json"), "--force"]]


def timed(command: list[str]) -> tuple[float, float]:
    """Wall-clock and processor time of one run."""
    start, before = time.perf_counter(), os.times()
    done = subprocess.run(
        [sys.executable, "-m", "vocab_tools.cli", *command], capture_output=True, cwd=ROOT
    )
    wall, after = time.perf_counter() - start, os.times()
    if done.returncode:
        raise SystemExit(done.stderr.decode())
    spent = (after.children_user + after.children_system) - (
        before.children_user + before.children_system
    )
    return wall, spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    print("| command | wall clock, s | processor time, s |")
    print("| --- | ---: | ---: |")
    with tempfile.TemporaryDirectory() as folder:
        for command in commands(Path(folder)):
            runs = [timed(command) for _ in range(options.runs)]
            wall, spent = (min(column) for column in zip(*runs))
            shown = " ".join(Path(part).name for part in command)
            print(f"| `vocab-tools {shown}` | {wall:.2f} | {spent:.2f} |", flush=True)


if __name__ == "__main__":
    main()
