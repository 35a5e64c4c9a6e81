"""Tokenizer files that are made, not found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bpe_engine import get_encoding
from bpe_engine.load import load_tiktoken_bpe

__all__ = ["BYTE_CHARACTERS", "tokenizer_json"]

DATA = Path(__file__).resolve().parents[2] / "data"

# The character that stands for each byte: printable ones of Latin-1 for themselves, the others in
# order from U+0100 on.
_PRINTABLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_OTHERS = [byte for byte in range(256) if byte not in _PRINTABLE]
BYTE_CHARACTERS = {byte: chr(byte) for byte in _PRINTABLE} | {
    byte: chr(0x100 + place) for place, byte in enumerate(_OTHERS)
}


def tokenizer_json(name: str, special_tokens: bool = True) -> str:
    """The contents of a ``tokenizer.json`` for a built-in encoding.

    As converters write it: for each token every pair of tokens that makes it up, since a rank file
    does not say which of them merges. Without ``special_tokens``, the ids have no gaps, which
    fastokens does not read.
    """
    encoding = get_encoding(name)
    ranks = load_tiktoken_bpe(str(DATA / f"{name}.tiktoken"))
    text = {token: "".join(BYTE_CHARACTERS[byte] for byte in token) for token in ranks}
    merges: list[str] = []
    for token in sorted(ranks, key=ranks.__getitem__):
        cuts = [(token[:cut], token[cut:]) for cut in range(1, len(token))]
        pairs = [pair for pair in cuts if pair[0] in ranks and pair[1] in ranks]
        pairs.sort(key=lambda pair: (ranks[pair[0]], ranks[pair[1]]))
        merges += [f"{text[left]} {text[right]}" for left, right in pairs]
    level: dict[str, Any] = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    split = {
        "type": "Split",
        "pattern": {"Regex": encoding._pat_str.replace("++", "+").replace("?+", "?")},
        "behavior": "Isolated",
        "invert": False,
    }
    flags = dict.fromkeys(["single_word", "lstrip", "rstrip", "normalized"], False)
    named = encoding._special_tokens.items() if special_tokens else ()
    special = sorted(named, key=lambda item: item[1])
    contents = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": id, "content": content, **flags, "special": True} for content, id in special
        ],
        "normalizer": None,
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [split, {**level, "use_regex": False}],
        },
        "post_processor": None,
        "decoder": {**level, "use_regex": True},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            # Tokens that are added have their ids from here.
            "vocab": {text[token]: rank for token, rank in ranks.items()} | dict(special),
            "merges": merges,
        },
    }
    return json.dumps(contents, ensure_ascii=False)
