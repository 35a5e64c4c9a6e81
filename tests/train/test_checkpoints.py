"""Checkpoints beside the files of people: nothing of theirs is overwritten or deleted."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from vocab_command import run

from vocab_tools import train_vocabulary
from vocab_tools.train import count_corpus
from vocab_tools.train.cutting import cutting


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.txt"
    path.write_text("low lower lowest, new newer newest. " * 8)
    return path


def train(corpus: object, out: object, *more: object) -> Any:
    return run("train", corpus, "--vocab-size", 265, "-o", out, *more)


def a_checkpoint(corpus: list[Path], path: Path) -> bytes:
    count_corpus(corpus, cutting(None), checkpoint=str(path)).close()
    return path.read_bytes()


def test_a_file_that_is_no_checkpoint_stays(corpus: Path, tmp_path: Path) -> None:
    mine, out = tmp_path / "mine.txt", tmp_path / "out.tiktoken"
    mine.write_text("mine")
    for path, message in [
        (mine, "mine.txt is no checkpoint"),
        (corpus, "corpus.txt is an input"),
        (out, "given for two outputs"),
        (tmp_path / "out.encoding.json", "given for two outputs"),
        (tmp_path, "is a directory"),
        (tmp_path / "none" / "file", "No such file or directory"),
    ]:
        for option in ("--force", "--resume"):
            done = train(corpus, out, "--checkpoint", path, option)
            assert done.returncode == 1 and message in done.stderr, done.stderr
    assert mine.read_text() == "mine" and corpus.read_text().startswith("low")
    assert not out.exists()


def test_files_with_like_names_stay(corpus: Path, tmp_path: Path) -> None:
    for ending in ("-1", ".lines", ".lines-2"):
        (tmp_path / f"run{ending}").write_text("mine")
    done = train(corpus, tmp_path / "out.tiktoken", "--checkpoint", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    for ending in ("-1", ".lines", ".lines-2"):
        assert (tmp_path / f"run{ending}").read_text() == "mine"
    # Those that a run needs are refused.
    done = run(
        "train", corpus, corpus, "--balance", "bytes", "--vocab-size", 265, "--force",
        "-o", tmp_path / "two.tiktoken", "--checkpoint", tmp_path / "run",
    )  # fmt: skip
    assert done.returncode == 1 and "run-1 is no checkpoint" in done.stderr
    assert (tmp_path / "run-1").read_text() == "mine"


def test_every_checkpoint_of_a_run_is_gone_after_it(corpus: Path, tmp_path: Path) -> None:
    other = shutil.copy(corpus, tmp_path / "other.txt")
    done = run(
        "train", corpus, other, "--balance", "bytes", "--superwords-from", 262,
        "--vocab-size", 265, "-o", tmp_path / "out.tiktoken",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["corpus.txt", "other.txt", "out.encoding.json", "out.tiktoken"]


def test_a_checkpoint_in_the_folder_of_the_corpus(corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.tiktoken"
    expected = train_vocabulary(corpus, 265).dump()
    a_checkpoint([corpus], tmp_path / "out.tiktoken.checkpoint")
    a_checkpoint([corpus], tmp_path / "other")
    done = train(tmp_path, out, "--resume")
    assert (done.returncode, out.read_bytes()) == (0, expected), done.stderr


def test_a_missing_checkpoint_is_told(corpus: Path, tmp_path: Path) -> None:
    done = train(corpus, tmp_path / "out.tiktoken", "--resume")
    assert done.returncode == 0 and "there is no checkpoint" in done.stderr
    done = train(corpus, "-", "--resume")
    assert done.returncode == 1 and "--resume needs --checkpoint" in done.stderr
    done = run("train", "-", "--vocab-size", 265, "-o", "-", "--resume", input="low low")
    assert done.returncode == 1 and "standard input cannot be read again" in done.stderr


def test_too_little_memory_loses_no_counts(corpus: Path, tmp_path: Path) -> None:
    many, out = tmp_path / "many.txt", tmp_path / "out.tiktoken"
    many.write_text("".join(f"w{number:06} w{number:06}\n" for number in range(100_000)))
    done = train(many, out, "--max-memory", "1M", "--pattern-regex", r"\S+")
    assert done.returncode == 1 and "allow more" in done.stderr
    assert f"the counts so far are in {out}.checkpoint; --resume" in done.stderr
    done = train(many, out, "--max-memory", "100M", "--pattern-regex", r"\S+", "--resume")
    assert done.returncode == 0 and "there is no checkpoint" not in done.stderr, done.stderr


def test_held_out_text_is_looked_at_first(corpus: Path, tmp_path: Path) -> None:
    latin, empty, out = tmp_path / "latin.txt", tmp_path / "empty.txt", tmp_path / "out.tiktoken"
    latin.write_bytes(b"caf\xe9")
    empty.write_bytes(b"")
    # The corpus is refused, too, but later.
    broken = tmp_path / "broken.txt"
    broken.write_bytes(b"\xff")
    for path, message in [
        (latin, "latin.txt is not UTF-8"),
        (empty, "held-out text is empty"),
        ("-", "held-out text is read twice"),
    ]:
        done = train(broken, out, "--held-out", path)
        assert done.returncode == 1 and message in done.stderr, done.stderr


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_what_was_read_from_a_pipe_is_not_skipped(corpus: Path, tmp_path: Path) -> None:
    pipe, checkpoint = tmp_path / "pipe", tmp_path / "checkpoint"
    pipe.write_bytes(corpus.read_bytes())
    a_checkpoint([pipe], checkpoint)
    contents = checkpoint.read_bytes().replace(
        f"{pipe.stat().st_size}, {pipe.stat().st_mtime_ns}".encode(), b"null, null"
    )
    pipe.unlink()
    os.mkfifo(pipe)
    state = contents[contents.rindex(b'{"cutting"') : -8].replace(
        str(pipe).encode(), os.fspath(pipe).encode()
    )
    start = contents[: contents.rindex(b'{"cutting"')]
    checkpoint.write_bytes(start + state + len(state).to_bytes(8, "little"))
    with pytest.raises(ValueError, match="no regular file and cannot be read again"):
        count_corpus([pipe], cutting(None), checkpoint=str(checkpoint), resume=True)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_not_read_twice(corpus: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for options in ({"superwords_from": 260}, {"balance": "lines"}):
        with pytest.raises(ValueError, match="read twice"):
            train_vocabulary([tmp_path / "pipe", corpus], 300, **options)  # type: ignore[arg-type]


def test_several_corpora_are_a_list(corpus: Path) -> None:
    with pytest.raises(ValueError, match="give a list of them"):
        train_vocabulary(str(corpus), 300, balance="bytes")


def test_a_file_given_twice_is_told(corpus: Path, tmp_path: Path) -> None:
    done = run("train", corpus, tmp_path, "--vocab-size", 265, "-o", "-", "-q")
    assert f"note: {corpus} is given 2 times, and counted as often" in done.stderr


def test_a_device_has_no_files_beside_it(corpus: Path) -> None:
    before = sorted(os.listdir("/dev"))
    done = train(corpus, "/dev/null")
    assert done.returncode == 0 and sorted(os.listdir("/dev")) == before


def test_damaged_checkpoints(corpus: Path, tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    whole = a_checkpoint([corpus], path)
    for contents in (
        whole[:-1],
        whole[:40],
        b"",
        whole[:-8] + (1 << 60).to_bytes(8, "little"),
        b'{"files": []}' + (13).to_bytes(8, "little"),
        b"[1]" + (3).to_bytes(8, "little"),
    ):
        path.write_bytes(contents)
        with pytest.raises(ValueError, match="is no checkpoint, or it is damaged"):
            count_corpus([corpus], cutting(None), checkpoint=str(path), resume=True)
    path.write_bytes(whole[:10] + b"\xff" * 10 + whole[20:])
    with pytest.raises((ValueError, OSError), match="damaged"):
        count_corpus([corpus], cutting(None), checkpoint=str(path), resume=True)
