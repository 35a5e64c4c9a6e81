"""Runs a plan on Ray: tasks are units, and a worker that is lost is tried again."""

from __future__ import annotations

import os
from typing import Any

from .plan import Plan, read_plan
from .run import run_unit, units_of_rank

__all__ = ["run"]


def run(
    out: str | os.PathLike[str] | Plan,
    *,
    tokenizer: str | None = None,
    retries: int = 3,
    **options: Any,
) -> int:
    """Writes the units of a plan that do not exist yet, each in a task of Ray.

    All machines must see the folder of the plan, its inputs and the tokenizer.

    Args:
        out: The folder of the plan, or the plan.
        tokenizer: Where the tokenizer is on the machines, if not where the plan says.
        retries: How often a task is tried again when its worker or machine is lost.
        options: Options of Ray's tasks, such as ``num_cpus=1``.

    Returns:
        The number of units that were written.

    Raises:
        CorpusError: As `bpe_engine.corpus.run_plan`.
        ray.exceptions.RayError: A task failed for another reason.
    """
    import ray

    plan = (out if isinstance(out, Plan) else read_plan(out)).everywhere()
    units = units_of_rank(plan)
    task = ray.remote(_work).options(max_retries=retries, **options)
    shared = ray.put(plan)
    waiting = [task.remote(shared, unit, tokenizer) for unit in units]
    while waiting:
        done, waiting = ray.wait(waiting)
        try:
            ray.get(done)
        except ray.exceptions.RayTaskError as error:
            for other in waiting:
                ray.cancel(other)
            raise error.cause from error
    return len(units)


def _work(plan: Plan, unit: int, tokenizer: str | None) -> int:
    return run_unit(plan, unit, tokenizer).tokens
