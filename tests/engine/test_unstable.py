"""`encode_with_unstable` against tiktoken."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import ENCODINGS, normalized
from pairs import Pair, pair

ENDINGS = [
    "", "a", "hello fanta", "hello ", " ", "  ", "a  ", "\n", "hello\n", "\n\n", " \n ", "\t",
    "don't", "don'", "123", "1234", "hi 你", "é", "e\u0301", "🤖", "abc\u3000", "x\u00a0", "!!",
    "hello <|endoftext|", "CamelCa", "\r\n", "根本", "'", "//",
]  # fmt: skip


def compare(both: Pair, text: str, **rules: object) -> None:
    stable, completions = both.ours.encode_with_unstable(text, **rules)
    text = normalized(both.name, text)
    their_stable, their_completions = both.theirs.encode_with_unstable(text, **rules)
    assert stable == their_stable
    assert sorted(completions) == sorted(their_completions)
    raw = text.encode()
    assert raw.startswith(both.ours.decode_bytes(stable))
    for sequence in completions[:50]:
        assert both.ours.decode_bytes(stable + sequence).startswith(raw)


def test_endings(family: Pair):
    for text in ENDINGS:
        compare(family, text, disallowed_special=())


def test_special_tokens_are_stable(both: Pair):
    for text in ["x<|endoftext|>", "<|endoftext|>hel", "<|endoftext|><|endoftext|>"]:
        compare(both, text, allowed_special="all")
    with pytest.raises(ValueError, match="disallowed special token '<|endoftext|>'"):
        both.ours.encode_with_unstable("<|endoftext|>")


@pytest.mark.parametrize("name", ENCODINGS)
@settings(max_examples=12)
@given(
    text=st.lists(st.sampled_from(["a", "lo", " w", "\n", "1", "你", "!", "'", "ne"]), max_size=4)
)
def test_random(name, text):
    compare(pair(name), "".join(text))
