"""Adds rows for new tokens to the embedding table of a model."""

from .plan import EmbeddingPlan, embedding_plan, read_plan
from .tables import METHODS, extend_embeddings

__all__ = ["METHODS", "EmbeddingPlan", "embedding_plan", "extend_embeddings", "read_plan"]
