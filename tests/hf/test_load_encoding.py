"""Tests `load_encoding` on tokenizer files."""

from __future__ import annotations

import json

import pytest
from hf_oracle import TEXTS, tokenizer_path, tokenizers
from kinds import FLAGS, LEVEL
from seeds import rounds, seeded

import bpe_engine
import vocab_tools.bases
from bpe_engine import hf
from bpe_engine.read import byte_level
from vocab_tools.convert.pre_tokenizer import DEEPSEEK_IN_ONE


@pytest.mark.parametrize("name", ["gpt2", "dolma2", "whisper-tiny", "deepseek"])
def test_the_same_ids_as_the_tokenizer(name):
    path = tokenizer_path(name)
    encoding = bpe_engine.load_encoding(path)
    tokenizer = hf.Tokenizer.from_file(path)
    assert (encoding.pattern == DEEPSEEK_IN_ONE) == (name == "deepseek")
    rng = seeded("load encoding", name)
    parts = [
        "a",
        "Z",
        "é",
        "\u0301",
        "23",
        "  ",
        "\r\n",
        "$",
        "—",
        "中文",
        "の",
        "ア",
        "・",
        "\u3099",
        "한",
    ]
    for text in [*TEXTS, *("".join(rng.choices(parts, k=30)) for _ in range(rounds(300)))]:
        expected = tokenizer.encode(text, add_special_tokens=False).ids
        assert encoding.encode(text, allowed_special="all") == expected, text
        assert encoding.count(text, disallowed_special=()) > 0 or not text


@pytest.mark.parametrize(
    ("name", "reason"), [("roberta-base", "model.vocab"), ("gpt-neox-pii", "normalized: false")]
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


def file_with(tmp_path, *added):
    letters = [byte_level.text_of(bytes([byte])) for byte in range(256)]
    space = byte_level.text_of(b" ")
    vocab = {letter: id for id, letter in enumerate([*letters, 2 * space])}
    contents = {
        "version": "1.0",
        "added_tokens": [
            {"id": 257 + at, "content": content, **FLAGS, "normalized": normalized, "special": True}
            for at, (content, normalized) in enumerate(added)
        ],
        "pre_tokenizer": {**LEVEL, "trim_offsets": True},
        "decoder": LEVEL,
        "model": {"type": "BPE", "vocab": vocab, "merges": [[space, space]]},
    }
    path = tmp_path / "file.json"
    path.write_text(json.dumps(contents), encoding="utf-8")
    return path


def test_names_that_are_searched_for_in_turns(tmp_path):
    """An encoding would find the leftmost name; in the file, the first search takes precedence."""
    for first, second in (("|>", "<|end|>"), ("|><", "<|end|>")):
        path = file_with(tmp_path, (first, False), (second, True))
        with pytest.raises(hf.UnsupportedTokenizer, match="overlap"):
            bpe_engine.load_encoding(path)
        theirs = tokenizers.Tokenizer.from_file(str(path))
        opened = bpe_engine.open_tokenizer(path)
        for text in ("<|end|>", "<|end|><"):
            ids = theirs.encode(text).ids
            assert opened.hf.encode(text).ids == ids
            assert opened.encode(text, allowed_special="all") == ids
    path = file_with(tmp_path, ("<|end|>", False), ("|>x", True))
    ids = bpe_engine.load_encoding(path).encode("<|end|>x", allowed_special="all")
    assert ids == tokenizers.Tokenizer.from_file(str(path)).encode("<|end|>x").ids


def test_ids_of_added_tokens_that_merging_makes_are_taken(tmp_path):
    path = file_with(tmp_path, ("  ", True))
    result = vocab_tools.learn_merges(vocab_tools.bases.opened(path), {"xyz": 3})
    assert min(result.tokens.values()) == 258
