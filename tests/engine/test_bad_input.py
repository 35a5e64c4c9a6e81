"""Tests that errors for wrong input name the problem and a remedy."""

from __future__ import annotations

import numpy as np
import pytest

import bpe_engine
from bpe_engine import Encoding, get_encoding

RANKS = {bytes([byte]): byte for byte in range(256)}


def make(**changes):
    arguments = {"pat_str": r"\w+|\W+", "mergeable_ranks": RANKS, "special_tokens": {}}
    return Encoding("mine", **{**arguments, **changes})


TEXT_METHODS = [
    "encode", "encode_ordinary", "encode_to_numpy", "encode_with_unstable", "encode_with_offsets",
    "count", "split", "find_special",
]  # fmt: skip


@pytest.mark.parametrize("method", TEXT_METHODS)
@pytest.mark.parametrize("text", [b"a", bytearray(b"a"), None, 5, 1.5, ["a"], ("a",)])
def test_wrong_type_of_text(gpt2, method, text):
    with pytest.raises(TypeError, match=f"text must be a str, not {type(text).__name__}"):
        getattr(gpt2, method)(text)
    if isinstance(text, (bytes, bytearray)):
        with pytest.raises(TypeError, match=r'decode it first, as in text.decode\("utf-8"\)'):
            getattr(gpt2, method)(text)


@pytest.mark.parametrize("method", ["encode_batch", "encode_ordinary_batch"])
def test_wrong_type_of_batch(gpt2, method):
    batch = getattr(gpt2, method)
    for texts in (None, 5):
        with pytest.raises(TypeError):
            batch(texts)
    for item in (b"a", None, 5, ["a"]):
        with pytest.raises(TypeError, match="text must be a str"):
            batch(["fine", item])
    for number in (0, -1):
        with pytest.raises(ValueError, match=f"num_threads must be greater than 0, not {number}"):
            batch(["a"], num_threads=number)
    with pytest.raises(TypeError):
        batch(["a"], num_threads="2")
    assert batch([]) == []
    assert batch(("a", "b")) == batch(iter(["a", "b"])) == batch("ab")
    assert batch(["a"], num_threads=None) == batch(["a"])


def test_columns_where_lists_are_read(gpt2):
    """A column is refused before any item is read: reading a damaged item can crash the process."""
    pyarrow = pytest.importorskip("pyarrow")
    whole = pyarrow.array(["a", "b"])
    numbers = np.array([0, 2, 1], np.int32).tobytes()
    lying = pyarrow.Array.from_buffers(
        pyarrow.string(), 2, [None, pyarrow.py_buffer(numbers), whole.buffers()[2]]
    )
    for column in (whole, lying, pyarrow.chunked_array([lying])):
        with pytest.raises(TypeError, match=r"list of str, not pyarrow\.\w+; pass column.to_pyl"):
            gpt2.encode_batch(column)


def test_error_in_one_item_of_a_batch(gpt2):
    texts = ["fine"] * 50 + ["a<|endoftext|>"] + ["fine"] * 50
    with pytest.raises(ValueError, match="disallowed special token '<|endoftext|>'"):
        gpt2.encode_batch(texts)
    with pytest.raises(KeyError, match="Invalid token for decoding: 99999"):
        gpt2.decode_batch([[1], [99999]])
    with pytest.raises(OverflowError):
        gpt2.decode_bytes_batch([[1], [-1]])
    with pytest.raises(TypeError):
        gpt2.decode_batch([5])
    with pytest.raises(UnicodeDecodeError):
        gpt2.decode_batch([[162]], errors="strict")


@pytest.mark.parametrize("argument", ["allowed_special", "disallowed_special"])
def test_wrong_type_of_special_arguments(gpt2, argument):
    with pytest.raises(TypeError, match=rf"{argument} must be \"all\" or a set of names, not the "):
        gpt2.encode("a", **{argument: "<|endoftext|>"})
    with pytest.raises(TypeError, match=rf"for this one name pass {argument}="):
        gpt2.encode("a", **{argument: "<|endoftext|>"})
    for wrong in (5, b"all", {5}, ["a", None], [b"a"]):
        with pytest.raises(TypeError, match=f'{argument} must be "all" or a set of str'):
            gpt2.encode("a", **{argument: wrong})


