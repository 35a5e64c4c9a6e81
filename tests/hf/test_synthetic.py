"""Tokenizers made for the purpose: every component and flag, with `tokenizers` as the writer."""

from __future__ import annotations

import re

import pytest
from hf_oracle import TEXTS, assert_same, both, tokenizers
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from seeds import seeded
from tokenizers import (
    AddedToken,
    Regex,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
)

from bpe_engine import hf

CL100K = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
BEHAVIORS = ["removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"]
WORDS = ["the", "he", "ing", "hello", "world", "  ", "\n", "é", "日", "本", "12", "'s", "x", "Ab"]

flags = st.booleans()
behaviors = st.sampled_from(BEHAVIORS)


def model(seed: int, ignore_merges: bool, permuted: bool, tokens: int) -> models.BPE:
    """Merges of any two tokens, several for one token among them, and some that never happen."""
    rng = seeded("model", seed)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocab = list(alphabet)
    text = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    likely = [text.pre_tokenize_str(word)[0][0] for word in WORDS]
    merges = []
    for _ in range(tokens):
        if rng.random() < 0.7:
            word = rng.choice(likely)
            cut = rng.randrange(1, len(word)) if len(word) > 1 else 0
            left, right = word[:cut], word[cut:]
            if left not in vocab or right not in vocab or not left:
                start = rng.randrange(max(1, len(word) - 1))
                left, right = word[start : start + 1], word[start + 1 : start + 2]
        else:
            left, right = rng.choice(vocab), rng.choice(vocab)
        if not left or not right or len(left + right) > 12 or (left, right) in merges:
            continue
        if left + right not in vocab:
            vocab.append(left + right)
        merges.append((left, right))
    vocab += [word for word in likely if word not in vocab and rng.random() < 0.3]
    vocab.append("<in the vocabulary>")
    ids = list(range(len(vocab)))
    if permuted:
        rng.shuffle(ids)
    return models.BPE(
        vocab=dict(zip(vocab, ids)), merges=merges, ignore_merges=ignore_merges, unk_token=None
    )


