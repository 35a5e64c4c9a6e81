"""Tests patterns (names, near misses, regular expressions), and how bases are recognized."""

from __future__ import annotations

from pathlib import Path

import pytest
from vocab_bases import BYTES, DATA, QWEN
from vocab_command import listed, run

import bpe_engine
from bpe_engine.read.published_ranks import PUBLISHED
from vocab_tools import check_vocabulary, dump_ranks, learn_merges, load_ranks
from vocab_tools.bases import recognize
from vocab_tools.patterns import find_pattern


@pytest.mark.parametrize(
    ("name", "meant"),
    [("qwen9", "qwen"), ("Qwen", "qwen"), ("cl100k", "cl100k_base"), ("gpt-4", "cl100k_base")],
)
def test_unknown_names_are_refused(tmp_path: Path, name: str, meant: str) -> None:
    done = run("learn", QWEN, listed(tmp_path, "abc\t1"), "-o", "-", "--pattern", name)
    assert done.returncode == 2 and "Did you mean " in done.stderr and meant in done.stderr
    assert run("check", QWEN, "--pattern", name).returncode == 2
    for function in (find_pattern, lambda pattern: learn_merges(BYTES, {"a": 1}, pattern=pattern)):
        with pytest.raises(ValueError, match=f"unknown encoding '{name}'. Did you mean '{meant}"):
            function(name)


def test_regular_expressions_have_their_own_option(tmp_path: Path) -> None:
    words = listed(tmp_path, "a b\t1")
    done = run("learn", QWEN, words, "-o", "-", "--pattern", "(?s).+")
    assert done.returncode == 2 and "--pattern-regex" in done.stderr
    assert run("learn", QWEN, words, "-o", "-", "--pattern-regex", "(?s).+").returncode == 0
    both = run("learn", QWEN, words, "-o", "-", "--pattern-regex", ".+", "--pattern", "gpt2")
    assert both.returncode == 2 and "exclude each other" in both.stderr
    # A regular expression may consist of letters only.
    done = run("learn", QWEN, listed(tmp_path, "abcqzx\t1"), "-o", "-", "--pattern-regex", "abcqzx")
    assert done.returncode == 0 and done.stdout


def test_every_published_base_is_recognized() -> None:
    for name in PUBLISHED:
        found = recognize(load_ranks(DATA / f"{name}.tiktoken"))
        assert found is not None and (found.name, found.more) == (name, 0)
    assert recognize(BYTES) is None


def test_a_base_that_uses_the_ids_of_its_special_tokens() -> None:
    ranks = {**load_ranks(DATA / "r50k_base.tiktoken"), b"zzqq": 50256}
    result = check_vocabulary(ranks)
    finding = result.finding("SPECIAL_ID")
    assert finding is not None and "<|endoftext|>" in finding.examples[0]
    assert not result.ok and str(result.recognized) == "r50k_base and 1 more token"


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_a_base_with_new_tokens_is_recognized_by_learn_and_check(
    tmp_path: Path, end: bytes
) -> None:
    ranks = load_ranks(DATA / "r50k_base.tiktoken")
    more = {b"zzqqa": 50257, b"zzqqb": 50258, b"zzqqc": 50259}
    path = tmp_path / "base.tiktoken"
    path.write_bytes(dump_ranks({**ranks, **more}).replace(b"\n", end))
    result = check_vocabulary(path)
    assert result.pattern == "r50k_base" and result.sizes["special_tokens"] == 1
    assert str(result.recognized) == "r50k_base and 3 more tokens"
    assert "recognized as r50k_base and 3 more tokens" in run("check", path).stdout
    learned = learn_merges(path, {"qwertzui": 1})
    assert learned.pattern.name == "r50k_base"
    assert str(learned.recognized) == "r50k_base and 3 more tokens"


def test_words_with_combining_marks_are_explained() -> None:
    words = {"हिन्दी": 3, "ภาษาไทยที่": 2}
    result = learn_merges(QWEN, words)
    assert list(result.refused) == list(words)
    note = next(note for note in result.notes if note.kind == "marks")
    assert "2 words with combining marks" in note and "o200k_base" in note
    assert "'न" in note or "'ภาษาไทยท'" in note
    # The pattern of o200k_base keeps marks with letters, so no word is refused.
    kept = learn_merges(bpe_engine.get_encoding("o200k_base"), words)
    assert kept.refused == {} and not any(note.kind == "marks" for note in kept.notes)
