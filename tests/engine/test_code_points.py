"""Encodes every Unicode code point in contexts that reveal its class."""

from __future__ import annotations

import functools
import itertools
import unicodedata

from oracles import normalized
from pairs import Pair
from seeds import EXAMPLES

CONTEXTS = ["{}", "a{}b", " {} ", "1{}2", "A{}", "!{}!", "'{}s", "\n{}\n", "  {}x"]

# Planes whose code points are all unassigned, private-use or of one kind.
UNIFORM_PLANES = [2, *range(4, 14), 15, 16]
FEW_CONTEXTS = ["A{}b", " {}1"]

# Where all neighbors have one category, one code point in this many is tested.
EVERY = 67


def is_one_of_many(code: int) -> bool:
    """Returns True if a code point can be skipped: its neighbors have the same category."""
    if code < 0x3000 or code % EVERY == 0 or code == 0x10FFFF:
        return False
    neighbors = {unicodedata.category(chr(c)) for c in (code - 1, code, code + 1)}
    return len(neighbors) == 1


@functools.cache
def code_points() -> list[int]:
    codes = [*range(0xD800), *range(0xE000, 0x110000)]
    return [code for code in codes if EXAMPLES >= 120 or not is_one_of_many(code)]


def test_every_code_point(family: Pair):
    """Tests all code points nightly; otherwise, tests a sample and every change of category."""
    # Tests one plane at a time.
    for plane, codes in itertools.groupby(code_points(), lambda code: code >> 16):
        contexts = FEW_CONTEXTS if plane in UNIFORM_PLANES else CONTEXTS
        while characters := [chr(c) for c in itertools.islice(codes, 2048)]:
            text = "\n".join(context.format(c) for c in characters for context in contexts)
            check(family, characters, text)


def check(family: Pair, characters: list[str], text: str) -> None:
    """Compares the ids of a text; if they differ, finds the character responsible."""
    if is_exact(family, text):
        return
    for character in characters:
        for context in CONTEXTS:
            assert is_exact(family, context.format(character)), f"U+{ord(character):04X} {context}"
    raise AssertionError(f"U+{ord(characters[0]):04X}..U+{ord(characters[-1]):04X} together")


def is_exact(family: Pair, text: str) -> bool:
    expected = family.theirs.encode_ordinary(normalized(family.name, text))
    return family.ours.encode_ordinary(text) == expected


def test_surrogates(family: Pair):
    for code in range(0xD800, 0xE000, 7):
        text = f"a{chr(code)}b {chr(code)}"
        assert family.ours.encode_ordinary(text) == family.expected("a\ufffdb \ufffd")
    joined = "x\U0001f600y\U0010ffffz"
    apart = "x\ud83d\ude00y\udbff\udfffz"
    assert family.ours.encode_ordinary(apart) == family.expected(joined)