normalizer_parts = st.one_of(
    st.sampled_from([normalizers.NFC(), normalizers.NFD(), normalizers.NFKC(), normalizers.NFKD()]),
    st.just(normalizers.Lowercase()),
    st.sampled_from(
        [
            normalizers.Replace("l", "LL"),
            normalizers.Replace(Regex(r"\s+"), " "),
            normalizers.Replace("日", ""),
            normalizers.Replace(Regex("[aeiou]"), "é"),
        ]
    ),
    st.sampled_from([normalizers.Prepend("▁"), normalizers.Prepend("x y")]),
    st.builds(normalizers.Strip, left=flags, right=flags),
)
normalizer_chains = st.one_of(
    st.none(),
    normalizer_parts,
    st.lists(normalizer_parts, max_size=3).map(normalizers.Sequence),
)
patterns = st.sampled_from(
    [
        Regex(CL100K),
        Regex(r"\p{N}{1,3}"),
        Regex("[0-9][0-9][0-9]"),
        Regex(r"\s+"),
        Regex("(?=h)"),
        Regex(r"[^\n]+|\n"),
        "l",
        " ",
        "日",
    ]
)
pre_tokenizer_parts = st.one_of(
    st.builds(pre_tokenizers.Split, patterns, behaviors, flags),
    st.builds(pre_tokenizers.Digits, flags),
    st.builds(pre_tokenizers.Punctuation, behaviors),
    st.sampled_from([pre_tokenizers.Whitespace(), pre_tokenizers.WhitespaceSplit()]),
)
byte_levels = st.builds(
    pre_tokenizers.ByteLevel, add_prefix_space=flags, trim_offsets=flags, use_regex=flags
)
pre_tokenizer_chains = st.one_of(
    byte_levels,
    st.tuples(
        st.lists(pre_tokenizer_parts, max_size=3),
        byte_levels,
        st.lists(pre_tokenizer_parts, max_size=1),
    ).map(lambda parts: pre_tokenizers.Sequence([*parts[0], parts[1], *parts[2]])),
)
processor_parts = st.one_of(
    st.builds(processors.ByteLevel, add_prefix_space=flags, trim_offsets=flags, use_regex=flags),
    st.builds(
        processors.RobertaProcessing,
        st.just(("</s>", 2)),
        st.just(("<s>", 1)),
        trim_offsets=flags,
        add_prefix_space=flags,
    ),
    st.just(processors.BertProcessing(("[SEP]", 5), ("[CLS]", 4))),
    st.just(
        processors.TemplateProcessing(
            single="[CLS] $A:3 [SEP]:2",
            pair="[CLS] $A [SEP] $B:1 [SEP]:1 $A:0",
            special_tokens=[("[CLS]", 4), ("[SEP]", 5)],
        )
    ),
)
processor_chains = st.one_of(
    st.none(),
    processor_parts,
    st.tuples(
        st.builds(processors.ByteLevel, trim_offsets=flags, add_prefix_space=flags),
        processor_parts,
    ).map(lambda parts: processors.Sequence(list(parts))),
)
decoder_parts = st.one_of(
    st.just(decoders.ByteLevel()),
    st.sampled_from([decoders.Replace("Ġ", " "), decoders.Replace(Regex("[a-f]"), "<>")]),
    st.builds(decoders.Strip, st.sampled_from("hĠl"), st.integers(0, 2), st.integers(0, 0)),
    st.just(decoders.Fuse()),
)
decoder_chains = st.one_of(
    st.none(),
    decoder_parts,
    st.lists(decoder_parts, min_size=1, max_size=3).map(decoders.Sequence),
)
contents = st.sampled_from(
    ["<a>", "<a><b>", "a", "hello", "HELLO", "  ", " x", "é", "e\u0301", "<s>", "lo", "日本", "_"]
)
added_tokens = st.lists(
    st.builds(
        AddedToken,
        contents,
        single_word=flags,
        lstrip=flags,
        rstrip=flags,
        normalized=flags,
        special=flags,
    ),
    max_size=5,
)
extra_texts = st.lists(
    st.sampled_from([*WORDS, " ", "<a>", "<b>", "<s>", "HELLO", "e\u0301", "ﬁ", "İ", "_", "."]),
    max_size=12,
).map("".join)


