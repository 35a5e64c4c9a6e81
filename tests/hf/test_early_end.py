"""Tests that truncation on the right reads only slightly more text than it keeps, and returns the
same fields as `tokenizers`."""

from __future__ import annotations

import pytest
from hf_components import model
from hf_oracle import assert_same, both, tokenizers
from seeds import seeded
from tokenizers import AddedToken, pre_tokenizers
from work import work

from bpe_engine import Tokenizer, get_encoding, hf

PARTS = [
    "the hello", " world", "Hello", " don't", "12345", " x, ", "\n\n", "   ", "é", "e\u0301", "日本語", "、",
    "😀", "\u0301", "ﬁ", "İ", ".", "!?", "\t", "<a>", " <s>", "<|", "HELLO", "_", "lo ",
]  # fmt: skip
WORDS = " ".join(PARTS) + " and so on, and so on: they met again in the spring.\n"


@pytest.fixture(scope="module")
def plain():
    """Returns a byte-level tokenizer with a few merges and a special token."""
    theirs = tokenizers.Tokenizer(model(1, False, False, 60))
    theirs.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    theirs.add_special_tokens([AddedToken("<|end|>", special=True)])
    return theirs.to_str()


@pytest.mark.parametrize("prefix_space", [False, True])
def test_the_rest_of_a_text_costs_nothing(plain, prefix_space):
    ours, _ = both(plain)
    ours.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix_space)
    long = WORDS * 2000
    ours.enable_truncation(1000)
    for call in (
        lambda text: ours.encode(text),
        lambda text: ours.encode(text).offsets,
        lambda text: ours.encode_batch([text])[0].ids,
        lambda text: ours.encode("x", text),
        lambda text: ours.encode(text.split(" "), is_pretokenized=True).ids,
    ):
        assert work(lambda: call(long)) < 2 * work(lambda: call(long[:30_000])) + 20_000


def test_overflow_is_made_when_it_is_asked_for(plain):
    ours, theirs = both(plain)
    text = WORDS * 20
    alone = work(lambda: ours.encode(text).offsets)
    for tokenizer in (ours, theirs):
        tokenizer.enable_truncation(100, stride=7)
        tokenizer.enable_padding(length=120)
    made, expected = ours.encode(text), theirs.encode(text)
    assert made.ids == expected.ids
    parts = made.overflowing
    details = work(lambda: [part.offsets for part in parts])
    assert details < 20 * alone  # All parts share one source.
    assert len(parts) == len(expected.overflowing) > 10
    for part, other in zip(parts, expected.overflowing, strict=True):
        assert_same(part, other)
    # An encoding keeps the settings with which it was made.
    made = ours.encode(text)
    ours.no_truncation()
    ours.no_padding()
    assert [part.ids for part in made.overflowing] == [part.ids for part in expected.overflowing]


def test_text_without_a_place_to_cut_is_read_whole(plain):
    ours, theirs = both(plain)
    for text in (
        "a" * 20_000,
        "日本" * 4000,
        " " * 20_000,
        "\u0301" * 9000,
        "<|end|>" * 3000,
        "<|" * 9000,
    ):
        for tokenizer in (ours, theirs):
            tokenizer.enable_truncation(50)
        assert_same(ours.encode(text), theirs.encode(text), text[:10])


def test_disallowed_names_are_found_in_all_of_a_text(plain):
    tokenizer = Tokenizer(hf.Tokenizer(plain))
    text = WORDS * 100
    options = {"truncation": True, "max_length": 50}
    ids = tokenizer(text, **options)["input_ids"]
    assert tokenizer(text + "<|end|>", **options)["input_ids"] == ids
    with pytest.raises(ValueError, match="end"):
        tokenizer(text + "<|end|>", allowed_special=(), disallowed_special="all", **options)


@pytest.mark.parametrize("name", ["gpt2", "qwen2.5"])
def test_tokenizers_of_encodings_read_as_far(name):
    tokenizer = Tokenizer(get_encoding(name))
    rng = seeded("encodings", 1)
    for number in range(30):
        text = "".join(rng.choices([*PARTS, "<|endoftext|>"], k=1500))
        whole = tokenizer(text)["input_ids"]
        length = rng.choice([1, 30, 301, 500])
        cut = tokenizer(text, truncation=True, max_length=length)
        assert cut["input_ids"] == whole[:length], number
    text = WORDS * 2000
    few = work(lambda: tokenizer(text[:30_000], truncation=True, max_length=1000))
    assert work(lambda: tokenizer(text, truncation=True, max_length=1000)) < 4 * few + 20_000


@pytest.mark.parametrize("lengths", [(1500, 2500), (2500, 1500)])
def test_an_odd_number_of_tokens_is_shared_by_length(plain, lengths):
    ours, theirs = both(plain)
    for of in (ours, theirs):
        of.enable_truncation(33, strategy="longest_first")
    first, second = ((WORDS * 30)[:size] for size in lengths)
    expected = theirs.encode(first, second).ids
    assert ours.encode(first, second).ids == expected
    assert ours.encode_batch([(first, second)])[0].ids == expected
