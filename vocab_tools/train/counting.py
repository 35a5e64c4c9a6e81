"""Counting the pieces of a corpus on all processors, in bounded memory, and so that a stopped run
can go on."""

from __future__ import annotations

import os
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from bpe_engine import vocabulary

from ..corpus.reading import STANDARD, corpus_files, read_texts
from ..text import plural
from .checkpoint import check_fits, describe, read_state, write_checkpoint
from .cutting import Cutting
from .interrupts import InterruptGuard

#: Called with bytes done and bytes in all.
ProgressFunction = Callable[[int, int], None]

#: Seconds between two checkpoints.
CHECKPOINT_EVERY = 600.0

#: How many pieces are moved at a time between files and tables.
ROWS = 1 << 16

#: How much of the memory the tables may have when they are written out: they grow by doubling, and
#: are put together then.
_TABLES_SHARE = 3

#: The same for training, which lays the pieces out beside their table, with the places of pairs.
_TRAINING_SHARE = 2

#: So many files of counts become one: few are open at a time, and a count is written again only as
#: often as their number has powers of this.
_MERGED_FILES = 16


class TooLittleMemory(ValueError):
    """The distinct pieces do not fit into the memory that training may use."""


@dataclass
class CorpusCounts:
    """How often each piece of a corpus occurs, in memory and in files of counts.

    A context manager: the files are gone after it.
    """

    cutting: Cutting
    pieces: vocabulary.PieceCounts = field(init=False)
    #: Files of counts that memory had no room for.
    runs: list[str] = field(default_factory=list)
    #: Characters of text.
    characters: int = 0
    #: What was left out by ``drop_rare``: distinct pieces, and how often they occurred.
    dropped: tuple[int, int] = (0, 0)
    _folder: tempfile.TemporaryDirectory[str] | None = None
    #: How many times the counts of each file were merged, and how many files there have been.
    _levels: list[int] = field(default_factory=list)
    _written: int = 0

    def __post_init__(self) -> None:
        self.pieces = self.cutting.counter()

    def __enter__(self) -> CorpusCounts:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Deletes the files."""
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None
        self.runs, self._levels = [], []

    def spill(self) -> None:
        """Moves what is in memory to a file.

        Raises OSError, naming the folder, when there is no room for it.
        """
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="vocab-tools-")
        try:
            self.pieces.spill(self._new_run(0))
            while len(set(self._levels[-_MERGED_FILES:])) == 1 and self._is_full():
                self._merge_runs()
        except OSError as error:
            reason = error.strerror or str(error)
            advice = f"{reason}; counts go there: set TMPDIR to a folder with more room"
            raise OSError(error.errno, advice, self._folder.name) from error

    def _new_run(self, level: int) -> str:
        assert self._folder is not None
        path = os.path.join(self._folder.name, f"{self._written}.counts")
        self._written += 1
        self.runs.append(path)
        self._levels.append(level)
        return path

    def _is_full(self) -> bool:
        return len(self._levels) >= _MERGED_FILES

    def _merge_runs(self) -> None:
        """Adds up the last files in one."""
        parts, level = self.runs[-_MERGED_FILES:], self._levels[-1]
        del self.runs[-_MERGED_FILES:], self._levels[-_MERGED_FILES:]
        vocabulary.merge_counts(parts, self._new_run(level + 1))
        for part in parts:
            os.unlink(part)

    def rows(self, least: int = 1) -> Iterator[tuple[list[bytes], list[int]]]:
        """All pieces and their counts in the order of bytes, some thousands at a time, but for
        those that occur less than ``least`` times."""
        self.spill()
        reader = vocabulary.CountReader(self.runs)
        while (rows := reader.read(ROWS))[0]:
            pieces, counts = rows
            if min(counts) < least:
                rare = [count for count in counts if count < least]
                lost, occurrences = self.dropped
                self.dropped = (lost + len(rare), occurrences + sum(rare))
                kept = [(piece, count) for piece, count in zip(pieces, counts) if count >= least]
                pieces, counts = [piece for piece, _ in kept], [count for _, count in kept]
            yield pieces, counts

    def load(self, least: int = 1, max_memory: int | None = None) -> None:
        """Brings everything into memory, and leaves out pieces that occur less than ``least``
        times.

        Raises TooLittleMemory when that needs more than ``max_memory`` bytes.
        """
        if self.runs:
            self.spill()
            most = None if max_memory is None else max_memory // _TRAINING_SHARE
            lost, occurrences, fits = self.pieces.read(self.runs, least, most)
            self.close()
        else:
            lost, occurrences = self.pieces.drop_rare(least) if least > 1 else (0, 0)
            fits = max_memory is None or self.pieces.memory() * _TRAINING_SHARE <= max_memory
        if not fits:
            raise TooLittleMemory(
                f"training on the distinct pieces needs more than the {max_memory:,} bytes of "
                f"max-memory; allow more, or leave rare pieces out with --drop-rare 2"
            )
        self.dropped = (self.dropped[0] + lost, self.dropped[1] + occurrences)


def count_corpus(
    corpus: Iterable[str | os.PathLike[str]],
    cutting: Cutting,
    *,
    field: str = "text",
    errors: str = "strict",
    max_memory: int | None = None,
    threads: int | None = None,
    checkpoint: str | None = None,
    resume: bool = False,
    progress: ProgressFunction | None = None,
) -> CorpusCounts:
    """Counts the pieces of text files.

    Args:
        corpus: files, folders and globs; ``.jsonl``, ``.parquet``, gzip and Zstandard are
            understood; ``-`` is standard input.
        cutting: what makes pieces of the text.
        field: the field of JSON lines and Parquet that has the text.
        errors: "strict", or "replace" for U+FFFD where bytes are no UTF-8.
        max_memory: bytes of memory for the tables; beyond it, counts go to files. Text that waits
            to be counted comes on top of it: two blocks of a megabyte or less for each thread, or
            longer ones where lines are.
        threads: how many threads count; by default, and at most, one for each processor.
        checkpoint: a file for the counts so far: written every ten minutes, on Ctrl-C and at the
            end; not when standard input, which cannot be read again, is among the files.
        resume: go on from the checkpoint, if there is one.
        progress: called now and then with bytes done and bytes in all.

    Raises:
        ValueError: a file is not UTF-8, has no such field, or the checkpoint is of another run.
        OSError: a file cannot be read.
        KeyboardInterrupt: after the checkpoint was written.
    """
    files = corpus_files(corpus)
    if STANDARD in files:
        checkpoint = None
    counts = CorpusCounts(cutting)
    run = _Run(counts, files, field, errors, max_memory, checkpoint, progress)
    try:
        if resume and checkpoint is not None and os.path.exists(checkpoint):
            run.go_on(checkpoint)
        most = os.cpu_count() or 1
        run.count(min(threads or most, most))
    except BaseException:
        counts.close()
        raise
    return counts


class _Run:
    """One pass over the files."""

    def __init__(
        self,
        counts: CorpusCounts,
        files: Sequence[str],
        field: str,
        errors: str,
        max_memory: int | None,
        checkpoint: str | None,
        progress: ProgressFunction | None,
    ) -> None:
        self.counts, self.files, self.field, self.errors = counts, files, field, errors
        self.max_memory, self.checkpoint, self.progress = max_memory, checkpoint, progress
        self.sizes = [os.path.getsize(path) if path != STANDARD else 0 for path in files]
        #: The file that is being read, how many of its blocks are counted, and their bytes.
        self.place = (0, 0)
        self.bytes_read = 0
        self.written = time.monotonic()
        self.waiting: deque[tuple[Future[int], tuple[int, int], list[str]]] = deque()
        self.guard = InterruptGuard()

    def go_on(self, checkpoint: str) -> None:
        """Takes up the counts of a checkpoint."""
        state = read_state(checkpoint)
        check_fits(checkpoint, state, self._description())
        self.place = (state["file"], state["blocks"])
        self._check_readable_again()
        self.counts.characters = state["characters"]
        if self.max_memory is None:
            self.counts.pieces.read([checkpoint])
            return
        reader = vocabulary.CountReader([checkpoint])
        while (rows := reader.read(ROWS))[0]:
            self.counts.pieces.add(*rows)
            self._bound_memory()

    def _check_readable_again(self) -> None:
        """Raises ValueError when a part of a pipe was counted: its text is gone."""
        number, blocks = self.place
        for path in self.files[: number + (blocks > 0)]:
            if not os.path.isfile(path):
                raise ValueError(
                    f"{path} is no regular file and cannot be read again, so that --resume cannot "
                    f"go on behind it; give files, or delete the checkpoint"
                )

    def count(self, threads: int) -> None:
        """Counts what is not counted yet."""
        with self.guard, ThreadPoolExecutor(threads) as pool:
            try:
                for place, texts in self._blocks():
                    with self.guard.held():
                        self._start(pool, place, texts)
                        while len(self.waiting) > 2 * threads:
                            self._settle_one()
                        self._between_blocks()
                with self.guard.held():
                    self._settle()
            except BaseException as error:
                with self.guard.held():
                    self._stop()
                    if isinstance(error, KeyboardInterrupt):
                        self._write_checkpoint()
                raise
            with self.guard.held():
                self.place = (len(self.files), 0)
                self._write_checkpoint()

    def _blocks(self) -> Iterator[tuple[tuple[int, int], list[str]]]:
        """Blocks, each with the place behind it."""
        first, skipped = self.place
        for number in range(first, len(self.files)):
            inside_lines = self.counts.cutting.inside_lines
            blocks = read_texts(
                self.files[number], self.field, self.errors, inside_lines=inside_lines
            )
            for index, texts in enumerate(blocks):
                if number > first or index >= skipped:
                    yield (number, index + 1), texts

    def _start(self, pool: Executor, place: tuple[int, int], texts: list[str]) -> None:
        job = pool.submit(self.counts.pieces.count, texts)
        self.waiting.append((job, place, texts))

    def _settle_one(self) -> None:
        """Waits for the first block that is being counted, and moves the place behind it."""
        job, place, texts = self.waiting[0]
        size = job.result()
        self.waiting.popleft()
        self.counts.characters += sum(map(len, texts))
        if place[0] != self.place[0]:
            self.bytes_read = 0
        self.place = place
        if self.progress is not None:
            self.bytes_read += size
            # Packed files have more text than bytes: never more than the file.
            # What comes through pipes has no size.
            total = sum(self.sizes)
            done = sum(self.sizes[: place[0]]) + min(self.bytes_read, self.sizes[place[0]])
            self.progress(done if total else self.bytes_read, total)

    def _settle(self) -> None:
        """Waits for all blocks."""
        while self.waiting:
            self._settle_one()

    def _stop(self) -> None:
        """Blocks that have not begun are not counted; waits for the others."""
        for job, _, _ in reversed(self.waiting):
            job.cancel()
        self.progress = None
        while self.waiting and not self.waiting[0][0].cancelled():
            self._settle_one()
        self.waiting.clear()

    def _between_blocks(self) -> None:
        late = time.monotonic() - self.written > CHECKPOINT_EVERY
        if self.checkpoint is not None and late:
            self._settle()
            self._write_checkpoint()
        self._bound_memory()

    def _bound_memory(self) -> None:
        if self.max_memory is None:
            return
        if self.counts.pieces.memory() * _TABLES_SHARE > self.max_memory:
            self._settle()
            self.counts.spill()

    def _description(self) -> dict[str, Any]:
        return describe(self.files, self.counts.cutting, self.field, self.errors)

    def _write_checkpoint(self) -> None:
        if self.checkpoint is None:
            return
        if self.counts.runs:
            self.counts.spill()
        state = {
            **self._description(),
            "file": self.place[0],
            "blocks": self.place[1],
            "characters": self.counts.characters,
        }
        write_checkpoint(self.checkpoint, self.counts.runs or self.counts.pieces, state)
        self.written = time.monotonic()


def dropped_note(counts: CorpusCounts) -> str | None:
    """What was lost when rare pieces were left out."""
    pieces, occurrences = counts.dropped
    if not pieces:
        return None
    return (
        f"{plural(pieces, 'rare piece')} left out, which occurred {plural(occurrences, 'time')} "
        f"together"
    )
