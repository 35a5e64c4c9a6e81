"""Rows for new tokens in the embedding table of a model."""

from .plan import EmbeddingPlan, embedding_plan
from .tables import METHODS, extend_embeddings

__all__ = ["METHODS", "EmbeddingPlan", "embedding_plan", "extend_embeddings"]