def examples(count: int):
    return settings(
        max_examples=count,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


everything = given(
    seed=st.integers(0, 10**6),
    ignore_merges=flags,
    permuted=flags,
    tokens=st.integers(0, 60),
    normalizer=normalizer_chains,
    pre_tokenizer=pre_tokenizer_chains,
    processor=processor_chains,
    decoder=decoder_chains,
    added=added_tokens,
    texts=st.lists(extra_texts, min_size=2, max_size=4),
)


def check(
    seed,
    ignore_merges,
    permuted,
    tokens,
    normalizer,
    pre_tokenizer,
    processor,
    decoder,
    added,
    texts,
):
    theirs = tokenizers.Tokenizer(model(seed, ignore_merges, permuted, tokens))
    if normalizer is not None:
        theirs.normalizer = normalizer
    theirs.pre_tokenizer = pre_tokenizer
    if processor is not None:
        theirs.post_processor = processor
    if decoder is not None:
        theirs.decoder = decoder
    try:
        theirs.add_tokens(added)
        theirs = tokenizers.Tokenizer.from_str(theirs.to_str())
    except Exception as error:
        # Two added tokens that are the same once normalized.
        assert "pattern" in str(error).lower() or "duplicate" in str(error).lower(), error
        return
    try:
        ours = hf.Tokenizer.from_str(theirs.to_str())
    except hf.UnsupportedTokenizer as error:
        # A token that is empty, and two that are the same.
        assert re.match(r"added_tokens\[\d\]: .* once normalized", str(error)), error
        return
    assert ours.to_str() == theirs.to_str()
    for text in [*texts, *TEXTS[:8:2], TEXTS[10]]:
        try:
            expected = theirs.encode(text)
        except BaseException as error:
            # A token of spaces inside those that the token before it took.
            assert type(error).__name__ == "PanicException"
            ours.encode(text)
            return
        assert_same(ours.encode(text), expected, text)
        ids = ours.encode(text, add_special_tokens=False).ids
        for skip in (True, False):
            assert ours.decode(ids, skip) == theirs.decode(ids, skip), text
    assert_same(ours.encode(*texts[:2]), theirs.encode(*texts[:2]), texts)
    words = texts[0].split(" ")
    a = ours.encode(words, is_pretokenized=True)
    assert_same(a, theirs.encode(words, is_pretokenized=True), words)


@examples(60)
@everything
def test_every_combination(**parts):
    check(**parts)


@pytest.mark.thorough
@examples(2000)
@everything
def test_every_combination_many(**parts):
    check(**parts)


def small(merges, vocab=(), **options) -> tuple[hf.Tokenizer, tokenizers.Tokenizer]:
    tokens = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokens += [left + right for left, right in merges] + list(vocab)
    tokens = list(dict.fromkeys(tokens))
    made = tokenizers.Tokenizer(
        models.BPE(
            vocab={token: id for id, token in enumerate(tokens)}, merges=list(merges), **options
        )
    )
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return both(made.to_str())


def test_a_token_that_no_merge_makes_is_not_found():
    ours, theirs = small([("a", "b")], vocab=["abc"])
    assert [x.encode("abc").tokens for x in (ours, theirs)] == [["ab", "c"]] * 2


def test_ignore_merges_finds_whole_pieces():
    ours, theirs = small([("a", "b")], vocab=["abc"], ignore_merges=True)
    for text in ("abc", "abcabc", " abc", "ab"):
        assert_same(ours.encode(text), theirs.encode(text), text)


def test_pairs_beside_those_of_the_bytes_change_nothing():
    merges = [("a", "b"), ("b", "c"), ("a", "bc"), ("ab", "c"), ("c", "a")]
    for shuffled in range(30):
        rng = seeded("order", shuffled)
        some = merges.copy()
        rng.shuffle(some)
        ours, theirs = small(some)
        for _ in range(20):
            text = "".join(rng.choices("abc", k=rng.randrange(1, 12)))
            assert_same(ours.encode(text), theirs.encode(text), (some, text))


def test_pairs_in_an_order_that_no_ranks_have():
    # "abc" merges from another pair than the one that its own bytes would lead to.
    ours, theirs = small([("a", "bc"), ("a", "b"), ("b", "c")])
    for text in ("abc", "ab", "bc", "aabcc", "abcabc"):
        assert_same(ours.encode(text), theirs.encode(text), text)


TWO_TOKENS_OF_ONE_ID = {
    "type": "TemplateProcessing",
    "single": [{"Sequence": {"id": "A", "type_id": 0}}],
    "pair": [{"Sequence": {"id": "A", "type_id": 0}}],
    "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>", "<s>"]}},
}


