"""Every Unicode code point, in contexts that show its class to the pattern."""

from __future__ import annotations

import pytest
from oracles import normalized
from pairs import Pair

CONTEXTS = ["{}", "a{}b", " {} ", "1{}2", "A{}", "!{}!", "'{}s", "\n{}\n", "  {}x"]

# Planes in which code points are unassigned, private or all of one kind.
UNIFORM_PLANES = [2, *range(4, 14), 15, 16]
FEW_CONTEXTS = ["A{}b", " {}1"]


@pytest.mark.parametrize("every", [67, pytest.param(1, marks=pytest.mark.thorough)])
def test_every_code_point(family: Pair, every: int):
    """All of them, but in uniform planes only one of ``every`` and those at the ends."""
    step = 2048
    for start in range(0, 0x110000, step):
        uniform = start >> 16 in UNIFORM_PLANES
        contexts = FEW_CONTEXTS if uniform else CONTEXTS
        codes = [c for c in range(start, start + step) if not 0xD800 <= c < 0xE000]
        if uniform:
            codes = [*codes[:2], *codes[2:-2:every], *codes[-2:]]
        elif every == 1:  # done without the mark
            continue
        characters = [chr(c) for c in codes]
        text = "\n".join(context.format(c) for c in characters for context in contexts)
        expected = family.theirs.encode_ordinary(normalized(family.name, text))
        if family.ours.encode_ordinary(text) != expected:
            for character in characters:
                for context in CONTEXTS:
                    text = context.format(character)
                    found = family.ours.encode_ordinary(text)
                    expected = family.theirs.encode_ordinary(normalized(family.name, text))
                    assert found == expected, f"U+{ord(character):04X} in {context!r}"
            raise AssertionError(f"U+{start:04X}..U+{start + step - 1:04X} together")


def test_surrogates(family: Pair):
    for code in range(0xD800, 0xE000, 7):
        text = f"a{chr(code)}b {chr(code)}"
        assert family.ours.encode_ordinary(text) == family.expected("a\ufffdb \ufffd")
    joined = "x\U0001f600y\U0010ffffz"
    apart = "x\ud83d\ude00y\udbff\udfffz"
    assert family.ours.encode_ordinary(apart) == family.expected(joined)
