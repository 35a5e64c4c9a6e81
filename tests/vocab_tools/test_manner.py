"""Tests that both commands have the same conventions for statuses, errors, JSON and help."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from in_process import call
from vocab_command import listed, run

from bpe_engine.cli import main
from vocab_tools import learn_merges


def bpe(*words: object) -> CompletedProcess[str]:
    """Runs ``bpe-engine``."""
    done = call(lambda: main([*map(str, words)]))
    return CompletedProcess([], done.returncode, done.stdout.decode(), done.stderr.decode())


COMMANDS = [(bpe, "bpe-engine"), (run, "vocab-tools")]


@pytest.mark.parametrize(("command", "name"), COMMANDS)
def test_help_lists_sections_in_the_order_of_work(
    command: Callable[..., CompletedProcess[str]], name: str
) -> None:
    alone, asked = command(), command("--help")
    assert (alone.returncode, alone.stdout, alone.stderr) == (2, "", asked.stdout)
    # Each heading after the options is a group of commands; each command has one line of help.
    sections = re.split(r"\n\n(?=\S)", asked.stdout.split("Options:")[1])[1:]
    assert len(sections) >= 3
    for section in sections:
        heading, *lines = section.strip().splitlines()
        assert heading.endswith(":") and lines
        for line in lines:
            found = re.fullmatch(r"  ([\w-]+) {2,}\S.*[^.]\.", line)
            assert found, line
            text = command(found[1], "--help").stdout
            assert text.startswith(f"Usage: {name} {found[1]} ")
            assert max(map(len, text.splitlines())) < 80, "examples fit on a terminal"
    assert max(map(len, asked.stdout.splitlines())) < 80


def test_options_are_listed_in_sections() -> None:
    for text in (run("train", "--help").stdout, bpe("count", "--help").stdout):
        headings = re.findall(r"^(\w+):$", text, re.MULTILINE)
        assert headings == ["Options", "Vocabulary", "Text", "Output"]
        assert "INTEGER RANGE" not in text


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (bpe, "count -f no/such"),
        (bpe, "count -e no/such.json x"),
        (bpe, "count --ranks no/such x"),
        (bpe, "count -f no/such.jsonl --field text"),
        (bpe, "check-template no/such"),
        (bpe, "corpus no/such -o out -e gpt2"),
        (bpe, "corpus run no/such"),
        (bpe, "playground --no-open -e no/such.json"),
        (run, "stats gpt2 --corpus no/such"),
        (run, "stats no/such --corpus no/such"),
        (run, "compare gpt2 no/such --corpus no/such"),
        (run, "map gpt2 no/such"),
        (run, "check no/such"),
        (run, "convert no/such out.tiktoken"),
        (run, "learn gpt2 no/such -o -"),
        (run, "propose gpt2 no/such -o -"),
        (run, "extend no/such no/such -o -"),
        (run, "count no/such -o out"),
        (run, "train no/such --vocab-size 300 -o -"),
        (run, "train no/such --base no/such --vocab-size 300 -o -"),
    ],
)
def test_a_missing_file_has_status_2(
    command: Callable[..., CompletedProcess[str]], words: str
) -> None:
    done = command(*words.split())
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    assert "no/such" in done.stderr and done.stderr.startswith(("bpe-engine: ", "vocab-tools: "))


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.txt"
    path.write_text("zyxwvut qponmlk zyxwvut qponmlk\n" * 40)
    return path


def test_json_of_each_result(tmp_path: Path, corpus: Path) -> None:
    words, extra, out = (tmp_path / name for name in ("words.txt", "extra", "out.tiktoken"))
    proposed = json.loads(run("propose", "gpt2", corpus, "-o", words, "--json").stdout)
    assert [word["word"] for word in proposed["words"]] == [
        line.split("\t")[0] for line in words.read_text().splitlines()
    ]
    learned = json.loads(run("learn", "gpt2", words, "-o", extra, "--json").stdout)
    assert len(learned["tokens"]) == len(extra.read_text().splitlines()) > 0
    done = run("extend", "gpt2", corpus, "-o", tmp_path / "more", "--json")
    extended = json.loads(done.stdout)
    assert extended["proposal"] == proposed and extended["check"]["ok"]
    assert extended["learned"]["tokens"] == learned["tokens"]
    trained = json.loads(run("train", corpus, "--vocab-size", "270", "-o", out, "--json").stdout)
    assert trained["tokens"] == 270 and trained["learned"] == 14
    assert trained["files"] == [str(out), str(tmp_path / "out.encoding.json")]
    assert sum(part["bytes"] for part in trained["corpora"]) == corpus.stat().st_size


@pytest.mark.parametrize("words", ["learn gpt2 LIST", "propose gpt2 LIST", "extend gpt2 LIST"])
def test_json_and_a_result_are_not_mixed(tmp_path: Path, words: str) -> None:
    path = listed(tmp_path, "zyxw")
    done = run(*words.replace("LIST", str(path)).split(), "-o", "-", "--json")
    assert (done.returncode, done.stdout) == (2, "") and "both write to standard" in done.stderr


def test_train_names_what_it_wrote(tmp_path: Path, corpus: Path) -> None:
    out = tmp_path / "t.txt"
    done = run("train", corpus, "--vocab-size", "270", "-o", out)
    assert f"written: {out}, {tmp_path}/t.encoding.json" in done.stdout
    assert "t.txt is a rank file" in done.stderr


def test_paths_show_cut_characters_whole(tmp_path: Path) -> None:
    done = run("learn", "gpt2", listed(tmp_path, "只猫"), "-o", tmp_path / "e")
    assert "只 ‥ 猫 ‥ ‥ → 只 ‥ 猫 ‥ → 只 猫 ‥ → 只 猫 → 只猫" in done.stdout
    (tmp_path / "text").write_text("我是一只猫 and a cat\n" * 3, encoding="utf-8")
    compared = run("compare", "gpt2", "o200k_base", "--corpus", tmp_path / "text").stdout
    assert "base: recognized as r50k_base" in done.stdout and "gpt2" in compared


def test_fields_are_counted_without_syntax(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"text": "hello world"}\n{"text": "hello"}\n{"text": null}\n')
    done = bpe("count", "-f", path, "--field", "text")
    assert (done.stdout, done.stderr) == ("3\n", "")
    plain = bpe("count", "-f", path)
    assert int(plain.stdout) > 3 and "--field text counts a field" in plain.stderr
    missing = bpe("count", "-f", path, "--field", "txt")
    assert (
        missing.returncode == 1
        and "line 1: the field 'txt' is missing; there is 'text'" in missing.stderr
    )
    assert bpe("count", "--field", "text", "hello").returncode == 2


def test_models_by_the_beginning_of_a_name() -> None:
    for model in ("gpt-4o-mini", "gpt-4-turbo-2024-04-09", "o1-preview", "ft:gpt-4o:me", "gpt-5.1"):
        assert bpe("count", "-m", model, "hello").stderr == "", model
    guessed = bpe("count", "-m", "gpt-5-turbo", "hello")
    assert guessed.stdout == "1\n" and "the model 'gpt-5-turbo' is not known" in guessed.stderr
    unknown = bpe("count", "-m", "llama-3", "hello")
    assert unknown.returncode == 2 and "tokenizer.json" in unknown.stderr


def test_learning_takes_a_word_list(tmp_path: Path) -> None:
    path = listed(tmp_path, "low\t5", "lower\t2")
    base = {bytes([byte]): byte for byte in range(256)}
    assert learn_merges(base, path).tokens == learn_merges(base, {"low": 5, "lower": 2}).tokens


@pytest.mark.parametrize(
    "words", ["vocab_tools stats gpt2 --corpus TEXT", "bpe_engine count -f TEXT"]
)
def test_without_standard_error(tmp_path: Path, words: str) -> None:
    path = tmp_path / "text"
    path.write_text("hello world")
    module, *rest = words.replace("TEXT", str(path)).split()
    shell = shlex.join([sys.executable, "-m", module, *rest])
    done = subprocess.run(["sh", "-c", f"{shell} 2>&-"], capture_output=True, text=True)
    assert done.returncode == 0 and "2" in done.stdout


def test_a_missing_package_is_named(tmp_path: Path) -> None:
    (tmp_path / "jinja2.py").write_text("raise ModuleNotFoundError('no jinja2', name='jinja2')")
    (tmp_path / "chat.jinja").write_text("{{ messages }}")
    done = subprocess.run(
        [sys.executable, "-m", "bpe_engine", "check-template", tmp_path / "chat.jinja"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"},
    )
    assert done.returncode == 1 and "pip install 'bpe-engine[chat]'" in done.stderr


def test_text_is_an_argument_of_stats(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("one two")
    one = run("stats", "gpt2", text)
    assert one.returncode == 0 and one.stdout == run("stats", "gpt2", "--corpus", text).stdout
    for command in (["stats", "gpt2"], ["compare", "gpt2", "qwen"]):
        done = run(*command)
        assert done.returncode == 2 and "--corpus FILE" in done.stderr


def test_text_is_not_checked_as_ranks(tmp_path: Path) -> None:
    text = tmp_path / "novel.txt"
    text.write_text("It was a dark night.\n\nThe rain fell.\nNobody came.\n")
    for arguments in ([text], ["qwen", text]):
        done = run("check", *arguments)
        assert done.returncode == 2 and "novel.txt is not a rank file" in done.stderr
    text.write_text("YQ== 0\nbroken\nYg== 1\n")
    assert "BAD_LINE" in run("check", text).stdout
