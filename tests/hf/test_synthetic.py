"""Compares made-up tokenizers, with every component and flag, in files that `tokenizers` writes."""

from __future__ import annotations

import json

import pytest
from hf_oracle import assert_same, both, tokenizers
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


@pytest.mark.parametrize("scheme", ["first", "never", "always"])
@pytest.mark.parametrize("is_last", [False, True])
def test_a_metaspace_beside_byte_level(scheme, is_last):
    contents = json.loads(small([("a", "b"), ("Ġ", "ab")], vocab=["▁", "▁ab"])[0].to_str())
    parts = [pre_tokenizers.Metaspace("▁", scheme), pre_tokenizers.ByteLevel(False)]
    chain = pre_tokenizers.Sequence(parts[::-1] if is_last else parts)
    contents["pre_tokenizer"] = json.loads(chain.__getstate__())
    ours, theirs = both(json.dumps(contents))
    for text in ("hello ab", " ab ab", "", "▁ab"):
        assert_same(ours.encode(text), theirs.encode(text), text)


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
    # "abc" merges from another pair than its bytes would lead to.
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
        ("model.type", "SuperBPE"),
        ("pre_tokenizer.length", {"type": "FixedLength", "length": 0}),
        ("normalizer", {"type": "Replace", "pattern": {"Regex": "^"}, "content": "x"}),
        ("post_processor", TWO_TOKENS_OF_ONE_ID),
    ],
    ids=str,
)
def test_unsupported_parts_are_named(change):
    path, value = change
    name = path
    if isinstance(value, dict) and "type" in value:
        path = path.partition(".")[0]
    contents = json.loads(small([("a", "b")])[0].to_str())
    place = contents
    *before, last = path.split(".")
    for name in before:
        place = place[name]
    place[last] = value
    with pytest.raises(hf.UnsupportedTokenizer) as caught:
        hf.Tokenizer.from_str(json.dumps(contents))
    assert str(caught.value).startswith(name)
    assert isinstance(caught.value, ValueError)


def without(lacking: str, merges=(), **options) -> tuple[hf.Tokenizer, tokenizers.Tokenizer]:
    """A pair without tokens for some bytes, as in Falcon's files."""
    # Of the bytes that the tests leave out, x and the second byte of four have no fallback.
    fallback = [f"<0x{byte:02X}>" for byte in (0x41, 0x79, 0xC3, 0x83, 0xC4)]
    _, theirs = small(merges, vocab=["<u>", "<u >", *fallback])
    contents = json.loads(theirs.to_str())
    for character in lacking:
        del contents["model"]["vocab"][character]
    contents["model"].update(options)
    return both(json.dumps(contents))


@pytest.mark.parametrize("unk_token", [None, "<u>", "<u >", "b"])
@pytest.mark.parametrize("fuse_unk", [False, True])
@pytest.mark.parametrize("ignore_merges", [False, True])
@pytest.mark.parametrize("byte_fallback", [False, True])
def test_bytes_without_a_token(unk_token, fuse_unk, ignore_merges, byte_fallback):
    options = {"unk_token": unk_token, "fuse_unk": fuse_unk, "ignore_merges": ignore_merges}
    options["byte_fallback"] = byte_fallback
    merges = [("a", "b"), ("ab", "c"), ("Ġ", "ab"), ("<u>", "c"), ("<0x41>", "b")]
    # 0x03, A, x, a byte of é and the first byte of four.
    ours, theirs = without("ăAxÃð", merges, **options)
    texts = ["A", "xx", "aAb", "aAAb c", "\x03", "a\x03bc\x03\x03", "é", "aéb", "ab\U0001f600c"]
    texts += ["abc ab", "", "AxAa", "cA c" * 50, "<u>A", "\x03 abc" * 1000]
    rng = seeded("lacking", 1)
    texts += ["".join(rng.choices("abcAx \x03é", k=9)) for _ in range(300)]
    for text in texts:
        expected = theirs.encode(text)
        assert ours.encode(text).ids == expected.ids, text
        assert_same(ours.encode(text), expected, text)
        assert ours.encode_batch([text, "x"])[0].ids == expected.ids
        assert ours.decode(expected.ids) == theirs.decode(expected.ids)
        for skip in (True, False):
            assert ours.decode(expected.ids, skip) == theirs.decode(expected.ids, skip)
        for piece, _ in theirs.pre_tokenizer.pre_tokenize_str(text):
            pairs = zip(ours.model.tokenize(piece), theirs.model.tokenize(piece), strict=True)
            assert all(a.as_tuple() == b.as_tuple() for a, b in pairs), text
    assert ours.to_str() == theirs.to_str()
    for token in ("A", "ab", "<u>", "<u >", "Ã"):
        assert ours.token_to_id(token) == theirs.token_to_id(token)


