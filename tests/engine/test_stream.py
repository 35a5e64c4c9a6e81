"""Tests that the joined texts of `StreamDecoder` equal the whole text, for any cuts of the ids."""

from __future__ import annotations

import codecs

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import ENCODINGS
from pairs import pair, some_ids
from strategies import texts

from bpe_engine import StreamDecoder, get_encoding


def brackets(error: UnicodeDecodeError) -> tuple[str, int]:
    return "[" + error.object[error.start : error.end].hex() + "]", error.end


codecs.register_error("bpe_engine.brackets", brackets)

HANDLERS = [
    "replace",
    "ignore",
    "backslashreplace",
    "surrogateescape",
    "surrogatepass",
    "strict",
    "bpe_engine.brackets",
]


def outcome(call):
    try:
        return call()
    except UnicodeDecodeError:
        return UnicodeDecodeError


def run(decoder: StreamDecoder, ids: list[int], sizes: list[int]) -> str:
    out, place = [], 0
    for size in sizes:
        out.append(decoder.push(ids[place : place + size]))
        place += size
    out += [decoder.push(id) for id in ids[place:]]
    out.append(decoder.finish())
    return "".join(out)


@pytest.mark.parametrize("errors", HANDLERS)
@pytest.mark.parametrize("name", ["gpt2", "o200k_base", "qwen"])
@given(data=st.data())
def test_pieces_are_the_whole(name, errors, data):
    ours = pair(name).ours
    ids = data.draw(some_ids(name))
    sizes = data.draw(st.lists(st.integers(0, 4), max_size=8))
    decoder = ours.stream_decoder(errors=errors)
    expected = outcome(lambda: ours.decode(ids, errors))
    assert outcome(lambda: run(decoder, ids, sizes)) == expected


@pytest.mark.parametrize("name", ENCODINGS)
@given(text=texts)
def test_no_character_in_halves(name, text):
    ours = pair(name).ours
    ids = ours.encode(text, allowed_special="all")
    whole = ours.decode(ids)
    decoder = ours.stream_decoder()
    so_far = ""
    for id in ids:
        so_far += decoder.push(id)
        assert whole.startswith(so_far)
    assert so_far + decoder.finish() == whole


@pytest.mark.parametrize("name", ["gpt2", "qwen"])
@given(data=st.data())
def test_prompt(name, data):
    """For any cut, the prompt's text and the stream's text join to the whole text; a character that
    the stream completes belongs to the stream's text."""
    ours = pair(name).ours
    ids = data.draw(some_ids(name))
    cut = data.draw(st.integers(0, len(ids)))
    prompt, rest = ids[:cut], ids[cut:]
    streamed = run(ours.stream_decoder(prompt=prompt), rest, [])
    together = ours.decode(ids)
    shown = ours.decode(prompt)
    if together == shown + streamed:
        return
    assert shown.endswith("\ufffd")
    assert together == shown[:-1] + streamed


def test_prompt_inside_a_character():
    qwen = pair("qwen").ours
    hello = qwen.encode("hello")[0]
    assert qwen.stream_decoder(prompt=[51461]).push(117) == "根"
    assert qwen.stream_decoder(prompt=np.array([51461])).push(np.int64(117)) == "根"
    # If the stream does not complete the prompt's last character, no text shows the character.
    assert qwen.stream_decoder(prompt=[51461]).push(hello) == "hello"
    assert qwen.stream_decoder(prompt=[51461]).finish() == ""
    for errors in HANDLERS:
        decoder = qwen.stream_decoder(errors=errors, prompt=[51461])
        assert decoder.push(hello) + decoder.finish() == "hello"


def test_pushing():
    qwen = pair("qwen").ours
    decoder = qwen.stream_decoder()
    assert decoder.push([]) == ""
    assert decoder.push((51461,)) == " "
    assert decoder.push(np.array([117], dtype=np.uint32)) == "根"
    assert decoder.push(51461) + decoder.finish() == " \ufffd"
    # After `finish`, the decoder can read another stream.
    assert decoder.push(117) == "\ufffd"


def test_a_bad_id_changes_nothing():
    qwen = pair("qwen").ours
    decoder = qwen.stream_decoder(errors="strict")
    decoder.push(51461)
    with pytest.raises(KeyError, match="Invalid token for decoding: 999999"):
        decoder.push(999_999)
    with pytest.raises(OverflowError, match="-1"):
        decoder.push(-1)
    with pytest.raises(TypeError):
        decoder.push("a")
    with pytest.raises(UnicodeDecodeError):
        decoder.push(qwen.encode("hello"))
    assert decoder.push(117) == "根"


def test_a_prompt_of_one_id():
    qwen = get_encoding("qwen")
    decoder = qwen.stream_decoder(prompt=51461)
    assert decoder.push(117) + decoder.finish() == "根"
    assert qwen.stream_decoder(prompt=117).push([51461, 117]) == " 根"
    with pytest.raises(TypeError, match="float"):
        qwen.stream_decoder(prompt=1.5)
