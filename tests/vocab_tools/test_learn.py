"""Compares learned merges with a slow reference in plain Python."""

from __future__ import annotations

import base64
import random
from pathlib import Path

import pytest
import vocab_oracle
from hypothesis import example as first_try
from hypothesis import given
from hypothesis import strategies as st
from seeds import seeded
from vocab_bases import (
    BYTES,
    DATA,
    EXAMPLE_EXTRA,
    EXAMPLE_WORDS,
    QWEN,
    bases,
    letters,
    trained_bases,
    word_lists,
)

import bpe_engine
import vocab_tools
from bpe_engine import vocabulary
from vocab_tools.patterns import Pattern

ROOT = Path(__file__).parents[2]
QWEN_RANKS = vocab_tools.load_ranks(QWEN)


def example() -> vocab_tools.LearnResult:
    words = vocab_tools.read_words(EXAMPLE_WORDS.splitlines())
    return vocab_tools.learn_merges(QWEN_RANKS, words)


def encoding(pattern: Pattern, ranks: dict[bytes, int]) -> bpe_engine.Encoding:
    return pattern.encoding(ranks, {})


def test_the_worked_example() -> None:
    result = example()
    assert result.dump() == EXAMPLE_EXTRA
    assert result.refused == {"夸张的 比喻手法": ["夸张的", " 比喻手法"]}
    assert result.skipped == {"一只": 102292}
    notes = "\n".join(result.notes)
    assert "夸张的 比喻手法 would be pre-tokenized to ['夸张的', ' 比喻手法']" in notes
    assert "一只 is already a token" in notes


def test_the_worked_example_is_explained() -> None:
    result = example()
    paths = {path.word: result.path_text(path) for path in result.words}
    assert paths["我是一只猫"] == "我 是一 只 猫 → 我 是一 只猫 → 我 是一只猫 → 我是一只猫"
    assert paths["一只猫"] == "一只 猫 → 一只猫"
    by_products = {made.token.decode(): made for made in result.by_products()}
    assert list(by_products) == ["只猫", "是一只猫"]
    made = by_products["只猫"]
    assert (made.left, made.right) == ("只".encode(), "猫".encode())
    assert made.frequency == 35
    assert made.words == ["我是一只猫", "你是一只猫", "他是一只猫"]
    assert [token.decode() for token in made.makes] == ["是一只猫"]
    assert "35" in made.why and "我是一只猫" in made.why
    assert result.not_one_token == []


# The pairs of "aaaaa" overlap.
@first_try({"aaaaa": 1, "bc": 3}, BYTES)
@given(word_lists, bases)
def test_bytes_equal_those_of_add_merges(words: dict[str, int], base: dict[bytes, int]) -> None:
    result = vocab_tools.learn_merges(base, words, start_id=1000, special_tokens={})
    lines = "".join(f"{word}\t{count}\n" for word, count in words.items())
    expected = vocab_oracle.extra_file(vocab_oracle.read_words(lines), base, 1000)
    if all(step.novelty == "new" for step in result.steps):
        assert result.dump() == expected
    else:
        # Tokens of the base are not written again, later ids move up, and a note says so.
        again = {step.token for step in result.steps if step.novelty == "in base"}
        theirs = {base64.b64decode(line.split()[0]) for line in expected.splitlines()}
        assert set(result.tokens) == theirs - again
        assert list(result.tokens.values()) == list(range(1000, 1000 + len(result.tokens)))
        assert any("not written again" in note for note in result.notes)


@pytest.mark.parametrize("seed", range(4))
def test_bytes_equal_on_qwen(seed: int) -> None:
    chooser = seeded(seed)
    characters = "我你他是一只猫的夸张比喻手法魑魅魍魉天地人aé🦄 "
    words: dict[str, int] = {}
    for _ in range(60):
        word = "".join(chooser.choice(characters) for _ in range(chooser.randint(1, 6)))
        words[word] = chooser.randint(1, 9)
    lines = "".join(f"{word}\t{count}\n" for word, count in words.items() if word.strip())
    read = vocab_oracle.read_words(lines)
    expected = vocab_oracle.extra_file(read, QWEN_RANKS, 151851)
    assert vocab_tools.learn_merges(QWEN_RANKS, read).dump() == expected


