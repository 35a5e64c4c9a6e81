"""Compares ids with tiktoken's on random bytes and on text that is hard to merge."""

from __future__ import annotations

import itertools
import string

import pytest
from oracles import normalized, oracle, ranks
from pairs import FAMILIES as ONE_OF_EACH_PATTERN
from seeds import seeded

import bpe_engine

# p50k_base leaves a gap in its ids.
FAMILIES = [*ONE_OF_EACH_PATTERN, "p50k_base"]

# The first and last code points of each script.
SCRIPTS = {
    "latin": (0x41, 0x24F),
    "greek": (0x370, 0x3FF),
    "cyrillic": (0x400, 0x4FF),
    "hebrew": (0x5D0, 0x5EA),
    "arabic": (0x621, 0x64A),
    "devanagari": (0x900, 0x97F),
    "bengali": (0x980, 0x9FF),
    "tamil": (0xB80, 0xBFF),
    "thai": (0xE00, 0xE5B),
    "georgian": (0x10A0, 0x10FF),
    "hangul": (0xAC00, 0xD7A3),
    "kana": (0x3040, 0x30FF),
    "han": (0x4E00, 0x9FFF),
    "frequent han": (0x4E00, 0x5200),
    "fullwidth": (0xFF01, 0xFF5E),
    "symbols": (0x2000, 0x2BFF),
    "private": (0xE000, 0xF8FF),
    "emoji": (0x1F300, 0x1F6FF),
    "rare han": (0x20000, 0x2A6DF),
}


def same_pieces(name: str, pieces: list[bytes]) -> None:
    """Compares the ids of every piece with tiktoken's, first when merged and then when cached."""
    ours = bpe_engine.get_encoding(name)._core_bpe
    theirs = oracle(name)._core_bpe
    for piece in pieces:
        wanted = theirs.encode_single_piece(piece)
        assert ours.encode_single_piece(piece) == wanted, piece
        assert ours.encode_single_piece(piece) == wanted, piece


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("script", SCRIPTS)
def test_random_letters_of_a_script(name: str, script: str) -> None:
    draw = seeded(name, script)
    first, last = SCRIPTS[script]
    letters = [chr(draw.randint(first, last)) for _ in range(8)]
    texts = []
    for length in [*range(1, 40), 64, 100, 150]:
        texts.append("".join(chr(draw.randint(first, last)) for _ in range(length)))
        texts.append("".join(draw.choices(letters, k=length)))
    same_pieces(name, [text.encode() for text in texts])
    # Cuts at random bytes, so that pieces start and end inside characters.
    whole = [text.encode() for text in texts]
    cut = [piece[draw.randint(0, 3) : len(piece) - draw.randint(0, 3)] for piece in whole]
    same_pieces(name, [piece for piece in cut if piece])
    ours, theirs = bpe_engine.get_encoding(name), oracle(name)
    for text in ("".join(texts), " ".join(texts)):
        assert ours.encode_ordinary(text) == theirs.encode_ordinary(normalized(name, text))


@pytest.mark.parametrize("name", FAMILIES)
def test_random_bytes(name: str) -> None:
    draw = seeded(name)
    pieces = []
    for length in [*range(1, 70), 100, 128, 200, 255, 256, 257]:
        pieces += [draw.randbytes(length) for _ in range(3)]
        few = draw.randbytes(4)
        pieces.append(bytes(draw.choices(few, k=length)))
        pieces.append(bytes(draw.choices(b"\xe4\xe5\xe6\x80\xb8\x88\x9c\xba\xbc\xb0", k=length)))
        pieces.append(bytes(draw.choices(b"\xd0\xd1\x80\xb0\xb5\xbe\x82 ", k=length)))
        pieces.append(bytes(draw.choices(b"\xf0\x9f\x98\x80\x81\xef\xb8\x8f\xe2", k=length)))
    same_pieces(name, pieces)


@pytest.mark.parametrize("name", FAMILIES)
def test_every_token_encodes_to_itself(name: str) -> None:
    ours = bpe_engine.get_encoding(name)._core_bpe
    for token, rank in ranks(name).items():
        assert ours.encode_single_piece(token) == [rank], token


@pytest.mark.parametrize("name", FAMILIES)
def test_tokens_one_after_the_other(name: str) -> None:
    draw = seeded(name)
    tokens = list(ranks(name))
    frequent = [token for token in tokens[:600] if len(token) > 1][:110]
    same_pieces(name, [a + b for a, b in itertools.product(frequent, frequent)])
    anywhere = [draw.choices(tokens, k=draw.randint(2, 6)) for _ in range(6_000)]
    same_pieces(name, [b"".join(some) for some in anywhere])
    long = [token for token in tokens if len(token) > 12]
    joined = [draw.choice(long) + draw.choice(long)[: draw.randint(1, 12)] for _ in range(2_000)]
    same_pieces(name, joined)


@pytest.mark.parametrize("name", FAMILIES)
def test_runs_and_alternations(name: str) -> None:
    lengths = [*range(1, 70), 79, 80, 81, 99, 120, 127, 128, 129, 200, 255, 256, 257, 300]
    characters = [*string.punctuation, " ", "\n", "\t", "a", "0", "\0", "é", "ー", "的", "😀"]
    same_pieces(name, [(c * length).encode() for c in characters for length in lengths])
    draw = seeded(name)
    pairs = draw.sample([*itertools.product(characters, repeat=2)], 300)
    lengths = [2, 3, 7, 8, 15, 16, 17, 31, 32, 33, 100, 301]
    alternations = [((a + b) * length)[:length] for a, b in pairs for length in lengths]
    same_pieces(name, [text.encode() for text in alternations])
    ours, theirs = bpe_engine.get_encoding(name), oracle(name)
    for text in ("x".join(alternations), "\n".join(alternations)):
        assert ours.encode_ordinary(text) == theirs.encode_ordinary(text)
