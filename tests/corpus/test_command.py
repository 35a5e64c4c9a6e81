"""Tests the steps, report, errors and exit statuses of `bpe-engine corpus`."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from corpora import read_megatron, texts, write_jsonl
from in_process import call

import bpe_engine
from bpe_engine import cli
from bpe_engine.corpus import PackedRows, corpus_report, read_plan
from bpe_engine.corpus.look import look_at

pytest.importorskip("pyarrow")


def run(*arguments: object, status: int = 0) -> tuple[str, str]:
    """Runs the command, and returns its output and its errors."""
    done = call(partial(cli.main, ["corpus", *map(str, arguments)]))
    out, err = done.stdout.decode(), done.stderr.decode()
    assert done.returncode == status, out + err
    return out, err


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_jsonl(tmp_path / "in.jsonl", texts(40))


def test_steps_and_the_shortcut_write_the_same(tmp_path: Path, source: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    out, _ = run("plan", source, "-o", one, "-e", "gpt2")
    assert out.startswith("1 input, ") and out.endswith(f"1 unit: {one}/plan.json\n")
    assert "1 unit written, " in run("run", one, "--processes", 1)[1]
    assert "all units exist" in run("run", one)[1]
    assert "wrong" not in run("verify", one)[0]
    assert run("merge", one)[0].split() == [
        f"{one}/corpus_text_document.bin",
        f"{one}/corpus_text_document.idx",
    ]
    out, _ = run(source, "-o", two, "-e", "gpt2", "--merge", "--processes", 1)
    assert "every document ends with EOD" in out
    name = "corpus_text_document"
    for ending in (".bin", ".idx"):
        assert (one / f"{name}{ending}").read_bytes() == (two / f"{name}{ending}").read_bytes()
    assert len(read_megatron(one / name)) == 40
    out, _ = run("pack", two, "--length", 64, "--method", "wrap")
    assert f"rows of up to 64 ids: {two}/packed-64-wrap.idx" in out


def test_shuffle_is_merged(tmp_path: Path, source: Path) -> None:
    out, _ = run(source, "-o", tmp_path / "out", "-e", "gpt2", "--shuffle", 3, "--processes", 1)
    assert "wrong" not in out and "corpus_text_document.bin" in out
    assert not (tmp_path / "out" / "parts-in-order").exists()


def test_verify_tells_what_is_wrong(tmp_path: Path, source: Path) -> None:
    out = tmp_path / "out"
    run(source, "-o", out, "-e", "gpt2", "--format", "nanogpt")
    path = next((out / "parts").glob("*.bin"))
    path.write_bytes(b"\1\0" + path.read_bytes()[2:])
    assert f"wrong  {path} has other bytes" in run("verify", out, status=1)[0]
    found = json.loads(run("verify", out, "--json", status=1)[0])
    assert found["ok"] is False and len(found["problems"]) == 1


def test_report_in_three_forms(tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    documents = ["a <b>bold</b> cat", "<|endoftext|>", "x" * 500]
    source = write_jsonl(tmp_path / "in<i>.jsonl", documents)
    with open(source, "a") as file:
        file.write("no json\n")
    out = tmp_path / "out"
    run(source, "-o", out, "-e", "gpt2", "--on-error", "skip")
    shown, _ = run("report", out)
    for part in (
        "Sources",
        "Longest documents",
        "Control strings",
        "Refused rows",
        "in<i>.jsonl",
    ):
        assert part in shown
    found = json.loads(run("report", out, "--json")[0])
    assert found["documents"] == 3 and found["controls"]["<|endoftext|>"][0] == 1
    assert f"{found['tokens']:,}" in shown
    assert "3 documents became" in shown and "the corpus is complete" in shown
    # The report shows lengths, rows and the first document's tokens, read from the token files.
    for part in ("% of the documents", "Rows for training", "A sample"):
        assert part in shown
    look = look_at(read_plan(out))
    assert look is not None and look.documents == 3
    assert look.lengths.keys() == {"up to 8", "up to 16", "up to 64"}
    assert abs(sum(look.lengths.values()) - 100) < 1e-9
    enc = bpe_engine.get_encoding("gpt2")
    assert "".join(look.sample) == documents[0].replace(" ", "·") + "<|endoftext|>"
    assert len(look.sample) == enc.count(documents[0]) + 1
    assert look.rows[0][1] == 100
    sizes = [enc.count(text) + 1 for text in documents]
    assert look.rows[0][2] == 100 * sum(sizes) / (3 * 512)
    assert look_at(read_plan(out)) == look


def test_errors_are_one_line(tmp_path: Path, source: Path) -> None:
    out = tmp_path / "out"
    cases = [
        ([source, "-o", out], 2, "Missing option '-e'"),
        ([source, "-o", out, "-e", "gpt2", "--eod", "a", "--no-eod"], 2, "exclude each other"),
        ([source, "-o", out, "-e", "gpt22"], 2, "Did you mean 'gpt2'?"),
        ([tmp_path / "none", "-o", out, "-e", "gpt2"], 2, "No such file"),
        ([source, "-o", out, "-e", "gpt2", "--messages", "m"], 1, "need a chat template"),
        ([source, "-o", out, "-e", "gpt2", "--field", "x"], 1, "line 1: the field 'x' is missing"),
        (["run", tmp_path], 1, "the plan is missing"),
        (["verify", tmp_path / "none"], 2, "does not exist"),
    ]
    for arguments, status, message in cases:
        _, err = run(*arguments, status=status)
        lines = [line for line in err.splitlines() if not line.endswith("tokens")]
        assert len(lines) == 1 and message in lines[0], err


def test_examples_of_the_help_are_options() -> None:
    for command in ("", "plan", "run"):
        text, _ = run(*command.split(), "--help")
        examples = re.findall(r"bpe-engine corpus (\w+)?(.*)", text.split("Options:")[0])
        assert examples
        for name, rest in examples:
            described, _ = run(
                *[name] * (name in ("plan", "run", "verify", "merge", "pack", "report")), "--help"
            )
            for option in re.findall(r" (--?[a-z-]+)", rest.split("   ")[0]):
                assert re.search(rf"{option}\b", described.split("Options:")[1]), (name, option)


def test_text_with_a_separator(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("one\n\ntwo\n\nthree")
    out, _ = run(tmp_path / "in.txt", "-o", tmp_path / "out", "-e", "gpt2", "--separator", r"\n\n")
    assert "3 rows read, 3 written" in out


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "in.txt").write_text("text")
    _, err = run(tmp_path / "in.txt", "-o", tmp_path / "out", "-e", "gpt2", status=1)
    assert "pip install 'bpe-engine[corpus]'" in err


def test_a_rank_without_units_says_so(tmp_path: Path, source: Path) -> None:
    run("plan", source, "-o", tmp_path / "out", "-e", "gpt2")
    _, err = run("run", tmp_path / "out", "--rank", 1, "--world-size", 2)
    assert "rank 1 of 2: all its units exist; nothing to do" in err


def test_a_long_report_says_what_it_leaves_out(tmp_path: Path) -> None:
    (tmp_path / "in" / "a").mkdir(parents=True)
    for number in range(12):
        write_jsonl(tmp_path / "in" / "a" / f"{number:02d}.jsonl", ["x " * number])
    run(tmp_path / "in", "-o", tmp_path / "out", "-e", "gpt2")
    shown, _ = run("report", tmp_path / "out")
    assert f"Sources: Inputs: 12, in {tmp_path}/in/a/." in shown
    assert re.search(r"\n11\.jsonl +1 +22 +13 +0\.5909\n", shown)
    assert "\nand 2 more; --report has them\n" in shown
    lines = write_jsonl(tmp_path / "\x1b[31m.jsonl", ["a"]).read_text() + "x\n" * 12
    (tmp_path / "\x1b[31m.jsonl").write_text(lines)
    options = ("-e", "gpt2", "--on-error", "keep-empty")
    checked, _ = run(tmp_path / "\x1b[31m.jsonl", "-o", tmp_path / "b", *options)
    assert "13 rows read, 13 written, 12 refused and kept empty" in checked
    shown, _ = run("report", tmp_path / "b")
    assert f"Refused rows: {tmp_path}/b/refused lists all of them." in shown
    assert "\x1b" not in shown and re.search(r"\n\\x1b\[31m\.jsonl +2 ", shown)
    report = corpus_report(tmp_path / "out")
    assert [row[0][-8:] for row in report.ranked_sources()][:2] == ["11.jsonl", "10.jsonl"]
    (sources,) = [part for part in report.page().parts if part.id == "sources"]
    assert f"Inputs: 12, in {tmp_path}/in/a/." in sources.text
    assert sources.tables[0].rows[0][0] == "11.jsonl"


def test_the_options_of_one_step_are_in_the_help(tmp_path: Path, source: Path) -> None:
    text, _ = run("--help")
    for option in ("--encoding", "--format", "--field", "--separator", "--merge", "--held-out"):
        assert option in text
    assert not re.search(r"\ball\b", text.replace("all of it", "").replace("all inputs", ""))
    _, err = run(source, "-o", tmp_path / "out", status=2)
    assert err.endswith("(`bpe-engine corpus --help` shows examples)\n")


@pytest.mark.parametrize("options", [[], ["--shuffle", 5]], ids=str)
def test_a_big_text_for_nanogpt(tmp_path: Path, options: list[object]) -> None:
    """As in nanoGPT's README: a text with empty lines becomes train.bin and val.bin."""
    stories = [f"Story {number}.\n{'One cat. ' * 30}" for number in range(5000)]
    (tmp_path / "input.txt").write_text("\n\n\n".join(stories))
    out = tmp_path / "out"
    choices = ["-o", out, "-e", "gpt2", "--format", "nanogpt", "--held-out", 0.01, *options]
    shown, _ = run(tmp_path / "input.txt", *choices, "--processes", 1)
    assert "wrong" not in shown and "5,000 rows read, 5,000 written" in shown
    gpt2 = bpe_engine.get_encoding("gpt2")
    found = [
        gpt2.decode(np.fromfile(out / f"{name}.bin", "<u2").tolist()).split("<|endoftext|>")[:-1]
        for name in ("train", "val")
    ]
    assert [len(part) for part in found] == [4950, 50]
    assert sorted(map(str.strip, sum(found, []))) == sorted(map(str.strip, stories))
    assert options or [it.strip() for it in found[1]] == [it.strip() for it in stories[-50:]]
    run("pack", out, "--length", 512)
    rows = PackedRows(out)
    documents = {piece[0] for row in range(len(rows)) for piece in rows.pieces(row)}
    assert documents == set(range(4950))


def test_one_long_text_names_the_separator(tmp_path: Path) -> None:
    path = tmp_path / "input.txt"
    path.write_text(("a line " * 20 + "\n") * 10_000)
    choices = ("-e", "gpt2", "--processes", 1)
    _, err = run(path, "-o", tmp_path / "a", *choices, status=1)
    assert "document 1: the document is longer than 1,048,576 bytes, without an empty line; " in err
    assert r"with --separator '\n' each line is a document" in err
    _, err = run(path, "-o", tmp_path / "a", *choices, "--separator", r"\n", status=1)
    assert "separator was 'auto' and is now '\\n'; delete it, since nothing is written there" in err
    out, _ = run(path, "-o", tmp_path / "b", *choices, "--separator", "")
    assert "1 row read" in out
    out, _ = run(path, "-o", tmp_path / "c", *choices, "--separator", r"\n")
    assert "10,000 rows read" in out
