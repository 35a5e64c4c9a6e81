"""`truncate`, `chunk`, `count_till_limit`."""

from __future__ import annotations

import itertools
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import ENCODINGS, repaired
from pairs import Pair, pair
from seeds import seeded
from strategies import texts

import bpe_engine

allowed_sets = st.sampled_from(["all", frozenset(), frozenset({"<|endoftext|>"})])


def cuts(text: str) -> list[int]:
    """The places where text may be cut: not between two surrogates that make a pair."""
    return [
        place
        for place in range(len(text) + 1)
        if repaired(text[:place]) + repaired(text[place:]) == repaired(text)
    ]


@pytest.mark.parametrize("name", ENCODINGS)
@given(text=texts, limit=st.integers(0, 25), allowed=allowed_sets)
def test_truncate_is_the_longest_that_fits(name, text, limit, allowed):
    both = pair(name)

    def fits(part: str) -> bool:
        return len(both.expected(part, allowed)) <= limit

    prefix = max(place for place in cuts(text) if fits(text[:place]))
    assert both.ours.truncate(text, limit, allowed_special=allowed) == text[:prefix]
    suffix = min(place for place in cuts(text) if fits(text[place:]))
    assert both.ours.truncate(text, limit, side="left", allowed_special=allowed) == text[suffix:]


@pytest.mark.parametrize("name", ENCODINGS)
@given(
    text=texts,
    limit=st.integers(6, 25),
    overlap=st.sampled_from([0, 1, 3, 5]),
    allowed=allowed_sets,
)
def test_chunks(name, text, limit, overlap, allowed):
    both = pair(name)
    chunks = both.ours.chunk(text, limit, overlap, allowed_special=allowed)
    if overlap == 0:
        assert "".join(chunks) == text
    assert all(0 < len(both.expected(chunk, allowed)) <= limit for chunk in chunks)
    # Each goes on where the one before ended, or some `overlap` tokens before that.
    spans = both.ours._core_bpe.chunk(text, limit, overlap, allowed, ())
    assert chunks == [text[start:end] for start, end in spans]
    done = 0
    for start, end in spans:
        assert start <= done < end
        assert len(both.expected(text[start:done], allowed)) <= overlap
        done = end
    assert done == len(text)
    if allowed == "all" and overlap == 0:
        found = sum(len(both.ours.find_special(chunk)) for chunk in chunks)
        assert found >= len(both.ours.find_special(text))


def test_chunk_keeps_special_tokens_whole(both: Pair):
    text = "one two three<|endoftext|>four five six" * 5
    for limit in range(1, 12):
        for overlap in range(limit):
            chunks = both.ours.chunk(text, limit, overlap, allowed_special="all")
            for chunk in chunks:
                assert chunk.count("<|") == chunk.count("|>") == chunk.count("<|endoftext|>")


def test_overlap_that_is_cut_short_has_no_more_tokens():
    """Less text may be more tokens: "TML" has two, "HTML" one."""
    enc = bpe_engine.get_encoding("r50k_base")
    text = "HTMLElement"
    spans = enc._core_bpe.chunk(text, 2, 1, set(), ())
    assert len(spans) > 1 and spans[-1][1] == len(text)
    for (_, done), (start, _) in zip(spans, spans[1:]):
        assert start <= done and enc.count(text[start:done]) <= 1


def test_overlap_repeats_the_end(gpt2):
    text = "".join(f" word{i}" for i in range(200))
    chunks = gpt2.chunk(text, 20, overlap=6)
    for before, after in zip(chunks, chunks[1:]):
        shared = max(n for n in range(len(after)) if before.endswith(after[:n]))
        assert 3 <= gpt2.count(after[:shared]) <= 6


