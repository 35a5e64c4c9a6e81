"""Trains small models with the sentencepiece package, and encodes with them."""

from __future__ import annotations

import functools
import io
import json
import random
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from seeds import seeded

sentencepiece = pytest.importorskip("sentencepiece")

#: Argument `version` of `bpe_engine.hf.Tokenizer.from_sentencepiece` for the installed package.
VERSION: Any = "0.2.3" if sentencepiece.__version__ >= "0.2.2" else "0.2.1"

WORDS = [
    "the", "then", "other", "token", "tokens", "tokenizer", "a", "aa", "aaa", "aaaa", "ab", "abab",
    "日本", "日本語", "テスト", "ﾃｽﾄ", "ｶﾞ", "cafe\u0301", "café", "ﬁn", "①", "１２", "x",
    "is", "this", "…", "don't", "naïve", "한국어", "привет", "<sep>", "<se", "ud", "udud", "[X Y]",
]  # fmt: skip
#: Odd texts: whitespace, characters of a charsmap, halves of user-defined pieces, unknown text.
ODD = [
    " ", "  ", "   ", "\t", "\n", "\u3000", "\u00a0", "\u200b", "\u2581", "\u2581\u2581", "",
    "\u0301", "\u3099", "ﾞ", "¨", "㍿", "\U0001f600", "\ufffd", "\0", "ÿ", "𠮷", "<sep", "sep>",
    "<unk>", "<s>", "</s>", "<0x41>", "<ctrl>", "ctrl", "[X", "Y]", "udu", "z" * 40, "a" * 50, "!", ".",
]  # fmt: skip

#: Options of the models that tests train.
MODELS: dict[str, dict[str, Any]] = {
    "unigram": {"model_type": "unigram", "vocab_size": 120},
    "unigram bytes": {"model_type": "unigram", "vocab_size": 400, "byte_fallback": True},
    "unigram defined": {
        "model_type": "unigram",
        "vocab_size": 130,
        "user_defined_symbols": ["<sep>", "ud", "udud", "[X Y]", "ﾃ", "▁▁"],
        "control_symbols": ["<ctrl>"],
    },
    "unigram loose": {
        "model_type": "unigram",
        "vocab_size": 140,
        "normalization_rule_name": "identity",
        "remove_extra_whitespaces": False,
        "split_by_whitespace": False,
        "add_dummy_prefix": False,
    },
    "unigram suffix": {
        "model_type": "unigram",
        "vocab_size": 120,
        "treat_whitespace_as_suffix": True,
        "normalization_rule_name": "nfkc_cf",
    },
    "bpe": {"model_type": "bpe", "vocab_size": 150},
    "bpe llama": {
        "model_type": "bpe",
        "vocab_size": 420,
        "byte_fallback": True,
        "normalization_rule_name": "identity",
        "remove_extra_whitespaces": False,
        "allow_whitespace_only_pieces": True,
    },
    "bpe defined": {
        "model_type": "bpe",
        "vocab_size": 160,
        "user_defined_symbols": ["<sep>", "ud", "udud", "[X Y]", "ﾃ", "▁▁", "\n"],
        "control_symbols": ["<ctrl>"],
        "unk_surface": "?",
    },
    "bpe bytes defined": {
        "model_type": "bpe",
        "vocab_size": 420,
        "byte_fallback": True,
        "user_defined_symbols": ["<sep>", "ud", "\n\n", "▁▁▁"],
    },
    "char": {"model_type": "char", "vocab_size": 80, "user_defined_symbols": ["ud", "<sep>"]},
    "word": {"model_type": "word", "vocab_size": 30},
}


class Piece(NamedTuple):
    """A token and its byte range in the text."""

    text: str
    id: int
    start: int
    end: int


def random_text(rng: random.Random, most: int = 14) -> str:
    """Returns a text made of words and special cases."""
    parts = []
    for _ in range(rng.randrange(most)):
        part = rng.choice(WORDS if rng.random() < 0.6 else ODD)
        parts.append(part * (rng.randrange(1, 5) if rng.random() < 0.1 else 1))
        parts.append(" " if rng.random() < 0.6 else "")
    return "".join(parts)


