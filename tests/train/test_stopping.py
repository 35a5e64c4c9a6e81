"""Ctrl-C at the worst moments: nothing is lost, and nothing counts twice."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from seeds import seeded
from vocab_command import COMMAND, run

from bpe_engine.vocabulary import PieceCounts, train_bpe
from vocab_tools import train_vocabulary
from vocab_tools.train import CorpusCounts, count_corpus
from vocab_tools.train.cutting import Cutting, cutting

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has other signals")

CUT = cutting("gpt2")


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Text of fourteen blocks or so, of many words."""
    chooser = seeded("stopping")
    path = tmp_path / "text.txt"
    words = [f"word{number}" for number in range(5000)]
    path.write_text("".join(" ".join(chooser.choices(words, k=20)) + "\n" for _ in range(20_000)))
    return path


def all_counts(counts: CorpusCounts) -> dict[bytes, int]:
    with counts:
        return {piece: n for rows in counts.rows() for piece, n in zip(*rows)}


class Interrupting:
    """Counts in one of whose calls Ctrl-C is pressed."""

    def __init__(self, pieces: Any, method: str, call: int, press: Callable[[Any], None]) -> None:
        self.pieces, self.method, self.left, self.press = pieces, method, call, press

    def __getattr__(self, name: str) -> Any:
        if name != self.method:
            return getattr(self.pieces, name)
        self.left -= 1
        work = getattr(self.pieces, name)
        return work if self.left else lambda argument: self.press(lambda: work(argument))


def behind(work: Callable[[], Any]) -> Any:
    result = work()
    os.kill(os.getpid(), signal.SIGINT)
    return result


def while_waited_for(work: Callable[[], Any]) -> Any:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.2)
    return work()


@pytest.mark.parametrize(
    "method, press, call",
    [
        ("spill", behind, 1),
        ("spill", behind, 2),
        ("count", while_waited_for, 1),
        ("count", while_waited_for, 4),
    ],
)
def test_ctrl_c_at_a_bad_moment(
    corpus: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    press: Callable[[Any], None],
    call: int,
) -> None:
    """Right behind the writing of a file, and while the only thread counts a block."""
    expected = all_counts(count_corpus([corpus], CUT))
    checkpoint = str(tmp_path / "checkpoint")
    options: dict[str, Any] = {"threads": 1, "checkpoint": checkpoint, "max_memory": 30_000}
    with monkeypatch.context() as patched:
        real = Cutting.counter
        patched.setattr(
            Cutting, "counter", lambda cut: Interrupting(real(cut), method, call, press)
        )
        with pytest.raises(KeyboardInterrupt):
            count_corpus([corpus], CUT, **options)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert all_counts(count_corpus([corpus], CUT, resume=True, **options)) == expected


def long_piece() -> bytes:
    """A piece whose merges take seconds, on a fast machine too."""
    return bytes(seeded("merging").choices(b"abcdefghij", k=10_000_000))


@pytest.mark.parametrize("stages", ["superwords", "balance"])
def test_a_run_of_several_stages_is_stopped_again_and_again(
    corpus: Path, tmp_path: Path, stages: str
) -> None:
    """By a function for progress, after three blocks of any stage and at its last one: each run
    goes on where the one before it ended."""
    text: Any = corpus
    options: dict[str, Any] = {"superwords_from": 270}
    if stages == "balance":
        part = tmp_path / "part.txt"
        part.write_bytes(corpus.read_bytes()[: 1 << 20])
        text, options = [part, corpus], {"balance": "lines"}
    expected = train_vocabulary(text, 280, **options)
    rounds = 0
    while True:
        seen: list[int] = []

        def stop(step: str, done: int, total: int, seen: list[int] = seen) -> None:
            seen.append(done)
            if step == "counting" and (len(seen) == 3 or done == total):
                raise KeyboardInterrupt

        rounds += 1
        assert rounds < 30, "a round that counts nothing"
        try:
            result = train_vocabulary(
                text, 280, checkpoint=str(tmp_path / "run"), resume=True, progress=stop, **options
            )
            break
        except KeyboardInterrupt:
            pass
    # Each stage was stopped; how often depends on how many blocks are counted at a time.
    assert rounds > 2
    assert (result.ranks, result.merges) == (expected.ranks, expected.merges)


def test_ctrl_c_while_merging() -> None:
    table = PieceCounts(r"\S+")
    table.add([long_piece()], [1])
    pressed: list[float] = []

    def press() -> None:
        pressed.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(0.25, press)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        train_bpe([bytes([byte]) for byte in range(256)], [(table, 1)], tokens=500_000)
    assert pressed and time.monotonic() - pressed[0] < 1
    timer.join()


def test_ctrl_c_while_the_command_merges(tmp_path: Path) -> None:
    """It ends at once with 130 and no half file, and --resume does not count again."""
    corpus, out = tmp_path / "text.txt", tmp_path / "out.tiktoken"
    corpus.write_bytes(long_piece())
    checkpoint = Path(f"{out}.checkpoint")
    arguments = ["train", corpus, "-o", out, "--pattern-regex", r"\S+", "--vocab-size"]
    process = subprocess.Popen(
        [*COMMAND, *map(str, arguments), "400000"], stderr=subprocess.PIPE, text=True
    )
    # Counting ends with a whole checkpoint.
    deadline = time.monotonic() + 60
    while not checkpoint.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    pressed = time.monotonic()
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130 and time.monotonic() - pressed < 2, errors
    assert errors.splitlines()[-2:] == [
        f"the counts so far are in {checkpoint}; --resume goes on from them",
        "vocab-tools: interrupted",
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "out.tiktoken.checkpoint", "text.txt",
    ]  # fmt: skip
    done = run(*arguments, "300", "--resume")
    assert done.returncode == 0 and len(out.read_bytes().splitlines()) == 300, done.stderr
    assert not checkpoint.exists()


def test_many_files_of_counts_become_few(corpus: Path) -> None:
    with CorpusCounts(CUT) as counts:
        for number in range(300):
            counts.pieces.add([b"common", f"{number}".encode()], [1, 2])
            counts.spill()
            assert len(counts.runs) <= 32
            assert all(map(os.path.exists, counts.runs))
        expected = {b"common": 300, **{f"{number}".encode(): 2 for number in range(300)}}
        assert {piece: n for rows in counts.rows() for piece, n in zip(*rows)} == expected


def test_memory_of_tables_in_use_counts() -> None:
    """Or else a thread that always counts would never be over the bound."""
    pieces = CUT.counter()
    pieces.count([" ".join(f"w{number}" for number in range(100_000))])
    before = pieces.memory()
    busy = threading.Thread(target=pieces.count, args=([" again" * 5_000_000],))
    busy.start()
    seen = []
    while busy.is_alive():
        seen.append(pieces.memory())
        time.sleep(0.001)
    busy.join()
    assert len(seen) > 10 and min(seen) == before > 1 << 20


def test_no_room_for_counts_names_the_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    with CorpusCounts(CUT) as counts:
        counts.pieces.add([b"a"], [1])
        counts.spill()
        folder = os.path.dirname(counts.runs[0])
        monkeypatch.setattr(counts, "_new_run", lambda level: "/dev/full")
        with pytest.raises(OSError, match="set TMPDIR to a folder with more room") as raised:
            counts.spill()
        assert raised.value.filename == folder
