"""Compares vocabularies that contain an empty token, such as Whisper's, with tiktoken."""

from __future__ import annotations

import base64
import pickle
from pathlib import Path

import pytest
import tiktoken
import tiktoken.load

import bpe_engine
from bpe_engine import load
from vocab_tools.ranks import load_ranks

PATTERN = r"""'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""
RANKS = {bytes([byte]): byte for byte in range(256)} | {b"ab": 256, b"abc": 257, "的".encode(): 259}
RANKS |= {"的".encode()[:2]: 258, b"": 260}
WHISPER = Path(__file__).parents[3] / "shared" / "tokenizers" / "whisper-multilingual.tiktoken"
TEXTS = ["", "abc ab", "的的abc的 x", "a" * 50, " ", "I'm here 123\n\n  x"]


@pytest.fixture(params=["synthetic", "whisper"])
def pair(request, tmp_path):
    """Returns both packages' encodings of a rank file with an empty token, and the file's path."""
    path = tmp_path / "mine.tiktoken"
    if request.param == "whisper":
        if not WHISPER.exists():
            pytest.skip(f"{WHISPER} is not there")
        path = WHISPER
    else:
        lines = (base64.b64encode(token) or b"=" for token in RANKS)
        path.write_bytes(b"".join(b"%s %d\n" % row for row in zip(lines, RANKS.values())))
    ranks = tiktoken.load.load_tiktoken_bpe(str(path))
    kwargs = {
        "pat_str": PATTERN,
        "mergeable_ranks": ranks,
        "special_tokens": {"<|end|>": max(ranks.values()) + 1},
    }
    return tiktoken.Encoding("mine", **kwargs), bpe_engine.Encoding("mine", **kwargs), path


def unstable(engine, text):
    stable, completions = engine.encode_with_unstable(text)
    return stable, sorted(completions)


def test_results_equal_tiktokens(pair):
    theirs, ours, path = pair
    a, b, empty = (theirs._mergeable_ranks[token] for token in (b"a", b"b", b""))
    assert load.load_tiktoken_bpe(str(path)) == theirs._mergeable_ranks
    loaded = load.load_encoding(path, PATTERN, theirs._special_tokens)
    for engine in (ours, loaded, pickle.loads(pickle.dumps(ours))):
        for text in TEXTS:
            assert engine.encode(text) == theirs.encode(text)
            assert unstable(engine, text) == unstable(theirs, text)
            assert engine.encode_to_numpy(text).tolist() == theirs.encode(text)
        assert engine.decode([empty]) == theirs.decode([empty]) == ""
        assert engine.decode_bytes([a, empty, b, empty]) == theirs.decode_bytes(
            [a, empty, b, empty]
        )
        assert engine.decode_single_token_bytes(empty) == b""
        assert engine.decode_tokens_bytes([empty, a]) == theirs.decode_tokens_bytes([empty, a])
        # tiktoken raises IndexError, because it reads the first byte of each token.
        assert engine.decode_with_offsets([a, empty, b]) == ("ab", [0, 1, 1])
        assert engine.encode_single_token(b"") == theirs.encode_single_token(b"") == empty
        assert engine.encode_single_token("") == empty
        assert engine.token_byte_values() == theirs.token_byte_values()
        assert (engine.n_vocab, engine.max_token_value) == (theirs.n_vocab, theirs.max_token_value)
        assert engine._mergeable_ranks == theirs._mergeable_ranks


def test_the_vocabulary_tools_read_it(pair):
    theirs, _, path = pair
    assert load_ranks(path) == theirs._mergeable_ranks


def test_every_other_token_stays_reachable():
    """An empty token does not change where Chinese is cut."""
    with_empty = bpe_engine.get_encoding("cl100k_base")._mergeable_ranks
    assert b"" not in with_empty
    kwargs = {"pat_str": PATTERN, "special_tokens": {}}
    ours = bpe_engine.Encoding("x", mergeable_ranks={**with_empty, b"": 100257}, **kwargs)
    plain = bpe_engine.Encoding("x", mergeable_ranks=with_empty, **kwargs)
    text = "的确如此，一只猫在屋顶上。" * 20
    assert ours.encode(text) == plain.encode(text)
