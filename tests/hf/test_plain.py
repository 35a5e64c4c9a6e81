"""Tests encodings that keep only the ids of a text until another field is requested."""

from __future__ import annotations

import copy
import pickle

import pytest
from hf_oracle import FIELDS, assert_same, both, tokenizers
from tokenizers import models, pre_tokenizers, processors

SEP, CLS = ("</s>", 2), ("<s>", 1)


def template(single: str) -> processors.TemplateProcessing:
    return processors.TemplateProcessing(single, "$A $B", special_tokens=[CLS, SEP])


PROCESSORS = {
    "none": None,
    "byte level": processors.ByteLevel(trim_offsets=True),
    "bert": processors.BertProcessing(SEP, CLS),
    "roberta": processors.RobertaProcessing(SEP, CLS),
    "template": template("<s> $A </s>"),
    "template of the text": template("$A"),
    "template of another type": template("<s> $A:1"),
    "template of the text twice": template("$A $A:1"),
    "template without the text": template("<s>"),
    "empty chain": processors.Sequence([]),
    "chain": processors.Sequence([processors.ByteLevel(), template("<s> $A")]),
}


@pytest.fixture(params=PROCESSORS)
def pair(request):
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocab = {character: id for id, character in enumerate([*alphabet, "he"])}
    theirs = tokenizers.Tokenizer(models.BPE(vocab=vocab, merges=[("h", "e")]))
    theirs.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    if PROCESSORS[request.param] is not None:
        theirs.post_processor = PROCESSORS[request.param]
    return both(theirs.to_str())


def encodings(pair, text, special):
    """Yields our encodings and theirs, one by one and in a batch."""
    for tokenizer in pair:
        yield tokenizer.encode(text, add_special_tokens=special)
    for tokenizer in pair:
        yield from tokenizer.encode_batch([text], add_special_tokens=special)


@pytest.mark.parametrize("special", [True, False])
@pytest.mark.parametrize("text", ["", "he is", "héhe 日 </s>"])
def test_each_field_asked_for_first(pair, text, special):
    for name in [*FIELDS, "overflowing"]:
        ours, theirs, *batch = encodings(pair, text, special)
        if name != "overflowing":
            assert getattr(ours, name) == getattr(theirs, name), name
        assert len(ours) == len(theirs) and repr(ours) == repr(theirs)
        getattr(ours, name)
        assert_same(ours, theirs, name)
        assert_same(batch[0], batch[1], name)


@pytest.mark.parametrize("special", [True, False])
def test_changes(pair, special):
    changes = {
        "pad": lambda x: x.pad(9, direction="left", pad_id=3),
        "truncate": lambda x: x.truncate(2, stride=1),
        "set_sequence_id": lambda x: x.set_sequence_id(1),
    }
    for name, change in changes.items():
        ours, theirs, *_ = encodings(pair, "he is here", special)
        for each in (ours, theirs):
            change(each)
        assert_same(ours, theirs, name)
    ours, theirs, *_ = encodings(pair, "he is here", special)
    merged = [type(x).merge([x, x]) for x in (ours, theirs)]
    assert_same(*merged)
    assert_same(ours, theirs)


def test_copies(pair):
    ours, theirs, *_ = encodings(pair, "he is here", False)
    assert_same(copy.deepcopy(ours), theirs)
    assert_same(pickle.loads(pickle.dumps(ours)), theirs)


def test_settings_of_the_tokenizer_count(pair):
    def pad(tokenizer):
        tokenizer.enable_padding(length=12, direction="left")

    def truncate(tokenizer):
        tokenizer.enable_truncation(4, stride=1)

    for change in (pad, truncate, lambda tokenizer: tokenizer.no_padding()):
        before, expected, *_ = encodings(pair, "he is here", False)
        for tokenizer in pair:
            change(tokenizer)
        for text in ("he is here", "he"):
            ours, theirs, *batch = encodings(pair, text, False)
            assert_same(ours, theirs)
            assert_same(batch[0], batch[1])
        # Earlier encodings do not change.
        assert_same(before, expected)
