"""Samples of text: reading them, counting their pieces, and what an extension does to them."""

from .counting import PieceCounts, count_pieces
from .effect import ChangedPiece, CorpusEffect, TokenCounts, corpus_effect
from .reading import corpus_files, read_texts

__all__ = [
    "ChangedPiece",
    "CorpusEffect",
    "PieceCounts",
    "TokenCounts",
    "corpus_effect",
    "corpus_files",
    "count_pieces",
    "read_texts",
]
