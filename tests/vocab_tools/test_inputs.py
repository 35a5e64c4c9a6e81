"""Tests that files in the wrong order are refused, and that control characters are escaped."""

from __future__ import annotations

from pathlib import Path

import pytest
from vocab_bases import BYTES, DATA, QWEN
from vocab_command import listed, run

from bpe_engine.cli.printing import printable
from vocab_tools import dump_ranks, read_words
from vocab_tools.text import quoted, quoted_list, show, token_text


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """Writes a rank file whose name does not show the format."""
    path = tmp_path / "ranks"
    path.write_bytes(dump_ranks(BYTES))
    return path


@pytest.mark.parametrize(
    "arguments",
    [
        "learn WORDS RANKS -o OUT",
        "learn RANKS RANKS -o OUT",
        "learn WORDS WORDS -o OUT",
        "learn RANKS WORDS --extra WORDS -o OUT",
        "learn RANKS WORDS --corpus RANKS -o OUT",
        "check WORDS",
        "check RANKS WORDS",
        "check RANKS --words RANKS",
        "check RANKS --corpus RANKS",
        "propose WORDS RANKS -o OUT",
        "propose TEXT RANKS -o OUT",
        "propose RANKS RANKS -o OUT",
        "propose RANKS TEXT --exclude RANKS -o OUT",
        "extend TEXT RANKS -o OUT",
        "extend RANKS RANKS -o OUT",
        "convert WORDS OUT.tiktoken",
        "convert RANKS OUT.tiktoken --extra WORDS",
    ],
)
def test_swapped_files_are_recognized(tmp_path: Path, base: Path, arguments: str) -> None:
    text = tmp_path / "text"
    text.write_text("page 12\nsome text\n" * 5)
    names = {
        "WORDS": listed(tmp_path, "猫\t3", "ab cd\t12.0"),
        "RANKS": base,
        "TEXT": text,
        "OUT": tmp_path / "out",
        "OUT.tiktoken": tmp_path / "out.tiktoken",
    }
    before = sorted(tmp_path.iterdir())
    done = run(*(names.get(part, part) for part in arguments.split()))
    assert done.returncode == 2 and " must be " in done.stderr, done.stderr
    assert sorted(tmp_path.iterdir()) == before


def test_text_that_looks_like_ranks_is_text(tmp_path: Path, base: Path) -> None:
    text = tmp_path / "text"
    for lines in ("page 12\n", "page 12\npage 11\nabcd 5\n", "some page 12\n" * 3):
        text.write_text(lines * 9)
        assert run("propose", base, text, "-o", "-", "-q").returncode == 0


def test_every_command_names_the_base(tmp_path: Path) -> None:
    name = "r50k_base"
    ranks = DATA / f"{name}.tiktoken"
    words = listed(tmp_path, "myocarditisq\t9")
    text = tmp_path / "text"
    text.write_text("myocarditisq " * 9)
    for command in (
        ["learn", ranks, words, "-o", tmp_path / "1"],
        ["check", ranks],
        ["propose", ranks, text, "-o", tmp_path / "2"],
        ["extend", ranks, text, "-o", tmp_path / "3"],
    ):
        done = run(*command)
        assert done.returncode == 0, done.stderr
        assert f"base: recognized as {name}\n" in done.stdout
        assert name not in done.stderr


def test_a_pipe_cannot_be_converted(tmp_path: Path) -> None:
    done = run("convert", "/dev/stdin", tmp_path / "x.tiktoken", input="YQ== 0\n")
    assert done.returncode == 1 and "is a pipe or a device" in done.stderr


def test_an_extension_given_twice(tmp_path: Path, base: Path) -> None:
    extra = tmp_path / "extra"
    extra.write_bytes(dump_ranks({b"ab": 300}))
    words = listed(tmp_path, "xy\t1")
    done = run("learn", base, words, "-o", "-", "--extra", extra, "--extra", extra)
    assert done.returncode == 1 and "is a file given twice?" in done.stderr


