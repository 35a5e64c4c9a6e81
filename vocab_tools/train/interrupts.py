"""Ctrl-C that waits while counts, files and the place in the corpus are brought in line."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any


class InterruptGuard:
    """A context manager in which :meth:`held` defers Ctrl-C.

    Elsewhere in it Ctrl-C raises KeyboardInterrupt at once, as ever. A handler that is not Python's
    own is left alone, and so is a thread that gets no signals.
    """

    def __init__(self) -> None:
        self._previous: Any = None
        self._is_held = self._is_pending = False

    def __enter__(self) -> InterruptGuard:
        is_main = threading.current_thread() is threading.main_thread()
        if is_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self._previous = signal.signal(signal.SIGINT, self._interrupt)
        return self

    def __exit__(self, *_: object) -> None:
        if self._previous is not None:
            signal.signal(signal.SIGINT, self._previous)

    def _interrupt(self, _signal: int, _frame: FrameType | None) -> None:
        if not self._is_held:
            raise KeyboardInterrupt
        self._is_pending = True

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Ctrl-C that comes in the block raises KeyboardInterrupt behind it."""
        self._is_held = True
        try:
            yield
        finally:
            self._is_held = False
        if self._is_pending:
            self._is_pending = False
            raise KeyboardInterrupt
