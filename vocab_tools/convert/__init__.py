"""Tokenizers from one format to another, verified by encoding text both ways."""

from .conversion import Conversion, Difference, NotAlikeError, convert_tokenizer
from .definition import Definition
from .formats import Location, load, locate_source, locate_target

__all__ = [
    "Conversion",
    "Definition",
    "Difference",
    "Location",
    "NotAlikeError",
    "convert_tokenizer",
    "load",
    "locate_source",
    "locate_target",
]
