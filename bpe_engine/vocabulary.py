"""Whole vocabularies, for tools that extend, check or convert them.

The parts that an `Encoding` is made of, and native work on all the tokens of a vocabulary at once.
"""

from __future__ import annotations

from collections.abc import Mapping

from . import _core
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
    "count_tokens",
    "encode_piece",
    "learn_merges",
    "make_encoding",
    "merge_bytes",
    "merge_counts",
    "mergeable_ranks",
    "normalization",
    "parse_rank_lines",
    "pattern",
    "special_tokens",
    "token_splits",
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


def make_encoding(
    name: str,
    ranks: Mapping[bytes, int],
    pattern: str,
    special_tokens: Mapping[str, int],
    normalization: str | None = None,
) -> Encoding:
    """An encoding like those of the package, which may bring text into a normalization form first.

    Args:
        name: What to call it.
        ranks: Token bytes and their ids, which are also the order of merging.
        pattern: The regular expression that cuts text into pieces.
        special_tokens: Names and ids.
        normalization: "NFC" or None.

    Raises:
        ValueError: As `Encoding` does; or the normalization is another.

    >>> ranks = {bytes([byte]): byte for byte in range(256)}
    >>> encoding = make_encoding("bytes", ranks, r"\\w+|\\W+", {}, "NFC")
    >>> encoding.encode("e\\u0301")
    [195, 169]
    """
    special = dict(special_tokens)
    core = _core.CoreBPE(dict(ranks), special, pattern, normalization)
    return Encoding._from_core(
        name, core, pat_str=pattern, special_tokens=special, normalization=normalization
    )


def token_splits(ranks: Mapping[bytes, int]) -> dict[bytes, tuple[bytes, bytes]]:
    """How merging makes each token: the two tokens that it joins last, in the order of ids.

    Single bytes are left out, and tokens that merging does not reach.

    Raises:
        ValueError: An id comes twice, or is too large.

    >>> ranks = {b"a": 0, b"b": 1, b"c": 2, b"bc": 3, b"abc": 4, b"ca?": 5}
    >>> token_splits(ranks)
    {b'bc': (b'b', b'c'), b'abc': (b'a', b'bc')}
    """
    tokens = {id: token for token, id in ranks.items()}
    splits = zip(sorted(tokens), _core.token_splits(dict(ranks)))
    return {
        tokens[id]: (tokens[split[0]], tokens[split[1]])
        for id, split in splits
        if split is not None
    }


def count_tokens(encoding: Encoding, texts: list[str]) -> tuple[list[int], dict[int, int]]:
    """How many tokens each text has, and how often each id comes in all of them together.

    Nothing in the texts is special. The interpreter is free meanwhile.

    >>> import bpe_engine
    >>> count_tokens(bpe_engine.get_encoding("gpt2"), ["hello world", "world"])
    ([2, 1], {995: 1, 6894: 1, 31373: 1})
    """
    lengths, times = _core.count_tokens(encoding._core_bpe, texts)
    return lengths, dict(times)