@given(word_lists, bases, st.randoms())
def test_the_order_of_words_does_not_matter(
    words: dict[str, int], base: dict[bytes, int], chooser: random.Random
) -> None:
    # No two pairs join to the same bytes: text between two positions is cut in only one way.
    rows = list(words.items())
    chooser.shuffle(rows)
    kinds = {"start_id": 1000, "special_tokens": {}}
    first = vocab_tools.learn_merges(base, words, **kinds)
    second = vocab_tools.learn_merges(base, dict(rows), **kinds)
    assert first.dump() == second.dump()


@given(word_lists, bases, st.lists(letters, max_size=5))
def test_extended_vocabularies_decode_and_encode_again(
    words: dict[str, int], base: dict[bytes, int], texts: list[str]
) -> None:
    result = vocab_tools.learn_merges(base, words, start_id=1000, special_tokens={})
    extended = encoding(result.pattern, result.extended)
    for path in result.words:
        assert path.id is not None
        assert extended.encode_ordinary(path.word) == [path.id]
        assert extended.decode([path.id]) == path.word
    for text in [" ".join(texts), "".join(texts), *words]:
        assert extended.decode(extended.encode_ordinary(text)) == text


@given(word_lists, trained_bases(), st.lists(letters, min_size=1, max_size=8))
def test_other_text_keeps_its_ids_or_is_reported(
    words: dict[str, int], base: dict[bytes, int], texts: list[str]
) -> None:
    result = vocab_tools.learn_merges(base, words, start_id=1000, special_tokens={})
    before = encoding(result.pattern, base)
    after = encoding(result.pattern, result.extended)
    by_products = [made.token for made in result.by_products()]
    learned = [path.word for path in result.words]
    for text in texts:
        if any(word in text for word in learned):
            continue
        if before.encode_ordinary(text) != after.encode_ordinary(text):
            assert any(token in text.encode() for token in by_products)


@given(word_lists, bases)
def test_whole_characters(words: dict[str, int], base: dict[bytes, int]) -> None:
    result = vocab_tools.learn_merges(
        base, words, start_id=1000, special_tokens={}, whole_characters=True
    )
    for token in result.tokens:
        token.decode()
    for path in result.words:
        assert path.id is not None or "--whole-characters" in (path.reason or "")


def test_whole_characters_avoids_parts() -> None:
    # The base has the first two bytes of each character, and 的. The last bytes of 猫 and 狫 are the
    # same byte, and this byte before 的 is the most frequent pair.
    base = dict(BYTES)
    for token in ["猫".encode()[:2], "狫".encode()[:2], "的".encode()[:2], "的".encode()]:
        base[token] = len(base)
    words = {"猫的": 5, "狫的": 4}
    plain = vocab_tools.learn_merges(base, words, start_id=300)
    whole = vocab_tools.learn_merges(base, words, start_id=300, whole_characters=True)
    assert list(plain.tokens)[0] == "猫的".encode()[2:]
    assert [token.decode() for token in whole.tokens] == ["猫", "狫", "猫的", "狫的"]


def test_limits() -> None:
    words = {"low": 5, "lower": 2, "xy": 1}
    result = vocab_tools.learn_merges(BYTES, words, start_id=300, max_merges=2)
    assert list(result.tokens) == [b"lo", b"low"]
    assert [path.word for path in result.not_one_token] == ["lower", "xy"]
    assert "--max-merges" in (result.not_one_token[0].reason or "")
    result = vocab_tools.learn_merges(BYTES, words, start_id=300, min_frequency=2)
    assert list(result.tokens) == [b"lo", b"low", b"er", b"lower"]
    assert "--min-frequency" in (result.not_one_token[0].reason or "")
    with pytest.raises(ValueError, match="max_merges is -1"):
        vocab_tools.learn_merges(BYTES, words, max_merges=-1)


@pytest.mark.parametrize(
    ("start", "reason"),
    [
        (5, "taken by the token"),
        (151643, r"taken by the special token <\|endoftext\|>"),
        (151850, "taken by the special token"),
        (-3, "below the largest rank"),
    ],
)
def test_a_start_id_that_collides_is_refused(start: int, reason: str) -> None:
    with pytest.raises(ValueError, match=rf"{reason}.*first free id is 151851"):
        vocab_tools.learn_merges(QWEN_RANKS, {"一只猫": 1}, start_id=start)


