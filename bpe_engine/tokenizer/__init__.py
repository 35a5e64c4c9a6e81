"""Tokenizers with the habits of transformers, without transformers."""

from __future__ import annotations

from .batch_encoding import BatchEncoding, CharSpan, TokenSpan
from .tokenizer import Tokenizer

__all__ = ["BatchEncoding", "CharSpan", "TokenSpan", "Tokenizer"]
