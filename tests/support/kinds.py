"""Kinds of tokenizers, an oracle for each kind, and texts to encode.

To add a kind of file, add a line to `FILES`: `tests/frontend/test_matrix.py` tests every ability
with every kind.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import accumulate
from typing import Any, NamedTuple

from hf_oracle import TEXTS, tokenizers
from seeds import rounds, seeded

import bpe_engine
from bpe_engine import hf
from bpe_engine.qwen import QwenTokenizer
from bpe_engine.read import byte_level

WORDS = ["the", "word", "lo", "rem", "Ab", "12", "日本", "本語", "éx", "xxx", "ing"]
FLAGS = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
ADDED: list[dict[str, Any]] = [
    {"content": "<a>", "special": True, **FLAGS},
    {"content": "<l>", "special": True, **FLAGS, "lstrip": True},
    {"content": "<r>", "special": True, **FLAGS, "rstrip": True},
    {"content": "née", "special": False, **FLAGS, "normalized": True},
]
PIECES = [
    *TEXTS, *WORDS, " ", "  ", " the", "\n", "<a>", "<l>", " <r> ", "<", "a>", "née", "ne\u0301e", "e\u0301",
    "lorem ipsum dolor sit amet, " * 30, "Das ist ein Satz. 你好，世界。", "x" * 300,
]  # fmt: skip


def merges_of(words: list[str], first: list[str]) -> tuple[list[str], list[list[str]]]:
    """Returns the tokens and merges that build each word character by character."""
    vocab, merges = list(first), []
    for word in words:
        for end in range(2, len(word) + 1):
            if word[:end] not in vocab:
                vocab.append(word[:end])
                merges.append([word[: end - 1], word[end - 1 : end]])
    return vocab, merges


def file_of(model: dict[str, Any], **parts: Any) -> str:
    contents = {
        "version": "1.0",
        "added_tokens": [
            {"id": len(model["vocab"]) + place, **token} for place, token in enumerate(ADDED)
        ],
        "normalizer": None,
        "pre_tokenizer": None,
        "post_processor": None,
        "decoder": None,
        "model": {"type": "BPE", **model},
        **parts,
    }
    return json.dumps(contents)


LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": True}


def byte_level_file(normalizer: Any = None, permuted: bool = False, prefix: bool = False) -> str:
    letters = [byte_level.text_of(bytes([byte])) for byte in range(256)]
    words = [byte_level.text_of(word.encode()) for word in (*WORDS, " the", " word", "  ")]
    vocab, merges = merges_of(words, letters)
    ids = list(range(len(vocab)))
    if permuted:
        seeded("matrix permuted").shuffle(ids)
    model = {"vocab": dict(zip(vocab, ids)), "merges": merges}
    level = {**LEVEL, "add_prefix_space": prefix}
    return file_of(model, normalizer=normalizer, pre_tokenizer=level, decoder=level)


def characters_file(**parts: Any) -> str:
    first = [f"<0x{byte:02X}>" for byte in range(256)]
    first += sorted(set("".join(WORDS)) | set("ab,.▁"))
    vocab, merges = merges_of([*WORDS, "▁the", "▁word", "▁▁"], first)
    model = {"vocab": {token: id for id, token in enumerate(vocab)}, "merges": merges}
    return file_of({**model, "byte_fallback": True, "fuse_unk": True}, **parts)


def words_file(kind: str, **parts: Any) -> str:
    """Returns a file whose model encodes words: WordPiece, WordLevel, or BPE with a suffix."""
    letters = sorted(set("".join(WORDS)) | set("ab,."))
    if kind == "BPE":
        ends = [letter + "</w>" for letter in letters]
        vocab, merges = merges_of(WORDS, [*letters, *ends, "<unk>"])
        vocab += [word + "</w>" for word in WORDS]
        merges += [[word[:-1], word[-1] + "</w>"] for word in WORDS if word[:-1] in vocab]
        vocab += [left + right for left, right in merges]
        extra = {"merges": merges, "end_of_word_suffix": "</w>", "unk_token": "<unk>"}
    else:
        vocab = ["[UNK]", *letters, *WORDS]
        extra = {"unk_token": "[UNK]"}
    if kind == "WordPiece":
        vocab += [f"##{token}" for token in vocab[1:]]
        extra |= {"continuing_subword_prefix": "##", "max_input_chars_per_word": 100}
    ids = {token: id for id, token in enumerate(dict.fromkeys(vocab))}
    parts = {"pre_tokenizer": {"type": "Whitespace"}, **parts}
    return file_of({"type": kind, "vocab": ids, **extra}, **parts)


def unigram_file(has_bytes: bool = False, **parts: Any) -> str:
    bytes_ = [f"<0x{byte:02X}>" for byte in range(256)]
    letters = sorted(set("".join(WORDS)) | set("ab,.▁"))
    words = [*WORDS, "▁the", "▁word", "▁▁"]
    scores = [("<unk>", 0.0), *((byte, 0.0) for byte in bytes_)]
    scores += [(letter, -8.0) for letter in letters] + [(word, -len(word) - 0.5) for word in words]
    model = {"type": "Unigram", "unk_id": 0, "vocab": scores, "byte_fallback": has_bytes}
    return file_of(model, **parts)


REPLACE = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
PREPEND = {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"}, REPLACE]}
LLAMA = {
    "type": "Sequence",
    "decoders": [
        {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
        {"type": "ByteFallback"},
        {"type": "Fuse"},
        {"type": "Strip", "content": " ", "start": 1, "stop": 0},
    ],
}
METASPACE = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": False}

#: Kinds of tokenizer files.
FILES: dict[str, Callable[[], str]] = {
    "byte-level": byte_level_file,
    "NFC": lambda: byte_level_file(normalizer={"type": "NFC"}),
    "lowercase": lambda: byte_level_file(normalizer={"type": "Lowercase"}),
    "prefix space": lambda: byte_level_file(prefix=True),
    "ids out of order": lambda: byte_level_file(permuted=True),
    "characters, Prepend": lambda: characters_file(normalizer=PREPEND, decoder=LLAMA),
    "characters, Metaspace": lambda: characters_file(pre_tokenizer=METASPACE, decoder=LLAMA),
    "WordPiece": lambda: words_file("WordPiece"),
    "WordLevel": lambda: words_file("WordLevel"),
    "BPE with a suffix": lambda: words_file("BPE"),
    "Unigram": lambda: unigram_file(pre_tokenizer=METASPACE, decoder=LLAMA),
    "Unigram, bytes": lambda: unigram_file(True, pre_tokenizer=METASPACE, decoder=LLAMA),
    "Unigram, split": lambda: unigram_file(
        pre_tokenizer={**METASPACE, "split": True}, decoder=LLAMA
    ),
}


class Case(NamedTuple):
    """A tokenizer, and oracles for its ids and offsets."""

    face: Any
    oracle: Callable[[str], tuple[list[int], list[tuple[int, int]] | None]]
    #: Decodes ids, special tokens included.
    decode: Callable[[list[int]], str]


def file_case(contents: str, make: Callable[[hf.Tokenizer], Any]) -> Case:
    theirs = tokenizers.Tokenizer.from_str(contents)

    def oracle(text: str) -> tuple[list[int], list[tuple[int, int]]]:
        encoded = theirs.encode(text, add_special_tokens=False)
        return encoded.ids, encoded.offsets

    face = make(hf.Tokenizer.from_str(contents))
    return Case(face, oracle, lambda ids: theirs.decode(ids, skip_special_tokens=False))


def encoding_case(encoding: bpe_engine.Encoding, make: Callable[[Any], Any], allowed: Any) -> Case:
    def oracle(text: str) -> tuple[list[int], None]:
        return encoding.encode(text, allowed_special=allowed, disallowed_special=()), None

    return Case(make(encoding), oracle, encoding.decode)


def pieces_case(name: str, make: Callable[[hf.Tokenizer], Any]) -> Case:
    """Returns a case for a SentencePiece model; skips the test without the package."""
    import sentencepiece_oracle as package

    contents = package.model_bytes(name)
    theirs = package.processor(contents)

    def oracle(text: str) -> tuple[list[int], list[tuple[int, int]]]:
        found = package.pieces(theirs, text)
        ends = accumulate((len(character.encode()) for character in text), initial=0)
        place_of = {end: place for place, end in enumerate(ends)}
        return [it.id for it in found], [(place_of[it.start], place_of[it.end]) for it in found]

    return Case(
        make(hf.Tokenizer.from_sentencepiece(contents, package.VERSION)), oracle, theirs.decode
    )


def same(it: Any) -> Any:
    return it


CASES: dict[str, Callable[[], Case]] = {
    "Encoding": lambda: encoding_case(bpe_engine.get_encoding("gpt2"), same, set()),
    "Encoding, NFC": lambda: encoding_case(bpe_engine.get_encoding("qwen"), same, set()),
    "Tokenizer of an Encoding": lambda: encoding_case(
        bpe_engine.get_encoding("o200k_base"), bpe_engine.Tokenizer, "all"
    ),
    "QwenTokenizer": lambda: encoding_case(
        bpe_engine.get_encoding("qwen"), lambda _: QwenTokenizer(), "all"
    ),
}
for _name, _make in FILES.items():
    CASES[f"hf.Tokenizer, {_name}"] = lambda make=_make: file_case(make(), same)
    CASES[f"Tokenizer, {_name}"] = lambda make=_make: file_case(make(), bpe_engine.Tokenizer)
for _kind, _model in (("Unigram", "unigram"), ("BPE", "bpe llama")):
    CASES[f"hf.Tokenizer, SentencePiece {_kind}"] = lambda model=_model: pieces_case(model, same)
    CASES[f"Tokenizer, SentencePiece {_kind}"] = lambda model=_model: pieces_case(
        model, bpe_engine.Tokenizer
    )


def texts(count: int, note: str) -> list[str]:
    rng = seeded(f"matrix {note}")
    return ["".join(rng.choices(PIECES, k=rng.randrange(8))) for _ in range(rounds(count))]


def ids_of(case: Case, text: str) -> list[int]:
    return case.oracle(text)[0]