def test_long_texts(both: Pair):
    text = "The quick brown fox jumps over the lazy dog. 敏捷的棕色狐狸。\n" * 3000
    ids = both.expected(text)
    for limit in [1, 1000, len(ids) // 2, len(ids) - 1]:
        prefix = both.ours.truncate(text, limit)
        assert text.startswith(prefix)
        assert limit - 3 <= both.ours.count(prefix) <= limit
        assert both.ours.count(text[: len(prefix) + 1]) > limit
        suffix = both.ours.truncate(text, limit, side="left")
        assert text.endswith(suffix)
        assert limit - 3 <= both.ours.count(suffix) <= limit
    assert both.ours.truncate(text, len(ids)) == text
    assert both.ours.truncate(text, len(ids), side="left") == text
    chunks = both.ours.chunk(text, 500)
    assert "".join(chunks) == text
    assert len(chunks) <= len(ids) / 500 * 1.02 + 1


def test_one_long_piece(gpt2):
    for piece in ["a" * 3000, "根" * 1000, " " * 3000, "ab" * 1500, "🤖" * 700]:
        for limit in [1, 7, 100]:
            prefix = gpt2.truncate(piece, limit)
            assert gpt2.count(prefix) <= limit
            assert gpt2.count(piece[: len(prefix) + 1]) > limit
            suffix = gpt2.truncate(piece, limit, side="left")
            assert gpt2.count(suffix) <= limit
            assert gpt2.count(piece[-len(suffix) - 1 :]) > limit


@pytest.mark.parametrize("name", ENCODINGS)
@pytest.mark.parametrize("run", ["1", "a", "\n", "-"])
def test_a_suffix_of_a_run_is_the_longest_that_fits(name, run):
    # A cut moves the border of every group of digits behind it, and of every token of letters.
    enc = bpe_engine.get_encoding(name)
    for text in [f"x <|{run * 97}", f"{run * 61} and more"]:
        for limit in range(1, 16):
            longest = next(n for n in range(len(text)) if enc.count(text[n:]) <= limit)
            assert enc.truncate(text, limit, side="left") == text[longest:]


@pytest.mark.parametrize("name", ENCODINGS)
def test_a_cut_run_is_the_longest_that_fits(name):
    # Of dashes 96 may be one token and 95 two. One that is left of a run may lead the word behind it.
    enc = bpe_engine.get_encoding(name)
    dashes, spaces = "-" * 230, " " * 150
    for text in [dashes, f"{dashes}A{'-' * 15}", f"x {spaces}x", f"{dashes}{spaces}\n"]:
        counts = [enc.count(text[:end]) for end in range(len(text) + 1)]
        rests = [enc.count(text[start:]) for start in range(len(text) + 1)]
        for limit in range(1, 6):
            longest = max(end for end, count in enumerate(counts) if count <= limit)
            assert enc.truncate(text, limit) == text[:longest]
            longest = min(start for start, count in enumerate(rests) if count <= limit)
            assert enc.truncate(text, limit, side="left") == text[longest:]
            chunks = enc.chunk(text, limit)
            assert chunks[0] == enc.truncate(text, limit) and "".join(chunks) == text


def test_a_pattern_that_drops_text():
    from bpe_engine import Encoding

    words = Encoding(
        "words",
        pat_str=r"\w+",
        mergeable_ranks={bytes([i]): i for i in range(256)},
        special_tokens={},
    )
    text = "ab cd  ef"
    assert words.split(text) == ["ab", "cd", "ef"]
    assert words.encode_with_offsets(text)[1] == [(0, 1), (1, 2), (3, 4), (4, 5), (7, 8), (8, 9)]
    assert words.truncate(text, 4) == "ab cd  "
    assert words.truncate(text, 3, side="left") == "d  ef"
    assert "".join(words.chunk(text, 2)) == text


def test_a_pattern_that_looks_far():
    from bpe_engine import Encoding

    # Words are one token each where an exclamation mark follows or stands before, however far.
    ranks = {bytes([i]): i for i in range(256)} | {b"aa": 256, b"aaaa": 257}
    ahead = Encoding("a", pat_str=r"a+(?=.*!)|.", mergeable_ranks=ranks, special_tokens={})
    text = "aaaa " * 100 + "!"
    for limit in [0, 1, 5, 20, 33]:
        assert ahead.truncate(text, limit) == text[:limit]
    behind = Encoding("b", pat_str=r"!.*|.", mergeable_ranks=ranks, special_tokens={})
    text = "!" + "aaaa " * 100
    for limit in [0, 1, 5, 20, 33]:
        assert behind.truncate(text, limit, side="left") == text[len(text) - limit :]


def test_a_suffix_is_found_from_the_end(both: Pair):
    text = "The quick 1234567 fox — 敏捷的棕色狐狸 don't stop\n\n  here. " * 2000
    for limit in [1, 10, 300]:
        suffix = both.ours.truncate(text, limit, side="left")
        near = text[-200 * (limit + 1) :]
        assert suffix == both.ours.truncate(near, limit, side="left")
        assert text.endswith(suffix) and both.ours.count(suffix) <= limit
        for more in range(1, 9):
            assert both.ours.count(text[-len(suffix) - more :]) > limit


HARD = {
    "letters": lambda n: "".join(seeded("letters").choices("ab", k=n)),
    "dashes": lambda n: "(" + "-" * n,
    "words": lambda n: "hello world, it's 1234 " * (n // 23),
    "spaces": lambda n: " \n" * (n // 2),
    "Han": lambda n: "敏捷的棕色狐狸" * (n // 7),
    "decomposed": lambda n: "e\u0301" * (n // 2),
    "white space": lambda n: "".join(seeded("white space").choices(" \n", k=n)),
    "dashes and spaces": lambda n: ("-" * 40 + "  ") * (n // 42),
    "newlines": lambda n: "\n" * n,
    "only spaces": lambda n: " " * n,
    "digits": lambda n: "".join(seeded("digits").choices("0123456789", k=n)),
    "long tokens": lambda n: "InvalidOperationException" * (n // 25),
    "newlines and stars": lambda n: ("\n" * 239 + "*") * (n // 240),
    "indented lines": lambda n: ("\n  " * 10 + "=") * (n // 31),
    "runs of dashes": lambda n: ("-" * 90 + "_,") * (n // 92),
    "two runs": lambda n: ("-" * 80 + "/" * 26) * (n // 106),
    "a run and few signs": lambda n: ("-" * 62 + ">" * 7) * (n // 69),
    "four runs": lambda n: (" " * 5 + "-" * 71 + "#" * 55 + "~" * 89 + "-" * 111) * (n // 331),
    "runs and newlines": lambda n: ("=" * 62 + "#" * 56 + "\n" * 16 + "=") * (n // 135),
    "a run and tabs": lambda n: ("-" * 70 + "\t" * 15) * (n // 85),
    "apostrophes": lambda n: ("'" * 9 + "=" * 88) * (n // 97),
    "three bytes each": lambda n: ("=" * 95 + "…" * 7) * (n // 102),
    "a run and a mark": lambda n: ("-" * 100 + "e\u0301") * (n // 102),
}


def times_encoding(enc, text: str, limit: int, overlap: int) -> tuple[float, float]:
    """CPU time of ``chunk``, and of encoding its chunks: the least of a few runs of each."""
    chunks = enc.chunk(text, limit, overlap)
    chunking, encoding = [], []
    for _ in range(3):  # another process may evict what is in the caches
        begin = time.process_time()
        enc.chunk(text, limit, overlap)
        middle = time.process_time()
        for chunk in chunks:
            enc.encode_ordinary(chunk)
        chunking.append(middle - begin)
        encoding.append(time.process_time() - middle)
    return min(chunking), min(encoding)


@pytest.mark.parametrize("name", ["cl100k_base", "qwen"])
@pytest.mark.parametrize("hard", HARD)
def test_chunking_costs_little_more_than_encoding_the_chunks(name, hard):
    enc = bpe_engine.get_encoding(name)
    for size, limit, overlap in [(6000, 6, 0), (6000, 12, 11), (2500, 400, 399), (30_000, 1000, 0)]:
        chunking, encoding = times_encoding(enc, HARD[hard](size), limit, overlap)
        assert chunking < 30 * encoding + 0.01, (size, limit, overlap)


@pytest.mark.parametrize("name", ["cl100k_base", "qwen"])
@pytest.mark.parametrize("hard", HARD)
def test_small_chunks_cost_little_more_than_encoding_them(name, hard):
    enc = bpe_engine.get_encoding(name)
    text = HARD[hard](3000)
    for limit in [1, 2, 3, 5, 7]:
        if max(map(enc.count, set(text))) > limit:
            continue  # a character alone has more tokens
        for overlap in {0, limit // 2, limit - 1}:
            chunking, encoding = times_encoding(enc, text, limit, overlap)
            assert chunking < 30 * encoding + 0.001, (limit, overlap)


@pytest.mark.parametrize(
    ("name", "behind"),
    [
        ("o200k_base", "🦀*/*/*/*/െന\u0d4dന\u0d3eണ\u0d4d的ABC的ABC的ABC的ABCไทยไทยไทยไทย"),
        ("qwen", "e\u0301->->.DataGridViewColumnHeadersHeightSizeMode\u200bلح word word"),
    ],
)
def test_a_suffix_behind_special_tokens_is_the_longest_that_fits(name, behind):
    """Where a special token begins a text may be cut, whatever stands before and behind."""
    enc = bpe_engine.get_encoding(name)
    text = "<|endoftext|>" * 5 + behind
    for limit in range(20):
        fitting = (
            text[start:]
            for start in range(len(text) + 1)
            if len(enc.encode(text[start:], allowed_special="all")) <= limit
        )
        kept = enc.truncate(text, limit, side="left", allowed_special="all")
        assert kept == next(fitting), limit


@pytest.mark.parametrize("text", ["E\u0301\u0323" * 12 + "T=", "\u212bK\u0301" * 30 + "="])
def test_a_suffix_of_many_pieces_that_normalization_changes_is_the_longest_that_fits(text):
    enc = bpe_engine.get_encoding("qwen")
    for limit in range(40):
        fitting = (text[start:] for start in range(len(text) + 1))
        expected = next(part for part in fitting if enc.count(part) <= limit)
        assert enc.truncate(text, limit, side="left") == expected, limit


@pytest.mark.parametrize("name", ["r50k_base", "cl100k_base", "o200k_base"])
@pytest.mark.parametrize("sign", ["=", "-", " ", "é"])
def test_each_chunk_is_the_longest_whatever_runs_were_before(name, sign):
    enc = bpe_engine.get_encoding(name)
    for lengths in [(33, 49), (31, 500, 60), (70, 64, 130, 40), (40, 80, 96, 33)]:
        text = "x".join(sign * length for length in lengths)
        for limit in range(2, 6):
            rest, chunks = text, []
            while rest:
                chunks.append(enc.truncate(rest, limit))
                rest = rest[len(chunks[-1]) :]
            assert enc.chunk(text, limit) == chunks, (lengths, limit)


@pytest.mark.parametrize("sign", ["<", ">", "=", "\n"])
def test_chunks_beside_special_tokens_are_no_larger(sign):
    enc = bpe_engine.get_encoding("cl100k_base")
    for count in range(1, 20):
        texts = [
            f"a{sign * count}<|endofprompt|><|endoftext|>{sign * count}x <|endoftext|>",
            f"a<|endoftext|>{sign * count}x",
        ]
        for text, limit in itertools.product(texts, range(1, 5)):
            for overlap in range(limit):
                chunks = enc.chunk(text, limit, overlap, allowed_special="all")
                sizes = [len(enc.encode(chunk, allowed_special="all")) for chunk in chunks]
                assert max(sizes) <= limit, (text, limit, overlap)
                if len(chunks) == 2:
                    shared = chunks[1][: len(chunks[0]) + len(chunks[1]) - len(text)]
                    ids = enc.encode(shared, allowed_special="all")
                    assert len(ids) <= overlap, (text, limit, overlap)


@pytest.mark.parametrize("name", ENCODINGS)
@given(text=texts, limit=st.integers(0, 40))
def test_count_till_limit(name, text, limit):
    both = pair(name)
    count = len(both.expected(text))
    found = both.ours.count_till_limit(text, limit)
    assert found == (count if count <= limit else None)


def test_bad_arguments(gpt2):
    with pytest.raises(ValueError, match="max_tokens must be at least 0, but is -1"):
        gpt2.truncate("a", -1)
    with pytest.raises(ValueError, match="side must be 'right' or 'left', not 'top'"):
        gpt2.truncate("a", 1, side="top")
    with pytest.raises(ValueError, match="max_tokens must be at least 1, but is 0"):
        gpt2.chunk("a", 0)
    with pytest.raises(ValueError, match="overlap must be smaller than max_tokens, but is 3 of 3"):
        gpt2.chunk("a", 3, 3)
    with pytest.raises(ValueError, match="overlap must be at least 0"):
        gpt2.chunk("a", 3, -1)
    with pytest.raises(ValueError, match="limit must be at least 0, but is -5"):
        gpt2.count_till_limit("a", -5)
    with pytest.raises(ValueError, match='character "根" alone has more than 1 tokens'):
        gpt2.chunk("a根", 1)
    for call in [gpt2.truncate, gpt2.chunk, gpt2.count_till_limit]:
        with pytest.raises(TypeError, match="must be an int, not str"):
            call("a", "3")
        with pytest.raises(TypeError, match="must be an int, not float"):
            call("a", 1.5)
        with pytest.raises(TypeError, match="text must be a str, not bytes"):
            call(b"a", 3)
        with pytest.raises(ValueError, match="disallowed special token '<|endoftext|>'"):
            call("<|endoftext|>", 3, disallowed_special="all")
