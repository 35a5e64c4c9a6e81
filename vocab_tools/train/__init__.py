"""Vocabularies learned from text: byte-level BPE, from counts that may come from many machines."""

from .arrow import count_pieces
from .counting import CorpusCounts, count_corpus
from .result import TrainResult
from .training import train_vocabulary

__all__ = ["CorpusCounts", "TrainResult", "count_corpus", "count_pieces", "train_vocabulary"]
