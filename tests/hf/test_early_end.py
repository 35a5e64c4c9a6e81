"""Truncation on the right: a text is read as far as it is kept, and every field is that of `tokenizers`."""

from __future__ import annotations

import re

import pytest
from hf_components import (
    CL100K,
    added_tokens,
    examples,
    flags,
    model,
    normalizer_chains,
    pre_tokenizer_chains,
    processor_chains,
)
from hf_oracle import FIELDS, FILES, assert_same, both, tokenizer_path, tokenizers
from hypothesis import given
from hypothesis import strategies as st
from seeds import seeded
from tokenizers import AddedToken, Regex, normalizers, pre_tokenizers
from work import work

from bpe_engine import Tokenizer, get_encoding, hf

PARTS = [
    *("the hello", " world", "Hello", " don't", "12345", " x, ", "\n\n", "   ", "é", "e\u0301"),
    *(
        "日本語",
        "、",
        "😀",
        "\u0301",
        "ﬁ",
        "İ",
        ".",
        "!?",
        "\t",
        "<a>",
        " <s>",
        "<|",
        "HELLO",
        "_",
        "lo ",
    ),
]
WORDS = " ".join(PARTS) + " and so on, and so on: they met again in the spring.\n"

#: Pre-tokenizers and normalizers with an early end, more often than others.
plain_splits = st.one_of(
    st.builds(pre_tokenizers.ByteLevel, add_prefix_space=flags),
    st.just(
        pre_tokenizers.Sequence(
            [
                pre_tokenizers.Split(Regex(CL100K), "isolated"),
                pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
            ]
        )
    ),
)
plain_normalizers = st.sampled_from(
    [None, normalizers.NFC(), normalizers.NFKD(), normalizers.Lowercase()]
)


def long_text(seed: int, parts: int = 900) -> str:
    rng = seeded("early end", seed)
    return "".join(rng.choices(PARTS, k=parts))


def random_case(
    seed, tokens, permuted, normalizer, pre_tokenizer, processor, added, cut, sides, with_words
):
    theirs = tokenizers.Tokenizer(model(seed, False, permuted, tokens))
    if normalizer is not None:
        theirs.normalizer = normalizer
    if pre_tokenizer is not None:
        theirs.pre_tokenizer = pre_tokenizer
    if processor is not None:
        theirs.post_processor = processor
    try:
        theirs.add_tokens(added)
        ours, theirs = both(theirs.to_str())
    except hf.UnsupportedTokenizer as error:
        assert re.match(r"added_tokens\[\d\]: .* once normalized", str(error)), error
        return
    except Exception as error:
        assert "pattern" in str(error).lower() or "duplicate" in str(error).lower(), error
        return
    # The overflow of a pair has the parts of both texts, each with each.
    texts = [long_text(seed + 2, 250), long_text(seed + 1, 200), "lo", ""]
    inputs = [(long_text(seed),), *((texts[a], texts[b]) for a, b in sides)]
    if with_words:
        inputs = [tuple(text.split(" ") for text in given) for given in inputs]
    for given_input in inputs:
        outcomes = []
        for tokenizer in (ours, theirs):
            tokenizer.no_truncation()
            try:
                tokenizer.enable_truncation(**cut)
                made = tokenizer.encode(*given_input, is_pretokenized=with_words)
                outcomes.append(made)
            except Exception as error:
                outcomes.append(str(error))
            except BaseException as error:
                # A token of spaces inside those that the token before it took.
                assert type(error).__name__ == "PanicException"
                return
        if isinstance(outcomes[1], str):
            assert isinstance(outcomes[0], str), (cut, outcomes)
        else:
            compare(*outcomes, cut)


def compare(ours, theirs, note):
    """Compares every field, of a pair's many parts those of a few."""
    assert ours.ids == theirs.ids, note
    parts, expected = ours.overflowing, theirs.overflowing
    assert len(parts) == len(expected), note
    few = sorted({*range(3), *range(len(parts) - 3, len(parts))} & {*range(len(parts))})
    for made, other in [(ours, theirs), *((parts[place], expected[place]) for place in few)]:
        for name in FIELDS:
            assert getattr(made, name) == getattr(other, name), (name, note)


