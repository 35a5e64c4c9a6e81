"""Compares real tokenizer files with `tokenizers`, field by field."""

from __future__ import annotations

import copy
import json
import pickle

import pytest
from hf_oracle import (
    CHARACTER_FILES,
    FILES,
    SHARED,
    TEXTS,
    assert_same,
    both,
    texts_with_added,
    tokenizer_path,
    tokenizers,
)

from bpe_engine import hf

MODEL_FILES = [f"models/{path.stem}" for path in (SHARED / "tokenizers" / "models").glob("*.json")]


@pytest.fixture(scope="module", params=[*FILES, *CHARACTER_FILES, *sorted(MODEL_FILES)])
def pair(request):
    path = tokenizer_path(request.param)
    with open(path, encoding="utf-8") as file:
        ours, theirs = both(file.read())
    return path, ours, theirs


def corpus_texts() -> list[str]:
    texts = []
    for name in ("en", "code", "zh", "multi", "messy"):
        path = SHARED / "corpora" / f"{name}.txt"
        if path.exists():
            raw = path.read_bytes()
            for start in (0, len(raw) // 2):
                texts.append(raw[start : start + 6000].decode("utf-8", "ignore"))
    return texts


def test_single_texts(pair):
    path, ours, theirs = pair
    for text in TEXTS + texts_with_added(path) + corpus_texts():
        for special in (True, False):
            a = ours.encode(text, add_special_tokens=special)
            assert_same(a, theirs.encode(text, add_special_tokens=special), text[:80])


def test_pairs_and_words(pair):
    _, ours, theirs = pair
    for first, second in zip(TEXTS, TEXTS[3:] + TEXTS[:3]):
        assert_same(ours.encode(first, second), theirs.encode(first, second), (first, second))
        words, more = first.split(" "), second.split()
        a = ours.encode(words, more, is_pretokenized=True)
        assert_same(a, theirs.encode(words, more, is_pretokenized=True), (words, more))


def test_decode_and_streams(pair):
    path, ours, theirs = pair
    for text in TEXTS + texts_with_added(path):
        ids = theirs.encode(text).ids
        for skip in (True, False):
            assert ours.decode(ids, skip) == theirs.decode(ids, skip)
            assert ours.decode(ids[1::2], skip) == theirs.decode(ids[1::2], skip)
            a = hf.DecodeStream(skip_special_tokens=skip)
            b = tokenizers.decoders.DecodeStream(skip_special_tokens=skip)
            for id in [*ids[:60], 10**9, *ids[:3]]:
                assert a.step(ours, id) == b.step(theirs, id)
    assert ours.decode_batch([[1, 2], [10**8]]) == theirs.decode_batch([[1, 2], [10**8]])


def test_vocabulary(pair):
    _, ours, theirs = pair
    for added in (True, False):
        assert ours.get_vocab(added) == theirs.get_vocab(added)
        assert ours.get_vocab_size(added) == theirs.get_vocab_size(added)
    for id in [0, 1, 2, 255, 256, 5000, 50000, 50256, 50257, 50300, 128500, 10**9]:
        assert ours.id_to_token(id) == theirs.id_to_token(id)
        assert ours.model.id_to_token(id) == theirs.model.id_to_token(id)
    a, b = ours.get_added_tokens_decoder(), theirs.get_added_tokens_decoder()
    assert set(a) == set(b)
    for id, token in b.items():
        for flag in ("content", "single_word", "lstrip", "rstrip", "normalized", "special"):
            assert getattr(a[id], flag) == getattr(token, flag)
    assert ours.num_special_tokens_to_add(True) == theirs.num_special_tokens_to_add(True)


def test_written_files_are_the_same(pair):
    path, _, _ = pair
    with open(path, encoding="utf-8") as file:
        ours, theirs = both(file.read())
    assert ours.to_str() == theirs.to_str()
    assert ours.to_str(True) == theirs.to_str(True)
    assert tokenizers.Tokenizer.from_str(ours.to_str()).to_str() == theirs.to_str()


def test_copies(pair):
    _, ours, _ = pair
    for made in (pickle.loads(pickle.dumps(ours)), copy.deepcopy(ours), copy.copy(ours)):
        assert type(made) is hf.Tokenizer
        assert made.encode(TEXTS[4]).ids == ours.encode(TEXTS[4]).ids
    assert pickle.dumps(ours) == pickle.dumps(pickle.loads(pickle.dumps(ours)))
    changed = copy.deepcopy(ours)
    changed.add_tokens(["brand new token"])
    assert ours.token_to_id("brand new token") is None


def test_encode_special_tokens(pair):
    path, ours, theirs = pair
    try:
        ours.encode_special_tokens = theirs.encode_special_tokens = True
        for text in texts_with_added(path):
            assert_same(ours.encode(text), theirs.encode(text), text[:80])
    finally:
        ours.encode_special_tokens = theirs.encode_special_tokens = False


def test_components(pair):
    _, ours, theirs = pair
    for text in TEXTS:
        if theirs.pre_tokenizer is not None:
            a = ours.pre_tokenizer.pre_tokenize_str(text)
            assert a == theirs.pre_tokenizer.pre_tokenize_str(text)
        if theirs.normalizer is not None:
            assert ours.normalizer.normalize_str(text) == theirs.normalizer.normalize_str(text)
        tokens = theirs.encode(text).tokens
        assert ours.decoder.decode(tokens) == theirs.decoder.decode(tokens)
    for kind in ("normalizer", "pre_tokenizer", "post_processor", "decoder"):
        own, other = getattr(ours, kind), getattr(theirs, kind)
        assert (own is None) == (other is None)
        if own is not None:
            assert json.loads(own.__getstate__()) == json.loads(other.__getstate__())
