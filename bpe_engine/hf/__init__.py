"""Runs any ``tokenizer.json`` with exactly the results of Hugging Face's `tokenizers`.

>>> from bpe_engine.hf import Tokenizer
>>> tokenizer = Tokenizer.from_file("tokenizer.json")  # doctest: +SKIP
>>> tokenizer.encode("Hello world").ids  # doctest: +SKIP
[15496, 995]

Under transformers, with the extra ``bpe-engine[transformers]``: `as_transformers` makes one
tokenizer, and `patch_transformers` makes ``from_pretrained`` return such tokenizers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._core import HfEncoding as Encoding
from .._core import UnsupportedTokenizer
from . import decoders, implementations, normalizers, pre_tokenizers, processors, trainers
from .component import Component
from .components import AddedToken, Token
from .fields import Regex
from .implementations import (
    BertWordPieceTokenizer,
    ByteLevelBPETokenizer,
    CharBPETokenizer,
    SentencePieceBPETokenizer,
    SentencePieceUnigramTokenizer,
)
from .models import BPE, Model, SentencePiece, Unigram, WordLevel, WordPiece
from .stream import DecodeStream
from .tokenizers import Tokenizer, is_ours

if TYPE_CHECKING:
    from .transformers import as_transformers, patch_transformers, unpatch_transformers

__all__ = [
    "AddedToken",
    "BPE",
    "BertWordPieceTokenizer",
    "ByteLevelBPETokenizer",
    "CharBPETokenizer",
    "Component",
    "DecodeStream",
    "Encoding",
    "Model",
    "Regex",
    "SentencePiece",
    "SentencePieceBPETokenizer",
    "SentencePieceUnigramTokenizer",
    "Token",
    "Tokenizer",
    "Unigram",
    "UnsupportedTokenizer",
    "WordLevel",
    "WordPiece",
    "as_transformers",
    "decoders",
    "implementations",
    "is_ours",
    "normalizers",
    "patch_transformers",
    "pre_tokenizers",
    "processors",
    "trainers",
    "unpatch_transformers",
]


def __getattr__(name: str) -> Any:
    # Imported on first access: transformers takes seconds to import.
    if name in ("as_transformers", "patch_transformers", "unpatch_transformers"):
        from . import transformers

        return getattr(transformers, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
