"""Tests that notes are grouped, so that many notes of one kind do not hide others."""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import pytest
from vocab_bases import BYTES, QWEN
from vocab_command import listed, run

from vocab_tools import learn_merges, load_ranks
from vocab_tools.notes import KINDS, Note, grouped


def arabic_words(count: int) -> list[str]:
    """Returns words that are tokens of qwen, followed by words that are not."""
    texts = (token.decode(errors="ignore") for token in load_ranks(QWEN))
    known = [
        text for text in texts if len(text) > 2 and all("\u0621" <= c <= "\u064a" for c in text)
    ]
    new = [first + second for first, second in zip(known, known[7:])]
    assert len(known) >= 200
    return [*known[:200], *new][:count]


def test_a_thousand_arabic_words_show_every_kind_of_note(tmp_path: Path) -> None:
    words = arabic_words(1000)
    path = listed(tmp_path, *(f"{word}\t3" for word in words), "two words\t1")
    done = run("learn", QWEN, path, "-o", tmp_path / "e", "-q", "--max-merges", 1500)
    assert done.returncode == 0, done.stderr
    assert "words are tokens already, and are skipped:" in done.stderr
    assert "with a space before it" in done.stderr
    assert "would be pre-tokenized" in done.stderr
    assert len(done.stderr.splitlines()) < 20
    every = run("learn", QWEN, path, "-o", tmp_path / "f", "-q", "--max-merges", 1500, "--all")
    assert every.stderr.count("is already a token") >= 200


def test_words_that_do_not_become_tokens_are_never_cut(tmp_path: Path) -> None:
    words = [f"{first}{second}xy" for first in "abcdefghijkl" for second in "mnopqrstuvw"]
    path = listed(tmp_path, *(f"{word}\t3" for word in words), *(f"a b{n}\t1" for n in range(150)))
    done = run("learn", QWEN, path, "-o", tmp_path / "e", "-q", "--max-merges", 0)
    start = done.stderr.index("132 words do not become one token, since the limit of 0 merges was")
    assert "(--max-merges)" in done.stderr[start:]
    assert set(words) <= set(re.findall(r"\w+", done.stderr[start:]))
    lines = done.stderr[start:].partition("\nwarning: ")[0].splitlines()
    assert max(map(len, lines)) <= 120
    # The same holds for a list of thousands of words.
    many = [f"q{first}{word}" for first in "abcdefghijklmnop" for word in words]
    path = listed(tmp_path, *(f"{word}\t3" for word in many))
    done = run("learn", QWEN, path, "-o", tmp_path / "e", "-q", "--max-merges", 1, "--force")
    assert len(set(many) & set(re.findall(r"\w+", done.stderr))) >= len(many) - 1


def test_severe_kinds_come_first() -> None:
    result = learn_merges(BYTES, {"a": 1, "abc": 1, "x y": 1}, start_id=300, max_merges=1)
    assert [group.kind for group in grouped(result.notes)] == [
        "not one token",
        "split",
        "already a token",
    ]
    # Notes are still strings.
    assert all(isinstance(note, str) for note in result.notes)
    copied = pickle.loads(pickle.dumps(result.notes[0]))
    assert copied == result.notes[0] and copied.kind == result.notes[0].kind


def test_kinds_are_known() -> None:
    with pytest.raises(ValueError, match="unknown kind of note"):
        Note("gossip", "text")
    assert all(KINDS.values())


def test_spaces_at_the_ends_of_words_are_seen(tmp_path: Path) -> None:
    words = listed(tmp_path, " hello world\t3", " the\t3")
    done = run("learn", QWEN, words, "-o", tmp_path / "e")
    assert "warning: ' hello world' would be pre-tokenized to" in done.stderr
    assert "warning: ' the' is already a token" in done.stderr


def test_one_is_singular(tmp_path: Path) -> None:
    done = run("learn", QWEN, listed(tmp_path, "一只猫\t3"), "-o", tmp_path / "e")
    assert "1  new token, id 151851\n" in done.stdout
    done = run("learn", QWEN, listed(tmp_path, "abcxyzq\t3"), "-o", "-", "--max-merges", 0)
    assert "1 word does not become one token" in done.stderr
    assert "0  new tokens, no ids\n" in done.stderr
