"""`Tokenize`: a step of datatrove's pipelines that writes the units of a plan.

datatrove's executors hand out ranks (on this machine, Slurm or Ray), and each rank writes its share.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .plan import read_plan
from .run import run_unit, units_of_rank

if TYPE_CHECKING:

    class _Step:
        """The part of datatrove's `PipelineStep` that is used."""

        def stat_update(self, *labels: str, value: int) -> None: ...

else:
    try:
        from datatrove.pipeline.base import PipelineStep as _Step
    except ImportError:
        _Step = object  # A step says so when it is made.

__all__ = ["Tokenize"]


class Tokenize(_Step):
    """Writes the units of a rank that do not exist yet. It reads the inputs of the plan itself, so it
    is the first and only step of a pipeline.

    Args:
        out: The folder of the plan, which all ranks see.
        tokenizer: Where the tokenizer is on the machines, if not where the plan says.

    Raises:
        ImportError: datatrove is missing.

    >>> pipeline = [Tokenize("corpus")]  # doctest: +SKIP
    >>> LocalPipelineExecutor(pipeline, tasks=8, workers=8).run()  # doctest: +SKIP
    """

    name = "bpe-engine"
    type = "TOKENIZER"
    _requires_dependencies = ["pyarrow"]

    def __init__(self, out: str | os.PathLike[str], tokenizer: str | None = None):
        if _Step is object:
            raise ImportError("Tokenize is a step of datatrove: pip install datatrove")
        super().__init__()
        self.out: str = os.path.abspath(out)
        self.tokenizer = tokenizer

    def run(self, data: Any = None, rank: int = 0, world_size: int = 1) -> Iterator[Any]:
        """Writes the units of a rank, and passes documents on if there are any."""
        plan = read_plan(self.out)
        for unit in units_of_rank(plan, rank, world_size):
            manifest = run_unit(plan, unit, self.tokenizer)
            self.stat_update("tokens", value=manifest.tokens)
            self.stat_update("documents", value=manifest.written)
        if data is not None:
            yield from data