def test_the_space_before_a_text_lacks_a_token():
    _, theirs = small([("a", "b")])
    contents = json.loads(theirs.to_str())
    del contents["model"]["vocab"]["Ġ"]
    contents["pre_tokenizer"]["add_prefix_space"] = True
    ours, theirs = both(json.dumps(contents))
    for text in ("ab", "", " ab", "abc ab"):
        assert_same(ours.encode(text), theirs.encode(text), text)
        assert ours.encode_batch([text])[0].ids == theirs.encode(text).ids


def test_an_unk_token_outside_the_vocabulary_fails():
    ours, theirs = without("A", unk_token="<none>")
    assert_same(ours.encode("abc"), theirs.encode("abc"))
    for encode in (ours.encode, theirs.encode):
        with pytest.raises(Exception, match="<none>"):
            encode("bAc")


def test_merges_of_the_unk_token():
    for pair in (
        without("A", [("a", "b"), ("<u >", "a")], unk_token="<u >"),
        small([("a", "b"), ("<u >", "a")], vocab=["<u >"], unk_token="<u >"),
    ):
        ours, theirs = pair
        for text in ("ab<u >a", "Aa", "AAab", "aAa"):
            assert_same(ours.encode(text), theirs.encode(text), text)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"model": 3}', "null", '{"model": {}}'])
def test_malformed_files(text):
    with pytest.raises(ValueError):
        hf.Tokenizer.from_str(text)


def test_unknown_keys_at_the_top_are_refused():
    contents = {**json.loads(small([])[0].to_str()), "models": {}}
    for read in (tokenizers.Tokenizer.from_str, hf.Tokenizer.from_str):
        with pytest.raises(Exception):  # noqa: B017
            read(json.dumps(contents))


KINDS = {
    "normalizer": normalizers.Normalizer,
    "pre_tokenizer": pre_tokenizers.PreTokenizer,
    "post_processor": processors.PostProcessor,
    "decoder": decoders.Decoder,
}
PARTS = [
    pre_tokenizers.Split(Regex("a+"), "isolated", True),
    pre_tokenizers.Split("é", "merged_with_previous"),
    pre_tokenizers.Sequence([pre_tokenizers.Digits(True), pre_tokenizers.ByteLevel()]),
    pre_tokenizers.Punctuation(),
    pre_tokenizers.Whitespace(),
    pre_tokenizers.WhitespaceSplit(),
    processors.TemplateProcessing(
        single="[CLS] $A", pair="$A $B:1 [CLS]", special_tokens=[("[CLS]", 4)]
    ),
    processors.RobertaProcessing(("a", 1), ("b", 2)),
    processors.BertProcessing(("a", 1), ("b", 2)),
    processors.Sequence([processors.ByteLevel(trim_offsets=False)]),
    decoders.ByteLevel(),
    decoders.Sequence([decoders.Fuse(), decoders.Strip("a", 1, 0), decoders.Replace("a", "b")]),
    normalizers.NFC(),
    normalizers.Prepend("x"),
    normalizers.Strip(),
    normalizers.Sequence([normalizers.Lowercase(), normalizers.Replace(Regex("a"), "b")]),
]


@pytest.mark.parametrize("part", PARTS, ids=repr)
def test_component_names_match_tokenizers(part):
    import copy
    import pickle

    [kind] = [kind for kind, base in KINDS.items() if isinstance(part, base)]
    ours = hf.Component(kind, part.__getstate__().decode())
    assert type(ours).__name__ == type(part).__name__
    assert repr(ours) == repr(part)
    assert isinstance(ours, type(part)) and isinstance(ours, KINDS[kind])
    assert isinstance(ours, hf.Component)
    assert pickle.loads(pickle.dumps(ours)) == ours == copy.deepcopy(ours)
    with pytest.raises(AttributeError):
        ours.no_field = True


def test_spaces_belong_to_one_token_only():
    _, theirs = small([("a", "b")])
    theirs.add_tokens([AddedToken("_", rstrip=True), AddedToken("  ", lstrip=True)])
    ours, theirs = both(theirs.to_str())
    for text in ("_  ", "a  _", "  _"):
        assert_same(ours.encode(text), theirs.encode(text), text)
    # There this panics.
    assert ours.encode("_    a").tokens == ["_    ", "a"]


def test_merges_are_spelled_in_two_ways():
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


def test_post_processors_report_added_tokens():
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
