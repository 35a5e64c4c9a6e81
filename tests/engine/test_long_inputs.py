"""Tests long inputs that are hard for BPE: exact ids, and linear work."""

from __future__ import annotations

import string

import pytest
from oracles import ENCODINGS, normalized
from pairs import FAMILIES, Pair, pair
from seeds import seeded
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

# Runs with irregular ends, and near repetitions.
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

# A run of whitespace of this length makes tiktoken panic; there the reference is computed from the
# pattern.
SPACES = {"spaces": " " * MILLION, "spaces and a letter": " " * MILLION + "x"}


# Share of a text to encode, in percent. tiktoken takes a second for some of them.
PART = 30
PARTS = [PART, pytest.param(100, marks=pytest.mark.thorough)]

# All other encodings differ from one of these only in ranks or special tokens.
NAMES = [
    *((name, PART) for name in FAMILIES),
    *(pytest.param(name, 100, marks=pytest.mark.thorough) for name in FAMILIES),
    *(
        pytest.param(name, PART, marks=pytest.mark.thorough)
        for name in ENCODINGS
        if name not in FAMILIES
    ),
]


@pytest.mark.parametrize("kind", INPUTS)
@pytest.mark.parametrize(("name", "percent"), NAMES)
def test_ids(name, percent, kind):
    both = pair(name)
    text = INPUTS[kind]
    text = text[: len(text) * percent // 100]
    expected = both.theirs.encode_ordinary(text)
    assert both.ours.encode(text) == expected
    assert both.ours.count(text) == len(expected)
    assert both.ours.decode(expected) == text


@pytest.mark.parametrize("kind", SPACES)
@pytest.mark.parametrize("percent", PARTS)
def test_spaces(family: Pair, percent, kind):
    text = SPACES[kind]
    text = text[-(len(text) * percent // 100) :]
    pieces = family.ours.split(text)
    if kind == "spaces":
        assert pieces == [text]
    else:
        assert pieces == [text[:-2], " x"]
    ids = family.ours.encode(text)
    expected = [id for piece in pieces for id in family.theirs._encode_single_piece(piece)]
    assert ids == expected
    assert family.ours.decode(ids) == text


@pytest.mark.parametrize("kind", [*INPUTS, *SPACES])
def test_work_is_linear(family: Pair, kind):
    text = {**INPUTS, **SPACES}[kind]
    short, long = (work(lambda: family.ours.count(part)) for part in (text[: len(text) // 8], text))
    assert long <= 9 * short + 10_000


@pytest.mark.parametrize("kind", NEAR_RUNS)
def test_ids_of_near_runs(both: Pair, kind):
    text = NEAR_RUNS[kind][:20_000]
    assert both.ours.encode(text) == both.theirs.encode_ordinary(text)


@pytest.mark.parametrize("kind", [*INPUTS, *SPACES, *NEAR_RUNS])
def test_no_text_takes_much_work(both: Pair, kind):
    """A bracket and dashes once took 70 times as long a byte as words."""
    text = {**INPUTS, **SPACES, **NEAR_RUNS}[kind][:200_000]
    both.ours.set_caching(False)
    try:
        assert work(lambda: both.ours.count(text)) <= 20 * len(text.encode())
    finally:
        both.ours.set_caching(True)


def test_a_long_text_of_everything(both: Pair):
    parts = [
        "Hello, world! ", "don't ", "12345 ", "世界 ", "e\u0301 ", "🤖", "\n\n  ", "<|endoftext|>",
    ]  # fmt: skip
    text = "".join(_random.choices(parts, k=20_000))
    assert both.ours.encode(text, allowed_special="all") == both.theirs.encode(
        normalized(both.name, text), allowed_special="all"
    )
