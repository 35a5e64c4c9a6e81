"""Whole vocabularies, for tools that extend, check or convert them.

The parts that an `Encoding` is made of, and native work on all the tokens of a vocabulary at once.
"""

from __future__ import annotations

from ._core import (
    CountReader,
    PieceCounts,
    audit_tokens,
    count_pieces,
    learn_merges,
    merge_bytes,
    merge_counts,
    parse_rank_lines,
    train_bpe,
)
from .core import Encoding

__all__ = [
    "MAX_TOKENS",
    "CountReader",
    "PieceCounts",
    "audit_tokens",
    "count_pieces",
    "encode_piece",
    "learn_merges",
    "merge_bytes",
    "merge_counts",
    "mergeable_ranks",
    "normalization",
    "parse_rank_lines",
    "pattern",
    "special_tokens",
    "train_bpe",
]

#: How many tokens a vocabulary may have beside its special tokens.
MAX_TOKENS = 2**21 - 512


def mergeable_ranks(encoding: Encoding) -> dict[bytes, int]:
    """The tokens of an encoding that are no special tokens, and their ids.

    >>> import bpe_engine
    >>> mergeable_ranks(bpe_engine.get_encoding("gpt2"))[b" world"]
    995
    """
    return encoding._mergeable_ranks


def special_tokens(encoding: Encoding) -> dict[str, int]:
    """The names and ids of the special tokens of an encoding.

    >>> import bpe_engine
    >>> special_tokens(bpe_engine.get_encoding("gpt2"))
    {'<|endoftext|>': 50256}
    """
    return dict(encoding._special_tokens)


def pattern(encoding: Encoding) -> str:
    """The regular expression by which an encoding cuts text into pieces."""
    return encoding._pat_str


def normalization(encoding: Encoding) -> str | None:
    """The Unicode normalization form that text is brought into first: "NFC" or None.

    >>> import bpe_engine
    >>> normalization(bpe_engine.get_encoding("qwen"))
    'NFC'
    """
    return encoding._normalization


def encode_piece(encoding: Encoding, piece: str) -> list[int]:
    """The ids of one piece, as `Encoding.split` gives them; it is not split again.

    >>> import bpe_engine
    >>> encode_piece(bpe_engine.get_encoding("gpt2"), " world")
    [995]
    """
    return encoding._encode_single_piece(piece)
