"""Compares `_educational` with tiktoken's: vocabularies, ids, errors, colored tokens."""

from __future__ import annotations

import inspect
import subprocess
import sys
import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiktoken import _educational as theirs

from bpe_engine import _educational as ours
from bpe_engine import get_encoding

WORDS = r"\w+|\W+"
GPT2 = r"""'s|'t|'re|'ve|'m|'ll|'d| ?[\p{L}]+| ?[\p{N}]+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""
TEXT = "ab abab the theme of them, 根本 is 根 aaaa aaa's\n\n" * 3
RANKS = {bytes([byte]): byte for byte in range(256)}
RANKS |= {b"ab": 256, b"abab": 257, b"ba": 258, "根".encode(): 259, b"aa": 260}

# A small alphabet makes texts repeat.
texts = st.text(alphabet="aab' \n根é1", max_size=60)


@pytest.mark.parametrize("name", ["bpe_encode", "bpe_train", "visualise_tokens"])
def test_arguments(name):
    def arguments(module):
        signature = inspect.signature(getattr(module, name))
        return [(p.name, p.kind, p.default) for p in signature.parameters.values()]

    assert arguments(ours) == arguments(theirs)


def test_names():
    for name in vars(theirs.SimpleBytePairEncoding):
        assert hasattr(ours.SimpleBytePairEncoding, name), name
    made = theirs.SimpleBytePairEncoding(pat_str=WORDS, mergeable_ranks=RANKS)
    mine = ours.SimpleBytePairEncoding(pat_str=WORDS, mergeable_ranks=RANKS)
    assert vars(made).keys() == vars(mine).keys()


@pytest.mark.parametrize("pattern", [WORDS, GPT2])
@given(text=texts, size=st.integers(256, 275))
def test_training(pattern, text, size):
    try:
        expected = theirs.bpe_train(text, size, pattern, visualise=None)
    except ValueError:
        with pytest.raises(ValueError, match="no pair left to merge"):
            ours.bpe_train(text, size, pattern, visualise=None)
        return
    learnt = ours.bpe_train(text, size, pattern, visualise=None)
    assert list(learnt.items()) == list(expected.items())


@given(text=texts)
def test_encoding_and_decoding(text):
    made = theirs.SimpleBytePairEncoding(pat_str=GPT2, mergeable_ranks=RANKS)
    mine = ours.SimpleBytePairEncoding(pat_str=GPT2, mergeable_ranks=RANKS)
    ids = made.encode(text, visualise=None)
    assert mine.encode(text, visualise=None) == ids
    assert mine.decode(ids[1:]) == made.decode(ids[1:])
    assert mine.decode_bytes(ids) == made.decode_bytes(ids)
    assert mine.decode_tokens_bytes(ids) == made.decode_tokens_bytes(ids)


@pytest.mark.parametrize("visualise", ["colour", "color", "simple", None, "nonsense"])
@pytest.mark.parametrize("piece", ["ababa", "根本 a", "", "é"])
def test_what_is_printed_while_encoding(capsys, visualise, piece):
    expected = theirs.bpe_encode(RANKS, piece.encode(), visualise), capsys.readouterr().out
    assert (ours.bpe_encode(RANKS, piece.encode(), visualise), capsys.readouterr().out) == expected


@given(tokens=st.lists(st.binary(max_size=9)))
def test_colored_tokens(tokens):
    import contextlib
    import io

    printed = []
    for module in (ours, theirs):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            module.visualise_tokens(tokens)
        printed.append(out.getvalue())
    assert printed[0] == printed[1]


def test_training_shows_each_merge(capsys):
    for visualise, shown in [("colour", "\x1b[48;5;"), ("simple", "[b'ab'")]:
        ours.bpe_train(TEXT, 258, WORDS, visualise)
        out = capsys.readouterr().out
        assert shown in out
        assert "is token 256:" in out and "is token 257:" in out
    encoding = ours.SimpleBytePairEncoding.train(TEXT, 270, GPT2)
    expected = theirs.bpe_train(TEXT, 270, GPT2, visualise=None)
    assert encoding.mergeable_ranks == expected
    assert encoding.pat_str == GPT2


def test_from_an_encoding():
    gpt2 = get_encoding("gpt2")
    for source in ("gpt2", gpt2):
        simple = ours.SimpleBytePairEncoding.from_tiktoken(source)
        text = "hello world 根本"
        assert simple.encode(text, visualise=None) == gpt2.encode(text)
        assert simple.decode(gpt2.encode(text)) == text


def test_the_demonstration(capsys):
    encoding = ours.train_simple_encoding()
    assert len(encoding.mergeable_ranks) == 600
    assert encoding.decode(encoding.encode("hello world", visualise=None)) == "hello world"


def test_errors():
    for size in (0, 255):
        with pytest.raises(ValueError, match=f"vocab_size must be at least 256.* not {size}"):
            ours.bpe_train(TEXT, size, WORDS)
    with pytest.raises(KeyError):
        ours.bpe_encode({b"a": 0}, b"ab", visualise=None)
    with pytest.raises(KeyError):
        ours.SimpleBytePairEncoding(pat_str=".", mergeable_ranks={b"a": 0}).decode([1])


def test_under_tiktokens_name_and_without_regex():
    program = """
    import sys
    sys.modules["regex"] = None
    import bpe_engine
    bpe_engine.install()
    import pytest
    with pytest.raises(ImportError, match="pip install 'bpe-engine.reference.'"):
        import tiktoken._educational
    del sys.modules["regex"]
    import tiktoken._educational
    from tiktoken._educational import SimpleBytePairEncoding
    assert SimpleBytePairEncoding.__module__ == "bpe_engine._educational"
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
