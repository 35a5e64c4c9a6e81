"""Tests that building a vocabulary takes linear work, for tokens of any bytes."""

from __future__ import annotations

import base64
import os

import pytest
from work import work

import bpe_engine
from bpe_engine import load

BYTES = {bytes([byte]): byte for byte in range(256)}
PATTERN = r"\w+|\W+"


def ranks(tokens) -> dict[bytes, int]:
    result = dict(BYTES)
    for token in tokens:
        result.setdefault(token, len(result))
    return result


def random_tokens(count: int, length: int):
    """Yields pseudorandom tokens, the same in each run."""
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


@pytest.mark.parametrize("name", VOCABULARIES)
def test_building_is_linear_work(name):
    """Such vocabularies once took 40 times as long to build as in tiktoken, and more if larger."""
    kwargs = {"pat_str": PATTERN, "mergeable_ranks": VOCABULARIES[name](), "special_tokens": {}}
    tokens = kwargs["mergeable_ranks"]
    done = work(lambda: bpe_engine.Encoding("x", **kwargs))
    assert done <= 20 * (sum(map(len, tokens)) + len(tokens)), done


def test_a_giant_token_in_a_file_is_linear_work(tmp_path):
    path = tmp_path / "giant.tiktoken"
    token = os.urandom(1000) * 8000
    rows = b"".join(base64.b64encode(byte) + b" %d\n" % rank for byte, rank in BYTES.items())
    path.write_bytes(rows + base64.b64encode(token) + b" 256\n")
    assert work(lambda: load.load_tiktoken_bpe(str(path))) < 5 * len(token)
    assert work(lambda: load.load_encoding(path, r"(?s:.)+")) < 20 * len(token)
    encoding = load.load_encoding(path, r"(?s:.)+")
    assert encoding.decode_single_token_bytes(256) == token


def test_special_tokens_that_begin_with_each_other():
    # With quadratic work, this would take half an hour.
    names = {f"t{number}": 256 + number for number in range(1_000_000)}
    encoding = bpe_engine.Encoding(
        "x", pat_str=PATTERN, mergeable_ranks=BYTES, special_tokens=names
    )
    assert encoding.encode("t12t999999t", allowed_special="all") == [268, 1_000_255, ord("t")]
