"""Tests reading GPT-2's vocab.json and merges.txt."""

from __future__ import annotations

import json

import pytest
from hf_oracle import TEXTS, assert_same, tokenizer_path, tokenizers

from bpe_engine import hf


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Returns a folder with the two files, written by `tokenizers`."""
    path = tmp_path_factory.mktemp("gpt2")
    tokenizers.Tokenizer.from_file(tokenizer_path("gpt2")).model.save(str(path))
    return path


@pytest.mark.parametrize("add_prefix_space", [False, True])
def test_the_same_as_the_class_of_tokenizers(folder, add_prefix_space):
    files = str(folder / "vocab.json"), str(folder / "merges.txt")
    ours = hf.Tokenizer.from_files(*files, add_prefix_space=add_prefix_space)
    theirs = tokenizers.Tokenizer(tokenizers.models.BPE.from_file(*files))
    theirs.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=add_prefix_space)
    theirs.decoder = tokenizers.decoders.ByteLevel()
    for text in TEXTS:
        a, b = ours.encode(text), theirs.encode(text)
        assert_same(a, b, text)
        assert ours.decode(a.ids) == theirs.decode(b.ids)
    assert ours.get_vocab() == theirs.get_vocab()


def test_a_folder_that_has_only_these(folder, tmp_path):
    ours = hf.Tokenizer.from_pretrained(folder)
    text = "Hello world 日本語"
    assert ours.encode(text).ids == hf.Tokenizer.from_file(tokenizer_path("gpt2")).encode(text).ids
    with pytest.raises(FileNotFoundError, match="tokenizer.json"):
        hf.Tokenizer.from_pretrained(tmp_path)
    (tmp_path / "tokenizer.json").write_text(ours.to_str(), encoding="utf-8")
    assert hf.Tokenizer.from_pretrained(tmp_path).encode(text).ids == ours.encode(text).ids


def test_special_tokens_keep_their_ids(folder):
    files = folder / "vocab.json", folder / "merges.txt"
    ours = hf.Tokenizer.from_files(*files, special_tokens=["<|endoftext|>", "<new>"])
    assert ours.encode("a<|endoftext|><new>").ids == [64, 50256, 50257]
    assert ours.decode([64, 50256, 50257]) == "a"


def test_malformed_files(tmp_path):
    vocab, merges = tmp_path / "vocab.json", tmp_path / "merges.txt"
    vocab.write_text("[1]")
    merges.write_text("#version: 0.2\na b\n")
    with pytest.raises(ValueError, match="not a JSON object of tokens and ids"):
        hf.Tokenizer.from_files(vocab, merges)
    vocab.write_text("{")
    with pytest.raises(ValueError):
        hf.Tokenizer.from_files(vocab, merges)
    characters = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    vocab.write_text(json.dumps({character: id for id, character in enumerate(characters)}))
    with pytest.raises(ValueError, match="not a token of the vocabulary"):
        hf.Tokenizer.from_files(vocab, merges)
    merges.write_text("a b c\n")
    with pytest.raises(ValueError, match="not two tokens"):
        hf.Tokenizer.from_files(vocab, merges)
