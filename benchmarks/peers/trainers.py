"""Adapters for BPE trainers: each returns a function that trains on a given text.

All trainers cut text like GPT-2, and merge any pair that occurs at least once.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

from ..cases.encodings import ENCODINGS
from ..cases.training_texts import documents

#: Number of threads of every trainer.
THREADS = 2

PATTERN = ENCODINGS["r50k_base"].pattern

Merges = list[tuple[bytes, bytes]] | list[bytes]


def _trained(path: str, size: int, base: Any = None) -> Any:
    from vocab_tools import TrainOptions, train_vocabulary

    options = TrainOptions(pattern=PATTERN, min_frequency=1, num_threads=THREADS)
    return train_vocabulary(path, size, options, base=base)


def _ours(path: str, size: int) -> Callable[[], Merges]:
    def train() -> Merges:
        return [(merge.left, merge.right) for merge in _trained(path, size).merges]

    return train


def _ours_from_bytes(path: str, size: int) -> Callable[[], Merges]:
    base = {bytes([byte]): byte for byte in range(256)}

    def train() -> Merges:
        return list(_trained(path, size, base=base).ranks)

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


def _gigatoken(path: str, size: int) -> Callable[[], Merges]:
    from gigatoken import TextFileSource, gigatoken_rs

    def train() -> Merges:
        _, merges = gigatoken_rs.train_bpe(TextFileSource([path]), size, [])
        return list(merges)

    return train


def merges_digest(merges: list[Any]) -> dict[str, Any]:
    """Returns the number of merges and a hash of them; accepts bytes and GPT-2's characters."""
    from bpe_engine.read import byte_level

    def read(part: bytes | str) -> bytes:
        return part if isinstance(part, bytes) else byte_level.bytes_of(part)

    rows = [row if isinstance(row, bytes) else tuple(map(read, row)) for row in merges]
    digest = hashlib.blake2b(repr(rows).encode(), digest_size=8).hexdigest()
    return {"tokens": len(rows), "digest": digest}


#: By engine: a label for how the engine breaks ties, and the function that prepares the engine.
#: Hugging Face and gigatoken prefer the lowest ids in GPT-2's order of bytes; rustbpe prefers the
#: lowest ids in the order of byte values, as ours does from a base in that order.
TRAINERS: dict[str, tuple[str, Callable[[str, int], Callable[[], Merges]]]] = {
    "bpe_engine": ("GPT-2's order", _ours),
    "bpe_engine-bytes": ("order of byte values", _ours_from_bytes),
    "rustbpe": ("order of byte values", _rustbpe),
    "tokenizers": ("GPT-2's order", _tokenizers),
    "gigatoken": ("GPT-2's order", _gigatoken),
}
