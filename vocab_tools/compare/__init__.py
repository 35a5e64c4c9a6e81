"""Tokenizers measured on a corpus, one alone or several beside each other."""

from .measure import compare_texts, compare_tokenizers
from .result import Comparison, Differing, Measured, renyi_efficiency
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
