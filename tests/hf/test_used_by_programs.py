"""Tests our objects with the calls that programs make on `tokenizers` objects; tests `is_ours`."""

from __future__ import annotations

import asyncio
import copy
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hf_oracle import TEXTS, fields, tokenizers
from kinds import LEVEL

import bpe_engine
from bpe_engine import hf
from bpe_engine.read import byte_level

VOCAB = {byte_level.text_of(bytes([byte])): byte for byte in range(256)}
VOCAB |= {"ab": 256, "abc": 257, "Ġa": 258, "él": 300, '\u0120"': 259}
MERGES = [("a", "b"), ("ab", "c"), ("Ġ", "a"), ("Ġ", '"')]
NORMALIZERS = [
    {"type": "NFC"},
    {"type": "Lowercase"},
    {"type": "Replace", "pattern": {"Regex": r"\s+"}, "content": "_"},
    {"type": "Sequence", "normalizers": [{"type": "NFKD"}, {"type": "Prepend", "prepend": "> "}]},
]
SPLIT = {"type": "Split", "pattern": {"Regex": r"\d{1,3}"}, "behavior": "Isolated", "invert": False}
PRE_TOKENIZERS: list[dict[str, Any]] = [
    {**LEVEL, "add_prefix_space": True, "trim_offsets": True},
    {"type": "Sequence", "pretokenizers": [SPLIT, {**LEVEL, "trim_offsets": True}]},
]


def contents(**parts: Any) -> str:
    model = {"type": "BPE", "vocab": VOCAB, "merges": MERGES}
    whole = {
        "version": "1.0",
        "added_tokens": [],
        "pre_tokenizer": PRE_TOKENIZERS[0],
        "model": model,
    }
    return json.dumps({**whole, **parts})


@pytest.fixture
def both() -> tuple[Any, Any]:
    return hf.Tokenizer(contents()), tokenizers.Tokenizer.from_str(contents())


SPECS = [("normalizer", spec) for spec in NORMALIZERS]
SPECS += [("pre_tokenizer", spec) for spec in PRE_TOKENIZERS]


@pytest.mark.parametrize(("kind", "spec"), SPECS, ids=str)
def test_components_work_in_place(kind, spec):
    ours = hf.Component(kind, json.dumps(spec))
    theirs = getattr(tokenizers.Tokenizer.from_str(contents(**{kind: spec})), kind)
    is_normalizer = kind == "normalizer"
    make = tokenizers.NormalizedString if is_normalizer else tokenizers.PreTokenizedString
    for text in TEXTS:
        one, other = make(text), make(text)
        for part, given in ((ours, one), (theirs, other)):
            (part.normalize if is_normalizer else part.pre_tokenize)(given)
        if is_normalizer:
            assert (one.normalized, one.original) == (other.normalized, other.original)
            assert one.normalized == ours.normalize_str(text)
        else:
            assert one.get_splits() == other.get_splits()
            assert [(part, span) for part, span, _ in one.get_splits("original", "char")] == (
                ours.pre_tokenize_str(text)
            )
    with pytest.raises((TypeError, AttributeError)):
        ours.normalize("text")
    with pytest.raises((TypeError, AttributeError)):
        ours.pre_tokenize("text")


def test_awaited_calls_give_the_same(both):
    texts = [text for text in TEXTS if text]
    pairs = list(zip(texts, reversed(texts)))

    def without_offsets(encodings: list[Any]) -> list[Any]:
        # `tokenizers`' async methods return offsets in bytes, but document characters.
        return [{**fields(each), "offsets": None} for each in encodings]

    async def awaited(tokenizer: Any) -> tuple[list[Any], list[Any]]:
        one = await tokenizer.async_encode(texts[3], "ab", add_special_tokens=False)
        words = await tokenizer.async_encode(["ab", "c"], is_pretokenized=True)
        many = await tokenizer.async_encode_batch(pairs)
        several = await asyncio.gather(*(tokenizer.async_encode(text) for text in texts))
        fast = await tokenizer.async_encode_batch_fast(texts)
        ids = [each.ids for each in fast]
        return [one, words, *many, *several], [ids, await tokenizer.async_decode_batch(ids)]

    ours, theirs = (asyncio.run(awaited(tokenizer)) for tokenizer in both)
    assert ours[1] == theirs[1]
    assert without_offsets(ours[0]) == without_offsets(theirs[0])
    expected = both[1].encode_batch(pairs) + both[1].encode_batch(texts)
    assert [fields(each) for each in ours[0][2:]] == [fields(each) for each in expected]
    with pytest.raises(TypeError):
        asyncio.run(both[0].async_encode(5))


def test_ours_are_instances_of_their_class(both):
    ours, _ = both
    assert isinstance(ours, tokenizers.Tokenizer) and isinstance(ours, hf.Tokenizer)
    assert type(ours) is hf.Tokenizer
    assert pickle.loads(pickle.dumps(ours)).fingerprint == ours.fingerprint
    # Native calls of `tokenizers` reject our tokenizer.
    with pytest.raises(TypeError):
        tokenizers.decoders.DecodeStream.step(tokenizers.decoders.DecodeStream(), ours, 0)  # type: ignore[arg-type]


@pytest.mark.parametrize("content", ["<x>", "", "\u00e9\u4e2d", "a" * 100, "</s>"])
def test_a_set_keeps_one_of_two_equal_added_tokens(content: str) -> None:
    for flags in ({}, {"special": True}, {"lstrip": True, "normalized": False}):
        pair = (hf.AddedToken(content, **flags), tokenizers.AddedToken(content, **flags))
        assert len(set(pair)) == 1 and hash(pair[0]) == hash(pair[1])
        assert repr(pair[0]) == repr(pair[1])