def test_collections_of_special_names(gpt2):
    assert gpt2.encode("a", allowed_special={"nothing"}) == [64]
    assert gpt2.encode("<|endoftext|>", allowed_special=frozenset({"<|endoftext|>"})) == [50256]
    ordinary = gpt2.encode_ordinary("<|endoftext|>")
    assert gpt2.encode("<|endoftext|>", disallowed_special=None) == ordinary
    unstable = gpt2.encode_with_unstable
    assert unstable("<|endoftext|>", disallowed_special=None) == unstable(
        "<|endoftext|>", disallowed_special=()
    )
    for kind in (list, tuple, set, frozenset, iter, dict.fromkeys):
        with pytest.raises(ValueError, match="disallowed special token 'b'"):
            gpt2.encode("abc", disallowed_special=kind(["b"]))
    with pytest.raises(ValueError, match="disallowed special token ''"):
        gpt2.encode("abc", disallowed_special=[""])
    # Disallowed names raise even if they are also allowed, and even after a surrogate.
    with pytest.raises(ValueError):
        gpt2.encode("b", allowed_special={"b"}, disallowed_special={"b"})
    with pytest.raises(ValueError):
        gpt2.encode("\ud800<|endoftext|>")


DECODERS = ["decode", "decode_bytes", "decode_tokens_bytes", "decode_with_offsets"]


@pytest.mark.parametrize("method", DECODERS)
def test_types_and_range_of_ids(gpt2, method):
    decode = getattr(gpt2, method)
    expected = decode([31373, 995])
    for ids in [
        (31373, 995),
        np.array([31373, 995]),
        np.array([31373, 995], dtype=np.uint32),
        np.array([31373, 995], dtype=np.uint64),
        np.array([31373, 995], dtype=np.int32),
        np.array([31373, 995], dtype=np.uint16),
        np.array([31373, 995], dtype=object),
        np.array([31373, 995], dtype=">u4"),
        np.array([31373, 0, 995, 0])[::2],
        [np.int64(31373), np.uint16(995)],
        gpt2.encode_to_numpy("hello world"),
        memoryview(np.array([31373, 995])),
    ]:
        assert decode(ids) == expected
    assert decode([True]) == decode([1])
    assert decode(b"\x01\x02") == decode(bytearray([1, 2])) == decode(range(1, 3)) == decode([1, 2])
    assert decode([]) == decode(np.array([], dtype=np.uint32))

    for ids in ([50257], (2**32 - 1,), np.array([50257]), np.array([1, 50257], dtype=np.uint32)):
        with pytest.raises(KeyError, match=r"Invalid token for decoding: (50257|4294967295)"):
            decode(ids)
    for ids in ([-1], [2**32], [2**70], np.array([-1]), np.array([2**40]), [np.int64(-1)]):
        with pytest.raises(OverflowError, match="ids are 0 to 4294967295"):
            decode(ids)
    for ids in ([1.0], ["a"], [None], [[1]], np.array([1.0]), np.array(["a"]), "ab", "", None, 5):
        if method in ("decode", "decode_bytes") or ids != "":
            with pytest.raises(TypeError):
                decode(ids)
    for ids in (np.array([[1, 2]]), np.array(1), np.array([True])):
        with pytest.raises(TypeError):
            decode(ids)


@pytest.mark.parametrize("method", ["decode", "decode_bytes"])
def test_ids_that_are_not_a_sequence(gpt2, method):
    for ids in ({1}, (id for id in [1]), {1: 2}):
        with pytest.raises(TypeError, match=r"not (set|generator|dict); pass list\(...\) of it"):
            getattr(gpt2, method)(ids)


def test_wrong_single_ids(gpt2):
    decode = gpt2.decode_single_token_bytes
    assert decode(np.int64(1)) == decode(1) == decode(True)
    with pytest.raises(KeyError, match="Invalid token for decoding: 50257"):
        decode(50257)
    with pytest.raises(OverflowError, match="the token id -1 is out of range"):
        decode(-1)
    with pytest.raises(OverflowError, match="the token id 4294967296 is out of range"):
        decode(2**32)
    for call in (decode, lambda id: gpt2.decode([id])):
        with pytest.raises(OverflowError, match="the token id with thousands of digits is out of"):
            call(10**5000)
    for wrong in (1.0, "a", None, [1]):
        with pytest.raises(TypeError, match=f"must be an int, not {type(wrong).__name__}"):
            decode(wrong)
        with pytest.raises(TypeError, match=f"must be an int, not {type(wrong).__name__}"):
            gpt2.is_special_token(wrong)
    assert gpt2.is_special_token(50256)
    assert gpt2.is_special_token(np.int64(50256))
    assert not gpt2.is_special_token(1)


def test_lists_that_change_while_they_are_read(gpt2):
    class Shrinks:
        def __index__(self):
            ids.clear()
            return 1

    ids = [Shrinks(), 2, 3]
    assert gpt2.decode(ids) in ('"', '"#$')


