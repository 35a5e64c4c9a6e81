"""Two calls side by side in one process, and tables of the ratios of their CPU times."""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable, Iterable
from typing import Any

Call = Callable[[], Any]
#: The title and the two sides of a row: the first is divided by the second.
Row = tuple[str, Call, Call]


def arguments(doc: str | None, rounds: int) -> argparse.ArgumentParser:
    """Returns a parser with ``--rounds``, to which a program adds its own arguments."""
    parser = argparse.ArgumentParser(description=(doc or "").split("\n")[0])
    parser.add_argument("--rounds", type=int, default=rounds)
    return parser


def seconds(call: Call, repeat: int = 1) -> float:
    """Returns the CPU time of some calls."""
    start = time.process_time()
    for _ in range(repeat):
        call()
    return time.process_time() - start


def ratio(rounds: int, side: Call, other: Call) -> float:
    """Returns the CPU time of a side over that of the other: the median of the rounds."""
    side()
    repeat = max(1, int(0.002 / max(1e-7, seconds(other))))
    return statistics.median(seconds(side, repeat) / seconds(other, repeat) for _ in range(rounds))


def on_one_cpu() -> None:
    """Stays on one CPU from here on."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def begin_table() -> None:
    """Stays on one CPU from here on, and prints the head of a table."""
    on_one_cpu()
    print("| CPU time | ratio |\n|---|---:|")


def print_row(title: str, figure: float) -> None:
    print(f"| {title} | {figure:.2f} |", flush=True)


def print_rows(rounds: int, rows: Iterable[Row]) -> None:
    """Measures rows, and prints each when it is done."""
    for title, side, other in rows:
        print_row(title, ratio(rounds, side, other))