def cases(splits, forms):
    return given(
        seed=st.integers(0, 10**6),
        tokens=st.integers(0, 60),
        permuted=flags,
        normalizer=forms,
        pre_tokenizer=splits,
        processor=processor_chains,
        added=added_tokens,
        cut=st.fixed_dictionaries(
            {
                "max_length": st.sampled_from([301, 400, 677]),
                "stride": st.sampled_from([0, 3, 100]),
                "strategy": st.sampled_from(["longest_first", "only_first", "only_second"]),
                "direction": st.sampled_from(["right", "right", "left"]),
            }
        ),
        sides=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=2),
        with_words=flags,
    )


@examples(25)
@cases(plain_splits, plain_normalizers)
def test_early_ends_are_truncation(**case):
    random_case(**case)


@examples(15)
@cases(pre_tokenizer_chains, normalizer_chains)
def test_other_pipelines_are_truncated_alike(**case):
    random_case(**case)


@pytest.mark.thorough
@examples(500)
@cases(
    st.one_of(plain_splits, pre_tokenizer_chains), st.one_of(plain_normalizers, normalizer_chains)
)
def test_early_ends_are_truncation_many(**case):
    random_case(**case)


@pytest.mark.parametrize("name", FILES)
def test_real_files(name):
    path = tokenizer_path(name)
    pair = hf.Tokenizer.from_file(path), tokenizers.Tokenizer.from_file(path)
    text, other = long_text(3), long_text(4, 700)
    for length in (0, 3, 512):
        for strategy in ("longest_first", "only_first", "only_second"):
            outcomes = []
            for tokenizer in pair:
                tokenizer.enable_truncation(length, strategy=strategy)
                outcomes.append([])
                for texts in ((text,), (text, other), (other, "x"), ("x", other)):
                    try:
                        made = tokenizer.encode(*texts)
                        fields = (made.ids, made.offsets, made.word_ids, made.sequence_ids)
                        outcomes[-1].append(fields)
                    except Exception as error:
                        outcomes[-1].append(str(error))
            assert outcomes[0] == outcomes[1], (length, strategy)


@pytest.fixture(scope="module")
def plain():
    """A tokenizer of bytes, with a few merges and a special token."""
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
    for tokenizer in (ours, theirs):
        tokenizer.enable_truncation(100, stride=7)
        tokenizer.enable_padding(length=120)
    made, expected = ours.encode(text), theirs.encode(text)
    assert made.ids == expected.ids
    parts = made.overflowing
    assert len(parts) == len(expected.overflowing) > 10
    for part, other in zip(parts, expected.overflowing, strict=True):
        assert_same(part, other)
    # From the tokenizer as it was.
    made = ours.encode(text)
    ours.no_truncation()
    ours.no_padding()
    assert [part.ids for part in made.overflowing] == [part.ids for part in expected.overflowing]


@pytest.mark.parametrize("length", [99, 100])
def test_pairs_share_an_odd_number_by_their_lengths(plain, length):
    ours, theirs = both(plain)
    for tokenizer in (ours, theirs):
        tokenizer.enable_truncation(length, strategy="longest_first")
    texts = [WORDS * 20, WORDS * 21, WORDS * 20 + "x", WORDS]
    for first in texts:
        for second in texts:
            assert ours.encode(first, second).ids == theirs.encode(first, second).ids


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


def test_added_tokens_around_the_place_where_reading_ends():
    theirs = tokenizers.Tokenizer(model(2, False, False, 60))
    theirs.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    theirs.add_tokens(
        [
            AddedToken("<l>", lstrip=True),
            AddedToken("<r>", rstrip=True),
            AddedToken("word", single_word=True),
            AddedToken("x, a", normalized=False),
        ]
    )
    ours, theirs = both(theirs.to_str())
    rng = seeded("around", 1)
    parts = ["<l>", "<r>", "word", "   ", "a", " x, ", "x, a", "words", ".", "1", "<", "wor"]
    for number in range(150):
        text = "".join(rng.choices(parts, k=1200))
        length = rng.choice([20, 150, 300])
        for tokenizer in (ours, theirs):
            tokenizer.enable_truncation(length)
        assert_same(ours.encode(text), theirs.encode(text), number)


def test_special_tokens_that_are_text_where_reading_ends(plain):
    ours, theirs = both(plain)
    text = "some <|end|> words and " + WORDS * 100
    for tokenizer in (ours, theirs):
        tokenizer.encode_special_tokens = True
        tokenizer.enable_truncation(20)
    assert_same(ours.encode(text), theirs.encode(text), text[:30])
    [row] = ours.encode_batch([text])
    assert_same(row, theirs.encode(text), text[:30])


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
