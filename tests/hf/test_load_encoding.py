"""Tests `load_encoding` on tokenizer files."""

from __future__ import annotations

import json

import pytest
from hf_oracle import TEXTS, tokenizer_path

import bpe_engine
from bpe_engine import hf


@pytest.mark.parametrize("name", ["gpt2", "dolma2", "whisper-tiny", "deepseek"])
def test_the_same_ids_as_the_tokenizer(name):
    path = tokenizer_path(name)
    encoding = bpe_engine.load_encoding(path)
    tokenizer = hf.Tokenizer.from_file(path)
    for text in TEXTS:
        expected = tokenizer.encode(text, add_special_tokens=False).ids
        assert encoding.encode(text, allowed_special="all") == expected, text
        assert encoding.count(text, disallowed_special=()) > 0 or not text


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("roberta-base", "model.vocab"),
        ("gpt-neox-pii", "normalized: false"),
    ],
)
def test_what_an_encoding_cannot_express_is_named(name, reason):
    with pytest.raises(hf.UnsupportedTokenizer, match=f"{reason}.*open_tokenizer reads this file"):
        bpe_engine.load_encoding(tokenizer_path(name))


def test_tekken():
    path = tokenizer_path("tekken")
    encoding = bpe_engine.load_encoding(path, special_tokens={"<s>": 1})
    with open(path, encoding="utf-8") as file:
        vocab = json.load(file)["vocab"]
    assert encoding.max_token_value == 131_071
    assert encoding.decode_bytes([1000, 1097]) == b"\x00a"
    assert encoding.encode("<s>a", allowed_special="all") == [1, 1097]
    for token in vocab[5000:6000:50]:
        if token["token_str"] is not None:
            assert encoding.encode_single_token(token["token_str"]) == token["rank"] + 1000


def test_malformed(tmp_path):
    path = tmp_path / "x.json"
    for contents in ('{"token_bytes": 1, "x": "token_bytes"}', "[]", "{"):
        path.write_text(contents)
        with pytest.raises(ValueError):
            bpe_engine.load_encoding(path)
