"""Encodings and texts in which later text often changes earlier ids."""

from __future__ import annotations

import random

from oracles import ranks

import bpe_engine

# Fragments that often change earlier pieces of a text.
PIECES = [
    "a", "B", "word ", " the", "The", "'", "'s", "'LL", "ſ", " ", "  ", "\n", "\r\n", "\t", "\u3000",
    "\u00a0", "1", "123", "²", "e\u0301", "\u0301", "\u0338", "<", ">", "\u1100", "\u1161", "\u11a8",
    "가", "的", "你好，世界。", "한국어", "🦀", "👨‍👩‍👧", "<|", "|>", "<|endoftext|>", "<|endof", "text|>", "<|im_start|>",
    "<|extra_0|>", "<|extra_", "<|x|>" * 40, "<mask>", "  <mask>  ", "Word", "lore", "!", "...", "/", "://", "é", "नमस्ते", "\u093f", "\ud83d", "\ude00", "CamelCase",
    "x" * 300, "\n" * 40, "lorem ipsum dolor sit amet, " * 60,
]  # fmt: skip
PATTERNS = [
    r"\w+|\W",
    r"(?:ab)+|(?s:.)(?=\s|$)|\s+|\S",
    r"\p{L}+(?=\d)|\p{L}|\d+|\s+$|\s|[^\p{L}\d\s]+",
    r"[^\r\n]+\n?|\s+",
]


def custom(pattern: str, normalization: str | None) -> bpe_engine.Encoding:
    some = {token: rank for token, rank in ranks("r50k_base").items() if rank < 2000}
    names = {"<|endoftext|>": 3000, "<|im_start|>": 3001, "<|im_start|>a": 3002, "|": 3003}
    core = bpe_engine._tiktoken.CoreBPE(some, names, pattern, normalization)
    return bpe_engine.Encoding._from_core(
        "custom", core, pat_str=pattern, special_tokens=names, normalization=normalization
    )


def text(rng: random.Random, most: int = 40) -> str:
    return "".join(rng.choices(PIECES, k=rng.randrange(most)))
