"""Measures one or more tokenizers on a corpus."""

from .comparison import Comparison, Differing, Measured, renyi_efficiency
from .measure import compare_texts, compare_tokenizers
from .subjects import Subject, load_subject

__all__ = [
    "Comparison",
    "Differing",
    "Measured",
    "Subject",
    "compare_texts",
    "compare_tokenizers",
    "load_subject",
    "renyi_efficiency",
]
