"""The worked examples of the Qwen encoding, and what its normalization does."""

from __future__ import annotations

import unicodedata

import pytest

from bpe_engine import get_encoding, qwen

ENCODING = get_encoding("qwen")
TEXT = 'print("<|endoftext|>")'
TWO = 'print("<|extra_0|>")<|endoftext|>'


def test_special_tokens():
    assert len(qwen.SPECIAL_TOKENS) == 208
    assert qwen.SPECIAL_TOKENS["<|endoftext|>"] == 151_643
    assert qwen.SPECIAL_TOKENS["<|im_end|>"] == 151_645
    assert qwen.SPECIAL_TOKENS["<|extra_204|>"] == 151_850
    assert ENCODING.n_vocab == 151_851
    assert len(ENCODING._mergeable_ranks) == 151_643


def test_attack_surface():
    plain = [1350, 9639, 91, 8691, 723, 427, 91, 82598]
    assert ENCODING.encode(TEXT, allowed_special=set(), disallowed_special=()) == plain
    assert ENCODING.encode(TEXT, allowed_special="all") == [1350, 445, 151643, 899]
    with pytest.raises(ValueError, match="'<|endoftext|>'"):
        ENCODING.encode(TEXT)


def test_one_allowed():
    ids = ENCODING.encode(TWO, allowed_special={"<|endoftext|>"}, disallowed_special=())
    assert ids == [1350, 9639, 91, 15460, 62, 15, 91, 82598, 151643]
    with pytest.raises(ValueError, match="disallowed special token '<\\|extra_0\\|>'"):
        ENCODING.encode(TWO, allowed_special={"<|endoftext|>"}, disallowed_special=("<|extra_0|>",))


def test_decoding_half_a_character():
    assert ENCODING.decode([51461]) == " \ufffd"
    assert ENCODING.decode([51461], errors="ignore") == " "
    assert ENCODING.decode([51461, 117]) == " 根"


def test_special_tokens_are_looked_for_after_normalizing():
    # '<' and U+0338 are one character in form C, so the name is gone.
    assert ENCODING.encode("<\u0338|endoftext|>") == ENCODING.encode("\u226e|endoftext|>")
    assert ENCODING.encode("\u212a") == ENCODING.encode("K")
    assert ENCODING.encode("e\u0301") == ENCODING.encode("\u00e9")


@pytest.mark.parametrize("text", ["e\u0301", "a\u0323\u0307", "\u1100\u1161", "ﬁ", "\u2126"])
def test_every_path_normalizes(text):
    ids = ENCODING.encode(text)
    assert ENCODING.decode(ids) == unicodedata.normalize("NFC", text)
    assert ENCODING.encode_ordinary(text) == ids
    assert ENCODING.encode_to_numpy(text).tolist() == ids
    assert ENCODING.encode_batch([text]) == [ids]
    assert ENCODING.encode_ordinary_batch([text]) == [ids]
    assert ENCODING.encode_with_offsets(text)[0] == ids
    assert ENCODING.count(text) == len(ids)
    assert ENCODING.count_till_limit(text, 99) == len(ids)
    assert "".join(ENCODING.split(text)) == unicodedata.normalize("NFC", text)
    assert ENCODING.truncate(text, 99) == text
    assert "".join(ENCODING.chunk(text, 99)) == text
    stable, completions = ENCODING.encode_with_unstable(text)
    normal = unicodedata.normalize("NFC", text).encode()
    assert completions
    for sequence in completions:
        assert ENCODING.decode_bytes(stable + sequence).startswith(normal)


def test_every_character_as_python_normalizes_it():
    """The core's tables against Python's, for every character both know."""
    for start in range(0, 0x110000, 4096):
        characters = [
            chr(code)
            for code in range(start, start + 4096)
            if unicodedata.category(chr(code)) not in ("Cs", "Cn")
        ]
        for context in ["{}", "a{}", "{}\u0301", "\u0323{}", "\u1100{}\u11a8"]:
            text = "\n".join(context.format(character) for character in characters)
            expected = unicodedata.normalize("NFC", text)
            assert ENCODING.decode(ENCODING.encode(text)) == expected