@functools.cache
def model_bytes(name: str) -> bytes:
    """Trains a model of `MODELS`, and returns the bytes of its file."""
    return trained(WORDS, ("sentencepiece model", name), **MODELS[name])


def trained(words: list[str], note: tuple[str, ...], **options: Any) -> bytes:
    """Trains a model on these words, and returns the bytes of its file."""
    rng = seeded(*note)
    lines = [" ".join(rng.choice(words) for _ in range(12)) for _ in range(300)]
    writer = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=writer,
        hard_vocab_limit=False,
        character_coverage=0.98,
        num_threads=1,
        minloglevel=2,
        **options,
    )
    return writer.getvalue()


#: Ids of T5's special pieces.
T5 = {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1}


def write_class(path: Path, name: str | None, file: str, options: Any, config: Any) -> Path:
    """Writes a folder with a model whose ids a transformers class changes."""
    path.mkdir(exist_ok=True)
    (path / file).write_bytes(trained(WORDS, ("pieces of classes",), vocab_size=150, **options))
    text = json.dumps({"tokenizer_class": name, **config})
    (path / "tokenizer_config.json").write_text(text, encoding="utf-8")
    return path


def made_model(
    rows: list[tuple[str, float, int]],
    model_type: int,
    *,
    byte_fallback: bool = False,
    charsmap: bytes = b"",
    **flags: bool,
) -> bytes:
    """Returns the bytes of a model file, built by hand.

    Args:
        rows: The text, the score and the type number of each piece.
        model_type: 1 for Unigram, 2 for BPE, 3 for words, 4 for characters.
        byte_fallback: The field of the trainer.
        charsmap: The rules of the normalizer.
        flags: Fields of the normalizer; an omitted field is false.
    """
    contents = b""
    for text, score, kind in rows:
        piece = b"\x0a" + _bytes(text.encode()) + b"\x15" + struct.pack("<f", score)
        contents += b"\x0a" + _bytes(piece + bytes([0x18, kind]))
    trainer = bytes([0x18, model_type]) + b"\x98\x02" + bytes([byte_fallback])
    contents += b"\x12" + _bytes(trainer)
    names = ("add_dummy_prefix", "remove_extra_whitespaces", "escape_whitespaces")
    normalizer = (
        b"\x12"
        + _bytes(charsmap)
        + b"".join(
            bytes([8 * number, flags.get(name, False)]) for number, name in enumerate(names, 3)
        )
    )
    return contents + b"\x1a" + _bytes(normalizer)


def _bytes(value: bytes) -> bytes:
    length, head = len(value), b""
    while length > 127:
        head += bytes([length & 127 | 128])
        length >>= 7
    return head + bytes([length]) + value


def processor(contents: bytes) -> Any:
    """Returns the package's processor for the bytes of a model file."""
    return sentencepiece.SentencePieceProcessor(model_proto=contents)


def pieces(model: Any, text: str) -> list[Piece]:
    """Returns the tokens of a text, with byte offsets."""
    found = []
    for number, value in _fields(bytes(model.encode(text.encode(), out_type="serialized_proto"))):
        if number == 2 and isinstance(value, bytes):
            fields = dict(_fields(value))
            start, end = fields.get(4, 0), fields.get(5, 0)
            found.append(Piece(fields[1].decode(), fields.get(2, 0), start, end))
    return found


def _fields(message: bytes) -> Iterator[tuple[int, Any]]:
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        value, at = _varint(message, at)
        if tag & 7 == 2:
            value, at = message[at : at + value], at + value
        yield tag >> 3, value


def _varint(message: bytes, at: int) -> tuple[Any, int]:
    value, shift = 0, 0
    while True:
        byte = message[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def write_model(folder: Path, name: str) -> Path:
    """Writes the model file of an entry in `MODELS`, and returns its path."""
    path = folder / "tokenizer.model"
    path.write_bytes(model_bytes(name))
    return path
