"""Contents of small tokenizer.json files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bpe_engine.read import byte_level

LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
MERGES = [("h", "e"), ("l", "l"), ("he", "ll"), ("hell", "o"), ("Ã", "©"), ("Ġ", "h")]
SPACE = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "never", "split": True}


def added_token(id: int, content: str, **flags: bool) -> dict[str, Any]:
    """Returns a special token with only the given flags set."""
    no = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"id": id, "content": content, **no, "special": True, **flags}


def byte_level_file(added: dict[str, Any] | None = None, **parts: Any) -> dict[str, Any]:
    """Returns a byte-level file with the special token <|end|>, id 262; `added` sets its flags."""
    letters = [byte_level.text_of(bytes([byte])) for byte in range(256)]
    vocab = {token: id for id, token in enumerate([*letters, *(a + b for a, b in MERGES)])}
    return {
        "version": "1.0",
        "added_tokens": [{**added_token(len(vocab), "<|end|>"), **(added or {})}],
        "pre_tokenizer": LEVEL,
        "decoder": LEVEL,
        "model": {"type": "BPE", "vocab": vocab, "merges": [f"{a} {b}" for a, b in MERGES]},
        **parts,
    }


def unigram_file() -> dict[str, Any]:
    """Returns a Unigram file whose model encodes the letters </s> as the special token, id 1."""
    pieces = [
        ("<unk>", 0.0),
        ("</s>", 5.0),
        *((letter, -2.0) for letter in "</s>ab▁"),
        ("▁a", -1.0),
    ]
    return {
        "added_tokens": [added_token(0, "<unk>"), added_token(1, "</s>")],
        "pre_tokenizer": SPACE,
        "decoder": SPACE,
        "model": {"type": "Unigram", "unk_id": 0, "vocab": pieces},
    }


def character_file() -> dict[str, Any]:
    """Returns a character-level file, which has no ranks, with the special token <end>, id 7."""
    vocab = ["<unk>", "▁", "a", "b", "▁a", "ab", "▁ab"]
    return {
        "added_tokens": [added_token(7, "<end>")],
        "pre_tokenizer": SPACE,
        "decoder": SPACE,
        "model": {
            "type": "BPE",
            "unk_token": "<unk>",
            "vocab": {token: id for id, token in enumerate(vocab)},
            "merges": ["a b", "▁ ab"],
        },
    }


def write_gguf(
    path: Path,
    tokens: list[str],
    kinds: list[int],
    merges: list[str],
    pattern: str = "gpt-2",
    **more: Any,
) -> None:
    """Writes byte-level BPE as llama.cpp's converter does, with additional fields by name."""
    writer = pytest.importorskip("gguf").GGUFWriter(path, "gpt2")
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pattern)
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    writer.add_token_merges(merges)
    for name, value in more.items():
        getattr(writer, f"add_{name}")(value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
