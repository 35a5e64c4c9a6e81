"""Tests that inputs are never overwritten, and that other files are overwritten only on request."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

import pytest
from vocab_bases import BYTES
from vocab_command import COMMAND, listed, run

from bpe_engine.cli.outputs import OutputFiles
from vocab_tools import dump_ranks


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_no_output_is_an_input(tmp_path: Path, base: Path) -> None:
    words = listed(tmp_path, "ab\t1")
    extra = tmp_path / "extra.md"
    extra.write_bytes(dump_ranks({b"xy": 300}))
    specials = tmp_path / "specials.md"
    specials.write_text("<x> 400\n")
    corpus = tmp_path / "corpus.md"
    corpus.write_text("ab ab")
    os.symlink(corpus, tmp_path / "link.md")
    os.link(words, tmp_path / "hard.md")
    before = contents(tmp_path)
    more = ["--extra", extra, "--special-tokens", specials, "--corpus", corpus, "--force"]
    for output in (base, words, extra, specials, corpus, tmp_path / "link.md"):
        spelled = output.parent / "." / ".." / output.parent.name / output.name
        done = run("learn", base, words, "-o", spelled, *more)
        assert done.returncode == 1 and "is an input" in done.stderr, output
    for report in (extra, specials, corpus, tmp_path / "hard.md"):
        options = ["-o", tmp_path / "new", "--report", report, *more]
        done = run("learn", base, words, *options)
        assert done.returncode == 1 and f"{report} is an input" in done.stderr
        if report != specials and report != extra:
            checked = run(
                "check", base, "--words", words, "--corpus", corpus, "--report", report, "--force"
            )
            assert checked.returncode == 1 and "is an input" in checked.stderr
    both = ["-o", tmp_path / "same.md", "--report", f"{tmp_path}/./same.md"]
    assert "two outputs" in run("learn", base, words, *both).stderr
    assert contents(tmp_path) == before


@pytest.mark.skipif(not os.path.exists("/dev/stdin"), reason="needs names of open files")
def test_words_from_a_pipe_are_all_read(tmp_path: Path, base: Path) -> None:
    letters = "abcdefghijklmnopqrstuvwxyz"
    lines = "".join(f"zq{one}{other}\t1\n" for one in letters for other in letters)
    for name in ("-", "/dev/stdin"):
        target = tmp_path / f"{len(name)}.tiktoken"
        done = run("learn", base, name, "-o", target, input=lines)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "1.tiktoken").read_bytes() == (tmp_path / "10.tiktoken").read_bytes()
    assert len((tmp_path / "1.tiktoken").read_bytes().splitlines()) > 26 * 26


def test_what_exists_is_overwritten_only_when_asked(tmp_path: Path, base: Path) -> None:
    words = listed(tmp_path, "ab\t1")
    output, report = tmp_path / "extra.tiktoken", tmp_path / "report.md"
    report.write_text("mine")
    done = run("learn", base, words, "-o", output, "--report", report)
    assert done.returncode == 2 and f"{report}: exists already; --force" in done.stderr
    assert not output.exists() and report.read_text() == "mine"
    done = run("learn", base, words, "-o", output, "--report", report, "--force")
    assert done.returncode == 0 and output.exists()
    assert report.read_text().startswith("# 1 new token for a vocabulary of 256 ranks")


def test_outputs_are_tried_before_the_work(tmp_path: Path, base: Path) -> None:
    # The word list is malformed, but the command checks the output first.
    words = listed(tmp_path, "bad line")
    for output in (tmp_path / "no" / "where", tmp_path):
        done = run("learn", base, words, "-o", output)
        assert done.returncode == 2 and f"vocab-tools: {output}: " in done.stderr
        assert "bad lines" not in done.stderr
    done = run("learn", base, words, "-o", tmp_path / "e", "--report", tmp_path / "no" / "r.md")
    assert f"{tmp_path}/no/r.md: No such file or directory" in done.stderr


def test_a_failed_write_leaves_the_old_file_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_text("old")
    files = OutputFiles([str(first), str(second)], force=True)
    write_bytes = Path.write_bytes

    def failing(path: Path, data: bytes) -> int:
        if path.name.startswith(".second"):
            raise OSError(28, "No space left on device")
        return write_bytes(path, data)

    monkeypatch.setattr(Path, "write_bytes", failing)
    with pytest.raises(OSError, match="No space left.*second"):
        files.write({str(first): b"new", str(second): b"new"})
    monkeypatch.undo()
    assert contents(tmp_path) == {"first": b"old"}
    monkeypatch.setattr(os, "replace", lambda *_: os.stat(tmp_path / "none"))
    with pytest.raises(OSError, match="first"):
        files.write({str(first): b"new", str(second): b"new"})
    monkeypatch.undo()
    assert contents(tmp_path) == {"first": b"old"}
    files.write({str(first): b"new", str(second): b"new"})
    assert contents(tmp_path) == {"first": b"new", "second": b"new"}


def test_permissions_and_links_stay(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("old")
    target.chmod(0o640)
    link = tmp_path / "link"
    link.symlink_to(target)
    OutputFiles([str(link)], force=True).write({str(link): b"new"})
    assert link.is_symlink() and target.read_bytes() == b"new"
    assert target.stat().st_mode & 0o777 == 0o640


def test_devices_are_written_to(tmp_path: Path, base: Path) -> None:
    words = listed(tmp_path, "ab\t1")
    assert run("learn", base, words, "-o", "/dev/null", "-q").returncode == 0


def test_a_closed_pipe_ends_every_command_alike(tmp_path: Path, base: Path) -> None:
    words = listed(tmp_path, *(f"{'abc'[n % 3]}{chr(0x4E00 + n)}\t1" for n in range(9000)))
    # The findings exceed a pipe's buffer.
    odd = [bytes([255, first, second]) for first in range(160) for second in range(160)]
    ranks = {**BYTES, **{token: 256 + number for number, token in enumerate(odd)}}
    large = tmp_path / "large.tiktoken"
    large.write_bytes(dump_ranks(ranks))
    for arguments in (f"check {large} --json", f"learn {base} {words} -o - -q"):
        shell = f"{' '.join(COMMAND)} {arguments} | head -c 10; echo ${{PIPESTATUS[0]}}"
        # An unbuffered write may accept only part of the text; the command must write the rest.
        for unbuffered in ("", "1"):
            environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
            done = subprocess.run(
                ["bash", "-c", shell], capture_output=True, text=True, env=environment
            )
            assert done.stdout.endswith("141\n"), (arguments, done.stdout)
            assert done.stderr == "", arguments


def test_every_error_names_its_file(tmp_path: Path, base: Path) -> None:
    words = listed(tmp_path, "ab\t1")
    for output, status, message in [
        ("/dev/full", 1, "/dev/full: No space left on device"),
        ("", 1, "the name of an output is empty"),
        (f"{tmp_path}/folder/", 2, f"{tmp_path}/folder/: is a directory"),
    ]:
        done = run("learn", base, words, "-o", output, "-q")
        assert done.returncode == status, output
        assert f"vocab-tools: {message}" in done.stderr, output
    assert not (tmp_path / "folder").exists()
    for arguments in (f"check {base}", f"check {base} --json", f"learn {base} {words} -o - -q"):
        shell = f"{' '.join(COMMAND)} {arguments} > /dev/full"
        done = subprocess.run(["sh", "-c", shell], capture_output=True, text=True)
        assert done.returncode == 1, arguments
        assert done.stderr == "vocab-tools: standard output: No space left on device\n", arguments


def test_no_new_tokens_is_an_error(tmp_path: Path, base: Path) -> None:
    words = listed(tmp_path, "a\t1")
    output, report = tmp_path / "extra.tiktoken", tmp_path / "report.md"
    done = run("learn", base, words, "-o", output, "--report", report)
    assert done.returncode == 1 and "no new tokens" in done.stderr
    assert not output.exists() and "already a token" in report.read_text()


@pytest.mark.parametrize("command", ["learn", "train", "count", "count --max-memory 1M", "convert"])
def test_a_full_disk_is_named(tmp_path: Path, base: Path, command: str) -> None:
    """A write beyond RLIMIT_FSIZE, as on a full disk, raises an error that says where."""
    pytest.importorskip("pyarrow")
    words = listed(tmp_path, *(f"{chr(0x4E00 + n)}zq\t1" for n in range(900)))
    text = tmp_path / "text.txt"
    text.write_text("".join(f"w{n * 7919 % 100_003}\n" for n in range(100_000)))
    out, named = tmp_path / "out.tiktoken", "out.tiktoken"
    arguments = {
        "learn": [base, words], "convert": [base, "--pattern", "gpt2"],
        "train": [text, "--vocab-size", "300"], "count": [text],
    }[command.split()[0]]  # fmt: skip
    if command == "convert":
        options = [str(base), str(out), "--pattern", "gpt2", "--special-tokens", "none"]
    else:
        options = [*map(str, arguments), "-o", str(out)]
    if command == "convert":
        named = tempfile.gettempdir()  # convert first writes and rereads its output there.
    if command.endswith("1M"):
        named = "set TMPDIR to a folder with more room"
    before = contents(tmp_path).keys()
    resource = pytest.importorskip("resource")
    done = subprocess.run(
        [*COMMAND, *command.split(), *options],
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)),
    )
    assert done.returncode == 1 and "File too large" in done.stderr, done.stderr
    assert named in done.stderr and "Traceback" not in done.stderr
    assert contents(tmp_path).keys() == before
