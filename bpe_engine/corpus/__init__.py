"""Turns text corpora into token files, each text exactly once, on one machine or many.

`make_plan` plans, `run_plan` writes, `verify_corpus` checks, `merge_parts` joins the parts,
`corpus_report` sums up, `pack_rows` and `PackedRows` make rows for training. For engines,
`units_of_rank` lists the tasks and `run_unit` runs one; `tokenize_batch` goes from Arrow to Arrow.
The command is ``bpe-engine corpus``.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ..texts.errors import CorpusError

if TYPE_CHECKING:
    from .batch import tokenize_batch
    from .merge import merge_parts
    from .pack import pack_rows
    from .packed_rows import PackedRows
    from .plan import Options, Plan, make_plan, read_plan
    from .report import corpus_report
    from .run import run_plan, run_unit, units_of_rank
    from .verify import verify_corpus

_MODULES = {
    "Options": "plan",
    "PackedRows": "packed_rows",
    "Plan": "plan",
    "corpus_report": "report",
    "make_plan": "plan",
    "merge_parts": "merge",
    "pack_rows": "pack",
    "read_plan": "plan",
    "run_plan": "run",
    "run_unit": "run",
    "tokenize_batch": "batch",
    "units_of_rank": "run",
    "verify_corpus": "verify",
}

__all__ = [
    "CorpusError",
    "Options",
    "PackedRows",
    "Plan",
    "corpus_report",
    "make_plan",
    "merge_parts",
    "pack_rows",
    "read_plan",
    "run_plan",
    "run_unit",
    "tokenize_batch",
    "units_of_rank",
    "verify_corpus",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f".{_MODULES[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
