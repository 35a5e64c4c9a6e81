"""Tests that token tables contain the kind of every id, and the bytes to which it decodes."""

from __future__ import annotations

import numpy as np
import pytest
from pairs import pair

import bpe_engine
from bpe_engine import Encoding, Tokenizer, TokenTable, get_encoding


@pytest.mark.parametrize("name", ["gpt2", "o200k_base", "o200k_harmony", "qwen"])
def test_bytes_are_those_of_decoding(name):
    ours = pair(name).ours
    table = bpe_engine.TokenTable(ours)
    assert len(table) == ours.max_token_value + 1
    special = set(ours.special_tokens.values())
    absent = set(table.ids("absent"))
    for id in range(len(table)):
        if id in absent:
            assert table[id] == b"" and table.kind(id) == "absent"
            continue
        assert table[id] == ours.decode_single_token_bytes(id)
        assert table.kind(id) == ("special" if id in special else "ordinary")
    assert special == set(table.ids("special"))
    assert len(absent) + len(special) + len(table.ids("ordinary")) == len(table)


def test_arrays_are_the_table():
    table = bpe_engine.TokenTable(get_encoding("gpt2"))
    offsets, kinds = np.asarray(table.offsets), np.asarray(table.kinds)
    assert offsets.dtype == np.uint32 and len(offsets) == len(table) + 1
    assert kinds.dtype == np.uint8 and len(kinds) == len(table)
    buffer = bytes(table.buffer)
    assert [buffer[a:b] for a, b in zip(offsets, offsets[1:])] == list(table)
    assert table.ids("special") == list(np.nonzero(kinds == 2)[0]) == [50256]
    for view in (table.buffer, table.offsets, table.kinds):
        assert view.readonly
    with pytest.raises((TypeError, BufferError, ValueError)):
        table.buffer[0] = 1


def small(special: dict[str, int]) -> Encoding:
    return Encoding(
        "small", pat_str=r"\S+|\s+", mergeable_ranks={b"a": 3, b"b": 5}, special_tokens=special
    )


def test_ids_have_gaps():
    table = bpe_engine.TokenTable(small({"<end>": 8}))
    assert list(table) == [b"", b"", b"", b"a", b"", b"b", b"", b"", b"<end>"]
    assert table.ids("absent") == [0, 1, 2, 4, 6, 7]
    assert repr(table) == "<TokenTable of 9 ids>"
    face = bpe_engine.TokenTable(Tokenizer(small({"<end>": 8})))
    assert list(face) == list(table) and face.ids("special") == [8]


def test_refusals():
    table = bpe_engine.TokenTable(small({}))
    for id in (-1, 6, 2**40):
        with pytest.raises(IndexError, match=f"the ids 0 to 5, not {id}"):
            table.kind(id)
        if id >= 0:
            with pytest.raises(IndexError):
                table[id]
    with pytest.raises(TypeError):
        table["a"]
    with pytest.raises(ValueError, match="'control'|\"control\""):
        table.ids("control")
    with pytest.raises(ValueError, match="the id 16777216 is too large"):
        bpe_engine.TokenTable(small({"<end>": 2**24}))
    with pytest.raises(TypeError):
        TokenTable(1)
