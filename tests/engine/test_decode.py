"""Compares decoded text with `bytes.decode`, including the internal storage of the str."""

from __future__ import annotations

import functools
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pairs import FAMILIES
from seeds import seed_for

import bpe_engine

# The first and last code points of each UTF-8 length, and invalid sequences.
BORDERS = "\0\x7f\x80\xff\u0100\u07ff\u0800\ud7ff\ue000\uffff\U00010000\U0010ffff"
WRONG = [b"\x80", b"\xbf", b"\xc0\x80", b"\xc1\xbf", b"\xc2", b"\xc2A", b"\xe0\x9f\xbf", b"\xe1\x80",
         b"\xed\xa0\x80", b"\xed\xbf\xbf", b"\xf0\x8f\xbf\xbf", b"\xf0\x90\x80", b"\xf4\x90\x80\x80",
         b"\xf5\x80\x80\x80", b"\xff"]  # fmt: skip

parts = st.one_of(
    st.sampled_from(["a", "word " * 20, "é" * 30, "漢" * 30, "🦀" * 20, *BORDERS]).map(str.encode),
    st.sampled_from(WRONG),
    st.text(max_size=40).map(str.encode),
    st.binary(max_size=8),
)


@functools.cache
def byte_ids() -> list[int]:
    gpt2 = bpe_engine.get_encoding("gpt2")
    return [gpt2.encode_single_token(bytes([byte])) for byte in range(256)]


def check(data: bytes) -> None:
    gpt2 = bpe_engine.get_encoding("gpt2")
    ids = [byte_ids()[byte] for byte in data]
    for tokens in (ids, tuple(ids), np.array(ids, dtype=np.uint32)):
        assert gpt2.decode_bytes(tokens) == data
    for errors in ("replace", "ignore", "backslashreplace"):
        text, expected = gpt2.decode(ids, errors), data.decode("utf-8", errors)
        assert text == expected and hash(text) == hash(expected)
        assert sys.getsizeof(text) == sys.getsizeof(expected)
    try:
        expected = data.decode("utf-8")
    except UnicodeDecodeError:
        with pytest.raises(UnicodeDecodeError):
            gpt2.decode(ids, "strict")
    else:
        assert gpt2.decode(ids, "strict") == expected


@given(st.lists(parts, max_size=12).map(b"".join))
def test_any_bytes(data: bytes) -> None:
    check(data)


@pytest.mark.parametrize("at", [0, 1, 7, 8, 15, 16, 17, 31, 63, 64, 200])
def test_borders_at_any_place(at: int) -> None:
    for part in [*(character.encode() for character in BORDERS), *WRONG]:
        for filler in ("a", "é", "漢", "🦀"):
            check((filler * at).encode() + part + (filler * (200 - at)).encode())
            check((filler * at).encode() + part)


@pytest.mark.parametrize("name", FAMILIES)
def test_any_ids(name: str) -> None:
    enc = bpe_engine.get_encoding(name)
    ids = np.random.default_rng(seed_for("any ids")).integers(0, enc._rank_count, 50_000).tolist()
    ids[100:100] = [enc.eot_token] * 3
    expected = b"".join(map(enc.decode_single_token_bytes, ids))
    for tokens in (ids, tuple(ids), np.array(ids), np.array(ids, dtype=np.uint32)):
        assert enc.decode_bytes(tokens) == expected
        assert enc.decode(tokens) == expected.decode("utf-8", "replace")


def test_ints_of_all_kinds() -> None:
    gpt2 = bpe_engine.get_encoding("gpt2")
    fine = gpt2.encode("hello world")
    assert gpt2.decode([0, True, *fine]) == '!"hello world'

    class Id(int):
        pass

    assert gpt2.decode([Id(31373), np.int64(995), *fine]) == "hello worldhello world"
    for id in (2**30, 2**30 - 1, 2**31, 2**32 - 1, 50257):
        with pytest.raises(KeyError, match=str(id)):
            gpt2.decode([*fine, id])
    for id in (-1, -31373, 2**32, 2**60, 2**64 + 5, -(2**70)):
        with pytest.raises(OverflowError, match=str(id)):
            gpt2.decode([*fine, id])
    for id in (1.0, "1", None):
        with pytest.raises(TypeError, match="must be an int"):
            gpt2.decode([*fine, id])
