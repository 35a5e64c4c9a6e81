"""Tokenizers with the interface of transformers, without transformers."""

from __future__ import annotations

from .batch_encoding import BatchEncoding, CharSpan, TokenSpan
from .tokenizer import FOLDER_CLASSES, Tokenizer

__all__ = ["BatchEncoding", "CharSpan", "TokenSpan", "Tokenizer"]


def _qwen() -> type[Tokenizer]:
    from ..qwen.tokenizer import QwenTokenizer

    return QwenTokenizer


FOLDER_CLASSES["QWenTokenizer"] = _qwen
