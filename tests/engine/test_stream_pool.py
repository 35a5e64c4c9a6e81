"""Tests that the joined texts of a stream equal the decoded ids, up to the first stop string."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pairs import pair, some_ids
from strategies import texts

import bpe_engine
from bpe_engine import StreamDecoder, StreamPool, StreamStop, Tokenizer, get_encoding


def first_stop(text: str, stops: list[str]) -> tuple[int, int] | None:
    """Returns where the first stop string ends, and the length of the longest that ends there."""
    for end in range(len(text) + 1):
        lengths = [len(stop) for stop in stops if text[:end].endswith(stop)]
        if lengths:
            return end, max(lengths)
    return None


def held_back(text: str, stops: list[str]) -> int:
    """Returns how many characters at the end of a text may begin a stop string."""
    lengths = [
        length for stop in stops for length in range(1, len(stop)) if text.endswith(stop[:length])
    ]
    return max(lengths, default=0)


@pytest.mark.parametrize("name", ["gpt2", "o200k_base", "qwen"])
@given(data=st.data())
def test_texts_are_decoding_of_the_whole(name, data):
    ours = pair(name).ours
    rows = data.draw(st.lists(some_ids(name), min_size=1, max_size=4))
    pool = bpe_engine.StreamPool(ours)
    slots = [pool.open() for _ in rows]
    joined = [""] * len(rows)
    rest = [list(row) for row in rows]
    while any(rest):
        sizes = [data.draw(st.integers(0, 3)) for _ in rest]
        step = [row[:size] for row, size in zip(rest, sizes, strict=True)]
        rest = [row[size:] for row, size in zip(rest, sizes, strict=True)]
        given_texts, finished = pool.step(slots, step)
        assert finished == [None] * len(rows)
        joined = [text + new for text, new in zip(joined, given_texts, strict=True)]
    joined = [text + pool.close(slot) for text, slot in zip(joined, slots, strict=True)]
    assert joined == [ours.decode(row) for row in rows]
    assert len(pool) == 0


@given(data=st.data())
def test_prompts_are_those_of_a_stream_decoder(data):
    ours = pair("qwen").ours
    ids = data.draw(some_ids("qwen"))
    cut = data.draw(st.integers(0, len(ids)))
    decoder = StreamDecoder(ours, prompt=ids[:cut])
    pool = bpe_engine.StreamPool(ours)
    slot = pool.open(ids[:cut])
    joined = expected = ""
    for id in ids[cut:]:
        joined += pool.step([slot], [id])[0][0]
        expected += decoder.push(id)
        # A surrogate is invalid from its second byte on, but Python's decoder waits for its third.
        assert joined.startswith(expected) and joined[len(expected) :].strip("\ufffd") == ""
    assert joined + pool.close(slot) == expected + decoder.finish()


def test_a_prompt_may_end_inside_a_character():
    """The character is shown whole once complete, and the invalid byte after it is replaced."""
    enc = get_encoding("gpt2")
    first, *rest = [enc.encode_single_token(bytes([byte])) for byte in "\u4f60".encode() + b"\xff"]
    pool = bpe_engine.StreamPool(enc)
    slot = pool.open([first])
    assert "".join(pool.step([slot], [[id]])[0][0] for id in rest) == "\u4f60\ufffd"


@given(
    text=texts,
    stops=st.lists(st.text("ab \n.é你\ufffd", min_size=1, max_size=4), min_size=1, max_size=4),
    extra=st.lists(st.text("ab \n.é你", max_size=6), max_size=8),
)
def test_stop_strings_are_those_of_the_plain_way(text, stops, extra):
    ours = pair("o200k_base").ours
    ids = ours.encode_ordinary("".join([*extra, text, *extra]))
    pool = bpe_engine.StreamPool(ours)
    slot = pool.open(stop=stops)
    joined, stop = "", None
    for count, id in enumerate(ids):
        (new,), (stop,) = pool.step(np.array([slot]), np.array([id]))
        joined += new
        if stop is not None:
            assert stop.id_index == count
            break
        # Except an incomplete character, only text that may begin a stop string is withheld.
        decoder = StreamDecoder(ours)
        so_far = decoder.push(ids[: count + 1])
        assert joined == so_far[: len(so_far) - held_back(so_far, stops)]
    whole = ours.decode(ids)
    found = first_stop(whole, stops)
    if stop is None:
        assert found is None
        assert joined + pool.close(slot) == whole
    else:
        assert found is not None
        end, length = found
        assert joined == whole[: end - length]
        assert stops[stop.stop_index] == whole[end - length : end]
        # Further ids have no effect.
        assert pool.step([slot], [ids]) == ([""], [stop])
        assert pool.close(slot) == ""


def test_fewest_characters_wait():
    ours = get_encoding("gpt2")
    ids = ours.encode("one two three four five six")
    pool = bpe_engine.StreamPool(ours)
    slot = pool.open(min_chars=8)
    given_texts = [pool.step([slot], [id])[0][0] for id in ids]
    assert [len(text) for text in given_texts if text] == [13, 10]
    assert "".join(given_texts) + pool.close(slot) == "one two three four five six"


def test_special_tokens_are_left_out_where_asked():
    ours = get_encoding("gpt2")
    pool = bpe_engine.StreamPool(ours)
    shown, skipped = pool.open(), pool.open(skip_special_tokens=True)
    ids = [31373, 50256, 995]
    assert pool.step([shown, skipped], [ids, ids])[0] == [
        "hello<|endoftext|> world",
        "hello world",
    ]
    faces = bpe_engine.StreamPool(Tokenizer(ours))
    slot = faces.open(skip_special_tokens=True)
    assert faces.step([slot], [ids])[0] == ["hello world"]


def test_streams_that_get_one_token_differ():
    """The pool caches a token's text, but applies each stream's own options."""
    pool = bpe_engine.StreamPool(get_encoding("gpt2"))
    slots = [
        pool.open(),
        pool.open(skip_special_tokens=True),
        pool.open(min_chars=7),
        pool.open(stop=["o w"]),
        pool.open(stop=["<"]),
    ]
    texts = [pool.step(slots, [id] * 5)[0] for id in [31373, 50256, 995, 31373, 995]]
    assert texts == [
        ["hello", "hello", "", "hell", "hello"],
        ["<|endoftext|>", "", "hello<|endoftext|>", "o<|endoftext|>", ""],
        [" world", " world", "", " world", ""],
        ["hello", "hello", " worldhello", "hell", ""],
        [" world", " world", "", "", ""],
    ]
    assert [pool.close(slot) for slot in slots] == ["", "", " world", "", ""]


@pytest.mark.parametrize(
    "make",
    [
        lambda ids: ids,
        tuple,
        np.array,
        lambda ids: np.array(ids, dtype=np.uint32),
        lambda ids: np.array(ids)[::-1][::-1],
        lambda ids: [[id] for id in ids],
        lambda ids: [np.array([id]) for id in ids],
        lambda ids: np.array(ids).reshape(-1, 1),
        lambda ids: [np.int64(id) for id in ids],
    ],
)
def test_ids_of_every_form(make):
    pool = bpe_engine.StreamPool(get_encoding("gpt2"))
    slots = [pool.open(), pool.open()]
    for numbers in (slots, tuple(slots), np.array(slots)):
        assert pool.step(numbers, make([31373, 995]))[0] == ["hello", " world"]


def test_several_ids_a_step():
    pool = bpe_engine.StreamPool(get_encoding("gpt2"))
    slots = [pool.open(), pool.open(), pool.open()]
    ragged = [[31373, 995], [], np.array([995])]
    assert pool.step(slots, ragged)[0] == ["hello world", "", " world"]
    assert pool.step(slots, np.array([[31373, 995]] * 3))[0] == ["hello world"] * 3
    assert pool.step([], []) == ([], [])
    # A stream that occurs twice in a call returns its texts in order.
    assert "".join(pool.step([slots[0]] * 2, [31373, 995])[0]) == "hello world"


def test_refusals_name_the_value_and_take_nothing():
    pool = bpe_engine.StreamPool(get_encoding("gpt2"))
    slot, other = pool.open(), pool.open()
    with pytest.raises(KeyError, match="no open stream 7"):
        pool.step([slot, 7], [31373, 995])
    with pytest.raises(KeyError, match="60000"):
        pool.step([slot, other], [31373, 60000])
    with pytest.raises(KeyError, match="60000"):
        pool.open([60000])
    with pytest.raises(ValueError, match="2 slots, but ids for 1"):
        pool.step([slot, other], [31373])
    with pytest.raises(ValueError, match="2 slots, but ids for 3"):
        pool.step([slot, other], [[31373], [], []])
    with pytest.raises(OverflowError, match="-1"):
        pool.step([slot, other], [31373, -1])
    with pytest.raises(TypeError):
        pool.step([slot, other], ["a", "b"])
    with pytest.raises(TypeError):
        pool.step([slot, other], 31373)
    with pytest.raises(TypeError, match=r"pass \['ab'\]"):
        pool.open(stop="ab")
    with pytest.raises(TypeError, match="a list of str, not int"):
        pool.open(stop=["a", 1])
    with pytest.raises(ValueError, match="stop string 1 is empty"):
        pool.open(stop=["a", ""])
    with pytest.raises(ValueError, match=r"stop string 1 has a lone surrogate.*'x\\ud800"):
        pool.open(stop=["\ud83d\ude00", "x\ud800\ufffd"])
    with pytest.raises(ValueError, match="65537 bytes together"):
        pool.open(stop=["a" * 65537])
    with pytest.raises((OverflowError, TypeError)):
        pool.open(min_chars=-1)
    assert len(pool) == 2
    assert pool.step([slot, other], [31373, 995])[0] == ["hello", " world"]
    pool.close(slot)
    with pytest.raises(KeyError, match=f"no open stream {slot}"):
        pool.close(slot)
    assert pool.open() not in (slot, other)
    assert repr(pool) == "<StreamPool with 2 open streams>"


def test_objects_have_names():
    assert isinstance(bpe_engine.StreamPool(get_encoding("gpt2")), StreamPool)
    pool = bpe_engine.StreamPool(get_encoding("gpt2"))
    slot = pool.open(stop=["x", "lo"])
    _, (stop,) = pool.step([slot], [31373])
    assert isinstance(stop, StreamStop)
    assert (stop.stop_index, stop.id_index) == (1, 0)
    assert repr(stop) == "StreamStop(stop_index=1, id_index=0)"
