"""Runs a function on threads while its arguments are still being read."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

__all__ = ["on_threads"]

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def on_threads(
    work: Callable[[_Item], _Result], items: Iterable[_Item], num_threads: int
) -> Generator[tuple[_Item, _Result], None, None]:
    """Yields each item with its result, in order. At most two items per thread are queued.

    Errors of `work` and `items` are raised. After an error or Ctrl-C, waits only for running
    calls. Close the generator if its consumer may fail.
    """
    with ThreadPoolExecutor(num_threads) as pool:
        waiting: deque[tuple[_Item, Future[_Result]]] = deque()
        try:
            for item in items:
                waiting.append((item, pool.submit(work, item)))
                if len(waiting) > 2 * num_threads:
                    first, job = waiting.popleft()
                    yield first, job.result()
            while waiting:
                first, job = waiting.popleft()
                yield first, job.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