def test_control_characters_are_not_printed(tmp_path: Path, base: Path) -> None:
    evil = "a\x1b[31mb\x07\u202ec"
    words = listed(tmp_path, f"{evil}\t3", "plain\t2", f"{evil}\t4")
    report = tmp_path / "re\x1bport.md"
    corpus = tmp_path / "\x1b]0;name.txt"
    corpus.write_text(f"{evil} plain\n" * 9)
    done = run("learn", base, words, "-o", tmp_path / "e", "--report", report, "--corpus", corpus)
    assert done.returncode == 0, done.stderr
    outputs = [done, run("learn", base, words, "-o", tmp_path / "\x1bno" / "x")]
    outputs.append(run("learn", base, tmp_path / "\x1bnone", "-o", "x"))
    outputs.append(run("check", base, "--words", words, "--corpus", corpus))
    outputs.append(run("propose", base, corpus, "-o", "-", "--pattern-regex", "(?s).+"))
    for done in outputs:
        shown = done.stderr + (done.stdout if done.args[3] != "propose" else "")
        assert shown and not set("\x1b\x07\u202e") & set(shown), done.args
    assert "\\x1b" in outputs[0].stderr


def test_texts_for_people() -> None:
    assert printable("a\x1b\n\udcff") == "a\\x1b\n\\udcff"
    assert quoted("it's") == '"it\'s"' and quoted("'\"") == "''\"'"
    assert quoted("👩\u200d💻") == "'👩\u200d💻'" and quoted("👩\u200d") == "'👩\\u200d'"
    assert quoted("\u00a0\\") == "'\\xa0\\\\'"
    assert quoted_list(["ก", "\u0e34"]) == "['ก', '\u25cc\u0e34']"
    assert token_text(b" a\n") == "\u00b7a\u23ce" and token_text(b"\xff") == "\\xff"
    assert show(b"x" * 99) == f"'{'x' * 59}…'"


def test_numbers_and_encodings_of_lists(tmp_path: Path) -> None:
    for number in ("1,000", "1_000", "1 000", "1.000.000"):
        with pytest.raises(ValueError, match=r"not a plain number; write 1000"):
            read_words([f"word\t{number}"])
    with pytest.raises(ValueError, match="not a positive integer"):
        read_words(["word\t١٢"])
    assert read_words(["word\t+12"]) == {"word": 12}
    for name in ("utf-16", "utf-16-le", "utf-16-be"):
        path = tmp_path / name
        path.write_bytes("word\t12\n".encode(name))
        with pytest.raises(ValueError, match=r"UTF-16.*save the list as UTF-8"):
            read_words(path)


def test_patterns_that_are_refused(base: Path) -> None:
    done = run("check", base, "--pattern-regex", "")
    assert done.returncode == 2 and "is empty" in done.stderr
    done = run("check", base, "--pattern", "")
    assert done.returncode == 2 and "--pattern is empty" in done.stderr
    done = run("check", base, "--pattern", "gpt4o")
    assert done.returncode == 2 and "Did you mean 'o200k_base'?" in done.stderr


def test_the_error_of_a_start_id_names_the_free_one(tmp_path: Path) -> None:
    words = listed(tmp_path, "zqxzq\t3")
    specials = tmp_path / "specials.txt"
    specials.write_text("".join(f"<|{number}|> {number}\n" for number in range(151643, 151665)))
    options = ["--special-tokens", specials, "-q"]
    done = run("learn", QWEN, words, "-o", "-", "--start-id", 151664, *options)
    assert "the first free id is 151665 (--start-id auto takes it)" in done.stderr
    done = run("learn", QWEN, words, "-o", "-", *options)
    assert done.stdout.splitlines()[0].endswith(" 151665")
    done = run("learn", QWEN, words, "-o", "-", "--start-id", 151700, "-q")
    assert "the first free id is 151851 (--start-id auto takes it)" in done.stderr


def test_errors_of_text_that_is_not_utf8(tmp_path: Path, base: Path) -> None:
    text = tmp_path / "text"
    text.write_bytes(b"low lower\xff low " * 9)
    words = listed(tmp_path, "low\t1")
    for command in (
        ["learn", base, words, "-o", tmp_path / "1", "--corpus", text],
        ["check", base, "--corpus", text],
        ["propose", base, text, "-o", tmp_path / "2"],
        ["extend", base, text, "-o", tmp_path / "3"],
    ):
        done = run(*command)
        assert done.returncode == 1 and "pass --errors replace" in done.stderr
        done = run(*command, "--errors", "replace")
        assert done.returncode == 0, done.stderr
