"""Native functions on whole vocabularies, for tools that train, extend, check or convert them."""

from __future__ import annotations

from collections.abc import Mapping

from . import _core
from ._core import (
    CountReader,
    PieceCounts,
    audit_tokens,
    learn_merges,
    merge_bytes,
    merge_counts,
    parse_rank_lines,
    train_bpe,
)
from .common.values import checked
from .core import Encoding

__all__ = [
    "MAX_TOKENS",
    "CountReader",
    "PieceCounts",
    "audit_tokens",
    "count_tokens",
    "encode_piece",
    "learn_merges",
    "make_encoding",
    "merge_bytes",
    "merge_counts",
    "parse_rank_lines",
    "token_splits",
    "train_bpe",
]

#: Maximum number of tokens of a vocabulary, without special tokens.
MAX_TOKENS = 2**21 - 512


def encode_piece(encoding: Encoding, piece: str) -> list[int]:
    """Encodes a piece that `Encoding.split` returned, without splitting again.

    >>> import bpe_engine
    >>> encode_piece(bpe_engine.get_encoding("gpt2"), " world")
    [995]
    """
    return encoding._encode_single_piece(piece)


def make_encoding(
    name: str,
    ranks: Mapping[bytes, int],
    pattern: str,
    special_tokens: Mapping[str, int],
    normalization: str | None = None,
) -> Encoding:
    """Makes an `Encoding`, with the arguments and errors of that class."""
    return Encoding(
        name,
        pat_str=pattern,
        mergeable_ranks=dict(checked(ranks)),
        special_tokens=dict(checked(special_tokens)),
        normalization=normalization,
    )


def token_splits(ranks: Mapping[bytes, int]) -> dict[bytes, tuple[bytes, bytes]]:
    """Returns the last merge of each token: the two tokens that it joins, in the order of ids.

    Single bytes and unreachable tokens are omitted.

    Raises:
        ValueError: An id occurs twice, or is too large.

    >>> ranks = {b"a": 0, b"b": 1, b"c": 2, b"bc": 3, b"abc": 4, b"ca?": 5}
    >>> token_splits(ranks)
    {b'bc': (b'b', b'c'), b'abc': (b'a', b'bc')}
    """
    tokens = {id: token for token, id in checked(ranks).items()}
    splits = zip(sorted(tokens), _core.token_splits(dict(ranks)))
    return {
        tokens[id]: (tokens[split[0]], tokens[split[1]])
        for id, split in splits
        if split is not None
    }


def count_tokens(encoding: Encoding, texts: list[str]) -> tuple[list[int], dict[int, int]]:
    """Returns the number of tokens of each text, and the count of each id in all texts.

    Special tokens are not recognized. Other threads can run during the call.

    >>> import bpe_engine
    >>> count_tokens(bpe_engine.get_encoding("gpt2"), ["hello world", "world"])
    ([2, 1], {995: 1, 6894: 1, 31373: 1})
    """
    lengths, times = _core.count_tokens(encoding, texts)
    return lengths, dict(times)