def test_a_start_id_that_leads_into_a_special_is_refused() -> None:
    words = {"abcd": 1}
    with pytest.raises(ValueError, match="leads into id 302.*first free id is 303"):
        vocab_tools.learn_merges(BYTES, words, start_id=300, special_tokens={"<x>": 302})
    result = vocab_tools.learn_merges(BYTES, words, start_id=299, special_tokens={"<x>": 302})
    assert list(result.tokens.values()) == [299, 300, 301]


def test_default_start_ids() -> None:
    words = {"ab": 1}
    assert list(vocab_tools.learn_merges(BYTES, words).tokens.values()) == [151851]
    gpt2 = vocab_tools.learn_merges(BYTES, words, pattern="gpt2", special_tokens={"<x>": 256})
    assert list(gpt2.tokens.values()) == [257]
    # If the default start is taken, ids start at the first free id, and a note says so.
    wide = {**BYTES, b"zz": 200_000}
    result = vocab_tools.learn_merges(wide, words)
    assert list(result.tokens.values()) == [200_001]
    assert any("200001" in note for note in result.notes)


@pytest.mark.parametrize("name", ["r50k_base", "p50k_base", "cl100k_base", "o200k_base"])
def test_a_published_base_brings_its_pattern_and_special_tokens(name: str) -> None:
    words = {"qwertzuiopasdf": 3, "lorem猫ipsum猫dolor": 2}
    published = bpe_engine.get_encoding(name)
    specials = set(published._special_tokens.values())
    ranks = vocab_tools.load_ranks(DATA / f"{name}.tiktoken")
    extended = vocab_tools.load_ranks(ranks, {b"zqzqzqzq": 210_000})
    for base in (DATA / f"{name}.tiktoken", ranks, published, extended):
        result = vocab_tools.learn_merges(base, words)
        assert result.pattern.pat_str == published._pat_str
        assert result.special_tokens == published._special_tokens
        assert specials.isdisjoint(result.tokens.values())
        # A recognized base causes no warning.
        assert result.recognized is not None and not result.notes[1:]
    # A different pattern is used with a warning, and ids of the base are kept.
    result = vocab_tools.learn_merges(ranks, words, pattern="qwen")
    assert result.pattern.name == "qwen"
    assert specials.isdisjoint(result.tokens.values())
    assert any("the pattern qwen is not the one of" in note for note in result.notes)
    taken = max(specials)
    with pytest.raises(ValueError, match="special token"):
        vocab_tools.learn_merges(ranks, words, pattern="qwen", start_id=taken)


def test_qwen_as_a_base_needs_no_remark() -> None:
    for base in (QWEN, bpe_engine.get_encoding("qwen")):
        result = vocab_tools.learn_merges(base, {"一只猫": 1})
        assert result.tokens == {"一只猫".encode(): 151851} and result.notes == []
        assert result.pattern.nfc
    asked = vocab_tools.learn_merges(QWEN, {"一只猫": 1}, pattern="qwen")
    assert asked.tokens == {"一只猫".encode(): 151851} and asked.notes == []


def test_a_token_of_the_base_is_not_learned_again() -> None:
    # Merging does not reach "xab", so the pair "x" and "ab" is learned again.
    base = {**BYTES, b"xab": 256}
    sound = vocab_tools.learn_merges(base, {"xaby": 2, "zxab": 1, "qab": 9}, start_id=300)
    assert sound.tokens == {b"ab": 300, b"qab": 301, b"xaby": 302, b"zxab": 303}
    with pytest.raises(ValueError, match="no positive|from 1"):
        vocab_tools.learn_merges(base, {"ab": -1})


@pytest.mark.parametrize(
    ("base", "message"),
    [
        ({}, "no tokens"),
        ({b"a": 0, b"b": 0}, "two tokens"),
        ({b"a": -1}, "not an id"),
        ({b"a": 2**32}, "not an id"),
        ({"a": 0}, "not a token"),
    ],
)
def test_bad_bases(base: dict[bytes, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        vocab_tools.learn_merges(base, {"ab": 1})


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (b"YQ== 0\nYQ== 1\n", r"line 2: the token 'a' has two ids, 0 and 1"),
        (b"YQ== 0\nYg== 0\n", r"line 2: two tokens have the id 0"),
        (b"YQ== 0\n!! 1\n", "line 2: bad base64"),
        (b"YQ== 0 1\n", "line 1: expected base64"),
        (b"YQ== x\n", "line 1: the rank is not a whole number"),
        (b"", "no tokens"),
        (b"\x1f\x8bbroken", "gzip"),
    ],
)
def test_bad_files(tmp_path: Path, lines: bytes, message: str) -> None:
    path = tmp_path / "base.tiktoken"
    path.write_bytes(lines)
    with pytest.raises(ValueError, match=message):
        vocab_tools.learn_merges(path, {"ab": 1})


