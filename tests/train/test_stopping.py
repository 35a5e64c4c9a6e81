"""Tests Ctrl-C during counting and merging, and the temporary files of counting."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from seeds import seeded
from vocab_command import COMMAND

from bpe_engine.common import threads
from bpe_engine.vocabulary import PieceCounts, train_bpe
from vocab_tools.corpus import piece_counts
from vocab_tools.corpus.cutting import Cutting, cutting
from vocab_tools.corpus.piece_counts import CorpusCounts, count_corpus

pytestmark = [
    pytest.mark.skipif(os.name == "nt", reason="Windows has other signals"),
    pytest.mark.usefixtures("ctrl_c"),
]

CUT = cutting("gpt2")


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Writes a text of about fourteen blocks, with many distinct words."""
    chooser = seeded("stopping")
    path = tmp_path / "text.txt"
    words = [f"word{number}" for number in range(5000)]
    path.write_text("".join(" ".join(chooser.choices(words, k=20)) + "\n" for _ in range(20_000)))
    return path


class Interrupting:
    """Wraps counts, and presses Ctrl-C at the nth call of a method."""

    def __init__(self, pieces: Any, method: str, call: int, calls: list[str]) -> None:
        self.pieces, self.method, self.left, self.calls = pieces, method, call, calls

    def __getattr__(self, name: str) -> Any:
        work = getattr(self.pieces, name)
        if name not in ("count", "spill"):
            return work

        def called(argument: Any) -> Any:
            self.calls.append(name)
            if name == self.method:
                self.left -= 1
                if self.left == 0:
                    os.kill(os.getpid(), signal.SIGINT)
            return work(argument)

        return called


@pytest.mark.parametrize("method, call", [("spill", 1), ("spill", 2), ("count", 1), ("count", 4)])
def test_ctrl_c_while_counting_leaves_no_file(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, call: int
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    calls: list[str] = []
    real = Cutting.counter
    monkeypatch.setattr(
        Cutting, "counter", lambda cut: Interrupting(real(cut), method, call, calls)
    )
    with pytest.raises(KeyboardInterrupt):
        count_corpus([corpus], CUT, num_threads=1, max_memory=30_000)
    # Blocks in progress are finished, and no further block begins.
    assert calls[-1] == "spill" if method == "spill" else calls.count("count") <= call + 3
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("fails", ["reading", "counting", "progress"])
def test_an_error_leaves_out_blocks_that_wait(
    corpus: Path, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    """After an error, waiting blocks are cancelled: the busy thread counts at most two blocks."""
    cancelled = threading.Event()
    counted: list[int] = []

    def fail(where: str) -> None:
        if fails == where:
            raise OSError("fails")

    class Pool(threads.ThreadPoolExecutor):
        def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
            super().shutdown(wait=False, cancel_futures=cancel_futures)
            cancelled.set()
            super().shutdown(wait)

    def read(*_: Any, **__: Any) -> Any:
        yield from (["a"], ["b"], ["c"])
        fail("reading")
        yield from (["d"], ["e"])

    def count(_: list[str]) -> int:
        counted.append(1)
        assert len(counted) == 1 or cancelled.wait(60)
        fail("counting")
        return 1

    monkeypatch.setattr(threads, "ThreadPoolExecutor", Pool)
    monkeypatch.setattr(piece_counts, "read_texts", read)
    monkeypatch.setattr(Cutting, "counter", lambda cut: SimpleNamespace(count=count))
    with pytest.raises(OSError, match="fails"):
        count_corpus([corpus], CUT, num_threads=1, progress=lambda *_: fail("progress"))
    assert len(counted) <= 2


def long_piece() -> bytes:
    """Returns a piece whose merges take seconds even on a fast machine."""
    return bytes(seeded("merging").choices(b"abcdefghij", k=10_000_000))


def test_ctrl_c_while_merging() -> None:
    """Merging checks for signals, and therefore ends early."""
    table = PieceCounts(r"\S+")
    table.add([long_piece()], [1])
    done: list[int] = []

    def press(tokens: int, _: int) -> None:
        done.append(tokens)
        if len(done) == 1:
            threading.Thread(target=os.kill, args=(os.getpid(), signal.SIGINT)).start()

    with pytest.raises(KeyboardInterrupt):
        train_bpe([bytes([n]) for n in range(256)], [(table, 1)], tokens=500_000, progress=press)
    assert done and done[-1] < 400_000


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize("command", [["train", "--vocab-size", "300"], ["count"]])
def test_ctrl_c_ends_the_command_cleanly(tmp_path: Path, command: list[str]) -> None:
    """The command ends with status 130 and one line of output, and removes its unfinished files."""
    pytest.importorskip("pyarrow")
    text, out, temporary = tmp_path / "text.txt", tmp_path / "out", tmp_path / "temporary"
    os.mkfifo(text)
    temporary.mkdir()
    process = subprocess.Popen(
        [*COMMAND, *command, str(text), "-o", str(out)],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(temporary)},
    )
    with open(text, "w", encoding="utf-8") as pipe:  # Waits until the command opens the pipe.
        pipe.write("low lower\n")
        pipe.flush()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (130, "vocab-tools: interrupted\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["temporary", "text.txt"]
    assert list(temporary.iterdir()) == []


def test_many_files_of_counts_become_few(corpus: Path) -> None:
    with CorpusCounts(CUT) as counts:
        for number in range(300):
            counts.pieces.add([b"common", f"{number}".encode()], [1, 2])
            counts.spill()
            assert len(counts.files) <= 32
            assert all(map(os.path.exists, counts.files))
        expected = {b"common": 300, **{f"{number}".encode(): 2 for number in range(300)}}
        assert {piece: n for rows in counts.rows() for piece, n in zip(*rows)} == expected


def test_memory_counts_tables_in_use() -> None:
    """The reported memory includes the tables of a thread that is still counting."""
    pieces = CUT.counter()
    pieces.count([" ".join(f"w{number}" for number in range(100_000))])
    before = pieces.memory()
    seen: list[int] = []
    busy = threading.Thread(target=pieces.count, args=([" again" * 5_000_000],))
    busy.start()
    while busy.is_alive():
        seen.append(pieces.memory())
    busy.join()
    assert min(seen, default=before) == before > 1 << 20


def test_no_room_for_counts_names_the_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    with CorpusCounts(CUT) as counts:
        counts.pieces.add([b"a"], [1])
        counts.spill()
        folder = os.path.dirname(counts.files[0])
        counts.pieces.add([b"a"], [1])
        monkeypatch.setattr(counts, "_new_file", lambda level: "/dev/full")
        with pytest.raises(OSError, match="set TMPDIR to a folder with more room") as raised:
            counts.spill()
        assert raised.value.filename == folder
