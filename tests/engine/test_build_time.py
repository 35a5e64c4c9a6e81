"""Building a vocabulary takes time in step with its bytes, whatever they are, and can be ended."""

from __future__ import annotations

import base64
import os
import time

import pytest
import tiktoken

import bpe_engine
from bpe_engine import load

BYTES = {bytes([byte]): byte for byte in range(256)}
PATTERN = r"\w+|\W+"
CL100K = os.path.join(os.path.dirname(__file__), "../../data/cl100k_base.tiktoken")


def ranks(tokens) -> dict[bytes, int]:
    result = dict(BYTES)
    for token in tokens:
        result.setdefault(token, len(result))
    return result


def random_tokens(count: int, length: int):
    """Bytes of no pattern, the same in each run."""
    state = 1
    for _ in range(count):
        state = state * 6364136223846793005 + 1442695040888963407 & (1 << 64) - 1
        yield (state * 0x9E3779B97F4A7C15).to_bytes(16, "little")[3 : 3 + length]


VOCABULARIES = {
    "hexadecimal": lambda: ranks(b"%x" % i for i in range(16, 100_000)),
    "decimal": lambda: ranks(b"%d" % i for i in range(10, 100_000)),
    "256 bytes before": lambda: ranks(b"q" * 256 + b"%x" % i for i in range(16, 60_000)),
    "random": lambda: ranks(random_tokens(100_000, 10)),
    "a run of each length": lambda: ranks(b"a" * length for length in range(2, 3000)),
    "runs, the longest first": lambda: ranks(b"a" * length for length in range(2000, 1, -1)),
    "one giant token": lambda: ranks([bytes(range(256)) * 20_000]),
}


def seconds(work) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


@pytest.fixture(scope="module")
def ordinary() -> float:
    """CPU seconds that building takes for each byte of words: what this machine can do."""
    words = ranks(load.load_tiktoken_bpe(CL100K))
    kwargs = {"pat_str": PATTERN, "mergeable_ranks": words, "special_tokens": {}}
    least = min(seconds(lambda: bpe_engine.Encoding("x", **kwargs)) for _ in range(3))
    return least / sum(map(len, words))


@pytest.mark.parametrize("name", VOCABULARIES)
def test_building_is_not_much_slower_than_tiktoken(name, ordinary):
    """It was 40 times as slow, and more with more tokens. The factor allows for other builds."""
    kwargs = {"pat_str": PATTERN, "mergeable_ranks": VOCABULARIES[name](), "special_tokens": {}}
    theirs = seconds(lambda: tiktoken.Encoding("x", **kwargs))
    ours = seconds(lambda: bpe_engine.Encoding("x", **kwargs))
    total = sum(map(len, kwargs["mergeable_ranks"]))
    limit = 3 * theirs + 5 * ordinary * total
    assert ours < limit, f"{ours:.2f} s, tiktoken {theirs:.2f} s, limit {limit:.2f} s"


def test_reading_a_rank_file_is_not_slower_than_tiktoken():
    theirs = min(seconds(lambda: tiktoken.load.load_tiktoken_bpe(CL100K)) for _ in range(3))
    ours = min(seconds(lambda: load.load_tiktoken_bpe(CL100K)) for _ in range(3))
    assert ours < 1.5 * theirs


def test_a_giant_token_in_a_file_is_read_in_time_of_its_length(tmp_path, ordinary):
    path = tmp_path / "giant.tiktoken"
    token = os.urandom(1000) * 8000
    rows = b"".join(base64.b64encode(byte) + b" %d\n" % rank for byte, rank in BYTES.items())
    path.write_bytes(rows + base64.b64encode(token) + b" 256\n")
    assert seconds(lambda: load.load_tiktoken_bpe(str(path))) < ordinary * len(token)
    encoding = None

    def build():
        nonlocal encoding
        encoding = load.load_encoding(path, r"(?s:.)+")

    assert seconds(build) < 8 * ordinary * len(token)
    assert encoding.decode_single_token_bytes(256) == token