@pytest.mark.parametrize(
    "change",
    [
        ("model.dropout", 0.1),
        ("model.byte_fallback", True),
        ("model.fuse_unk", True),
        ("model.continuing_subword_prefix", "##"),
        ("model.end_of_word_suffix", "</w>"),
        ("model.type", "WordLevel"),
        ("normalizer", {"type": "BertNormalizer"}),
        ("pre_tokenizer", {"type": "Metaspace"}),
        ("pre_tokenizer", {"type": "Whitespace"}),
        ("pre_tokenizer", {"type": "Sequence", "pretokenizers": [{"type": "UnicodeScripts"}]}),
        ("decoder", {"type": "CTC"}),
        ("normalizer", {"type": "Replace", "pattern": {"Regex": "^"}, "content": "x"}),
        ("normalizer", {"strip_left": True, "strip_right": True}),
        ("post_processor", {"sep": ["b", 2], "cls": ["a", 1]}),
        ("post_processor", TWO_TOKENS_OF_ONE_ID),
    ],
    ids=str,
)
def test_what_is_not_supported_is_named(change):
    import json

    path, value = change
    contents = json.loads(small([("a", "b")])[0].to_str())
    place = contents
    *before, last = path.split(".")
    for name in before:
        place = place[name]
    place[last] = value
    with pytest.raises(hf.UnsupportedTokenizer) as caught:
        hf.Tokenizer.from_str(json.dumps(contents))
    assert str(caught.value).startswith(path)
    assert isinstance(caught.value, ValueError)


def test_bytes_without_a_token_are_named():
    import json

    contents = json.loads(small([])[0].to_str())
    del contents["model"]["vocab"]["A"]
    with pytest.raises(hf.UnsupportedTokenizer, match=r"model\.vocab.*0x41"):
        hf.Tokenizer.from_str(json.dumps(contents))


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"model": 3}', "null", '{"model": {}}'])
def test_malformed_files(text):
    with pytest.raises(ValueError):
        hf.Tokenizer.from_str(text)


def test_spaces_belong_to_one_token_only():
    _, theirs = small([("a", "b")])
    theirs.add_tokens([AddedToken("_", rstrip=True), AddedToken("  ", lstrip=True)])
    ours, theirs = both(theirs.to_str())
    for text in ("_  ", "a  _", "  _"):
        assert_same(ours.encode(text), theirs.encode(text), text)
    # There this panics.
    assert ours.encode("_    a").tokens == ["_    ", "a"]


def test_merges_are_spelled_in_two_ways():
    import json

    ours, _ = small([("a", "b"), ("ab", "c")])
    contents = json.loads(ours.to_str())
    contents["model"]["merges"] = [" ".join(pair) for pair in contents["model"]["merges"]]
    del contents["model"]["type"]
    contents["model"].update(dict.fromkeys(("fuse_unk", "byte_fallback", "ignore_merges")))
    assert tokenizers.Tokenizer.from_str(json.dumps(contents)).to_str() == ours.to_str()
    assert hf.Tokenizer.from_str(json.dumps(contents)).to_str() == ours.to_str()


def test_argument_errors_are_of_the_same_kind():
    ours, theirs = small([("a", "b")])
    calls = [
        lambda t: t.encode(3),
        lambda t: t.encode(b"x"),
        lambda t: t.encode("\ud800"),
        lambda t: t.encode("a", is_pretokenized=True),
        lambda t: t.encode_batch("abc"),
        lambda t: t.encode_batch([3]),
        lambda t: t.encode_batch([["a", "b", "c"]]),
        lambda t: t.decode("a"),
        lambda t: t.decode([-1]),
        lambda t: t.decode([10**12]),
        lambda t: t.id_to_token(-1),
        lambda t: t.token_to_id(3),
        lambda t: t.enable_truncation(5, stride=9),
        lambda t: t.enable_truncation(5, strategy="x"),
        lambda t: t.enable_truncation(5, direction="x"),
        lambda t: t.enable_padding(direction="x"),
        lambda t: t.add_tokens([3]),
        lambda t: t.add_tokens("ab"),
        lambda t: t.add_special_tokens("ab"),
    ]
    for number, call in enumerate(calls):
        with pytest.raises(Exception) as expected:
            call(theirs)
        with pytest.raises(expected.type):
            call(ours)
        assert number >= 0


