"""Tests `truncate`, `chunk` and `count_till_limit`."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import ENCODINGS, repaired
from pairs import Pair, pair
from seeds import EXAMPLES, seeded
from strategies import texts

import bpe_engine

allowed_sets = st.sampled_from(["all", frozenset(), frozenset({"<|endoftext|>"})])


def token_ends(enc, text: str, allowed="all") -> set[int]:
    """Returns the positions between characters where a token ends, and both ends of the text."""
    _, spans = enc.encode_with_offsets(text, allowed_special=allowed, disallowed_special=())
    ends = {0, len(text), *(end for _, end in spans[-1:])}
    return ends | {before[1] for before, after in zip(spans, spans[1:]) if before[1] <= after[0]}


def check_truncated(enc, text: str, limit: int, allowed="all") -> None:
    """Checks `truncate` against its contract, on both sides of a text."""
    ends = token_ends(enc, text, allowed)
    rules = {"allowed_special": allowed, "disallowed_special": ()}
    prefix = enc.truncate(text, limit, **rules)
    suffix = enc.truncate(text, limit, side="left", **rules)
    assert text.startswith(prefix) and len(prefix) in ends
    assert text.endswith(suffix) and len(text) - len(suffix) in ends
    assert len(enc.encode(prefix, **rules)) <= limit
    assert len(enc.encode(suffix, **rules)) <= limit
    if len(enc.encode(text, **rules)) <= limit:
        assert prefix == suffix == text


def check_chunks(enc, text: str, limit: int, overlap: int, allowed="all") -> None:
    """Checks `chunk` against its contract."""
    rules = {"allowed_special": allowed, "disallowed_special": ()}

    def count(part: str) -> int:
        return len(enc.encode(part, **rules))

    spans = enc._chunk_spans(text, limit, overlap, allowed_special=allowed)
    chunks = enc.chunk(text, limit, overlap, allowed_special=allowed)
    assert chunks == [text[start:end] for start, end in spans]
    ends = sorted(token_ends(enc, text, allowed))
    before, done = 0, 0
    for start, end in spans:
        assert before <= start <= done < end
        assert count(text[start:end]) <= limit
        assert count(text[start:done]) <= overlap
        following = next(place for place in ends if place >= end)
        assert following == end or count(text[done:following]) > limit
        before, done = start, end
    assert done == len(text)
    if overlap == 0:
        assert "".join(chunks) == text


@pytest.mark.parametrize("name", ENCODINGS)
@given(text=texts, limit=st.integers(0, 25), allowed=allowed_sets)
def test_truncate_holds_its_contract(name, text, limit, allowed):
    check_truncated(pair(name).ours, text, limit, allowed)


@pytest.mark.parametrize("name", ENCODINGS)
@given(
    text=texts,
    limit=st.integers(6, 25),
    overlap=st.sampled_from([0, 1, 3, 5]),
    allowed=allowed_sets,
)
def test_chunk_holds_its_contract(name, text, limit, overlap, allowed):
    check_chunks(pair(name).ours, text, limit, overlap, allowed)


#: Patterns that skip text, look back, look far ahead or depend on all earlier text.
ODD = [r"\w+", r"(?<=c)a+|.", r"a+(?=.*!)|\s+|.", r"!.*|(?s:.)", r"\b\w+|\W"]
PATTERNS = [*ODD, *(bpe_engine.get_encoding(name)._pat_str for name in ("gpt2", "o200k_base"))]

#: Words whose tokens let a part of a text have more tokens than the whole text.
WORDS = "ab abc bca aa aaaa 's 11 123 é 的。 -- ---- -------- -< >- abcabc abcabcabcabc".split()
SNIPPETS = [
    *"a ab abc bca B 's ' 的 。 1 1234 é 🦀 - -------- ! <|endoftext|> abab <|endoftext <".split(),
    " ", "  ", "\n", "e\u0301", "\u0323", "\u0f71\u0f72", "\u212a",
]  # fmt: skip
repeated = st.tuples(st.sampled_from(SNIPPETS), st.sampled_from([1, 1, 1, 2, 9, 60]))
snippets = st.lists(repeated.map(lambda part: part[0] * part[1]), max_size=25).map("".join)
#: Texts of tokens, and the number of leading bytes to drop: tokens may begin inside a character.
parts = st.tuples(st.text("ab1 -的é🦀\u0301", min_size=1, max_size=6), st.integers(0, 2))


@settings(max_examples=5 * EXAMPLES)
@given(
    pattern=st.sampled_from(PATTERNS),
    normalization=st.sampled_from([None, "NFC"]),
    tokens=st.sets(parts.map(lambda part: part[0].encode()[part[1] :]), max_size=12),
    text=snippets | texts,
    limits=st.lists(st.integers(0, 90), min_size=2, max_size=2),
    limit=st.integers(1, 20),
    overlap=st.integers(0, 19),
)
def test_patterns_and_vocabularies_of_any_kind(
    pattern, normalization, tokens, text, limits, limit, overlap
):
    ranks = {bytes([byte]): byte for byte in range(256)}
    for token in [*(word.encode() for word in WORDS), *sorted(tokens - {b""})]:
        ranks.setdefault(token, len(ranks))
    special = {"<|endoftext|>": 900, "<|endoftext|>b": 901, "abab": 902}
    core = bpe_engine._tiktoken.CoreBPE(ranks, special, pattern, normalization)
    enc = bpe_engine.Encoding._from_core(
        "any", core, pat_str=pattern, special_tokens=special, normalization=normalization
    )
    for most in limits:
        check_truncated(enc, text, most)
    try:
        check_chunks(enc, text, limit, overlap % limit)
    except ValueError as error:
        assert "alone has more than" in str(error)
        assert any(enc.count(character) > limit for character in repaired(text))


HARD = {
    "letters": "".join(seeded("letters").choices("ab", k=3000)),
    "one letter": "a" * 3000,
    "Han": "敏捷的棕色狐狸" * 200,
    "digits": "1234567" * 400,
    "spaces": "x" + " " * 3000 + "x",
    "newlines": "\n" * 3000,
    "whitespace": "".join(seeded("whitespace").choices(" \n\t", k=3000)),
    "dashes": "(" + "-" * 3000,
    "rulers": ("-" * 80 + "\n") * 40,
    "rulers in turn": (" " * 5 + "-" * 71 + "#" * 55 + "~" * 89) * 12,
    "decomposed": "e\u0301" * 1000,
    "marks in another order": "\u0f71\u0f72" * 500,
    "marks alone": "!" * 33 + "\u0301" * 500 + "abc",
    "emoji": "👨‍👩‍👧‍👦🇺🇳" * 150,
    "long tokens": "InvalidOperationException" * 100,
    "special tokens": "<|endoftext|>" * 300,
    "beginnings of names": "<|endoftext|" * 200,
    "surrogates": "\ud83d\ude00\ud83d" * 300,
    "capitals": "ªª" + "B" * 3000 + "c",
}


@pytest.mark.parametrize("name", ["cl100k_base", "o200k_base", "p50k_base", "qwen"])
@pytest.mark.parametrize("hard", HARD)
def test_hard_texts_hold_the_contract(name, hard):
    enc, text = bpe_engine.get_encoding(name), HARD[hard]
    total = len(enc.encode(text, allowed_special="all"))
    for limit in [0, 1, 7, 50, total // 2, total - 1, total]:
        check_truncated(enc, text, limit)
    for limit, overlap in [(12, 0), (40, 39), (300, 20)]:
        check_chunks(enc, text[:1500], limit, overlap)


@pytest.mark.parametrize("name", ["cl100k_base", "qwen"])
@pytest.mark.parametrize("hard", [*HARD, "Latin-1", "Han and ASCII"])
def test_text_is_read_in_parts(name, hard):
    """Truncation reads text in parts, with the same result as if all text were read."""
    enc = bpe_engine.get_encoding(name)
    units = {"Latin-1": "naïve café ", "Han and ASCII": "a 的 \ud83d\ude00 "}
    text = "\u4e00\ud83d" + units.get(hard, HARD.get(hard, "")) * 20 + "\ude00\U0001f980"
    # Moves the end of the text across characters and surrogate pairs.
    for end in range(4):
        part = text[end : len(text) - end] + "é\ude00" * (end % 2)
        for limit, side in itertools.product([0, 10, 300], ["right", "left"]):
            for allowed in ("all", frozenset()):
                as_whole = {"allowed_special": allowed, "disallowed_special": {"nowhere"}}
                kept = enc.truncate(part, limit, side=side, allowed_special=allowed)
                assert kept == enc.truncate(part, limit, side=side, **as_whole)


def test_chunk_keeps_special_tokens_whole(both: Pair):
    text = "one two three<|endoftext|>four five six" * 5
    for limit in range(1, 12):
        for overlap in range(limit):
            chunks = both.ours.chunk(text, limit, overlap, allowed_special="all")
            for chunk in chunks:
                assert chunk.count("<|") == chunk.count("|>") == chunk.count("<|endoftext|>")


def test_overlap_that_is_shortened_has_no_more_tokens():
    """A shorter text may need more tokens: "TML" has two tokens, "HTML" one."""
    check_chunks(bpe_engine.get_encoding("r50k_base"), "HTMLElement", 2, 1)


def test_overlap_repeats_the_end(gpt2):
    text = "".join(f" word{i}" for i in range(200))
    chunks = gpt2.chunk(text, 20, overlap=6)
    for before, after in zip(chunks, chunks[1:]):
        shared = max(n for n in range(len(after)) if before.endswith(after[:n]))
        assert 3 <= gpt2.count(after[:shared]) <= 6


def test_ordinary_text_is_filled(both: Pair):
    text = "The quick brown fox jumps over the lazy dog. 敏捷的棕色狐狸。\n" * 3000
    ids = both.expected(text)
    for limit in [1, 1000, len(ids) // 2, len(ids) - 1]:
        for side in ("right", "left"):
            kept = both.ours.truncate(text, limit, side=side)
            assert limit - 3 <= both.ours.count(kept) <= limit
    assert both.ours.truncate(text, len(ids)) == text
    assert both.ours.truncate(text, len(ids), side="left") == text
    chunks = both.ours.chunk(text, 500)
    assert "".join(chunks) == text
    assert len(chunks) <= len(ids) / 500 * 1.02 + 1


def test_a_pattern_that_skips_text():
    words = bpe_engine.Encoding(
        "words",
        pat_str=r"\w+",
        mergeable_ranks={bytes([i]): i for i in range(256)},
        special_tokens={},
    )
    text = "ab cd  ef "
    assert words.split(text) == ["ab", "cd", "ef"]
    offsets = [(0, 1), (1, 2), (3, 4), (4, 5), (7, 8), (8, 9)]
    assert words.encode_with_offsets(text)[1] == offsets
    assert words.truncate(text, 4) == "ab cd"
    assert words.truncate(text, 6) == text
    assert words.truncate(text, 3, side="left") == "d  ef "
    assert words.chunk(text, 2) == ["ab", " cd", "  ef "]


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
