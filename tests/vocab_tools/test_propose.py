"""Tests proposing words from a corpus, and extending a vocabulary in one step."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from seeds import seeded
from vocab_bases import BYTES, QWEN
from vocab_command import run

from bpe_engine.texts import plain_text
from vocab_tools import (
    ExtendOptions,
    check_vocabulary,
    extend_vocabulary,
    learn_merges,
    load_ranks,
    open_base,
    propose_words,
    read_words,
)
from vocab_tools.corpus.cutting import Cutting
from vocab_tools.corpus.effect import corpus_effect
from vocab_tools.extend import propose
from vocab_tools.extend.selection import learned_tokens, savings_of
from vocab_tools.patterns import named_pattern

TEXT = "the lower tower and the slower flower, then lowering the tower; " * 20

#: Words that are not tokens of qwen.
DOMAIN = "myocarditis and pericarditis, no endocarditis: the pericardium; " * 20


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.txt"
    path.write_text(TEXT + "猫と犬 " * 30 + "rareword\n", encoding="utf-8")
    return path


def test_what_is_proposed_is_what_learn_gains(corpus: Path) -> None:
    for new_ids in (1, 3, 10, 40, 500):
        proposal = propose_words(open_base(BYTES, "qwen"), [corpus], ExtendOptions(new_ids))
        assert proposal.new_ids <= new_ids
        learned = learn_merges(BYTES, proposal.frequencies, start_id=300, pattern="qwen")
        assert len(learned.tokens) == proposal.new_ids
        assert [path.word for path in learned.words] == [word.word for word in proposal.words]
        assert not learned.not_one_token and not learned.refused
        before = learned.pattern.encoding(BYTES, {})
        after = learned.pattern.encoding(learned.extended, {})
        text = corpus.read_text(encoding="utf-8")
        assert len(before.encode_ordinary(text)) == proposal.tokens_before
        assert len(after.encode_ordinary(text)) == proposal.tokens_after


def test_shared_merges_are_paid_for_once(corpus: Path) -> None:
    proposal = propose_words(open_base(BYTES, "qwen"), [corpus], ExtendOptions(500))
    words = {word.word: word for word in proposal.words}
    assert words[" the"].tokens_now == 4 and words[" the"].frequency == 59
    # " then" needs one more merge than " the".
    assert words[" then"].new_ids == 1 and words[" then"].saved == 20 * 4
    assert sum(word.new_ids for word in proposal.words) >= proposal.new_ids
    assert "rareword" not in words
    assert proposal.left_out["less frequent than 5"] >= 1


def test_what_words_save_adds_up(corpus: Path) -> None:
    """Savings add up to the total in the report's headline and at the end of its curve."""
    for new_ids in (3, 10, 40, 500):
        proposal = propose_words(open_base(BYTES, "qwen"), [corpus], ExtendOptions(new_ids))
        assert sum(word.saved for word in proposal.words) == proposal.saved > 0
        gains = [word.saved for word in proposal.by_gain()]
        assert gains == sorted(gains, reverse=True)
        extension = extend_vocabulary(open_base(BYTES, "qwen"), [corpus], ExtendOptions(new_ids))
        effect = extension.effect
        assert extension.proposal == proposal
        again = extend_vocabulary(open_base(BYTES, "qwen"), iter([corpus]), ExtendOptions(new_ids))
        assert again.effect == effect
        assert effect.tokens_before - effect.tokens_after == proposal.saved
        assert sum(effect.saved_by_token.values()) == proposal.saved
        assert set(effect.saved_by_token) <= set(extension.learned.tokens)


def test_extending_in_python_is_the_command(corpus: Path, base: Path, tmp_path: Path) -> None:
    new = tmp_path / "new.tiktoken"
    done = run("extend", base, corpus, "-n", 9, "--pattern", "qwen", "-o", new, "--json")
    assert done.returncode == 0, done.stderr
    steps = []
    extension = extend_vocabulary(
        open_base(base, "qwen"),
        str(corpus),
        ExtendOptions(9),
        progress=lambda step, *_: steps.append(step),
    )
    extension.save(tmp_path / "same.tiktoken")
    assert (tmp_path / "same.tiktoken").read_bytes() == new.read_bytes()
    assert json.loads(json.dumps(extension.to_plain())) == json.loads(done.stdout)
    assert extension.ok and {"reading", "reading the corpus"} <= set(steps)
    assert extension.checked.finding("WORD_NOT_ONE_TOKEN") is None
    with pytest.raises(ValueError, match="no word is worth"):
        extend_vocabulary(open_base(base, "qwen"), corpus, ExtendOptions(9, min_frequency=10_000))


def test_an_extension_with_errors_is_not_saved(corpus: Path, tmp_path: Path) -> None:
    extension = extend_vocabulary(open_base(BYTES, "qwen"), corpus, ExtendOptions(9))
    finding = extension.checked.findings[0]
    extension.checked.findings[0] = replace(finding, severity="error")
    with pytest.raises(ValueError, match=f"the check found errors: .*{finding.code}"):
        extension.save(tmp_path / "new.tiktoken")
    assert not (tmp_path / "new.tiktoken").exists()


