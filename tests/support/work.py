"""Counts the work of a call, for tests of linear time: the count is the same on every machine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from bpe_engine import _core


def work(call: Callable[[], object]) -> int:
    """Counts the work of ``call`` on this thread.

    Work is what native code reports (bytes of text or the equivalent, the budget between checks for
    Ctrl-C) plus the executed lines of Python. Unreported native work, such as a method of ``str``,
    does not count: make the input so large that only linear code ends within pytest's time limit.
    """
    lines = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal lines
        lines += event == "line"
        return trace

    outer = sys.gettrace()
    before = _core.work_done()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(outer)
    return lines + _core.work_done() - before
