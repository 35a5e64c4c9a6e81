"""Tokenizers with transformers' interface that do not need transformers."""

from __future__ import annotations

from .batch_encoding import BatchEncoding, CharSpan, TokenSpan
from .tokenizer import SUBCLASSES, Tokenizer

__all__ = ["BatchEncoding", "CharSpan", "TokenSpan", "Tokenizer"]


def _qwen() -> type[Tokenizer]:
    from ..qwen.tokenizer import QwenTokenizer

    return QwenTokenizer


SUBCLASSES["Qwen-7B"] = _qwen