@pytest.mark.filterwarnings("error")
def test_pickles_and_copies_of_encodings_do_not_warn(both):
    ours, _ = both
    encoding = ours.encode("a b")
    for again in (
        pickle.loads(pickle.dumps(encoding)),
        copy.copy(encoding),
        copy.deepcopy(encoding),
    ):
        assert fields(again) == fields(encoding)
    with pytest.raises(DeprecationWarning):
        encoding.words  # noqa: B018


#: A wrong row, the error's text about the row, and the advice.
WRONG_ROWS = [
    (None, "NoneType", "leave a missing text out"),
    (float("nan"), "float", "leave a missing text out"),
    (3, "int", r"str\(\) makes a text"),
    (1.5, "float", r"str\(\) makes a text"),
    (b"x", "bytes", "decode it first"),
    (type("NAType", (), {})(), "NAType", "leave a missing text out"),
    (np.array(["a"]), "ndarray", r"its tolist\(\) returns"),
]


@pytest.mark.parametrize(("wrong", "kind", "way_out"), WRONG_ROWS)
def test_wrong_rows_of_a_batch(both, wrong, kind, way_out):
    """Every face raises TypeError, as `tokenizers` does, with the row, type and remedy."""
    ours, theirs = both
    gpt2 = bpe_engine.get_encoding("gpt2")
    message = f"row 1: text must be a str, not {kind}; .*{way_out}"
    if kind == "bytes":
        message = message.replace("; .*", ".*")
    with pytest.raises(TypeError):
        theirs.encode_batch(["a", wrong])
    for call in (
        ours.encode_batch,
        ours.encode_batch_fast,
        bpe_engine.Tokenizer(ours),
        bpe_engine.Tokenizer(gpt2),
        gpt2.encode_batch,
        gpt2.encode_ordinary_batch,
        ours.encode_batch_to_numpy,
        gpt2.encode_batch_to_numpy,
    ):
        with pytest.raises(TypeError, match=message):
            call(["a", wrong])
    for call in (ours.encode_batch, bpe_engine.Tokenizer(ours)):
        with pytest.raises(TypeError, match=message):
            call([("a", "b"), ("c", wrong)])
    with pytest.raises(TypeError, match=f"text must be a str, not {kind}"):
        ours.encode(wrong)
    with pytest.raises(TypeError, match=f"row 1: a word must be a str, not {kind}"):
        ours.encode_batch([["a"], ["b", wrong]], is_pretokenized=True)
    with pytest.raises(ValueError, match=f"Found {kind} in row 0"):
        bpe_engine.Tokenizer(ours)([wrong, "a"])
    if kind == "ndarray":
        with pytest.raises(ValueError, match="Found ndarray. Give the list of its texts"):
            bpe_engine.Tokenizer(ours)(wrong)


def test_lists_and_surrogates_in_a_batch(both):
    ours, gpt2 = both[0], bpe_engine.get_encoding("gpt2")
    for wrong in (("b", "c", "d"), ["b", "c", "d"]):
        kind = f"not a {type(wrong).__name__} of 3; words need is_pretokenized"
        for call in (ours.encode_batch, bpe_engine.Tokenizer(gpt2)):
            with pytest.raises(TypeError, match=f"row 1: text must be .* two of them .* {kind}"):
                call(["a", wrong])
        with pytest.raises(TypeError, match="row 0: text must be a str, not .*; give each text as"):
            gpt2.encode_batch([wrong])
    with pytest.raises(TypeError, match=r'not dict; give the text in it, as in row\["text"\]'):
        gpt2.encode({"text": "a"})
    for call in (ours.encode_batch, ours.encode_batch_fast, bpe_engine.Tokenizer(ours)):
        for batch in (["\ud800"], [("a", "\ud800")]):
            with pytest.raises(
                TypeError, match="row 0: a text contains surrogates.* repair it first"
            ):
                call(batch)
    with pytest.raises(ValueError, match="row 1: a text contains surrogates"):
        bpe_engine.Tokenizer(gpt2)(["a", "\ud800"], return_offsets_mapping=True)


def test_which_tokenizers_are_ours(both):
    ours, theirs = both
    gpt2 = bpe_engine.get_encoding("gpt2")
    mine = [ours, gpt2, bpe_engine.Tokenizer(gpt2), bpe_engine.Tokenizer(ours)]
    assert all(map(hf.is_ours, mine))
    assert not any(map(hf.is_ours, [theirs, None, "gpt2", hf.Tokenizer]))


def test_byte_level_files_that_name_llama(tmp_path: Path):
    """Before 5.22, transformers reads such files with other splits; ours follow the file."""
    transformers = pytest.importorskip("transformers")
    (tmp_path / "tokenizer.json").write_text(contents(), encoding="utf-8")
    config = {"tokenizer_class": "LlamaTokenizerFast", "unk_token": None}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    hf.patch_transformers()
    try:
        for model_type in (None, "llama", "deepseek_v3"):
            if model_type is not None:
                (tmp_path / "config.json").write_text(json.dumps({"model_type": model_type}))
            tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
            assert hf.is_ours(tokenizer)
            plain = hf.Tokenizer(contents())
            for text in TEXTS:
                expected = plain.encode(text).ids
                assert tokenizer(text, add_special_tokens=False)["input_ids"] == expected
    finally:
        hf.unpatch_transformers()
