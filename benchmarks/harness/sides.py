"""Compares the CPU times of two calls that alternate in one process."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

Call = Callable[[], Any]


def seconds(call: Call, repeat: int = 1) -> float:
    """Returns the CPU time of ``repeat`` calls."""
    start = time.process_time()
    for _ in range(repeat):
        call()
    return time.process_time() - start


def ratio(rounds: int, side: Call, other: Call) -> float:
    """Returns the ratio of the CPU times of ``side`` and ``other``: the median of the rounds."""
    side()
    repeat = max(1, int(0.002 / max(1e-7, seconds(other))))
    return statistics.median(seconds(side, repeat) / seconds(other, repeat) for _ in range(rounds))