def test_scripts_and_exclusions(corpus: Path) -> None:
    def words(**options: object) -> set[str]:
        found = propose_words(open_base(BYTES, "qwen"), [corpus], ExtendOptions(300, **options))  # type: ignore[arg-type]
        return {word.word for word in found.words}

    assert words(scripts=["Han", "Hiragana"]) == {" 猫と犬"}
    assert not any("猫" in word for word in words(scripts=["latin"]))
    assert " tower" not in words(exclude=[" tower"]) and " tower" in words()
    assert "rareword" in "".join(words(min_frequency=1))
    with pytest.raises(ValueError, match="unknown script 'Tahi'. Did you mean .*thai"):
        words(scripts=["Tahi"])
    with pytest.raises(ValueError, match="new_ids is 0"):
        propose_words(BYTES, [corpus], ExtendOptions(0))


def test_rare_pieces_are_counted_when_memory_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "text.txt"
    lines = (f"w{chr(0x4E00 + n % 5000)} and\n" for n in range(200_000))
    path.write_text("".join(lines), encoding="utf-8")
    expected = propose_words(BYTES, [path], ExtendOptions(30, min_frequency=1))
    monkeypatch.setattr(propose, "DEFAULT_MEMORY", 1)
    found = propose_words(BYTES, [path], ExtendOptions(30, min_frequency=1))
    assert found == expected and found.tokens_before == path.stat().st_size


