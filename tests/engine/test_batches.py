"""Tests that batches and threads give the same ids as single calls."""

from __future__ import annotations

import gc
import re
import subprocess
import sys

import numpy as np
import pytest
import tiktoken
from hypothesis import given
from hypothesis import strategies as st
from pairs import FAMILIES, Pair, pair

import bpe_engine
from bpe_engine.abilities.ragged import TokenBatch

END = "<|endoftext|>"

# Strings near which a cut could be wrong: spaces, contractions, Han, names of special tokens.
PARTS = ["a", "Word", " ", "  ", "\n", "\r\n", "'s", "的", "汉字", "。", "，", "1", "23", "<|", "|>", "🦀",
         "é", "e\u0301", "\u3000", "\ud800", END, "한국어", "!", "don't "]  # fmt: skip
texts = st.lists(st.sampled_from(PARTS), max_size=40).map("".join)


def rows(flat: TokenBatch) -> list[list[int]]:
    ids, splits = flat.values, flat.row_splits
    assert (ids.dtype, splits.dtype) == (np.uint32, np.int64)
    assert splits[0] == 0 and splits[-1] == len(ids)
    return [ids[a:b].tolist() for a, b in zip(splits[:-1], splits[1:], strict=True)]


def long_texts() -> list[str]:
    """Returns texts long enough for several threads."""
    prose = "It's a word, 汉字汉字。 Don't stop  here\n\n 123456 한국어 <|endoftext|>x "
    return [prose * 6000, "汉字没有空格，" * 40_000, "的" * 100_000, END * 20_000, "a " * 150_000]


@pytest.mark.parametrize("threads", [1, 2, 8, None])
@pytest.mark.parametrize("name", FAMILIES)
def test_batches_equal_single_calls(name: str, threads: int | None) -> None:
    enc = bpe_engine.get_encoding(name)
    batch = [f"text {i} 汉字 " * (i * 7 % 90) + END * (i % 3) for i in range(300)]
    batch += ["", "x" * 100_000, ""]
    expected = [enc.encode_ordinary(text) for text in batch]
    assert enc.encode_ordinary_batch(batch, num_threads=threads) == expected
    assert enc.encode_batch(batch, num_threads=threads, disallowed_special=()) == expected
    flat = enc.encode_batch_to_numpy(batch, num_threads=threads, disallowed_special=())
    assert rows(flat) == expected
    flat.values[:] = 0  # The caller owns the array and can change it.
    allowed = [enc.encode(text, allowed_special={END}) for text in batch]
    assert rows(enc.encode_batch_to_numpy(batch, allowed_special={END})) == allowed
    assert enc.decode_batch(expected, num_threads=threads) == batch
    assert enc.decode_bytes_batch(expected, num_threads=threads) == [t.encode() for t in batch]


def test_garbage_collector_is_restored() -> None:
    enc = bpe_engine.get_encoding("gpt2")
    batch = ["a word"] * 5000
    runs = []
    gc.callbacks.append(lambda phase, info: runs.append(phase))
    try:
        for switch in (gc.enable, gc.disable):
            switch()
            runs.clear()
            assert enc.encode_batch(batch) == [enc.encode("a word")] * 5000
            # For thousands of lists, one collection at the end is enough.
            assert runs.count("start") <= 1
            is_enabled = gc.isenabled()
            with pytest.raises(ValueError, match="endoftext"):
                enc.encode_batch([*batch, END])
            assert gc.isenabled() == is_enabled == (switch is gc.enable)
    finally:
        gc.callbacks.pop()
        gc.enable()


@pytest.mark.parametrize("threads", [1, 8])
def test_first_error_of_a_batch_is_raised(threads: int) -> None:
    enc = bpe_engine.get_encoding("o200k_base")
    batch = ["fine " * 1000] * 200
    batch[50], batch[150] = "<|endofprompt|>", END
    for call in (enc.encode_batch, enc.encode_batch_to_numpy):
        with pytest.raises(ValueError, match="endofprompt"):
            call(batch, num_threads=threads)
    bad = [enc.encode("fine " * 1000)] * 200
    bad[70], bad[170] = [1, 5_000_000], [6_000_000]
    with pytest.raises(KeyError, match="5000000"):
        enc.decode_batch(bad, num_threads=threads)
    for wrong, error in ((0, ValueError), (-1, ValueError), ("2", TypeError)):
        with pytest.raises(error, match="num_threads"):
            enc.encode_batch_to_numpy(["a"], num_threads=wrong)
        with pytest.raises(error, match="num_threads"):
            enc.encode_to_numpy("a", num_threads=wrong)


