"""Makes tokenizer folders, and compares our class with transformers' classes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hf_oracle import TEXTS

PAIRS = [
    ("What is it?", "A tokenizer, as it seems."),
    ("Ünïcödé ``quoted'' text", "do n't , he 's !"),
    ("one two three four five six seven", "eight nine"),
    ("", "nothing before"),
    ("日本語 x", "[SEP] </s> <pad> <extra_id_0> <mask>"),
]
CALLS: list[dict[str, Any]] = [
    {},
    {"add_special_tokens": False},
    {"return_special_tokens_mask": True, "return_offsets_mapping": True, "return_length": True},
    {"return_token_type_ids": True, "return_attention_mask": False},
    {"truncation": True, "max_length": 7},
    {"truncation": "longest_first", "max_length": 8, "return_token_type_ids": True},
    {"max_length": 12, "truncation": True, "stride": 2, "return_overflowing_tokens": True},
    {"padding": "max_length", "max_length": 12, "truncation": True},
]
BATCHES: list[dict[str, Any]] = [
    {"padding": True, "return_tensors": "np"},
    {"padding": True, "truncation": "longest_first", "max_length": 10, "return_tensors": "np"},
    {"padding": "max_length", "truncation": True, "max_length": 16, "pad_to_multiple_of": 8},
    {"padding": True, "padding_side": "left", "return_token_type_ids": True},
    {"padding": True, "truncation": True, "max_length": 8, "return_overflowing_tokens": True},
]


def write(path: Path, **files: Any) -> Path:
    """Writes a folder with the given files; `__` in a name stands for a dot."""
    path.mkdir(exist_ok=True)
    for name, contents in files.items():
        text = contents if isinstance(contents, str) else json.dumps(contents)
        (path / name.replace("__", ".")).write_text(text, encoding="utf-8")
    return path


def plain(result: Any) -> dict[str, Any]:
    """Returns the fields of a result, with arrays as lists."""
    return {
        name: value.tolist() if hasattr(value, "tolist") else value
        for name, value in result.items()
    }


def same_outcome(ours: Any, theirs: Any, *args: Any, **options: Any) -> None:
    found = []
    for tokenizer in (ours, theirs):
        try:
            found.append(plain(tokenizer(*args, **options)))
        except Exception as error:
            found.append({"raised": type(error).__name__ != ""})
    assert found[0] == found[1], (args, options)


def same(ours: Any, theirs: Any) -> None:
    """Compares all attributes and calls of the two tokenizers."""
    for name in (
        "model_input_names", "padding_side", "truncation_side", "special_tokens_map", "pad_token_id",
        "all_special_tokens", "all_special_ids", "vocab_size", "model_max_length", "mask_token",
    ):  # fmt: skip
        assert getattr(ours, name) == getattr(theirs, name), name
    assert len(ours) == len(theirs)
    assert ours.get_vocab() == theirs.get_vocab()
    assert ours.get_added_vocab() == theirs.get_added_vocab()
    assert ours.num_special_tokens_to_add(True) == theirs.num_special_tokens_to_add(True)
    for text in [*TEXTS, *(text for pair in PAIRS for text in pair)]:
        for options in CALLS:
            same_outcome(ours, theirs, text, **options)
        ids = theirs.encode(text)
        assert ours.tokenize(text) == theirs.tokenize(text)
        for options in (
            {},
            {"skip_special_tokens": True},
            {"clean_up_tokenization_spaces": True},
            {"skip_special_tokens": True, "clean_up_tokenization_spaces": False},
        ):
            assert ours.decode(ids, **options) == theirs.decode(ids, **options), (text, options)
    for first, second in PAIRS:
        for options in [*CALLS, *({"truncation": which, "max_length": 11} for which in
                                  ("only_first", "only_second"))]:  # fmt: skip
            same_outcome(ours, theirs, first, second, **options)
    batch, others = [a for a, _ in PAIRS], [b for _, b in PAIRS]
    if theirs.pad_token is None:
        return
    for options in BATCHES:
        same_outcome(ours, theirs, batch, **options)
        same_outcome(ours, theirs, batch, others, **options)
        same_outcome(ours, theirs, PAIRS, **options)
    rows = [theirs(text) for text in batch]
    assert plain(ours.pad(rows)) == plain(theirs.pad(rows))
    split = [text.split() or ["x"] for text in batch]
    same_outcome(ours, theirs, split, is_split_into_words=True, padding=True)
