"""Tests corpora that the command refuses, and files next to its outputs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from vocab_command import run

from vocab_tools import TrainOptions, train_vocabulary


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.txt"
    path.write_text("low lower lowest, new newer newest. " * 8)
    return path


def train(corpus: object, out: object, *more: object) -> Any:
    return run("train", corpus, "--vocab-size", 265, "-o", out, *more)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_not_read_twice(corpus: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for options in ({"superwords_from": 260}, {"balance": "lines"}):
        with pytest.raises(ValueError, match="read twice"):
            train_vocabulary([tmp_path / "pipe", corpus], 300, TrainOptions(**options))  # type: ignore[arg-type]


def test_several_corpora_are_a_list(corpus: Path) -> None:
    with pytest.raises(ValueError, match="give a list of them"):
        train_vocabulary(str(corpus), 300, TrainOptions(balance="bytes"))


def test_a_file_given_twice_is_noted(corpus: Path, tmp_path: Path) -> None:
    done = run("train", corpus, tmp_path, "--vocab-size", 265, "-o", "-", "-q")
    assert f"note: {corpus} is given 2 times, and counted each time" in done.stderr


def test_a_device_has_no_files_beside_it(corpus: Path) -> None:
    before = sorted(os.listdir("/dev"))
    done = train(corpus, "/dev/null")
    assert done.returncode == 0 and sorted(os.listdir("/dev")) == before