@pytest.mark.parametrize("text", long_texts(), ids=["prose", "han", "one piece", "special", "a"])
def test_a_long_text_on_threads(both: Pair, text: str) -> None:
    enc = both.ours
    for allowed in (set(), {END}):
        one = enc.encode_to_numpy(text, allowed_special=allowed, disallowed_special=())
        for threads in (2, 8, None):
            many = enc.encode_to_numpy(
                text, allowed_special=allowed, disallowed_special=(), num_threads=threads
            )
            assert np.array_equal(one, many)
    if END in text:
        with pytest.raises(ValueError, match="endoftext"):
            enc.encode_to_numpy(text, num_threads=2)


@pytest.mark.parametrize("name", FAMILIES)
@given(text=texts)
def test_hard_texts_on_threads(name: str, text: str) -> None:
    both = pair(name)
    for allowed in (set(), {END}):
        # The text is long enough for two threads, and contains copies of the text around every cut.
        long = text * (130_000 // (len(text.encode("utf-8", "surrogatepass")) or 130_000) + 1)
        arguments = {"allowed_special": allowed, "disallowed_special": ()}
        one = both.ours.encode_to_numpy(long, **arguments)
        many = both.ours.encode_to_numpy(long, num_threads=2, **arguments)
        assert np.array_equal(one, many)


def test_custom_pattern_on_threads() -> None:
    enc = bpe_engine.Encoding(
        "bytes", pat_str=r"\w+|\W", mergeable_ranks={bytes([i]): i for i in range(256)},
        special_tokens={END: 256},
    )  # fmt: skip
    text = ("some words " * 9000 + END) * 4
    ids = enc.encode_to_numpy(text, allowed_special="all", num_threads=4)
    assert ids.tolist() == enc.encode(text, allowed_special="all")


@pytest.mark.parametrize("Encoding", [bpe_engine.Encoding, tiktoken.Encoding])
def test_batches_call_overridden_methods(Encoding):
    class Upper(Encoding):
        def encode(self, text, **options):
            assert options["allowed_special"] == {END}
            assert options["disallowed_special"] == frozenset()
            return super().encode(text.upper(), **options)

        def encode_ordinary(self, text):
            return super().encode_ordinary(text.upper())

    small = {"mergeable_ranks": {b"a": 0, b"A": 1}, "special_tokens": {END: 2}}
    upper = Upper("upper", pat_str=".", **small)
    assert upper.encode_batch(["a", "aa"], allowed_special="all") == [[1], [1, 1]]
    assert upper.encode_ordinary_batch(["a", "aa"]) == [[1], [1, 1]]
    plain = Encoding("plain", pat_str=".", **small)
    assert plain.encode_ordinary_batch(["a"]) == [[0]]
    plain.encode_ordinary = lambda text: [len(text)]
    plain.encode = lambda text, **options: [len(text), len(options)]
    assert plain.encode_ordinary_batch(["aaa"]) == [[3]]
    assert plain.encode_batch(["aaa"]) == [[3, 2]]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        ("encode_to_numpy('a')", "encode_to_numpy needs numpy.*pip install numpy.*encode"),
        ("encode_batch_to_numpy(['a'])", "encode_batch_to_numpy needs .* Encoding.encode_batch"),
    ],
)
def test_error_without_numpy(call: str, error: str) -> None:
    """Without numpy, the error says what to install, and which method needs no numpy."""
    program = (
        "import sys; sys.modules['numpy'] = None; import bpe_engine\n"
        f"bpe_engine.get_encoding('gpt2').{call}"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert re.search(f"ImportError: .*{error}", done.stderr), done.stderr
