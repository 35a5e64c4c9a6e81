"""Extends a vocabulary: proposes words, learns their merges, and numbers the new tokens."""

from .learn import learn_merges
from .learn_result import ByProduct, LearnResult, Step, WordPath, to_plain
from .numbering import first_free_id

__all__ = [
    "ByProduct",
    "LearnResult",
    "Step",
    "WordPath",
    "first_free_id",
    "learn_merges",
    "to_plain",
]
