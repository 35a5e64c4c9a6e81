"""The Qwen models: their encodings' pattern, special tokens and normalization, and `QwenTokenizer`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .names import (
    NORMALIZATION,
    PATTERN,
    QWEN2_5_SPECIAL_TOKENS,
    QWEN3_SPECIAL_TOKENS,
    SPECIAL_TOKENS,
)

if TYPE_CHECKING:
    from .tokenizer import QwenTokenizer

__all__ = [
    "NORMALIZATION",
    "PATTERN",
    "QWEN2_5_SPECIAL_TOKENS",
    "QWEN3_SPECIAL_TOKENS",
    "SPECIAL_TOKENS",
    "QwenTokenizer",
]


def __getattr__(name: str) -> Any:
    # The encodings are made of the names alone; the tokenizer stands on the encodings.
    if name == "QwenTokenizer":
        from .tokenizer import QwenTokenizer

        return QwenTokenizer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
