"""Converts tokenizers between formats, and verifies the result by encoding text with both."""

from .conversion import Conversion, Difference, NotAlikeError, convert_tokenizer
from .definition import Definition
from .formats import load, locate_source, locate_target

__all__ = [
    "Conversion",
    "Definition",
    "Difference",
    "NotAlikeError",
    "convert_tokenizer",
    "load",
    "locate_source",
    "locate_target",
]
