"""Compares models other than BPE with those of `tokenizers`: made up, in every pipeline."""

from __future__ import annotations

import json
import pickle

import pytest
from hf_components import (
    added_tokens,
    decoder_chains,
    examples,
    normalizer_chains,
    pre_tokenizer_chains,
    processor_chains,
)
from hf_models import MODELS, model_of, text_of
from hf_oracle import TEXTS, assert_same, both, tokenizers
from hypothesis import given
from hypothesis import strategies as st
from seeds import seeded

from bpe_engine import hf

KINDS = sorted(MODELS)


def assert_outcome(ours, theirs, text, note=None, **options) -> bool:
    """Compares an encoding with every field, or the fact that there is an error."""
    try:
        expected = theirs.encode(text, **options)
    except BaseException as error:
        if type(error).__name__ == "PanicException":
            ours.encode(text, **options)
            return False
        with pytest.raises(ValueError, match=r"model\.unk_"):
            ours.encode(text, **options)
        return False
    model = theirs.model
    affixes = [
        getattr(model, name, "") for name in ("continuing_subword_prefix", "end_of_word_suffix")
    ]
    if getattr(model, "byte_fallback", False) and any(affixes):
        # Bytes of affixes reach beyond the piece: there, their offsets are those in the piece.
        assert ours.encode(text, **options).tokens == expected.tokens
    else:
        assert_same(ours.encode(text, **options), expected, (text, note))
    assert ours.encode_batch([text], **options)[0].ids == expected.ids
    return True


def pipeline(model, normalizer, pre_tokenizer, processor, decoder, added):
    """Returns our tokenizer and theirs; None for added tokens that are the same once normalized."""
    theirs = tokenizers.Tokenizer(model)
    parts = {"normalizer": normalizer, "pre_tokenizer": pre_tokenizer, "decoder": decoder}
    for name, part in {**parts, "post_processor": processor}.items():
        if part is not None:
            setattr(theirs, name, part)
    try:
        theirs.add_tokens(added)
        theirs = tokenizers.Tokenizer.from_str(theirs.to_str())
    except Exception as error:
        assert "pattern" in str(error).lower() or "duplicate" in str(error).lower(), error
        return None
    try:
        return hf.Tokenizer.from_str(theirs.to_str()), theirs
    except hf.UnsupportedTokenizer as error:
        assert "once normalized" in str(error), error
        return None


pipelines = given(
    kind=st.sampled_from(KINDS),
    seed=st.integers(0, 10**6),
    normalizer=normalizer_chains,
    pre_tokenizer=pre_tokenizer_chains,
    processor=processor_chains,
    decoder=decoder_chains,
    added=added_tokens,
    other=pre_tokenizer_chains,
)


def check(kind, seed, normalizer, pre_tokenizer, processor, decoder, added, other):
    made = pipeline(model_of(kind, seed), normalizer, pre_tokenizer, processor, decoder, added)
    if made is None:
        return
    ours, theirs = made
    assert ours.to_str() == theirs.to_str()
    assert ours.get_vocab() == theirs.get_vocab()
    assert ours.get_vocab_size() == theirs.get_vocab_size()
    rng = seeded("texts", seed)
    texts = [text_of(rng) for _ in range(6)] + TEXTS[:8:3]
    for text in texts:
        if not assert_outcome(ours, theirs, text):
            continue
        ids = ours.encode(text, add_special_tokens=False).ids
        assert ours.encode_to_numpy(text).tolist() == ids
        assert ours.count(text) == len(ids)
        for skip in (True, False):
            assert ours.decode(ids, skip) == theirs.decode(ids, skip), text
    assert_outcome(ours, theirs, texts[0].split(" "), is_pretokenized=True)
    for tokenizer in (ours, theirs):
        tokenizer.pre_tokenizer = other
    assert_outcome(ours, theirs, texts[1])
    again = pickle.loads(pickle.dumps(ours))
    assert again.fingerprint == ours.fingerprint and again.to_str() == ours.to_str()


@examples(150)
@pipelines
def test_every_combination(**parts):
    check(**parts)


@pytest.mark.thorough
@examples(4000)
@pipelines
def test_every_combination_many(**parts):
    check(**parts)


@pytest.mark.parametrize("kind", KINDS)
def test_pieces(kind):
    for seed in range(150):
        model = model_of(kind, seed)
        ours, theirs = both(tokenizers.Tokenizer(model).to_str())
        rng = seeded("pieces", seed)
        for text in [text_of(rng) for _ in range(20)]:
            try:
                expected = [token.as_tuple() for token in theirs.model.tokenize(text)]
            except Exception:
                with pytest.raises(ValueError, match=r"model\.unk_"):
                    ours.model.tokenize(text)
                continue
            assert [token.as_tuple() for token in ours.model.tokenize(text)] == expected, text
            if not text:
                continue
            ids = ours.encode(text).ids
            assert ids == [id for id, *_ in expected]
            ours.set_caching(False)
            assert ours.encode(text).ids == ids
            ours.set_caching(True)


FIELDS = {
    "merges": [],
    "unk_token": "a",
    "continuing_subword_prefix": "##",
    "max_input_chars_per_word": 100,
    "unk_id": 0,
    "byte_fallback": False,
}


@pytest.mark.parametrize("is_list", [False, True])
@pytest.mark.parametrize("seed", range(40))
def test_files_without_a_type(is_list, seed):
    rng = seeded("fields", seed)
    fields = {name: value for name, value in FIELDS.items() if rng.random() < 0.7}
    if rng.random() < 0.3:
        fields[rng.choice(sorted(FIELDS))] = rng.choice([None, 3, "x"])
    vocab = [["a", 0], ["b", -1.5]] if is_list else {"a": 0, "b": 1}
    contents = json.dumps({"model": {**fields, "vocab": vocab}})
    try:
        theirs = tokenizers.Tokenizer.from_str(contents)
    except Exception:
        with pytest.raises(ValueError):
            hf.Tokenizer.from_str(contents)
        return
    ours = hf.Tokenizer.from_str(contents)
    assert ours.to_str() == theirs.to_str()
    assert_outcome(ours, theirs, "ab b ba")


@pytest.mark.parametrize("kind", KINDS)
def test_long_pieces_are_linear(kind):
    ours, theirs = both(tokenizers.Tokenizer(model_of(kind, 1)).to_str())
    for letter in ("a", "日", "x"):
        assert_outcome(ours, theirs, letter * 3000)
        try:
            ours.encode(letter * 10**6)
        except ValueError as error:
            assert "unk_" in str(error)