def test_encode_unknown_or_wrong_single_tokens(gpt2):
    with pytest.raises(KeyError) as caught:
        gpt2.encode_single_token("helloqqq")
    assert caught.value.args == (b"helloqqq",)
    with pytest.raises(KeyError):
        gpt2.encode_single_token(b"\xff\xff")
    with pytest.raises(KeyError):
        gpt2.encode_single_token("")
    for wrong in (5, None, ["hello"]):
        with pytest.raises(TypeError, match="expected str or bytes"):
            gpt2.encode_single_token(wrong)
        with pytest.raises(TypeError, match="expected str or bytes"):
            gpt2._encode_single_piece(wrong)
    with pytest.raises(TypeError):
        gpt2._encode_bytes("a")
    assert gpt2._encode_single_piece("") == []
    assert gpt2._encode_bytes(b"") == []


def test_errors_argument_of_decode(gpt2):
    with pytest.raises(LookupError, match="bogus"):
        gpt2.decode([162], errors="bogus")
    with pytest.raises(UnicodeDecodeError):
        gpt2.decode([162], errors="strict")
    with pytest.raises(TypeError, match='errors must be a str such as "replace", not None'):
        gpt2.decode([162], errors=None)
    with pytest.raises(TypeError, match='errors must be a str such as "replace", not the int 5'):
        gpt2.decode_batch([[31373]], errors=5)
    with pytest.raises(ValueError):
        gpt2.decode([162], errors="a\0b")


STR, DICT = "must be a str with a regular expression, not", "must be a dict, not"


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"pat_str": "("}, ValueError, r'pattern "\(" does not compile'),
        ({"pat_str": r"\p{Nonsense}"}, ValueError, "does not compile"),
        ({"pat_str": None}, TypeError, f"pat_str {STR} None$"),
        ({"pat_str": b"."}, TypeError, f"pat_str {STR} the bytes b'.'$"),
        ({"mergeable_ranks": {}}, ValueError, "needs at least one token"),
        ({"mergeable_ranks": {**RANKS, b"ab": 97}}, ValueError, "share the rank 97"),
        ({"mergeable_ranks": {**RANKS, b"ab": -1}}, OverflowError, "b'ab': the token id -1 is out"),
        ({"mergeable_ranks": {**RANKS, b"ab": 1.5}}, TypeError, "b'ab': .* an int, not float"),
        (
            {"mergeable_ranks": {"a": 0}},
            TypeError,
            "mergeable_ranks must be bytes, not the str 'a'",
        ),
        ({"mergeable_ranks": {b"a": "0"}}, TypeError, "a token id must be an int, not str"),
        ({"mergeable_ranks": None}, TypeError, f"mergeable_ranks {DICT} None$"),
        ({"mergeable_ranks": [b"a"]}, TypeError, rf"mergeable_ranks {DICT} the list \[b'a'\]$"),
        (
            {"special_tokens": {"<x>": 2**32}},
            OverflowError,
            "'<x>': the token id 4294967296 is out",
        ),
        ({"special_tokens": {b"a": 300}}, TypeError, "tokens must be str, not the bytes b'a'"),
        ({"special_tokens": {"": 300}}, ValueError, "with id 300 has an empty name"),
        (
            {"special_tokens": {"<x>": 97}},
            ValueError,
            'the id 97 of the special token "<x>" is taken',
        ),
        ({"special_tokens": {"<\ud800>": 300}}, ValueError, r"name '<\\ud800>' .* contains a surr"),
        ({"special_tokens": None}, TypeError, f"special_tokens {DICT} None$"),
        (
            {"special_tokens": [("x", 1)]},
            TypeError,
            rf"special_tokens {DICT} the list \[\('x', 1\)\]$",
        ),
        ({"explicit_n_vocab": 257}, ValueError, "is 257, but there are 256 tokens"),
        (
            {"explicit_n_vocab": 257, "special_tokens": {"<x>": 300}},
            ValueError,
            "the largest id should be 256, but it is 300",
        ),
    ],
)
def test_invalid_constructor_arguments(changes, error, message):
    with pytest.raises(error, match=message):
        make(**changes)


def test_explicit_n_vocab():
    assert make(explicit_n_vocab=0).n_vocab == 256  # As in tiktoken, zero means no value.
    assert make(explicit_n_vocab=256).n_vocab == 256
    assert make(explicit_n_vocab=257, special_tokens={"<|x|>": 256}).n_vocab == 257


def test_a_missing_byte():
    letters = make(mergeable_ranks={b"a": 0, b"b": 1, b"ab": 2})
    assert letters.encode("abba") == [2, 1, 0]
    with pytest.raises(ValueError, match="the byte 0x63 is not a token"):
        letters.encode("abc")
    with pytest.raises(ValueError, match="the byte 0xe6 is not a token"):
        letters.encode("a根")


