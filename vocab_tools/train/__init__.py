"""Trains byte-level BPE vocabularies, from text or from counts of several machines."""

from ..corpus.piece_counts import CorpusCounts, count_corpus
from .arrow import count_pieces
from .train_result import TrainResult
from .training import train_vocabulary

__all__ = ["CorpusCounts", "TrainResult", "count_corpus", "count_pieces", "train_vocabulary"]
