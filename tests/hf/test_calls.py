"""Compares results and errors of each method with `tokenizers`, also for invalid arguments."""

from __future__ import annotations

import json

import pytest
from hf_oracle import fields, outcome, tokenizers
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, processors

from bpe_engine import hf

THEIR_STREAM = tokenizers.decoders.DecodeStream
TEXT = "Hello world, how are you? 日本"


def contents() -> str:
    """Returns a small file with a post-processor, and special tokens in its vocabulary."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokens = [*alphabet, "<s>", "</s>", "he", "ll", "Ġt", "Ġth", "Ġthe"]
    merges = [("h", "e"), ("l", "l"), ("Ġ", "t"), ("Ġt", "h"), ("Ġth", "e")]
    made = tokenizers.Tokenizer(
        models.BPE(vocab={token: id for id, token in enumerate(tokens)}, merges=merges)
    )
    made.normalizer = normalizers.NFC()
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.post_processor = processors.RobertaProcessing(("</s>", 257), ("<s>", 256))
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens(["<s>", "</s>", AddedToken("<mask>", lstrip=True)])
    return made.to_str()


CONTENTS = contents()

# Expressions over `t`, a tokenizer, and `e`, its encoding of "a the b".
CALLS = """
t.encode(TEXT)
t.encode(sequence=TEXT, pair="x", is_pretokenized=False, add_special_tokens=False)
t.encode(TEXT, "x", False, False)
t.encode(None)
t.encode(b"x")
t.encode("\\ud800")
t.encode(TEXT, None)
t.encode(TEXT, 3)
t.encode([TEXT])
t.encode(["a", "", " b"], [""], is_pretokenized=True)
t.encode(("a", "b"), is_pretokenized=True)
t.encode([], is_pretokenized=True)
t.encode(["a", 3], is_pretokenized=True)
t.encode({"a": 1}, is_pretokenized=True)
t.encode({"a"}, is_pretokenized=True)
t.encode("ab", is_pretokenized=True)
t.encode(["a"], "b", is_pretokenized=True)
t.encode("a", ["b"])
t.encode()
t.encode("a", foo=1)
t.encode("a", is_pretokenized=None)
t.encode_batch([])
t.encode_batch([("a", "b"), "c", ["d", "e"]])
t.encode_batch([(["a"], ["b", "c"]), ["d"]], is_pretokenized=True)
t.encode_batch([("a", "b")], True)
t.encode_batch([["a", "b", "c"]])
t.encode_batch([("a", None)])
t.encode_batch([None])
t.encode_batch(None)
t.encode_batch({"a": 1})
t.encode_batch({"a"})
t.encode_batch("abc")
t.encode_batch(input=["a"], is_pretokenized=False, add_special_tokens=False)
t.decode([256, 100, 101, 257])
t.decode(ids=[256, 100, 101, 257], skip_special_tokens=False)
t.decode((1, 2), False)
t.decode([10**9])
t.decode([2**32])
t.decode([-1])
t.decode([True])
t.decode([1.0])
t.decode({1, 2})
t.decode({1: 2})
t.decode("12")
t.decode(None)
t.decode([1], skip_special_tokens=1)
t.decode_batch([[1, 2], [], (3,)])
t.decode_batch(sequences=[[256]], skip_special_tokens=False)
t.decode_batch([1])
t.decode_batch({})
t.decode_batch("ab")
t.token_to_id("he")
t.token_to_id(token="<mask>")
t.token_to_id("none of these")
t.token_to_id(None)
t.id_to_token(256)
t.id_to_token(id=10**9)
t.id_to_token(-1)
t.id_to_token("5")
t.get_vocab()
t.get_vocab(with_added_tokens=False)
t.get_vocab_size()
t.get_vocab_size(False)
t.get_vocab(None)
t.get_added_tokens_decoder()
t.add_tokens(["new", "new", "he", "<s>", ""])
t.add_tokens(tokens=[AddedToken("<s>"), AddedToken("x", single_word=True, normalized=False)])
t.add_tokens({"a"})
t.add_tokens({"a": 1})
t.add_tokens("a")
t.add_tokens(None)
t.add_tokens(["ok", 3])
t.add_special_tokens(["x", AddedToken("y", normalized=True)])
t.add_special_tokens([3])
t.add_special_tokens(None)
t.enable_truncation(5), t.truncation
t.enable_truncation(max_length=5, stride=1, strategy="only_first", direction="left"), t.truncation
t.enable_truncation()
t.enable_truncation(None)
t.enable_truncation(-1)
t.enable_truncation(5.0)
t.enable_truncation(3, stride=2)
t.enable_truncation(1), t.encode(TEXT), t.encode(TEXT, TEXT)
t.enable_truncation(5, strategy="x")
t.enable_truncation(5, strategy=None)
t.enable_truncation(5, direction="x")
t.enable_truncation(5), t.no_truncation(), t.truncation
t.enable_padding(), t.padding
t.enable_padding(direction="left", pad_id=3, pad_type_id=1, pad_token="X", length=9), t.encode("a")
t.enable_padding(pad_to_multiple_of=4), t.padding, t.encode_batch(["a", TEXT])
t.enable_padding(pad_to_multiple_of=0), t.encode("a")
t.enable_padding(direction="x")
t.enable_padding(direction=None)
t.enable_padding(pad_id=-1)
t.enable_padding(pad_token=3)
t.enable_padding(length=-1)
t.enable_padding(), t.no_padding(), t.padding
setattr(t, "truncation", None)
setattr(t, "padding", None)
t.num_special_tokens_to_add(is_pair=True), t.num_special_tokens_to_add(False)
t.num_special_tokens_to_add()
t.post_process(t.encode("a", add_special_tokens=False))
t.post_process(encoding=e, pair=e, add_special_tokens=False)
t.post_process(None)
setattr(t, "encode_special_tokens", True), t.encode_special_tokens, t.encode("<s>")
setattr(t, "encode_special_tokens", None)
setattr(t, "normalizer", None), t.normalizer, t.encode("e\\u0301")
setattr(t, "post_processor", None), t.post_processor, t.encode("a", "b")
setattr(t, "decoder", None), t.decoder, t.decode([256, 100, 101])
setattr(t, "normalizer", pre_tokenizers.ByteLevel())
setattr(t, "pre_tokenizer", processors.ByteLevel())
setattr(t, "post_processor", pre_tokenizers.ByteLevel())
setattr(t, "decoder", pre_tokenizers.ByteLevel())
setattr(t, "decoder", t.pre_tokenizer)
setattr(t, "pre_tokenizer", 3)
t.normalizer.normalize_str("e\\u0301")
t.pre_tokenizer.pre_tokenize_str(TEXT)
t.pre_tokenizer.add_prefix_space, t.pre_tokenizer.use_regex, t.post_processor.trim_offsets
t.post_processor.num_special_tokens_to_add(True)
t.post_processor.process(t.encode("a", add_special_tokens=False))
t.post_processor.process(e, e, False)
t.post_processor.process("a")
t.decoder.decode(tokens=["Ġa", "b"])
t.decoder.decode("ab")
t.decoder.decode([3])
t.model.tokenize("Ġthe")
t.model.tokenize("a the b")
t.model.tokenize("日本")
t.model.tokenize("")
[token.as_tuple() for token in t.model.tokenize("hell")]
t.model.token_to_id("<mask>"), t.model.id_to_token(256), t.model.id_to_token(10**9)
t.model.dropout, t.model.unk_token, t.model.fuse_unk, t.model.ignore_merges
len(e), repr(e), e.n_sequences, e.words == e.word_ids
e.char_to_token(char_pos=2, sequence_index=0), e.char_to_token(0, 1), e.char_to_token(100)
e.char_to_token(-1)
e.char_to_token(0, None)
e.char_to_word(2), e.char_to_word(2, sequence_index=5)
e.token_to_chars(token_index=1), e.token_to_chars(0), e.token_to_chars(99)
e.token_to_sequence(1), e.token_to_sequence(0), e.token_to_sequence(99)
e.token_to_word(1), e.token_to_word(99)
e.token_to_word(-1)
e.word_to_chars(word_index=0, sequence_index=0), e.word_to_chars(9)
e.word_to_tokens(0), e.word_to_tokens(1, 1)
e.word_to_tokens(-1)
e.pad(length=10, direction="left", pad_id=4, pad_type_id=2, pad_token="Z"), e
e.truncate(3, stride=1), e.pad(6, direction="left", pad_id=7, pad_token="<p>"), e.set_sequence_id(1), e
t.post_process(t.encode("abc"), t.encode("ab"))
[e.char_to_token(i, s) for i in range(8) for s in (0, 1)]
[(e.char_to_word(i, s), e.word_to_chars(i, s)) for i in range(8) for s in (0, 1)]
e.pad(1), e
e.pad()
e.pad(-1)
e.pad(9, direction="x")
e.truncate(max_length=3, stride=1, direction="left"), e
e.truncate(0), e
e.truncate(3, direction="x")
e.truncate(-1)
e.truncate()
e.set_sequence_id(sequence_id=1), e
e.set_sequence_id(-1)
type(e).merge([e, e]), type(e).merge(encodings=(e, e), growing_offsets=False)
type(e).merge([]), type(e).merge([e])
type(e).merge([3])
t.to_str(), t.to_str(pretty=True)
type(t).from_str(json=t.to_str()).to_str()
type(t).from_str(None)
type(t).from_buffer(buffer=t.to_str().encode()).to_str()
type(t).from_buffer(t.to_str())
type(t).from_buffer(5)
type(t).from_buffer(None)
t == t, t == type(t).from_str(t.to_str()), e == t.encode("a the b")
""".strip().splitlines()


def plain(value):
    """Converts a result of either package to plain data."""
    name = type(value).__name__
    if name in ("Encoding", "HfEncoding"):
        return fields(value)
    if name == "Token":
        return value.id, value.value, value.offsets
    if name == "AddedToken":
        flags = ("content", "single_word", "lstrip", "rstrip", "normalized", "special")
        return [getattr(value, flag) for flag in flags]
    if isinstance(value, (list, tuple)):
        return [type(value), *map(plain, value)]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return value


# `words` is the old name of `word_ids`.
@pytest.mark.filterwarnings("ignore:Deprecated in 0.9.4")
@pytest.mark.parametrize("call", CALLS)
def test_a_call(call):
    found = []
    for made in (hf.Tokenizer, tokenizers.Tokenizer):
        t = made.from_str(CONTENTS)
        names = {**globals(), "t": t, "e": t.encode("a the b")}
        found.append(outcome(lambda names=names: plain(eval(call, names))))
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("field", "value"),
    [("dropout", 1.0), ("continuing_subword_prefix", "##"), ("end_of_word_suffix", "</w>")],
)
def test_fields_of_the_model(field, value):
    t = hf.Tokenizer.from_str(CONTENTS)
    theirs = tokenizers.Tokenizer.from_str(CONTENTS)
    for word, given in enumerate((value, None, 0.0 if field == "dropout" else "", value, None)):
        # `tokenizers` caches words, so each round uses new words.
        letter = "xyzwv"[word]
        text = f"hel{letter}lo abc{letter}ab lor{letter}em"
        for each in (t, theirs):
            setattr(each.model, field, given)
            assert getattr(each.model, field) == given
        assert t.encode(text).ids == theirs.encode(text).ids
    with pytest.raises(ValueError, match=f"model.{field}"):
        setattr(t.model, field, [])
    with pytest.raises(ValueError, match="dropout: 2.* is not between 0 and 1"):
        t.model.dropout = 2.0
    with pytest.raises(AttributeError, match="no attribute 'vocab'"):
        t.model.vocab = {}


def test_overflow_of_what_was_post_processed_before():
    for processor in (
        processors.BertProcessing(("</s>", 257), ("<s>", 256)),
        processors.RobertaProcessing(("</s>", 257), ("<s>", 256)),
        processors.ByteLevel(),
    ):
        made = []
        for tokenizer in (hf.Tokenizer, tokenizers.Tokenizer):
            t = tokenizer.from_str(CONTENTS)
            t.post_processor = processor
            t.enable_truncation(8, stride=1)
            first, second = t.encode("a b c d e f g h"), t.encode("i j k l m n o p")
            made.append([fields(t.post_process(first)), fields(t.post_process(first, second))])
        assert made[0] == made[1]


STEPS = [5, 10**9, True, [100, 101], (100,), [], -1, 2**32, "a", "", None, 1.5]
STEPS += [[1, -1], ["a"], [None]]


@pytest.mark.parametrize("step", STEPS, ids=repr)
def test_a_wrong_step_leaves_a_stream_as_it_is(step):
    found = []
    for made, stream in ((hf.Tokenizer, hf.DecodeStream), (tokenizers.Tokenizer, THEIR_STREAM)):
        t, s = made.from_str(CONTENTS), stream(ids=[99])
        steps = [100, step, 258, 101]
        found.append([outcome(lambda s=s, t=t, id=id: s.step(t, id)) for id in steps])
    assert found[0] == found[1]


@pytest.mark.parametrize("ids", [None, [], (1, 2), "ab", [-1], 3, [1.5], {1}, {1: 2}], ids=repr)
def test_ids_before_a_stream(ids):
    assert outcome(lambda: bool(hf.DecodeStream(ids))) == outcome(lambda: bool(THEIR_STREAM(ids)))


def test_a_tekken_file_is_named(tmp_path):
    path = tmp_path / "tekken.json"
    token = {"rank": 0, "token_bytes": "AA==", "token_str": None}
    config = {"pattern": ".", "default_vocab_size": 2, "default_num_special_tokens": 1}
    path.write_text(json.dumps({"config": config, "vocab": [token]}))
    with pytest.raises(ValueError, match="tekken.json, which bpe_engine.open_tokenizer reads"):
        hf.Tokenizer.from_file(path)


def test_rows_of_arrays_are_pairs():
    numpy = pytest.importorskip("numpy")
    model = models.WordLevel({"[UNK]": 0, "a": 1, "b": 2}, unk_token="[UNK]")
    theirs = tokenizers.Tokenizer(model)
    theirs.pre_tokenizer = pre_tokenizers.Whitespace()
    ours = hf.Tokenizer.from_str(theirs.to_str())
    for rows in (
        numpy.array([("a b", "b"), ("b", "a a")]),
        numpy.array([("a b", "b"), ("b", "a a")], dtype=object),
    ):
        expected = theirs.encode_batch(rows)
        found = ours.encode_batch(rows)
        assert [fields(each) for each in found] == [fields(each) for each in expected]
        assert found[0].type_ids == [0, 0, 1]
    for wrong in (numpy.array([["a", "b", "c"]]), numpy.array([[1, 2]])):
        assert outcome(lambda: ours.encode_batch(wrong)) == outcome(  # noqa: B023
            lambda: theirs.encode_batch(wrong)  # noqa: B023
        )
