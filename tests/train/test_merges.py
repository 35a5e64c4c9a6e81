"""Compares all learned merges with Hugging Face's merges."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import pytest
from seeds import seeded

from bpe_engine.read import byte_level
from bpe_engine.vocabulary import PieceCounts, train_bpe

BASE = [bytes([byte]) for byte in byte_level.ORDER]


def learned(
    counts: Mapping[bytes, int],
    size: int,
    min_frequency: int = 1,
    max_length: int | None = None,
    base: Sequence[bytes] = BASE,
) -> list[tuple[bytes, bytes]]:
    table = PieceCounts(r"\S+")
    table.add(list(counts), list(counts.values()))
    new, merges, _ = train_bpe(
        base, [(table, 1)], tokens=size, min_frequency=min_frequency, max_token_bytes=max_length
    )
    tokens = [*base, *new]
    return [(tokens[left], tokens[right]) for left, right, _, _, _ in merges]


def merges_of_tokenizers(
    counts: Mapping[bytes, int], size: int, min_frequency: int, max_length: int | None
) -> list[tuple[bytes, bytes]]:
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Split("\n", "removed")
    # The limit in `tokenizers` is exclusive: one more than the length of the longest token.
    limit = {} if max_length is None else {"max_token_length": max_length + 1}
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        min_frequency=min_frequency,
        show_progress=False,
        initial_alphabet=[byte_level.text_of(token) for token in BASE],
        **limit,
    )
    rows = ("\n".join([byte_level.text_of(piece)] * count) for piece, count in counts.items())
    tokenizer.train_from_iterator(rows, trainer)
    merges = json.loads(tokenizer.to_str())["model"]["merges"]
    return [(byte_level.bytes_of(left), byte_level.bytes_of(right)) for left, right in merges]


def check_tokenizers(name: str, most_pieces: int, longest: int, most_tokens: int) -> None:
    pytest.importorskip("tokenizers")
    chooser = seeded("tokenizers", name)
    letters = chooser.choice([b"a", b"ab", b"abc", b"abcdef"])
    counts = {}
    for _ in range(chooser.randint(1, most_pieces)):
        piece = bytes(chooser.choices(letters, k=chooser.randint(1, longest)))
        counts[piece] = chooser.randint(1, 9)
    size = 256 + chooser.randint(1, most_tokens)
    least, length = chooser.randint(0, 4), chooser.choice([None, None, 2, 3, 5])
    found = learned(counts, size, least, length)
    expected = merges_of_tokenizers(counts, size, least, length)
    # Hugging Face lists a repeated pair only at its last merge.
    last = {pair: place for place, pair in enumerate(found)}
    assert [pair for place, pair in enumerate(found) if last[pair] == place] == expected


@pytest.mark.parametrize("part", range(4))
def test_like_tokenizers(part: int) -> None:
    for number in range(40):
        check_tokenizers(f"{part}.{number}", 40, 12, 60)


@pytest.mark.thorough
@pytest.mark.parametrize("part", range(20))
def test_like_tokenizers_at_length(part: int) -> None:
    for number in range(200):
        check_tokenizers(f"long {part}.{number}", 60, 60, 600)


def test_long_pieces_take_linear_time() -> None:
    """A piece of two million bytes, in which every part merges, is learned in linear time."""
    chooser = seeded("long piece")
    piece = bytes(chooser.choices(b"abcdefghij", k=2_000_000))
    assert len(learned({piece: 1}, 256 + 2000)) == 2000


def test_counts_beyond_32_bits() -> None:
    large = 2**62
    counts = {b"ab": large, b"cd": 2**32, b"cde": 2**32 - 1, b"xyz": 5, b"ef": 2**40}
    assert learned(counts, 260) == [(b"a", b"b"), (b"e", b"f"), (b"c", b"d"), (b"cd", b"e")]


def test_a_missing_byte_is_named() -> None:
    with pytest.raises(ValueError, match="byte 0x7a is not a token"):
        learned({b"az": 1}, 10, base=[b"a", b"b"])
    with pytest.raises(ValueError, match="twice"):
        learned({b"a": 1}, 10, base=[b"a", b"a"])


def test_words_are_encoded_by_the_base_first() -> None:
    """Pieces are first encoded by the base: its tokens stay whole, and ranks decide the rest."""
    base = [*BASE, b"bc", b"ab", b"abcd"]
    assert learned({b"abc": 3, b"abcd": 9}, 260, base=base) == [(b"a", b"bc")]
