"""Tests offsets: `encode_with_offsets`, `decode_with_offsets`, `find_special`."""

from __future__ import annotations

import functools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import ENCODINGS, normalized, repaired
from pairs import Pair, pair
from strategies import texts


def expected_offsets(both: Pair, text: str, ids: list[int]) -> list[tuple[int, int]]:
    """Computes offsets by their definition: the characters that contain the bytes of each token."""
    owner = [place for place, c in enumerate(text) for _ in c.encode()]
    spans, start = [], 0
    for token in both.theirs.decode_tokens_bytes(ids):
        end = start + len(token)
        spans.append((owner[start], owner[end - 1] + 1))
        start = end
    return spans


@pytest.mark.parametrize("name", ENCODINGS)
@given(text=texts, allowed=st.sampled_from(["all", frozenset()]))
def test_offsets(name, text, allowed):
    both = pair(name)
    text = normalized(name, text)
    ids, offsets = both.ours.encode_with_offsets(
        text, allowed_special=allowed, disallowed_special=()
    )
    assert ids == both.expected(text, allowed)
    if name == "o200k_harmony" and 200_018 in ids:
        return  # Two names of different lengths share this id.
    assert offsets == expected_offsets(both, text, ids)


@given(text=texts)
def test_offsets_lead_back_through_normalization(text):
    qwen = pair("qwen").ours
    ids, offsets = qwen.encode_with_offsets(text, disallowed_special=())
    assert ids == pair("qwen").expected(text)
    assert len(ids) == len(offsets)
    # The spans ascend, lie within the text, and together cover it.
    covered = 0
    for start, end in offsets:
        assert 0 <= start < end <= len(text)
        assert start <= covered
        covered = max(covered, end)
    assert covered == len(text)
    # The text at a token's offsets, once normalized, contains the token.
    for id, (start, end) in zip(ids, offsets):
        assert qwen.decode_bytes([id]) in normalized("qwen", text[start:end]).encode()


def test_offsets_where_text_is_rewritten():
    qwen = pair("qwen").ours
    text = "cafe\u0301 \ud83d\ude00x \u212a"
    ids, offsets = qwen.encode_with_offsets(text)
    assert [text[start:end] for start, end in offsets] == [
        "ca", "fe\u0301", " \ud83d\ude00", "x", " \u212a",
    ]  # fmt: skip
    assert qwen.decode(ids) == "café 😀x K"


@pytest.mark.parametrize("name", ENCODINGS)
@given(text=texts)
def test_decode_with_offsets(name, text):
    both = pair(name)
    ids = both.expected(text, "all")
    if name == "o200k_harmony" and 200_018 in ids:
        return
    assert both.ours.decode_with_offsets(ids) == both.theirs.decode_with_offsets(ids)


@functools.cache
def any_token(name: str) -> st.SearchStrategy[int]:
    """Returns a cached strategy for the ids of an encoding, which are many."""
    return st.sampled_from(list(pair(name).ours._mergeable_ranks.values()))


@pytest.mark.parametrize("name", ENCODINGS)
@given(data=st.data())
def test_decode_with_offsets_of_anything(name, data):
    """Where bytes are not UTF-8, tiktoken raises; we return offsets into the decoded text."""
    ours = pair(name).ours
    ids = data.draw(st.lists(any_token(name), max_size=8))
    text, offsets = ours.decode_with_offsets(ids)
    assert text == ours.decode(ids)
    for place, offset in enumerate(offsets):
        before = ours.decode(ids[:place])
        # The offset counts the characters before the token, except an incomplete last character.
        assert len(before) - 1 <= offset <= len(before)
        if not before.endswith("\ufffd"):
            assert text[:offset] == before


def test_find_special(both: Pair):
    names = sorted(both.ours.special_tokens_set)
    text = "根 " + " x\U0001f600".join(names) + "<|end"
    found = both.ours.find_special(text)
    assert [name for name, _, _ in found] == names
    assert all(text[start:end] == name for name, start, end in found)
    assert both.ours.find_special("<|nothing|>") == []


@pytest.mark.parametrize("name", ENCODINGS)
@given(text=texts)
def test_find_special_agrees_with_encode(name, text):
    ours = pair(name).ours
    ids = ours.encode(text, allowed_special="all")
    expected = [id for id in ids if ours.is_special_token(id)]
    found = ours.find_special(text)
    assert [ours._special_tokens[name] for name, _, _ in found] == expected
    for special, start, end in found:
        assert normalized(name, text[start:end]) == special


def test_find_special_in_text_that_is_rewritten():
    qwen = pair("qwen").ours
    text = "\ud83d\ude00 e\u0301<|im_start|>\u212a<|im_end|>\u0338"
    # The last name is not found: normalization composes its last character with U+0338.
    assert qwen.find_special(text) == [("<|im_start|>", 5, 17)]
    assert text[5:17] == "<|im_start|>"


@pytest.mark.parametrize("name", ENCODINGS)
@given(text=texts)
def test_split(name, text):
    both = pair(name)
    pieces = both.ours.split(text)
    assert "".join(pieces) == normalized(name, text)
    assert all(pieces)
    ids = [id for piece in pieces for id in both.ours._encode_single_piece(piece)]
    assert ids == both.expected(text)


def test_split_with_special_tokens(gpt2):
    assert gpt2.split("a b<|endoftext|>  ") == ["a", " b", "<|", "endoftext", "|>", "  "]
    assert gpt2.split("a b<|endoftext|>  ", allowed_special="all") == [
        "a", " b", "<|endoftext|>", "  ",
    ]  # fmt: skip


@pytest.mark.parametrize("name", ENCODINGS)
@given(data=st.data(), text=texts)
def test_is_canonical(name, data, text):
    both = pair(name)
    ids = both.expected(text, "all")
    assert both.ours.is_canonical(ids)
    if not ids:
        return
    place = data.draw(st.integers(0, len(ids) - 1))
    token = both.ours.decode_single_token_bytes(ids[place])
    if len(token) > 1 and not both.ours.is_special_token(ids[place]):
        halves = [both.ours.encode_single_token(bytes([byte])) for byte in token]
        assert not both.ours.is_canonical(ids[:place] + halves + ids[place + 1 :])


def test_is_canonical_at_its_borders(gpt2):
    qwen = pair("qwen").ours
    assert gpt2.is_canonical([])
    assert gpt2.is_canonical(gpt2.encode("<|endoftext|>", disallowed_special=()))
    assert gpt2.is_canonical([50256, 50256])
    assert not gpt2.is_canonical([162])  # The id is only part of a character.
    assert not qwen.is_canonical(qwen.encode("e") + qwen._encode_single_piece("\u0301"))
    with pytest.raises(KeyError, match="50257"):
        gpt2.is_canonical([50257])
    assert repaired("\ud800") == "\ufffd"