def test_threads_encode_while_tokens_are_added():
    import threading

    ours, _ = small([("a", "b"), ("ab", "c")])
    failures = []
    expected = ours.encode("abc abc").ids
    stop = threading.Event()

    def encode():
        while not stop.is_set():
            ids = ours.encode("abc abc").ids
            if ids != expected:
                failures.append(ids)

    threads = [threading.Thread(target=encode) for _ in range(4)]
    for thread in threads:
        thread.start()
    for number in range(50):
        ours.add_tokens([f"<{number}>"])
        ours.enable_truncation(100)
        ours.no_truncation()
    stop.set()
    for thread in threads:
        thread.join()
    assert not failures
    assert ours.token_to_id("<49>") is not None


def test_encoding_methods():
    ours, theirs = small([("a", "b"), ("ab", "c")])
    for first, second in [("abc ab", None), ("abc, ab", "b c  é")]:
        a, b = ours.encode(first, second), theirs.encode(first, second)
        for sequence in (0, 1):
            for index in range(8):
                for name in ("char_to_token", "char_to_word", "word_to_tokens", "word_to_chars"):
                    assert getattr(a, name)(index, sequence) == getattr(b, name)(index, sequence)
        for index in range(len(a) + 1):
            for name in ("token_to_sequence", "token_to_chars", "token_to_word"):
                assert getattr(a, name)(index) == getattr(b, name)(index), (name, index)
        for encoding in (a, b):
            encoding.truncate(3, stride=1)
            encoding.pad(6, direction="left", pad_id=7, pad_token="<p>")
            encoding.set_sequence_id(1)
        assert_same(a, b)
        merged = [type(x).merge([x, x], growing_offsets=True) for x in (a, b)]
        assert_same(*merged)
    a, b = ours.encode("abc"), ours.encode("ab")
    c, d = theirs.encode("abc"), theirs.encode("ab")
    assert_same(ours.post_process(a, b), theirs.post_process(c, d))


def test_post_processors_say_what_they_add():
    ours, theirs = small([("a", "b")])
    for processor in (
        processors.ByteLevel(),
        processors.BertProcessing(("[SEP]", 5), ("[CLS]", 4)),
        processors.RobertaProcessing(("</s>", 2), ("<s>", 1)),
    ):
        ours.post_processor = processor
        for is_pair in (False, True):
            expected = processor.num_special_tokens_to_add(is_pair)
            assert ours.post_processor.num_special_tokens_to_add(is_pair) == expected
    with pytest.raises(AttributeError):
        ours.decoder.num_special_tokens_to_add(False)


def test_sequences_have_parts():
    chains = {
        "normalizer": normalizers.Sequence([normalizers.NFC(), normalizers.Lowercase()]),
        "pre_tokenizer": pre_tokenizers.Sequence(
            [pre_tokenizers.Digits(True), pre_tokenizers.ByteLevel(use_regex=False)]
        ),
        "post_processor": processors.Sequence(
            [processors.ByteLevel(), processors.BertProcessing(("b", 2), ("a", 1))]
        ),
    }
    ours, _ = small([("a", "b")])
    for name, chain in chains.items():
        setattr(ours, name, chain)
        found = getattr(ours, name)
        assert [part.__getstate__() for part in found] == [part.__getstate__() for part in chain]
        assert len(found) == 2 and found[-1] == found[1] and bool(found)
        for sequence in (found, chain):
            with pytest.raises(IndexError):
                sequence[2]
            with pytest.raises(TypeError):
                sequence[0][0]
    with pytest.raises(TypeError, match="has no len"):
        len(ours.normalizer[0])
    assert ours.normalizer[0]


def test_components_can_be_set():
    ours, theirs = small([("a", "b"), ("ab", "c"), ("Ġ", "a")])
    for tokenizer in (ours, theirs):
        tokenizer.normalizer = normalizers.Lowercase()
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
        tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
        tokenizer.decoder = decoders.ByteLevel()
    assert_same(ours.encode("ABC abc"), theirs.encode("ABC abc"))
    assert ours.to_str() == theirs.to_str()
    with pytest.raises(TypeError, match="normalizer"):
        ours.normalizer = 3
