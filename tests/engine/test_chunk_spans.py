"""Tests that chunks for retrieval cover the text, fit the limit, and end at natural pauses."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import bpe_engine

GPT2 = bpe_engine.get_encoding("gpt2")
QWEN = bpe_engine.get_encoding("qwen")

texts = st.lists(
    st.sampled_from(
        [
            "One. ",
            "two",
            "\n",
            "\n\n",
            " ",
            "   ",
            "é",
            "e\u0301",
            "根本。",
            "👩‍💻",
            "؟ ",
            "<|endoftext|>",
        ]  # fmt: skip
    ),
    max_size=60,
).map("".join)


@given(texts, st.integers(14, 40), st.integers(0, 13), st.booleans())
def test_chunks_cover_the_text_and_fit(text: str, most: int, overlap: int, special: bool) -> None:
    allowed = {"<|endoftext|>"} if special else set[str]()
    for encoding in (GPT2, QWEN):
        spans = encoding.chunk_spans(text, most, overlap, allowed_special=allowed)
        reached = 0
        for start, end, tokens in spans:
            assert start <= reached < end
            assert overlap or start == reached
            assert tokens == encoding.count(text[start:end], allowed_special=allowed) <= most
            assert encoding.count(text[start:reached], allowed_special=allowed) <= overlap
            reached = end
        assert reached == len(text)
        assert encoding.chunk_spans(text, most, overlap, allowed_special=allowed, ids=True) == [
            (
                start,
                end,
                encoding.encode(text[start:end], allowed_special=allowed, disallowed_special=()),
            )
            for start, end, _ in spans
        ]


MARKDOWN = st.lists(
    st.sampled_from(
        [
            "# Head\n",
            "\n",
            "some words here.\n",
            "```\n",
            "~~~py\n",
            "code = 1\n",
            "    # no\n",
            "#x\n",
        ]
    ),
    max_size=40,
).map("".join)


@given(MARKDOWN, st.integers(6, 40))
def test_chunks_of_markdown_cover_the_text_and_fit(text: str, most: int) -> None:
    spans = GPT2.chunk_spans(text, most, markdown=True)
    assert "".join(text[start:end] for start, end, _ in spans) == text
    assert all(tokens == GPT2.count(text[start:end]) <= most for start, end, tokens in spans)


def test_headings_and_fences_stay_whole() -> None:
    section = "## Title\n\nA sentence of the section that goes on. And another one.\n\n"
    fence = "```py\n# no heading\n\nx = 1\n\ny = 2\n```\n\n"
    text = (section * 3 + fence + section) * 20
    for most in range(40, 90):
        plain = [text[start:end] for start, end, _ in GPT2.chunk_spans(text, most)]
        whole = [text[start:end] for start, end, _ in GPT2.chunk_spans(text, most, markdown=True)]
        assert "".join(whole) == text and len(whole) <= 2 * len(plain)
        assert not any(chunk.rstrip().endswith("Title") for chunk in whole)
        assert all(chunk.count("```") % 2 == 0 for chunk in whole)
    # The limit takes precedence over a fence that does not fit.
    small = GPT2.chunk_spans(text, 8, markdown=True)
    assert "".join(text[start:end] for start, end, _ in small) == text
    assert any(text[start:end].count("```") == 1 for start, end, _ in small)


def parts(text: str, most: int, overlap: int = 0) -> list[str]:
    return [text[start:end] for start, end, _ in GPT2.chunk_spans(text, most, overlap)]


def test_ends_of_chunks() -> None:
    assert parts("a b c d.\n\ne f. g h i", 12) == ["a b c d.\n\n", "e f. g h i"]
    assert parts("a b c d. e f g h", 7) == ["a b c d.", " e f g h"]
    assert parts("a b c d\ne f g h", 7) == ["a b c d\n", "e f g h"]
    assert parts("a b c tokenization", 4) == ["a b c", " tokenization"]
    assert parts("根本。根本。根本。", 12) == ["根本。根本。", "根本。"]
    assert parts("aaaaaaaaaaaaaaaa", 2) == GPT2.chunk("aaaaaaaaaaaaaaaa", 2)


def test_the_overlap_begins_a_sentence() -> None:
    assert parts("a b c d. e f. g h i j. k l", 9, 4) == [
        "a b c d. e f.",
        " e f. g h i j.",
        " h i j. k l",
    ]


def test_long_texts_are_read_in_windows() -> None:
    text = "word " * 50_000 + "x" * 10_000
    spans = QWEN.chunk_spans(text, 512)
    assert spans[0].tokens > 500 and spans[-1].end == len(text)
    assert "".join(text[start:end] for start, end, _ in spans) == text


def test_ids_of_names_are_those_of_text_unless_they_are_allowed() -> None:
    text = "a<|endoftext|>b"
    (chunk,) = GPT2.chunk_spans(text, 20, ids=True)
    assert chunk.ids == GPT2.encode_ordinary(text) and chunk.tokens == len(chunk.ids)
    (chunk,) = GPT2.chunk_spans(text, 20, ids=True, allowed_special="all")
    assert chunk.ids == [64, 50256, 65]
    with pytest.raises(TypeError, match="ids must be True or False"):
        GPT2.chunk_spans(text, 20, ids="yes")  # type: ignore[call-overload]


def test_sizes_that_cannot_be() -> None:
    with pytest.raises(ValueError, match="overlap must be smaller"):
        GPT2.chunk_spans("a", 2, 2)
    with pytest.raises(ValueError, match='character "根" alone has more than 1 tokens'):
        GPT2.chunk_spans("a\n根", 1)
