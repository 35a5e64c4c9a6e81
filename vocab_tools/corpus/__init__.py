"""Reads corpora, counts their pieces, and measures extensions on them."""

from bpe_engine.texts import corpus_files, read_texts

from .effect import ChangedPiece, CorpusEffect, TokenCounts, corpus_effect
from .piece_counts import CorpusCounts, count_corpus

__all__ = [
    "ChangedPiece",
    "CorpusCounts",
    "CorpusEffect",
    "TokenCounts",
    "corpus_effect",
    "corpus_files",
    "count_corpus",
    "read_texts",
]
