"""Tests that `Encoding.show` shows every character once, and that text cannot become markup."""

from __future__ import annotations

import re
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st

import bpe_engine
from bpe_engine.abilities.shown import MOST_TOKENS
from bpe_engine.prompt import special, tokens, untrusted

GPT2 = bpe_engine.get_encoding("gpt2")
QWEN = bpe_engine.get_encoding("qwen")


@given(st.text(max_size=40))
def test_every_character_is_shown_once(text: str) -> None:
    shown = list(GPT2.show(text))
    assert "".join(token.text for token in shown) == text
    assert [token.id for token in shown] == GPT2.encode_ordinary(text)
    assert b"".join(token.token for token in shown) == text.encode("utf-8", "replace")
    for token in shown:
        assert token.continues == (token.token[:1] >= b"\x80" and 0x80 <= token.token[0] < 0xC0)


def test_special_tokens_are_marked() -> None:
    text = "a<|endoftext|>"
    assert [token.is_special for token in GPT2.show(text, allowed_special="all")] == [False, True]
    assert not any(token.is_special for token in GPT2.show(text))


@given(st.lists(st.text(max_size=9), max_size=4))
def test_a_prompt_is_shown_as_its_text(texts: list[str]) -> None:
    prompt = [special("<|endoftext|>"), *map(untrusted, texts)]
    shown = list(GPT2.show(prompt))
    assert [token.id for token in shown] == GPT2.encode_segments(prompt)
    assert shown[1:] == [
        token._replace(start=token.start + 13, end=token.end + 13)
        for token in GPT2.show("".join(texts))
    ]


def test_a_prompt_may_hold_ids_that_are_no_text() -> None:
    assert repr(GPT2.show([tokens([255, 0])])) == "\\xad|!\n2 tokens, gpt2"
    shown = GPT2.show([special("<|endoftext|>"), untrusted("<|endoftext|>")])
    assert [token.is_special for token in shown][:2] == [True, False]


def test_the_text_between_bars() -> None:
    assert repr(GPT2.show("a\n\tb 🦜")) == "a|⏎|⇥|b|·🦜|‥|‥\n7 tokens, gpt2"
    assert repr(GPT2.show("\u202ex")).startswith("\\u202e|‥|x")
    assert repr(QWEN.show("")) == "\n0 tokens, qwen"


@pytest.mark.parametrize(
    "hostile", ["<script>alert(1)</script>", "\"'><img src=x onerror=alert(1)>"]
)
def test_hostile_text_is_not_markup(hostile: str) -> None:
    page = GPT2.show(hostile)._repr_html_()
    assert set(re.findall(r"<\s*(\w+)", page)) <= {"div", "span", "wbr", "br"}
    text = unescape(re.sub(r"<[^>]*>", "", page)).replace("·", " ")
    assert text.startswith(hostile)
    for tag in re.findall(r"<bdi [^>]*>", page):
        assert re.fullmatch(r'<bdi title="[^"]*" style="[^"]*">', tag)


def test_long_texts_are_cut() -> None:
    shown = GPT2.show("word " * (MOST_TOKENS + 10))
    assert len(shown) == MOST_TOKENS + 11
    assert shown._repr_html_().count("<span") == MOST_TOKENS
    assert " and 11 more\n" in repr(shown)