@pytest.mark.parametrize("words", [{"": 1}, {"ab": 0}, {"ab": 1.5}, {"\ud800": 1}, {3: 1}])
def test_bad_words(words: dict[str, int]) -> None:
    with pytest.raises(ValueError):
        vocab_tools.learn_merges(BYTES, words)


def test_bad_patterns() -> None:
    with pytest.raises(ValueError, match="does not compile"):
        vocab_tools.learn_merges(BYTES, {"ab": 1}, pattern="(")


def test_words_are_normalized() -> None:
    decomposed = "cafe\u0301"
    result = vocab_tools.learn_merges(BYTES, {decomposed: 2, "café": 3}, start_id=300)
    assert [(path.word, path.frequency) for path in result.words] == [("café", 5)]


def test_the_spaced_form_is_hinted_at() -> None:
    def hints(words: dict[str, int]) -> list[str]:
        return [
            note
            for note in vocab_tools.learn_merges(BYTES, words, start_id=300).notes
            if note.kind == "spaced form"
        ]

    assert "' lower'" in hints({"lower": 2})[0]
    assert hints({"lower": 2, " lower": 2}) == []
    assert hints({"一只猫": 2}) == []


def test_ctrl_c_and_errors_end_the_work() -> None:
    words = {
        f"{number:x}".translate(str.maketrans("0123456789", "ghijklmnop")): 1
        for number in range(10**9, 10**9 + 400_000)
    }

    def fail(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        vocab_tools.learn_merges(BYTES, words, pattern=".+", progress=fail)


def test_a_word_that_is_left_out_takes_no_part() -> None:
    # 猫 is three pieces in a base of bytes, so the word cannot become one token of whole characters:
    # the word is skipped, and its "ab" is neither learned nor counted.
    result = vocab_tools.learn_merges(BYTES, {"猫ab": 9}, start_id=300, whole_characters=True)
    assert result.tokens == {}
    words = {"猫ab": 9, "xy": 2, "ab": 1}
    result = vocab_tools.learn_merges(BYTES, words, start_id=300, whole_characters=True)
    assert list(result.tokens) == [b"xy", b"ab"]


def test_too_many_words_are_refused_before_learning() -> None:
    words = {f"{chr(0x4E00 + i % 20000)}{chr(0x4E00 + i // 20000)}": 1 for i in range(600_000)}
    steps: list[int] = []
    with pytest.raises(ValueError, match="600,000 words.*500,000.*--max-merges"):
        vocab_tools.learn_merges(
            BYTES, words, pattern=".+", progress=lambda done, _: steps.append(done)
        )
    assert steps == []
    # With a limit, earlier merges are kept.
    few = dict(list(words.items())[:3000])
    result = vocab_tools.learn_merges(BYTES, few, start_id=300, pattern=".+", max_merges=50)
    assert len(result.tokens) == 50


def test_the_limit_of_a_vocabulary_is_that_of_the_core() -> None:
    source = (ROOT / "core" / "src" / "vocabulary" / "mod.rs").read_text(encoding="utf-8")
    assert "RANK_BITS: u32 = 21;" in source and "(1 << RANK_BITS) - 512;" in source
    assert vocabulary.MAX_TOKENS == 2**21 - 512


def test_by_products_are_ranked_by_use() -> None:
    from vocab_tools.report import page_of

    result = vocab_tools.learn_merges(BYTES, {"lower": 2, "low": 5, "xyz": 9}, start_id=300)
    part = next(part for part in page_of(result).parts if part.title == "By-products")
    rows = part.tables[0].plain_rows(9)
    assert [(row[0], row[2]) for row in rows] == [("xy", "9"), ("lo", "7"), ("er", "2")]


def test_swapped_arguments_are_named() -> None:
    with pytest.raises(ValueError, match="'qwen' is the name of an encoding; the base comes first"):
        vocab_tools.learn_merges({b"a": 1}, "qwen")
