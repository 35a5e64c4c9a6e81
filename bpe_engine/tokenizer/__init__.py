"""Tokenizers with the interface of transformers, without transformers."""

from __future__ import annotations

from .batch_encoding import BatchEncoding, CharSpan, TokenSpan
from .classes import LANGUAGES
from .tokenizer import FOLDER_CLASSES, LOADED_CLASSES, Tokenizer

__all__ = ["BatchEncoding", "CharSpan", "TokenSpan", "Tokenizer"]


def _qwen() -> type[Tokenizer]:
    from ..qwen.tokenizer import QwenTokenizer

    return QwenTokenizer


def _marian() -> type[Tokenizer]:
    from .marian import MarianTokenizer

    return MarianTokenizer


def _m2m100() -> type[Tokenizer]:
    from .m2m100 import M2M100Tokenizer

    return M2M100Tokenizer


def _languages() -> type[Tokenizer]:
    from .languages import LanguageTokenizer

    return LanguageTokenizer


FOLDER_CLASSES["QWenTokenizer"] = _qwen
FOLDER_CLASSES["MarianTokenizer"] = _marian
FOLDER_CLASSES["M2M100Tokenizer"] = _m2m100
LOADED_CLASSES.update(dict.fromkeys(LANGUAGES, _languages))
