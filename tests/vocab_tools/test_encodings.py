"""Tests that commands work if standard output is not UTF-8."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest
from vocab_bases import BYTES
from vocab_command import COMMAND

from vocab_tools import dump_ranks
from vocab_tools.cli import app

#: `explain` prints ASCII only.
COMMANDS = sorted({*app.cli.list_commands(click.Context(app.cli))} - {"explain"})

#: Arguments of each command; every command prints non-Latin text.
CALLS = {
    "check": ["BASE", "--words", "WORDS", "--pattern", "gpt2"],
    "compare": ["qwen", "gpt2", "--corpus", "TEXT"],
    "convert": ["BASE", "OUT", "--pattern", "gpt2", "--special-tokens", "none"],
    "count": ["TEXT", "-o", "OUT"],
    "extend": ["BASE", "TEXT", "-n", "20", "-o", "OUT"],
    "learn": ["BASE", "WORDS", "-o", "OUT"],
    "map": ["BASE", "gpt2"],
    "propose": ["BASE", "TEXT", "-n", "20", "-o", "OUT"],
    "stats": ["qwen", "--corpus", "TEXT"],
    "train": ["TEXT", "--vocab-size", "270", "-o", "OUT"],
}


@pytest.fixture
def places(tmp_path: Path) -> dict[str, str]:
    """Writes input files for the commands; the files also have non-Latin names."""
    contents = {
        "BASE": ("ฐาน.tiktoken", dump_ranks(BYTES)),
        "WORDS": ("คำ.txt", "ภาษา\t3\n根本 的\t2\n猫\t5\n".encode()),
        "TEXT": ("ข้อความ.txt", "ภาษาไทย 根本的に 猫 \U0001f469 ".encode() * 30),
    }
    for name, data in contents.values():
        (tmp_path / name).write_bytes(data)
    found = {key: str(tmp_path / name) for key, (name, _) in contents.items()}
    return {**found, "OUT": str(tmp_path / "ผล.tiktoken")}


def called(monkeypatch: pytest.MonkeyPatch, encoding: str, arguments: list[str]) -> tuple[int, str]:
    """Calls the command with streams in an encoding; returns its status and all of its output."""
    streams = [io.TextIOWrapper(io.BytesIO(), encoding=encoding) for _ in range(2)]
    with monkeypatch.context() as patched:
        patched.setattr(sys, "argv", ["vocab-tools", *arguments])
        patched.setattr(sys, "stdout", streams[0])
        patched.setattr(sys, "stderr", streams[1])
        status = app.run()
        for stream in streams:
            stream.flush()
    printed = b"".join(stream.buffer.getvalue() for stream in streams)  # type: ignore[attr-defined]
    # click writes UTF-8 if the encoding is ASCII.
    return status, printed.decode(encoding, "replace")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "cp932", "iso8859-5"])
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_prints_to_any_encoding(
    monkeypatch: pytest.MonkeyPatch, places: dict[str, str], command: str, encoding: str
) -> None:
    for packages in ("pyarrow", "tokenizers"):
        pytest.importorskip(packages)
    arguments = [command, *(places.get(word, word) for word in CALLS[command])]
    status, printed = called(monkeypatch, encoding, arguments)
    assert status == 0 and "\\u0e" in printed, printed
    assert called(monkeypatch, encoding, [command, "--help"])[0] == 0
    # The error names a missing file.
    Path(places["TEXT"]).unlink()
    Path(places["WORDS"]).unlink()
    if command not in ("convert", "map"):
        status, printed = called(monkeypatch, encoding, [*arguments, *FORCE.get(command, [])])
        assert status and "vocab-tools: " in printed and "Traceback" not in printed


#: Options for the second call, when the output file exists.
FORCE = dict.fromkeys(("count", "extend", "learn", "propose", "train"), ["--force"])


def test_a_locale_without_utf_8(places: dict[str, str]) -> None:
    """Runs a real process, which `LC_ALL=C` starts without UTF-8 mode."""
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    environment.pop("PYTHONIOENCODING", None)
    arguments = ["learn", places["BASE"], places["WORDS"], "-o", places["OUT"]]
    done = subprocess.run([*COMMAND, *arguments], capture_output=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert b"\\u732b" in done.stdout + done.stderr
