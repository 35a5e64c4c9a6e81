"""Tests that every `save` writes its file atomically."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import vocab_tools
from bpe_engine import hf
from bpe_engine.common import atomic_write as written

VOCABULARY = {"a": 0, "b": 1}


def savers() -> dict[str, Callable[[str], object]]:
    """Returns, by name, calls that write one file each."""
    learned = vocab_tools.learn_merges("gpt2", {" lowslow": 5})
    tokenizer = hf.Tokenizer(hf.WordLevel(VOCABULARY, unk_token="a"))
    return {
        "write_at_once": lambda path: written.write_at_once(path, b"new"),
        "LearnResult.save": learned.save,
        "hf.Tokenizer.save": tokenizer.save,
    }


@pytest.mark.skipif(os.name != "posix", reason="modes, links and pipes are those of POSIX")
@pytest.mark.parametrize("name", ["write_at_once", "LearnResult.save", "hf.Tokenizer.save"])
def test_a_saved_file(name: str, tmp_path: Path) -> None:
    save = savers()[name]
    file, link, pipe = tmp_path / "file", tmp_path / "link", tmp_path / "pipe"
    file.write_bytes(b"old")
    file.chmod(0o600)
    link.symlink_to(file)
    save(str(link))
    assert link.is_symlink()
    assert file.read_bytes() != b"old"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600

    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    save(str(pipe))
    reader.join()
    assert read == [file.read_bytes()]

    with pytest.raises(FileNotFoundError, match=r"none/file'$"):
        save(str(tmp_path / "none" / "file"))
    with pytest.raises(IsADirectoryError):
        save(str(tmp_path))
    assert sorted(os.listdir(tmp_path)) == ["file", "link", "pipe"]


def test_a_file_that_cannot_be_replaced_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"old")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device", "elsewhere")

    monkeypatch.setattr(written, "sync", fail)
    with pytest.raises(OSError, match="No space left") as raised:
        written.write_at_once(file, b"new")
    assert raised.value.filename == str(file)
    assert os.listdir(tmp_path) == ["file"] and file.read_bytes() == b"old"


def test_a_file_that_may_not_be_written_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"old")
    monkeypatch.setattr(written.os, "access", lambda path, mode: False)
    with pytest.raises(PermissionError, match="file"):
        written.write_at_once(file, b"new")
    assert os.listdir(tmp_path) == ["file"] and file.read_bytes() == b"old"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="Linux has this device")
def test_a_full_device_is_named() -> None:
    with pytest.raises(OSError, match="/dev/full"):
        written.write_at_once("/dev/full", b"new")
