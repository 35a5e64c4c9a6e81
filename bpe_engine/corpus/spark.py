"""Runs a plan on Spark: partitions are units, and a task that is lost is tried again."""

from __future__ import annotations

import os
from typing import Any

from .plan import Plan, read_plan
from .run import run_unit, units_of_rank

__all__ = ["run"]


def run(spark: Any, out: str | os.PathLike[str] | Plan, *, tokenizer: str | None = None) -> int:
    """Writes the units of a plan that do not exist yet, each in a task of Spark.

    All machines must see the folder of the plan, its inputs and the tokenizer. How often a lost
    task is tried again is Spark's ``spark.task.maxFailures``.

    Args:
        spark: The `SparkSession`.
        out: The folder of the plan, or the plan.
        tokenizer: Where the tokenizer is on the machines, if not where the plan says.

    Returns:
        The number of units that were written.

    Raises:
        pyspark.errors.PySparkException: A task failed; the message contains `CorpusError`'s.
    """
    plan = (out if isinstance(out, Plan) else read_plan(out)).everywhere()
    units = units_of_rank(plan)
    if not units:
        return 0
    shared = spark.sparkContext.broadcast(plan)

    def work(unit: int) -> int:
        return run_unit(shared.value, unit, tokenizer).unit  # type: ignore[return-value]

    written = spark.sparkContext.parallelize(units, len(units)).map(work).collect()
    return len(written)
