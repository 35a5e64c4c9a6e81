"""Tests ``vocab-tools train`` and ``count`` as a user runs them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from seeds import seeded
from vocab_command import run

import bpe_engine
from vocab_tools import TrainOptions, train_vocabulary
from vocab_tools.corpus.cutting import cutting
from vocab_tools.corpus.piece_counts import count_corpus
from vocab_tools.ranks import load_ranks
from vocab_tools.train.arrow import write_counts


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    chooser = seeded("training command")
    words = "low lower lowest new newer newest wide wider widest 猫 犬".split()
    path = tmp_path / "corpus.txt"
    lines = (" ".join(chooser.choices(words, k=12)) + "\n" for _ in range(300))
    path.write_text("".join(lines), encoding="utf-8")
    return path


def test_both_formats_and_a_summary(corpus: Path, tmp_path: Path) -> None:
    ranks, hf = tmp_path / "out.tiktoken", tmp_path / "out.json"
    done = run(
        "train", corpus, "--vocab-size", 280, "--special-token", "<|end|>",
        "-o", ranks, "-o", hf,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "bytes per token" in done.stdout
    assert not any(line.endswith(" ") for line in done.stdout.splitlines())
    assert len(load_ranks(ranks)) == 279
    beside = json.loads((tmp_path / "out.encoding.json").read_text())
    assert beside["special_tokens"] == {"<|end|>": 279} and beside["normalization"] is None
    encoding = bpe_engine.load_encoding(
        str(ranks), pattern=beside["pattern"], special_tokens=beside["special_tokens"]
    )
    text = corpus.read_text(encoding="utf-8")
    tokenizer = bpe_engine.hf.Tokenizer.from_file(str(hf))
    assert encoding.encode(text) == tokenizer.encode(text).ids
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "corpus.txt", "out.encoding.json", "out.json", "out.tiktoken",
    ]  # fmt: skip


def test_standard_input_and_output(corpus: Path) -> None:
    text = corpus.read_text(encoding="utf-8")
    done = run("train", "-", "--vocab-size", 280, "-o", "-", "-q", input=text)
    expected = train_vocabulary(corpus, 280).dump().decode()
    assert (done.returncode, done.stdout, done.stderr) == (0, expected, "")


def test_files_are_safe(corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.tiktoken"
    same = run("train", corpus, "--vocab-size", 300, "-o", tmp_path / "." / "corpus.txt", "--force")
    assert same.returncode == 1 and "is an input" in same.stderr
    folder = run("train", tmp_path, "--vocab-size", 300, "-o", corpus, "--force")
    assert folder.returncode == 1 and "is an input" in folder.stderr
    (tmp_path / "out.encoding.json").write_text("mine")
    there = run("train", corpus, "--vocab-size", 300, "-o", out)
    assert there.returncode == 2 and "exists already; --force" in there.stderr
    assert not out.exists() and (tmp_path / "out.encoding.json").read_text() == "mine"
    assert run("train", corpus, "--vocab-size", 300, "-o", out, "--force").returncode == 0
    count = run("count", corpus, "-o", corpus, "--force")
    assert count.returncode == 1 and "is an input" in count.stderr


def test_counts_from_several_machines(corpus: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    text = corpus.read_text(encoding="utf-8").splitlines(keepends=True)
    parts = []
    for number, lines in enumerate((text[:100], text[100:])):
        part = tmp_path / f"part{number}.txt"
        part.write_text("".join(lines), encoding="utf-8")
        parts.append(tmp_path / f"{number}.parquet")
        done = run("count", part, "--pattern", "gpt2", "-o", parts[-1])
        assert done.returncode == 0 and "distinct pieces of" in done.stdout, done.stderr
    options = ["--vocab-size", 320, "--pattern", "gpt2", "-q", "-o", "-"]
    merged = run("train", "--counts", *parts, *options)
    assert merged.returncode == 0, merged.stderr
    assert merged.stdout == run("train", corpus, *options).stdout
    other = run("train", "--counts", *parts, "--vocab-size", 320, "--pattern", "qwen", "-o", "-")
    assert other.returncode == 1 and "was counted with pattern" in other.stderr
    rare = run("count", corpus, "--drop-rare", 200, "-o", tmp_path / "rare.parquet")
    assert rare.returncode == 0 and "left out, which occurred" in rare.stdout


def test_folders_of_counts(corpus: Path, tmp_path: Path) -> None:
    """A folder of counts is read as Spark writes it; with balance, each folder is one corpus."""
    pytest.importorskip("pyarrow")
    text = corpus.read_text(encoding="utf-8").splitlines(keepends=True)
    options = ["--vocab-size", 320, "--pattern", "gpt2", "-q", "-o", "-"]
    texts, folders = [], []
    for name, lines in (("a", text[:100]), ("b", text[100:])):
        texts.append(tmp_path / f"{name}.txt")
        texts[-1].write_text("".join(lines), encoding="utf-8")
        folders.append(tmp_path / name)
        folders[-1].mkdir()
        (folders[-1] / "_SUCCESS").touch()
        for number, part in enumerate((lines[:40], lines[40:])):
            piece = tmp_path / "part.txt"
            piece.write_text("".join(part), encoding="utf-8")
            with count_corpus([piece], cutting("gpt2")) as counts:
                write_counts(counts, folders[-1] / f"part-{number}.parquet")
            (folders[-1] / f".part-{number}.parquet.crc").write_bytes(b"crc")
    counted = run("train", "--counts", *folders, *options, "--balance", "bytes")
    assert counted.returncode == 0, counted.stderr
    fair = train_vocabulary(texts, 320, TrainOptions(pattern="gpt2", balance="bytes"))
    assert counted.stdout == fair.dump().decode()
    for path in folders[0].glob("*.parquet"):
        path.unlink()
    empty = run("train", "--counts", folders[0], *options)
    assert empty.returncode == 1 and "the folder has no files" in empty.stderr


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_not_read_twice(corpus: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for options in ({"superwords_from": 260}, {"balance": "lines"}):
        with pytest.raises(ValueError, match="read twice"):
            train_vocabulary([tmp_path / "pipe", corpus], 300, TrainOptions(**options))  # type: ignore[arg-type]


def test_a_device_has_no_files_beside_it(corpus: Path) -> None:
    before = sorted(os.listdir("/dev"))
    done = run("train", corpus, "--vocab-size", 265, "-o", "/dev/null")
    assert done.returncode == 0 and sorted(os.listdir("/dev")) == before