def test_runaway_patterns():
    """Empty matches and expensive patterns neither panic nor hang."""
    for pattern in ["", "a*", "(?=a)", r"\b", "x*|y*"]:
        ids = make(pat_str=pattern).encode("a b根 xx")
        assert isinstance(ids, list)
    bomb = make(pat_str=r"(?:a+)+(?=b)(?!c)|a(?<=a)$")
    try:
        bomb.encode("a" * 5000 + "c")
    except ValueError as error:
        assert "simplify the pattern" in str(error)
    deep = make(pat_str=r"(?:(?=.)[\s\S])+")
    try:
        deep.encode("ab" * 200_000)
    except ValueError as error:
        assert "simplify the pattern" in str(error)


def test_missing_eot_token():
    with pytest.raises(KeyError, match=r"<\|endoftext\|>"):
        _ = make().eot_token


@pytest.mark.parametrize(
    ("call", "argument", "error", "message"),
    [
        ("get_encoding", "nope", ValueError, "Unknown encoding nope. .*o200k_base"),
        ("get_encoding", "o20k_base", ValueError, "Did you mean 'o200k_base'.*o200k_harmony"),
        ("get_encoding", "CL100K-Base", ValueError, "Did you mean 'cl100k_base'"),
        ("get_encoding", "o200k", ValueError, r"'o200k_base' or 'o200k_harmony'\?"),
        ("get_encoding", "qwen2", ValueError, "Did you mean 'qwen"),
        ("get_encoding", "ranks/mine.tiktoken", ValueError, "To read a file, call load_encoding"),
        ("get_encoding", "gpt-4o", ValueError, "name of a model, call encoding_for_model"),
        ("get_encoding", None, ValueError, "Expected a string in get_encoding"),
        ("get_encoding", b"gpt2", ValueError, "Expected a string in get_encoding"),
        ("encoding_for_model", "nope", KeyError, "of the model 'nope' is unknown"),
        ("encoding_for_model", "gpt4o", KeyError, "'gpt4o' is unknown. Did you mean 'gpt-4o'"),
        ("encoding_for_model", "gpt-oss", KeyError, r"Did you mean 'gpt-oss-\*'"),
        ("encoding_for_model", "qwen3", KeyError, r"encoding: call get_encoding\('qwen3'\)"),
        ("load_encoding", "qwen3", FileNotFoundError, r"get_encoding\('qwen3'\) returns the"),
        ("encoding_name_for_model", None, TypeError, "must be a str, not NoneType"),
    ],
)
def test_unknown_and_misspelt_names(call, argument, error, message):
    with pytest.raises(error, match=f"(?s){message}"):
        getattr(bpe_engine, call)(argument)


@pytest.mark.parametrize("name", ["nonsense", "x" * 10**6, ""])
def test_names_that_are_like_no_other(name):
    with pytest.raises(KeyError) as error:
        bpe_engine.encoding_for_model(name)
    assert "Did you mean" not in error.value.args[0]


def test_special_tokens_may_share_an_id():
    """Two names can share an id, as in o200k_harmony; the id decodes to the first name."""
    shared = make(special_tokens={"<|a|>": 300, "<|b|>": 300})
    assert shared.encode("<|b|><|a|>", allowed_special="all") == [300, 300]
    assert shared.decode([300]) == "<|a|>"
    assert get_encoding("o200k_harmony").decode([200_018]) == "<|endofprompt|>"


def test_arguments_are_copied():
    ranks, special = dict(RANKS), {"<|x|>": 300}
    mine = make(mergeable_ranks=ranks, special_tokens=special)
    ranks[b"ab"] = 256
    special["<|y|>"] = 301
    special.pop("<|x|>")
    assert mine._mergeable_ranks == RANKS
    assert mine._special_tokens == {"<|x|>": 300}
    assert mine.special_tokens_set == {"<|x|>"}


@pytest.mark.parametrize("huge", [2**63 - 1, 2**63, 2**64, 2**70])
def test_huge_limits(gpt2, huge):
    text = "hello world " * 5
    assert gpt2.truncate(text, huge) == gpt2.truncate(text, huge, side="left") == text
    assert gpt2.chunk(text, huge) == gpt2.chunk(text, huge, overlap=huge - 1) == [text]
    assert gpt2.chunk(text, 2 * huge, overlap=huge) == [text]
    assert gpt2.count_till_limit(text, huge) == gpt2.count(text)
    with pytest.raises(ValueError, match="overlap must be smaller than max_tokens"):
        gpt2.chunk(text, huge, overlap=huge)


def test_empty_string_instead_of_special_names(gpt2):
    with pytest.raises(TypeError, match=r"string ''; to pass no names, use .*special=\(\)$"):
        gpt2.encode("a", disallowed_special="")
