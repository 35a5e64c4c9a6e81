"""Runs the missing units of a plan, in this process or in several."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from ..common.system import cores
from ..texts.errors import CorpusError
from .coder import Coder
from .manifest import Manifest, missing_units
from .plan import Plan, read_plan
from .units import write_unit

__all__ = ["run_plan", "run_unit", "units_of_rank"]

#: Called with the manifest of each written unit.
Progress = Callable[[Manifest], Any]


def units_of_rank(
    out: str | os.PathLike[str] | Plan, rank: int = 0, world_size: int = 1
) -> list[int]:
    """Returns the missing units that a rank writes: ``unit % world_size == rank``.

    Args:
        out: The folder of the plan, or the plan.
        rank, world_size: The index of this machine, and the number of machines.

    Raises:
        CorpusError: The rank is not in ``range(world_size)``.
    """
    plan = out if isinstance(out, Plan) else read_plan(out)
    if not 0 <= rank < world_size:
        raise CorpusError(f"the rank is {rank}, but there are {world_size}: 0 to {world_size - 1}")
    return [unit for unit in missing_units(plan) if unit % world_size == rank]


def run_plan(
    out: str | os.PathLike[str] | Plan,
    *,
    processes: int | None = None,
    num_threads: int | None = None,
    rank: int = 0,
    world_size: int = 1,
    tokenizer: str | None = None,
    progress: Progress | None = None,
) -> int:
    """Writes the missing units of a plan. The bytes do not depend on the other arguments.

    Args:
        out: The folder of the plan, or the plan.
        processes: Number of processes; by default one per core and at most one per unit. With
            several, programs need ``if __name__ == "__main__":``, as for `multiprocessing`.
        num_threads: Number of threads per process; by default an equal share of the cores.
        rank, world_size: The index of this machine, and the number of machines, as in Slurm.
        tokenizer: The tokenizer's path on this machine, if it differs from the plan's.
        progress: Called with the manifest of each written unit.

    Returns:
        The number of units written.

    Raises:
        CorpusError: The plan, the tokenizer or an input has changed, an input has a row that is not
            text, a file cannot be written, or a process was killed. Complete units are kept.
    """
    plan = out if isinstance(out, Plan) else read_plan(out)
    units = units_of_rank(plan, rank, world_size)
    processes = max(1, min(processes or cores(), len(units)))
    num_threads = num_threads or max(1, cores() // processes)
    written = 0
    for manifest in _manifests(plan, units, processes, num_threads, tokenizer):
        written += 1
        if progress is not None:
            progress(manifest)
    return written


def _manifests(
    plan: Plan, units: list[int], processes: int, num_threads: int, tokenizer: str | None
) -> Iterator[Manifest]:
    if not units:
        return
    coder = plan.coder(tokenizer)
    ahead = iter(units)
    if processes == 1:
        for unit in ahead:
            yield write_unit(plan, unit, coder, num_threads)
        return
    import multiprocessing

    # This process works while the other processes start.
    others = processes - 1
    pool = ProcessPoolExecutor(
        others, multiprocessing.get_context("spawn"), _start, (plan, tokenizer, num_threads)
    )
    try:
        running: set[Future[Manifest]] = set()
        while True:
            ours = [*itertools.islice(ahead, 1)]
            # Submits few tasks at a time, so that an error ends the run soon.
            some = itertools.islice(ahead, 2 * others - len(running))
            running |= {pool.submit(_work, unit) for unit in some}
            if not ours and not running:
                return
            for unit in ours:
                yield write_unit(plan, unit, coder, num_threads)
            done, running = wait(running, 0 if ours else None, FIRST_COMPLETED)
            for future in done:
                yield future.result()
    except BrokenProcessPool as error:
        raise CorpusError(
            "a process that wrote a unit was killed, perhaps out of memory; complete units "
            "are kept, so run again, with fewer --processes"
        ) from error
    except KeyboardInterrupt:
        # Terminates workers at once: a unit may take minutes, and a partial unit is worthless.
        for process in pool._processes.values():
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def run_unit(
    out: str | os.PathLike[str] | Plan,
    unit: int,
    tokenizer: str | None = None,
    *,
    num_threads: int = 1,
) -> Manifest:
    """Writes a unit unless it exists. This is the task for Ray, Spark and other engines.

    A process loads a tokenizer once. All machines must have access to the folder of the plan, its
    inputs and the tokenizer. Retrying a unit writes the same bytes.

    Args:
        out: The folder of the plan, or the plan.
        unit: A number from `units_of_rank`.
        tokenizer: The tokenizer's path on this machine, if it differs from the plan's.
        num_threads: Number of threads that encode.

    Returns:
        The manifest of the unit.

    Raises:
        CorpusError: As `run_plan`.
    """
    plan = out if isinstance(out, Plan) else read_plan(out)
    key = (plan.fingerprint, plan.options.allow_special, tokenizer or plan.tokenizer)
    coder = _CODERS.get(key)
    if coder is None:
        _CODERS.clear()
        coder = _CODERS[key] = plan.coder(tokenizer)
    return write_unit(plan, unit, coder, num_threads)


_CODERS: dict[Any, Coder] = {}

# ---- Inside a worker process ----

_ARGUMENTS: list[Any] = []


def _start(plan: Plan, tokenizer: str | None, num_threads: int) -> None:
    import multiprocessing
    import signal
    import threading

    # The parent handles Ctrl-C. If the parent is killed, this process must end itself.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:

        def follow() -> None:
            parent.join()
            os._exit(1)

        threading.Thread(target=follow, daemon=True).start()
    _ARGUMENTS[:] = [plan, tokenizer, num_threads]


def _work(unit: int) -> Manifest:
    plan, tokenizer, num_threads = _ARGUMENTS
    return run_unit(plan, unit, tokenizer, num_threads=num_threads)