@pytest.mark.parametrize(("pattern", "parts"), [("gpt2", True), (r"[^\n]+|\n", False)])
def test_paragraphs_that_are_lines_are_read_in_parts(
    pattern: str, parts: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every command reads a text in parts if the pattern is a published pattern."""
    monkeypatch.setattr(plain_text, "BLOCK_CHARACTERS", 64)
    path = tmp_path / "text.txt"
    path.write_text("The pericarditis of a paragraph that ends in a full stop.\n\n" * 60)
    longest = []

    class Seen:
        def __init__(self, counter: Any) -> None:
            self.counter = counter

        def __getattr__(self, name: str) -> Any:
            return getattr(self.counter, name)

        def count(self, texts: list[str]) -> int:
            longest.append(max(map(len, texts)))
            return int(self.counter.count(texts))

    real = Cutting.counter
    monkeypatch.setattr(Cutting, "counter", lambda cut: Seen(real(cut)))
    found = propose_words(open_base(BYTES, pattern), [path], ExtendOptions(20))
    assert (max(longest) < 400) == parts
    encoding = found.pattern.encoding(BYTES, {}) if found.pattern else None
    assert encoding is not None
    longest.clear()
    corpus_effect(path, encoding, encoding, [])
    assert (max(longest) < 400) == parts


def test_marks_without_a_script_fit_any(tmp_path: Path) -> None:
    """An iteration mark and a variation selector are accepted with letters of any script."""
    path = tmp_path / "text.txt"
    path.write_text("時々見る堂々 ❤\ufe0f\n" * 9, encoding="utf-8")
    found = propose_words(
        open_base(BYTES, "gpt2"), [path], ExtendOptions(50, scripts=["Han", "Hiragana", "other"])
    )
    assert "時々見る堂々" in {word.word for word in found.words}
    assert "of other scripts" not in found.left_out
    with pytest.raises(ValueError, match=r"'latn'. Did you mean 'latin'\?"):
        propose_words(BYTES, [path], ExtendOptions(50, scripts=["latn"]))


def test_the_output_goes_into_learn(tmp_path: Path) -> None:
    corpus = tmp_path / "domain.txt"
    corpus.write_text(DOMAIN)
    words, extra = tmp_path / "words.txt", tmp_path / "extra.tiktoken"
    done = run("propose", QWEN, corpus, "-n", 8, "-o", words)
    assert done.returncode == 0, done.stderr
    assert "new ids save" in done.stdout
    assert " pericarditis\t20\n" in words.read_text(encoding="utf-8")
    learned = run("learn", QWEN, words, "-o", extra)
    assert learned.returncode == 0, learned.stderr
    assert "not become" not in learned.stderr and "pre-tokenized" not in learned.stderr
    listed = read_words(words)
    assert check_vocabulary(QWEN, extra, words=listed).finding("WORD_NOT_ONE_TOKEN") is None
    assert 0 < len(load_ranks(extra)) <= 8


def test_extend_does_all_in_one_step(tmp_path: Path, corpus: Path) -> None:
    extra, words, report = (tmp_path / name for name in ("e.tiktoken", "w.txt", "r.html"))
    done = run("extend", QWEN, corpus, "-n", 8, "-o", extra, "-w", words, "--report", report)
    assert done.returncode == 0, done.stderr
    learned = run("learn", QWEN, words, "-o", "-", "-q")
    assert learned.stdout.encode() == extra.read_bytes()
    assert min(load_ranks(extra).values()) == 151851
    assert "no errors" in done.stdout and "fewer" in done.stdout
    assert "fewer tokens of the corpus" in report.read_text(encoding="utf-8")
    again = run("extend", QWEN, corpus, "-n", 8, "-o", extra)
    assert again.returncode == 2 and "exists already" in again.stderr


def test_an_extended_base_is_extended_again(tmp_path: Path, base: Path, corpus: Path) -> None:
    first = tmp_path / "first.tiktoken"
    assert run("extend", base, corpus, "-n", 6, "-o", first, "-q").returncode == 0
    second = tmp_path / "second.tiktoken"
    options = ["-n", 6, "-o", second, "--extra", first, "-q"]
    assert run("extend", base, corpus, *options).returncode == 0
    assert load_ranks(first).keys().isdisjoint(load_ranks(second))
    checked = run("check", base, first, second)
    assert checked.returncode == 0, checked.stdout


def test_words_are_chosen_by_what_they_save(tmp_path: Path) -> None:
    path = tmp_path / "corpus.txt"
    path.write_text(DOMAIN.replace("; ", ";\n"))
    saved = []
    ranks = load_ranks(QWEN)
    for new_ids in (3, 4, 5, 7):
        proposal = propose_words(ranks, [path], ExtendOptions(new_ids))
        assert proposal.new_ids <= new_ids
        assert sum(word.new_ids for word in proposal.words) == proposal.new_ids
        saved.append(proposal.saved // 20)
        if new_ids == 4:
            assert {word.word for word in proposal.words} == {" pericarditis", " pericardium"}
    assert saved == [5, 6, 7, 10]


def test_the_choice_is_near_the_best(tmp_path: Path) -> None:
    chooser = seeded("proposals")
    pattern = named_pattern("qwen")
    current = pattern.encoding(BYTES, {})
    stems = ["card", "peri", "endo", "itis", "um", "my", "lo", "wer"]
    path = tmp_path / "corpus.txt"
    ratios = []
    for _ in range(6):
        words: dict[str, int] = {}
        while len(words) < 6:
            word = " " + "".join(chooser.sample(stems, chooser.randint(1, 2)))
            words[word] = chooser.randint(5, 60)
        path.write_text("".join(word * count for word, count in words.items()))
        worth = []
        for size in range(1, 7):
            for some in itertools.combinations(words.items(), size):
                tokens = learned_tokens(some, BYTES)
                found = savings_of(words.items(), current, pattern, BYTES, tokens)
                worth.append((len(tokens), found.before - found.after))
        for new_ids in (6, 10, 14):
            best = max((saved for count, saved in worth if count <= new_ids), default=0)
            proposal = propose_words(open_base(BYTES, "qwen"), [path], ExtendOptions(new_ids))
            assert proposal.new_ids <= new_ids
            ratios += [proposal.saved / best] if best else []
    assert sum(ratios) / len(ratios) > 0.93


def test_a_pipe_is_read_once(tmp_path: Path, base: Path) -> None:
    path = tmp_path / "domain.txt"
    path.write_text(DOMAIN)
    reports = []
    for name in ("file", "standard", "fifo"):
        report = tmp_path / f"{name}.json"
        options = ["-n", 40, "-o", tmp_path / f"{name}.tiktoken", "--report", report]
        if name == "standard":
            done = run("extend", base, "-", *options, input=DOMAIN)
        elif name == "fifo":
            fifo = tmp_path / "fifo.txt"
            os.mkfifo(fifo)
            with subprocess.Popen(["cp", str(path), str(fifo)]):
                done = run("extend", base, fifo, *options)
        else:
            done = run("extend", base, path, *options)
        assert done.returncode == 0, done.stderr
        reports.append(json.loads(report.read_text(encoding="utf-8"))["corpus"])
    names = [report.pop("files")[0]["name"] for report in reports]
    assert names == [str(path), "-", str(tmp_path / "fifo.txt")]
    assert reports[0]["tokens_before"] == len(DOMAIN)
    assert reports[0] == reports[1] == reports[2]
    done = run("propose", base, "-", "-n", 40, "-o", "-", "-q", input=DOMAIN)
    assert done.stdout == run("propose", base, path, "-n", 40, "-o", "-", "-q").stdout != ""
    done = run("extend", base, "-", "-", "-o", "-", input=DOMAIN)
    assert done.returncode == 2 and "standard input (-) is given twice" in done.stderr


def test_no_words_is_an_error(tmp_path: Path, base: Path) -> None:
    corpus, words = tmp_path / "corpus.txt", tmp_path / "words.txt"
    corpus.write_text("rare words\n")
    for command in ("propose", "extend"):
        done = run(command, base, corpus, "-o", words)
        assert done.returncode == 1 and "nothing is written" in done.stderr
        assert not words.exists()


def test_extend_gives_no_hints_about_a_list(tmp_path: Path, base: Path) -> None:
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("myocarditis\n" * 20)
    done = run("extend", base, corpus, "-n", 20, "-o", tmp_path / "e")
    assert done.returncode == 0 and "running text" not in done.stdout + done.stderr
