"""Tests `align` on every pair of tokenizer kinds, against its definition."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from kinds import CASES, FILES, texts
from seeds import rounds, seeded

import bpe_engine
from bpe_engine import hf


def defined(a: list[tuple[int, int]], b: list[tuple[int, int]]) -> list[list[tuple[int, int]]]:
    """Counts, by brute force, the tokens on each side before each common cut."""

    def tokens_before(spans: list[tuple[int, int]], at: int) -> int | None:
        """Returns the number of tokens before a cut, or None if a token crosses this byte."""
        places = [place for place, (start, end) in enumerate(spans) if start < end]
        before = [place for place in places if spans[place][1] <= at]
        after = [place for place in places if spans[place][0] >= at]
        if len(before) + len(after) < len(places) or before + after != places:
            return None
        if not after:
            return len(spans)
        return before[-1] + 1 if before else 0

    ends = {end for start, end in [*a, *b] if start < end}
    cuts = [(tokens_before(a, end), tokens_before(b, end)) for end in sorted(ends)]
    found = [cut for cut in cuts if None not in cut]
    if not found and a + b:
        found = [(len(a), len(b))]
    return [[0, *(cut[0] for cut in found)], [0, *(cut[1] for cut in found)]]


KINDS = [name for name in CASES if not name.startswith("Tokenizer, ")]


@pytest.fixture(scope="module")
def faces() -> dict[str, object]:
    return {name: CASES[name]().face for name in KINDS}


@pytest.mark.parametrize("one", KINDS)
def test_groups(faces, one):
    others = seeded("align", one).sample(KINDS, rounds(len(KINDS)))
    for other, text in itertools.product(others, texts(12, f"align {one}")):
        a, b = faces[one], faces[other]
        found = bpe_engine.align(a, b, text)
        (a_ids, a_spans), (b_ids, b_spans) = (
            face._encode_with_origins(text, disallowed_special=()) for face in (a, b)
        )
        assert (found.a_ids.tolist(), found.b_ids.tolist()) == (a_ids, b_ids)
        assert [found.a_splits.tolist(), found.b_splits.tolist()] == defined(a_spans, b_spans)
        assert found.a_unplaced.tolist() == [i for i, (x, y) in enumerate(a_spans) if x == y]
        assert found.b_unplaced.tolist() == [i for i, (x, y) in enumerate(b_spans) if x == y]
        for group, (start, end) in enumerate(found.spans.tolist()):
            inside = a_spans[found.a_splits[group] : found.a_splits[group + 1]]
            inside += b_spans[found.b_splits[group] : found.b_splits[group + 1]]
            placed = [span for span in inside if span[0] < span[1]]
            assert start == min((x for x, _ in placed), default=0)
            assert end == max((y for _, y in placed), default=0)
        assert len(found) == len(found.spans) == len(found.a_splits) - 1


def test_a_tokenizer_with_itself_has_groups_of_one_token():
    gpt2 = bpe_engine.get_encoding("gpt2")
    found = bpe_engine.align(gpt2, gpt2, "根本 and 🦜 roots")
    assert (np.diff(found.a_splits) == 1).all() and (np.diff(found.b_splits) == 1).all()


def test_ids_that_are_there_already():
    gpt2, o200k = bpe_engine.get_encoding("gpt2"), bpe_engine.get_encoding("o200k_base")
    text = "hello 根本"
    apart = [gpt2.encode_single_token(bytes([byte])) for byte in text.encode()]
    found = bpe_engine.align(gpt2, o200k, text, a_ids=apart)
    assert found.a_ids.tolist() == apart
    assert found.spans.tolist() == bpe_engine.align(gpt2, o200k, text).spans.tolist()
    with pytest.raises(ValueError, match="do not decode to the text"):
        bpe_engine.align(gpt2, o200k, text, b_ids=[1, 2])
    with pytest.raises(KeyError):
        bpe_engine.align(gpt2, o200k, text, b_ids=[10**9])


def test_white_space_has_its_bytes_where_offsets_leave_it_out():
    parts = json.loads(FILES["byte-level"]())
    parts["post_processor"] = {**parts["pre_tokenizer"], "trim_offsets": True}
    trimmed = hf.Tokenizer.from_str(json.dumps(parts))
    gpt2, text = bpe_engine.get_encoding("gpt2"), "the  word\n    the"
    ids = trimmed.encode(text).ids
    assert any(start == end for start, end in trimmed.encode(text).offsets)
    found = bpe_engine.align(gpt2, trimmed, text)
    given = bpe_engine.align(gpt2, trimmed, text, b_ids=ids)
    assert found.spans.tolist() == given.spans.tolist()
    assert found.b_splits.tolist() == given.b_splits.tolist() and not len(found.b_unplaced)


def test_wrong_arguments():
    gpt2 = bpe_engine.get_encoding("gpt2")
    with pytest.raises(TypeError, match="b must be a tokenizer, not str; .*open_tokenizer"):
        bpe_engine.align(gpt2, "o200k_base", "x")
    with pytest.raises(TypeError, match="must be a str, not int"):
        bpe_engine.align(gpt2, gpt2, 1)
    assert len(bpe_engine.align(gpt2, gpt2, "")) == 0
