"""Tests exact ids and linear work for long inputs that are hard for BPE."""

from __future__ import annotations

import string

import pytest
from oracles import normalized
from pairs import Pair
from seeds import few, seeded
from work import work

MILLION = 1_000_000

_random = seeded("long inputs")
LETTERS = "".join(_random.choices(string.ascii_lowercase, k=MILLION))
HAN = "".join(chr(_random.randrange(0x4E00, 0x9FA5)) for _ in range(MILLION // 3))

INPUTS = {
    "a": "a" * MILLION,
    "newlines": "\n" * MILLION,
    "han": "的" * (MILLION // 3),
    "ab": "ab" * (MILLION // 2),
    "random letters": LETTERS,
    "random han": HAN,
    "digits": "1" * MILLION,
    "punctuation": "!" * MILLION,
    "bracket and dashes": "(" + "-" * (MILLION - 1),
    "stars among dashes": ("-" * 499 + "*") * (MILLION // 500),
    "emoji": "🤖" * (MILLION // 4),
}

# Runs of a repeated unit, each followed by a different character.
NEAR_RUNS = {
    f"{unit} {length} {end}": (unit * length + end) * (200_000 // (length * len(unit) + len(end)))
    for unit, end in (
        ("-", "="),
        ("=", "-"),
        (" ", "\t"),
        ("a", "b"),
        ("ab", "c"),
        ("/", "*"),
        ("\n", " "),
    )
    for length in (7, 63, 130)
}

# tiktoken panics on such long runs of whitespace, so the pattern determines the expected ids.
SPACES = {"spaces": " " * MILLION, "spaces and a letter": " " * MILLION + "x"}


# Number of characters to encode; tiktoken takes a second for some whole texts.
PART = few([100_000, MILLION])[-1]


@pytest.mark.parametrize("kind", INPUTS)
def test_ids(family: Pair, kind):
    text = INPUTS[kind][:PART]
    expected = family.theirs.encode_ordinary(text)
    assert family.ours.encode(text) == expected
    assert family.ours.count(text) == len(expected)
    assert family.ours.decode(expected) == text


@pytest.mark.parametrize("kind", SPACES)
def test_spaces(family: Pair, kind):
    text = SPACES[kind][-PART:]
    pieces = family.ours.split(text)
    if kind == "spaces":
        assert pieces == [text]
    else:
        assert pieces == [text[:-2], " x"]
    ids = family.ours.encode(text)
    expected = [id for piece in pieces for id in family.theirs._encode_single_piece(piece)]
    assert ids == expected
    assert family.ours.decode(ids) == text


@pytest.mark.parametrize("kind", NEAR_RUNS)
def test_ids_of_near_runs(family: Pair, kind):
    text = NEAR_RUNS[kind][:20_000]
    assert family.ours.encode(text) == family.theirs.encode_ordinary(text)


@pytest.mark.parametrize("kind", [*INPUTS, *SPACES, *NEAR_RUNS])
def test_no_text_takes_much_work(family: Pair, kind):
    """Dashes after a bracket once took 70 times as long per byte as words."""
    text = {**INPUTS, **SPACES, **NEAR_RUNS}[kind][:200_000]
    family.ours.set_caching(False)
    try:
        assert work(lambda: family.ours.count(text)) <= 20 * len(text.encode())
    finally:
        family.ours.set_caching(True)


def test_a_long_text_of_everything(both: Pair):
    parts = [
        "Hello, world! ", "don't ", "12345 ", "世界 ", "e\u0301 ", "🤖", "\n\n  ", "<|endoftext|>",
    ]  # fmt: skip
    text = "".join(_random.choices(parts, k=20_000))
    assert both.ours.encode(text, allowed_special="all") == both.theirs.encode(
        normalized(both.name, text), allowed_special="all"
    )
