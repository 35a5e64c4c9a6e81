"""Extending a vocabulary: proposing words, learning their merges, numbering and explaining them."""

from .learn import learn_merges
from .policy import first_free_id
from .result import ByProduct, LearnResult, Step, WordPath, to_plain

__all__ = [
    "ByProduct",
    "LearnResult",
    "Step",
    "WordPath",
    "first_free_id",
    "learn_merges",
    "to_plain",
]
