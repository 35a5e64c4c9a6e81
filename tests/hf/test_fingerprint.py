"""Tests fingerprints of tokenizer files: settings change them, spellings do not."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from hf_oracle import tokenizer_path
from kinds import FLAGS

import bpe_engine
from bpe_engine import hf
from bpe_engine.read import byte_level

VOCAB = {byte_level.text_of(bytes([byte])): byte for byte in range(256)}
VOCAB |= {"ab": 256, "abc": 257, "Ġa": 258}

FILE: dict[str, Any] = {
    "version": "1.0",
    "truncation": None,
    "padding": None,
    "added_tokens": [{"id": 259, "content": "<|end|>", **FLAGS, "special": True}],
    "normalizer": {"type": "NFC"},
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True},
    "post_processor": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False},
    "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True},
    "model": {"type": "BPE", "vocab": VOCAB, "merges": [["a", "b"], ["ab", "c"], ["Ġ", "a"]]},
}

GOLDEN = "5a2b8738d79e05c9ca0ff9dd118cbaf5dbb25eb17b5553735c71c88694811485"


def changed(**parts: Any) -> dict[str, Any]:
    """Returns the file with changed parts; parts of the model are named directly."""
    file = copy.deepcopy(FILE)
    for name, value in parts.items():
        (file if name in file else file["model"])[name] = value
    return file


def fingerprint(file: dict[str, Any], **options: Any) -> str:
    return hf.Tokenizer(json.dumps(file, **options)).fingerprint


def turned(value: Any) -> Any:
    """Returns the value with the keys of its objects in reverse order."""
    if isinstance(value, dict):
        return {key: turned(value[key]) for key in reversed(value)}
    return [turned(part) for part in value] if isinstance(value, list) else value


def test_golden_value():
    assert fingerprint(FILE) == GOLDEN


def test_spelling_is_not_in_it():
    same = [
        turned(FILE),
        changed(merges=["a b", "ab c", "Ġ a"]),
        changed(decoder=None),
        changed(post_processor=None),
        changed(post_processor={"type": "Sequence", "processors": [FILE["post_processor"]]}),
        changed(normalizer={"type": "Sequence", "normalizers": [{"type": "NFC"}]}),
        changed(pre_tokenizer={**FILE["pre_tokenizer"], "trim_offsets": False, "use_regex": True}),
        changed(unk_token="<|end|>", fuse_unk=True),
        changed(byte_fallback=True),
        changed(dropout=0.0, byte_fallback=False, end_of_word_suffix="", ignore_merges=False),
    ]
    assert {fingerprint(file) for file in same} == {GOLDEN}
    assert fingerprint(FILE, indent=3, ensure_ascii=False) == GOLDEN


def test_every_part_is_in_it():
    [token] = FILE["added_tokens"]
    template = {
        "type": "TemplateProcessing",
        "single": [
            {"SpecialToken": {"id": "<|end|>", "type_id": 0}},
            {"Sequence": {"id": "A", "type_id": 0}},
        ],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
        "special_tokens": {"<|end|>": {"id": "<|end|>", "ids": [259], "tokens": ["<|end|>"]}},
    }
    few_bytes = {text: id for text, id in VOCAB.items() if text not in ("x", "z")}
    flags = ("single_word", "lstrip", "rstrip", "normalized", "special")
    padding = {"strategy": "BatchLongest", "direction": "Right", "pad_to_multiple_of": None}
    padding |= {"pad_id": 259, "pad_type_id": 0, "pad_token": "<|end|>"}
    truncation = {"direction": "Right", "max_length": 8, "strategy": "LongestFirst", "stride": 0}
    files = [
        FILE,
        changed(normalizer=None),
        changed(normalizer={"type": "NFD"}),
        changed(pre_tokenizer={**FILE["pre_tokenizer"], "add_prefix_space": True}),
        changed(pre_tokenizer={**FILE["pre_tokenizer"], "use_regex": False}),
        changed(post_processor=template),
        changed(truncation=truncation),
        changed(truncation={**truncation, "max_length": 9}),
        changed(padding=padding),
        changed(padding={**padding, "pad_id": 0}),
        changed(added_tokens=[]),
        changed(added_tokens=[{**token, "content": "<|start|>"}]),
        *(changed(added_tokens=[{**token, flag: not token[flag]}]) for flag in flags),
        changed(ignore_merges=True),
        changed(merges=[["a", "b"], ["Ġ", "a"], ["ab", "c"]]),
        changed(merges=[["a", "b"], ["ab", "c"]]),
        changed(vocab={**VOCAB, "ab": 257, "abc": 256}),
        changed(vocab={**VOCAB, "abc": 300}),
        changed(vocab=few_bytes),
        changed(vocab=few_bytes, unk_token="a"),
        changed(vocab=few_bytes, unk_token="a", fuse_unk=True),
        changed(vocab=few_bytes, byte_fallback=True),
        changed(vocab=few_bytes, unk_token="a", fuse_unk=True, byte_fallback=True),
    ]
    found = [fingerprint(file) for file in files]
    assert len(set(found)) == len(files)
    assert [
        hf.Tokenizer(hf.Tokenizer(json.dumps(file)).to_str()).fingerprint for file in files
    ] == found


def test_kept_answers_follow_each_change():
    def answers(tokenizer: hf.Tokenizer) -> list[Any]:
        parts = (tokenizer.normalizer, tokenizer.pre_tokenizer, tokenizer.decoder)
        counts = [tokenizer.count("A <|end|> ab", disallowed_special=it) for it in ((), {"x"})]
        names = (sorted(tokenizer.special_tokens_set), sorted(tokenizer._special_ids))
        return [tokenizer.fingerprint, *map(repr, parts), tokenizer.model, *names, counts]

    def rename(tokenizer: hf.Tokenizer) -> None:
        tokenizer.normalizer.prepend = "ab"

    ours = hf.Tokenizer(json.dumps(FILE))
    for change in (
        lambda it: it.add_tokens(["abc", "new"]),
        lambda it: it.add_special_tokens(["<|x|>"]),
        lambda it: setattr(it, "normalizer", hf.normalizers.Prepend("a")),
        rename,
        lambda it: setattr(it, "pre_tokenizer", hf.pre_tokenizers.Whitespace()),
        lambda it: setattr(it, "decoder", hf.decoders.Fuse()),
        lambda it: setattr(it, "post_processor", None),
        lambda it: it.enable_truncation(3),
        lambda it: it.enable_padding(),
    ):
        answers(ours)
        change(ours)
        assert str(answers(ours)) == str(answers(hf.Tokenizer(ours.to_str())))


def test_fingerprint_is_of_the_tokenizer_as_it_is():
    tokenizer = hf.Tokenizer(json.dumps(FILE))
    seen = [tokenizer.fingerprint]
    tokenizer.add_tokens(["<|more|>"])
    seen.append(tokenizer.fingerprint)
    tokenizer.enable_truncation(8)
    seen.append(tokenizer.fingerprint)
    tokenizer.encode_special_tokens = True
    seen.append(tokenizer.fingerprint)
    assert len(set(seen)) == 4
    copies = [copy.copy(tokenizer), copy.deepcopy(tokenizer), pickle.loads(pickle.dumps(tokenizer))]
    assert {other.fingerprint for other in copies} == {seen[-1]}
    assert tokenizer.fingerprint[:12] in repr(tokenizer)
    assert bpe_engine.Tokenizer(tokenizer).fingerprint == seen[-1]


@pytest.mark.parametrize("name", ["gpt2", "deepseek", "roberta-base"])
def test_real_files_that_are_written_again(name, tmp_path: Path):
    tokenizer = hf.Tokenizer.from_file(tokenizer_path(name))
    assert len(tokenizer.fingerprint) == 64
    for pretty in (False, True):
        tokenizer.save(tmp_path / "tokenizer.json", pretty)
        assert (
            hf.Tokenizer.from_file(tmp_path / "tokenizer.json").fingerprint == tokenizer.fingerprint
        )
