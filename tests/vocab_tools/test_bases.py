"""Tests that every command reads every kind of vocabulary, its pattern and its special tokens."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from in_process import call
from small_files import byte_level_file, character_file
from vocab_bases import BYTES
from vocab_command import run

import bpe_engine
from bpe_engine.cli import main
from vocab_tools import (
    ExtendOptions,
    TrainOptions,
    check_folder,
    check_vocabulary,
    compare_tokenizers,
    convert_tokenizer,
    embedding_plan,
    learn_merges,
    load_subject,
    propose_words,
    read_plan,
    train_vocabulary,
)
from vocab_tools.cli import app
from vocab_tools.report import render

#: Cuts text into runs of letters and runs of other characters, unlike any published pattern.
PATTERN = r"[a-z]+|[^a-z]+"


@pytest.fixture
def trained(tmp_path: Path) -> str:
    """Writes a rank file and a sidecar with its pattern and special tokens, by `train`."""
    (tmp_path / "text.txt").write_text("lower 1 lower 1 <|end|> slow " * 20)
    arguments = ["--pattern-regex", PATTERN, "--special-token", "<|end|>", "-q"]
    path = tmp_path / "mine.tiktoken"
    done = run("train", tmp_path / "text.txt", "--vocab-size", "0.3k", "-o", path, *arguments)
    assert done.returncode == 2 and "such as 32000 or 32k" in done.stderr
    done = run("train", tmp_path / "text.txt", "--vocab-size", "262", "-o", path, *arguments)
    assert done.returncode == 0, done.stderr
    return str(path)


def test_both_commands_count_a_trained_vocabulary_alike(trained: str, tmp_path: Path) -> None:
    text = str(tmp_path / "text.txt")
    encoding = bpe_engine.load_encoding(trained)
    assert encoding.pattern == PATTERN and encoding.special_tokens_set == {"<|end|>"}
    stats = json.loads(run("stats", trained, "--corpus", text, "--json").stdout)
    for option in ("-e", "--ranks"):
        done = call(lambda: main(["count", option, trained, "-f", text]))  # noqa: B023
        assert int(done.stdout) == stats["tokenizers"][0]["tokens"], done.stderr


def test_tools_use_the_pattern_beside_a_rank_file(trained: str, tmp_path: Path) -> None:
    text = str(tmp_path / "text.txt")
    learned = learn_merges(trained, {"qq": 3})
    assert learned.pattern.pat_str == PATTERN and learned.special_tokens == {"<|end|>": 261}
    assert learned.tokens == {b"qq": 262}
    assert check_vocabulary(trained).pattern == PATTERN
    proposal = propose_words(trained, [text], ExtendOptions(2, min_frequency=1))
    assert proposal.pattern is not None and proposal.pattern.pat_str == PATTERN
    assert embedding_plan(trained, {b"qq": 262}).sizes["special_tokens"] == 1
    more = train_vocabulary([text], 263, base=trained)
    assert more.cutting.pattern == PATTERN and more.special_tokens == {"<|end|>": 261}


def test_every_command_takes_a_name_a_file_and_a_folder(tmp_path: Path) -> None:
    gpt2 = bpe_engine.get_encoding("gpt2")
    folder = tmp_path / "model"
    folder.mkdir()
    assert run("convert", "gpt2", folder / "tokenizer.json").returncode == 0
    (tmp_path / "words.txt").write_text("qqzz\n")
    printed = set()
    for place, base in enumerate(("gpt2", folder / "tokenizer.json", folder)):
        out = tmp_path / f"{place}.tiktoken"
        done = run("learn", base, tmp_path / "words.txt", "-o", out, "-q")
        assert done.returncode == 0, done.stderr
        printed.add(out.read_bytes())
        # `check` treats a folder as a model folder, so the call passes the file.
        file = folder / "tokenizer.json" if base == folder else base
        assert run("check", file, out).returncode == 0
    assert len(printed) == 1
    merged = learn_merges(gpt2, {"qqzz": 1})
    assert printed == {merged.dump()}


def test_bases_with_nfc_and_without_ranks(tmp_path: Path) -> None:
    nfc, characters = tmp_path / "nfc.json", tmp_path / "characters.json"
    nfc.write_text(json.dumps(byte_level_file(normalizer={"type": "NFC"})), encoding="utf-8")
    characters.write_text(json.dumps(character_file()), encoding="utf-8")
    learned = learn_merges(str(nfc), {"qq": 3})
    assert learned.tokens == {b"qq": 263} and learned.pattern.nfc
    (tmp_path / "words.txt").write_text("qq\t3\n")
    for command in ("learn", "propose", "extend"):
        done = run(command, characters, tmp_path / "words.txt", "-o", tmp_path / "out.tiktoken")
        assert done.returncode == 1 and done.stderr.count("\n") == 1
        assert f"{characters} is not a base, since it has no ranks" in done.stderr
        assert "give an encoding, a rank file, or a byte-level tokenizer.json" in done.stderr
    # `check` and `stats` work without ranks.
    for command in (
        ["check", characters],
        ["stats", characters, "--corpus", tmp_path / "words.txt"],
    ):
        done = run(*command)
        assert done.returncode == 0, done.stderr
    assert "no errors" in run("check", characters).stdout
    done = run("check", characters, "--words", tmp_path / "words.txt")
    assert done.returncode == 2 and "is checked as a tokenizer file" in done.stderr


def test_a_misspelt_name_gets_a_suggestion() -> None:
    done = run("check", "gpt22")
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert done.stderr.startswith("vocab-tools: ") and "Did you mean 'gpt2'?" in done.stderr
    assert "Did you mean 'check'?" in run("chekc").stderr


def test_representations_are_short(trained: str, tmp_path: Path) -> None:
    text = str(tmp_path / "text.txt")
    results = [
        train_vocabulary([text], 262),
        learn_merges(trained, {"qq": 3}),
        propose_words(trained, [text], ExtendOptions(2, min_frequency=1)),
        check_vocabulary(trained),
        compare_tokenizers([load_subject("gpt2")], [text]),
        embedding_plan(BYTES, {b"ab": 260}),
    ]
    for result in results:
        assert len(repr(result)) < 1000 and "\n" not in repr(result)
        assert type(result).__name__ in repr(result)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable, main_, words, place in (
        ("_BPE_ENGINE_COMPLETE", main, "bpe-engine encode -e o200", 3),
        ("_VOCAB_TOOLS_COMPLETE", app.run, "vocab-tools check o200", 2),
        ("_VOCAB_TOOLS_COMPLETE", app.run, "vocab-tools train --pattern o200", 3),
    ):
        with monkeypatch.context() as patched:
            patched.setenv(variable, f"{shell}_complete")
            patched.setenv("COMP_WORDS", words)
            patched.setenv("COMP_CWORD", "o200" if shell == "fish" else str(place))
            printed = call(main_).stdout.decode()
            assert "o200k_base" in printed and "o200k_harmony" in printed
            # In bash, a completion item of type "file" would replace the names.
            assert "file" not in printed
            patched.setenv(variable, f"{shell}_source")
            assert variable in call(main_).stdout.decode()


def test_results_are_saved(tmp_path: Path) -> None:
    result = train_vocabulary({"ab": 9}, 257, TrainOptions(pattern="gpt2"))
    result.save(tmp_path / "mine.tiktoken")
    result.save(tmp_path / "mine.json")
    result.save(tmp_path)
    assert (tmp_path / "tokenizer.json").read_bytes() == (tmp_path / "mine.json").read_bytes()
    for name in ("mine.tiktoken", "mine.json"):
        assert bpe_engine.load_encoding(tmp_path / name).encode("ab") == [256]
    assert bpe_engine.load_encoding(tmp_path / "mine.tiktoken").pattern == result.cutting.pattern
    learned = learn_merges(tmp_path / "mine.tiktoken", {"abab": 1})
    learned.save(tmp_path / "more.tiktoken")
    assert (tmp_path / "more.tiktoken").read_bytes() == learned.dump()
    conversion = convert_tokenizer("gpt2", str(tmp_path / "new" / "tokenizer.json"))
    conversion.save()
    assert bpe_engine.load_encoding(tmp_path / "new").encode("hello") == [31373]
    plan = embedding_plan("gpt2", {b"abab": 50257})
    plan.save(tmp_path / "plan.json")
    assert read_plan(tmp_path / "plan.json") == plan
    text = tmp_path / "text.txt"
    text.write_text("abab")
    comparison = compare_tokenizers(["gpt2"], [text])
    for saved in (check_vocabulary("gpt2"), check_folder(tmp_path / "new"), comparison):
        for ending in ("md", "json", "html"):
            saved.save(tmp_path / f"report.{ending}")
            expected = render(f"report.{ending}", saved)
            assert (tmp_path / f"report.{ending}").read_text(encoding="utf-8") == expected
        with pytest.raises(ValueError, match="a report ends in"):
            saved.save(tmp_path / "report.txt")


def test_a_base_is_opened_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """`extend_vocabulary` compares a base with the published vocabularies only once."""
    from vocab_tools import bases, embedding_plan, extend_vocabulary

    compared: list[int] = []
    published = bases.published_name

    def counted(ranks: dict[bytes, int]) -> str | None:
        compared.append(len(ranks))
        return published(ranks)

    monkeypatch.setattr(bases, "published_name", counted)
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("myocarditis zqxzqx " * 20)
    extension = extend_vocabulary("gpt2", corpus, ExtendOptions(5))
    assert extension.ok and len(compared) == 1
    opened = bases.open_base("gpt2")
    assert embedding_plan(opened, extension.learned.tokens) == embedding_plan(
        "gpt2", extension.learned.tokens
    )
    assert "ranks" not in repr(opened) and len(compared) == 3
