"""Tests that strings in every internal representation give the same ids and stay unchanged."""

from __future__ import annotations

import ctypes
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from pairs import FAMILIES, pair

STORED = {
    "ASCII": "plain words, don't 123\n",
    "Latin-1": "na\u00efve caf\u00e9 \u00ff\u0080 x\n",
    "two bytes": "\u0436\u0438\u0437\u043d\u044c \u6570\u636e \u201cquoted\u201d \ufffd\n",
    "four bytes": "a \u00e9 \u0436 \u6570 \U0001f600 \U0010ffff\n",
    "surrogates": "\ud83d\ude00 \ud83d x \ude00\u6570\n",
    "surrogates, four bytes": "\U0001f600 \ud83d\ude00 \ud83d x \ude00\n",
}
LENGTHS = [0, 1, 2, 15, 16, 17, 31, 33, 64, 100, 5_000, 200_000]


class Subclass(str):
    """A subclass, whose internal representation differs from `str`."""


def texts(kind: str) -> list[str]:
    long = STORED[kind] * (max(LENGTHS) // len(STORED[kind]) + 1)
    return [long[:length] for length in LENGTHS]


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("kind", STORED)
def test_every_kind(name: str, kind: str) -> None:
    both = pair(name)
    all_texts = texts(kind)
    all_ids = [both.expected(text) for text in all_texts]
    for text, expected in zip(all_texts, all_ids):
        assert both.ours.encode(text, disallowed_special=()) == expected
        assert both.ours.encode(Subclass(text), disallowed_special=()) == expected
        assert both.ours.encode_to_numpy(text, disallowed_special=()).tolist() == expected
        assert both.ours.count(text) == len(expected)
    batch = both.ours.encode_ordinary_batch(all_texts, num_threads=2)
    assert batch == all_ids


@pytest.mark.parametrize("kind", ["Latin-1", "two bytes", "four bytes"])
def test_utf8_that_the_interpreter_keeps(kind: str) -> None:
    """A string caches its UTF-8 on first request; later reads use the cache."""
    as_utf8 = ctypes.pythonapi.PyUnicode_AsUTF8
    as_utf8.restype, as_utf8.argtypes = ctypes.c_char_p, [ctypes.py_object]
    both = pair("o200k_base")
    for text in texts(kind)[1:]:
        for same in (text[:1] + text[1:], Subclass(text)):
            assert as_utf8(same) == text.encode()
            assert both.ours.encode(same) == both.expected(text)


def test_a_string_does_not_grow() -> None:
    """Encoding caches nothing in the caller's strings."""
    both = pair("o200k_base")
    for kind in STORED:
        for text in texts(kind):
            size = sys.getsizeof(text)
            both.ours.encode(text, disallowed_special=())
            both.ours.encode_with_offsets(text, disallowed_special=())
            assert sys.getsizeof(text) == size, kind


def test_buffers_are_used_by_one_call_at_a_time() -> None:
    both = pair("o200k_base")
    long = [STORED[kind] * (20_000 + 3_000 * i) for i, kind in enumerate(STORED)]
    expected = [both.expected(text) for text in long]

    def work(which: int) -> None:
        encode = both.ours.encode_to_numpy
        held = [encode(long[which], disallowed_special=()) for _ in range(4)]
        assert all(ids.tolist() == expected[which] for ids in held)

    with ThreadPoolExecutor(len(long)) as threads:
        list(threads.map(work, range(len(long))))
