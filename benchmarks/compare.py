"""Compares the speed and the ids of two builds of this project, row by row.

    python -m benchmarks.compare --before VENV --after VENV
    python -m benchmarks.compare --before old --after . --cases text prompts --rounds 9

A build is a virtual environment, or a folder with a built ``bpe_engine``. Both builds run under
this Python, in separate processes that alternate, so that a slow phase of the machine slows both. A
row's ratio is the median over rounds of before / after (after / before for MB/s): above 1 is
faster. Rows below the limit are measured again, up to ``--most`` rounds. The exit status is 1 if a
row ends below the limit, if the geometric mean is below 1, or if the ids of the two builds differ.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .cases.cases import chosen_cases
from .cases.encodings import spec_of
from .harness.runner import Runner, Task, last_cpu, ratio, run_rounds, tasks
from .run import prepared_corpora, shared_arguments, split_names

BEFORE, AFTER = "before", "after"
_WHERE = (
    "import bpe_engine, bpe_engine._core, sys; print(bpe_engine.__file__, sys.version_info[:2])"
)


@dataclass(frozen=True)
class Row:
    """One measured value of a case: the medians of both builds, and their ratio."""

    title: str
    unit: str
    before: float
    after: float
    ratio: float
    same_ids: bool


def package_of(build: Path) -> Path:
    """Returns the package folder of a build, which is a virtual environment or another folder.

    Raises ValueError if this version of Python cannot import the package there.
    """
    python = next((path for path in (build / "bin" / "python", build / "Scripts" / "python.exe")
                   if path.exists()), None)  # fmt: skip
    start = [str(python), "-c", _WHERE]
    if python is None:
        start = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(build)!r}); {_WHERE}"]
    done = subprocess.run(start, capture_output=True, text=True, cwd=tempfile.gettempdir())
    if done.returncode:
        end = done.stderr.strip().splitlines()[-1:] or ["no message"]
        raise ValueError(f"bpe_engine cannot be imported from {str(build)!r}: {end[0]}")
    where, _, version = done.stdout.strip().partition(" (")
    if f"({version}" != str(sys.version_info[:2]):
        raise ValueError(f"{str(build)!r} has bpe_engine for Python ({version}; use that Python.")
    package = Path(where).parent
    if python is None and package.parent != build:
        raise ValueError(f"{str(build)!r} has no built bpe_engine: build it there, or give a venv.")
    return package


def isolated(package: Path, folder: Path) -> Path:
    """Makes a ``folder`` for the Python path that contains only a link to the package."""
    folder.mkdir(parents=True)
    (folder / "bpe_engine").symlink_to(package, target_is_directory=True)
    return folder


def rows_of(runner: Runner, task: Task) -> list[Row]:
    """Returns the rows of a task that both builds completed; omits rows that are ratios."""
    before, after = (runner.values[task, name] for name in (BEFORE, AFTER))
    rows = []
    for number, value in enumerate(before[0] if before and after else []):
        old, new = ([values[number] for values in rounds] for rounds in (before, after))
        if value["unit"] == "x":
            continue
        lower = value["unit"] != "MB/s"
        pairs = [ratio(b["value"], a["value"], not lower) for b, a in zip(old, new)]
        known = [pair for pair in pairs if pair]
        corpus = task.corpus.name if task.corpus else ""
        parts = [task.encoding, task.case.title, value["key"], corpus]
        rows.append(
            Row(
                ", ".join(part for part in parts if part),
                value["unit"],
                statistics.median(one["value"] for one in old),
                statistics.median(one["value"] for one in new),
                statistics.median(known) if known else 1.0,
                len({(one["tokens"], one["digest"]) for one in (*old, *new)}) == 1,
            )
        )
    return rows


def geometric_mean(rows: Iterable[Row]) -> float:
    """Returns the geometric mean of the ratios; 1 without rows."""
    logs = [math.log(row.ratio) for row in rows]
    return math.exp(sum(logs) / len(logs)) if logs else 1.0


def report(rows: list[Row], least: float) -> str:
    """Renders a table of all rows, worst last, and a summary."""
    lines = ["| row | unit | before | after | ratio | ids |", "|---|---|---:|---:|---:|---|"]
    for row in sorted(rows, key=lambda row: -row.ratio):
        ids = "same" if row.same_ids else "DIFFER"
        mark = " (slower)" if row.ratio < least else ""
        lines.append(
            f"| {row.title} | {row.unit} | {row.before:.4g} | {row.after:.4g} "
            f"| {row.ratio:.3f}{mark} | {ids} |"
        )
    slower = sum(row.ratio < least for row in rows)
    differ = sum(not row.same_ids for row in rows)
    lines.append("")
    lines.append(
        f"{len(rows)} rows, geometric mean {geometric_mean(rows):.3f}, "
        f"{slower} below {least:g}, {differ} with different ids"
    )
    return "\n".join(lines)


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.compare",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    for name in (BEFORE, AFTER):
        parser.add_argument(f"--{name}", type=Path, required=True, metavar="DIR",
                            help=f"virtual environment or folder of the build {name} the change")  # fmt: skip
    shared_arguments(parser)
    parser.add_argument("--least", type=float, default=0.97, help="the limit (default 0.97)")
    parser.add_argument(
        "--most", type=int, help="rounds of a row below the limit (default: triple)"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every row here")
    return parser.parse_args(argv)


def compare(arguments: argparse.Namespace) -> tuple[list[Row], dict[tuple[Task, str], str]]:
    """Runs the selected cases on both builds. Returns the rows, and the failed tasks."""
    todo_cases = chosen_cases(arguments.cases, quick=True)
    encodings = split_names(arguments.encodings, ["o200k_base", "cl100k_base"])
    for name in encodings:
        spec_of(name)
    packages = {name: package_of(getattr(arguments, name).resolve()) for name in (BEFORE, AFTER)}
    cache, corpora = prepared_corpora(arguments)
    cpu = arguments.cpu if arguments.cpu is not None else last_cpu()
    with tempfile.TemporaryDirectory() as folder:
        builds = {name: isolated(package, Path(folder, name)) for name, package in packages.items()}
        runner = Runner(cache, corpora, arguments.timeout, cpu, arguments.clock, builds)
        todo = tasks(todo_cases, corpora, encodings, quick=True)
        rounds = arguments.rounds or 5
        most = arguments.most or 3 * rounds
        run_rounds(runner, todo, [BEFORE, AFTER], rounds)
        while rounds < most:
            todo_again = [
                task
                for task in todo
                if any(row.ratio < arguments.least for row in rows_of(runner, task))
            ]
            if not todo_again:
                break
            more = min(2, most - rounds)
            run_rounds(runner, todo_again, [BEFORE, AFTER], more, start=rounds)
            rounds += more
        return [row for task in todo for row in rows_of(runner, task)], runner.failures


def main(argv: list[str] | None = None) -> int:
    arguments = _arguments(argv)
    try:
        rows, failures = compare(arguments)
    except ValueError as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 2
    print(report(rows, arguments.least))
    for (task, build), why in failures.items():
        print(f"failed: {build}, {task.case.name}, {task.encoding}: {why}", file=sys.stderr)
    if arguments.json:
        found: dict[str, Any] = {
            "geometric_mean": geometric_mean(rows),
            "rows": [asdict(row) for row in rows],
        }
        arguments.json.write_text(json.dumps(found, indent=1), encoding="utf-8")
    held = all(row.ratio >= arguments.least and row.same_ids for row in rows)
    return 0 if rows and held and geometric_mean(rows) >= 1 and not failures else 1


if __name__ == "__main__":
    sys.exit(main())
