"""Trains vocabularies: byte-level BPE, from text or from counts of several machines, and all models."""

from ..corpus.piece_counts import CorpusCounts, count_corpus
from .arrow import count_pieces
from .models import TrainedModel, train_model
from .train_result import TrainResult
from .training import TrainOptions, train_vocabulary

__all__ = [
    "CorpusCounts",
    "TrainOptions",
    "TrainResult",
    "TrainedModel",
    "count_corpus",
    "count_pieces",
    "train_model",
    "train_vocabulary",
]
