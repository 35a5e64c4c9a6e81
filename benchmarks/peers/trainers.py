"""One function per trainer of byte-level BPE: prepared for a text, it trains when it is called.

All cut text as GPT-2 does and merge pairs that occur at all.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from ..cases.training_texts import documents

#: Threads of every trainer.
THREADS = 2

#: GPT-2's pattern, as tiktoken spells it.
PATTERN = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"

Merges = list[tuple[bytes, bytes]] | list[bytes] | None


def _ours(path: str, size: int) -> Callable[[], Merges]:
    from vocab_tools import train_vocabulary

    def train() -> Merges:
        result = train_vocabulary(path, size, pattern=PATTERN, min_frequency=1, threads=THREADS)
        return [(merge.left, merge.right) for merge in result.merges]

    return train


def _ours_from_bytes(path: str, size: int) -> Callable[[], Merges]:
    from vocab_tools import train_vocabulary

    base = {bytes([byte]): byte for byte in range(256)}

    def train() -> Merges:
        result = train_vocabulary(
            path, size, pattern=PATTERN, min_frequency=1, base=base, threads=THREADS
        )
        return list(result.ranks)

    return train


def _rustbpe(path: str, size: int) -> Callable[[], Merges]:
    import rustbpe

    def train() -> Merges:
        tokenizer = rustbpe.Tokenizer()
        tokenizer.train_from_iterator(iter(documents(path)), size, pattern=PATTERN)
        ranks = tokenizer.get_mergeable_ranks()
        return [bytes(token) for token, _ in sorted(ranks, key=lambda row: row[1])]

    return train


def _tokenizers(path: str, size: int) -> Callable[[], Merges]:
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    def train() -> Merges:
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer = trainers.BpeTrainer(
            vocab_size=size, show_progress=False, initial_alphabet=alphabet
        )
        tokenizer.train_from_iterator(documents(path), trainer)
        return json.loads(tokenizer.to_str())["model"]["merges"]  # type: ignore[no-any-return]

    return train


def _bpeasy(path: str, size: int) -> Callable[[], Merges]:
    import bpeasy

    def train() -> Merges:
        bpeasy.train_bpe(iter(documents(path)), PATTERN, 1 << 20, size)
        return None

    return train


def _gigatoken(path: str, size: int) -> Callable[[], Merges]:
    from gigatoken import TextFileSource, gigatoken_rs

    def train() -> Merges:
        _, merges = gigatoken_rs.train_bpe(TextFileSource([path]), size, [])
        return list(merges)

    return train


TRAINERS = {
    "bpe_engine": _ours,
    "bpe_engine from byte values": _ours_from_bytes,
    "rustbpe": _rustbpe,
    "tokenizers": _tokenizers,
    "bpeasy": _bpeasy,
    "gigatoken": _gigatoken,
}
