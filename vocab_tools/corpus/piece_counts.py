"""Counts the pieces of a corpus on all cores, in bounded memory."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field

from bpe_engine import vocabulary
from bpe_engine.common.system import cores
from bpe_engine.common.threads import on_threads
from bpe_engine.common.values import describe
from bpe_engine.texts.access import size_or_zero
from bpe_engine.texts.listed import Paths, corpus_files
from bpe_engine.texts.reading import read_texts

from ..arguments import check_progress
from ..brief import Brief
from ..patterns import is_published
from ..text import plural
from .cutting import Cutting

#: Called with the number of bytes done and the total number of bytes.
ProgressFunction = Callable[[int, int], None]

#: Default memory limit for counts, in bytes.
DEFAULT_MEMORY = 1 << 30

#: Number of pieces to move at a time between files and tables.
ROWS = 1 << 16

#: Tables are moved to a file when they reach the memory limit divided by this number, because
#: tables double when they grow, and are joined later.
TABLES_SHARE = 3

#: Number of counts files to merge into one file: few files are open at a time, and each count is
#: rewritten only a logarithmic number of times.
_MERGED_FILES = 16


class TooLittleMemory(ValueError):
    """Error for distinct pieces that exceed the memory for training."""


@dataclass(repr=False)
class CorpusCounts(Brief):
    """Counts of the distinct pieces of a corpus, in memory and in temporary files.

    A context manager, whose exit deletes the files.
    """

    cutting: Cutting
    pieces: vocabulary.PieceCounts = field(init=False)
    #: Paths of sorted counts files, written when memory was full.
    files: list[str] = field(default_factory=list)
    #: Number of characters, and of bytes, in the text.
    characters: int = 0
    text_bytes: int = 0
    #: Number of distinct rare pieces that were dropped; total number of their occurrences.
    dropped: tuple[int, int] = (0, 0)
    _folder: tempfile.TemporaryDirectory[str] | None = None
    #: How often the counts of each file were merged; number of files written so far.
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
        self.files, self._levels = [], []

    def spill(self) -> None:
        """Moves the counts in memory to a file.

        Raises an OSError that names the folder if the disk is full.
        """
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="vocab-tools-")
        try:
            self.pieces.spill(self._new_file(0))
            while self._levels[-_MERGED_FILES:] == _MERGED_FILES * self._levels[-1:]:
                self._merge_files()
        except OSError as error:
            reason = error.strerror or str(error)
            advice = f"{reason}; counts go there: set TMPDIR to a folder with more room"
            raise OSError(error.errno, advice, self._folder.name) from error

    def _new_file(self, level: int) -> str:
        assert self._folder is not None
        path = os.path.join(self._folder.name, f"{self._written}.counts")
        self._written += 1
        self.files.append(path)
        self._levels.append(level)
        return path

    def _merge_files(self) -> None:
        """Merges the most recent files into one file."""
        parts, level = self.files[-_MERGED_FILES:], self._levels[-1]
        del self.files[-_MERGED_FILES:], self._levels[-_MERGED_FILES:]
        vocabulary.merge_counts(parts, self._new_file(level + 1))
        for part in parts:
            os.unlink(part)

    def rows(self, least: int = 1) -> Iterator[tuple[list[bytes], list[int]]]:
        """Moves all counts to files, and yields lists of pieces with at least ``least`` occurrences
        and lists of their counts, in byte order, some thousands at a time."""
        if self.pieces.memory() or not self.files:
            self.spill()
        return self._rows(vocabulary.CountReader(self.files), least)

    def _rows(
        self, reader: vocabulary.CountReader, least: int
    ) -> Iterator[tuple[list[bytes], list[int]]]:
        while (rows := reader.read(ROWS))[0]:
            pieces, counts = rows
            if min(counts) < least:
                rare = [count for count in counts if count < least]
                lost, occurrences = self.dropped
                self.dropped = (lost + len(rare), occurrences + sum(rare))
                kept = [(piece, count) for piece, count in zip(pieces, counts) if count >= least]
                pieces, counts = [piece for piece, _ in kept], [count for _, count in kept]
            yield pieces, counts

    def texts(self) -> Iterator[tuple[str, int]]:
        """Yields each piece as text with its count, in byte order."""
        for pieces, counts in self.rows():
            yield from zip(map(bytes.decode, pieces), counts)

    def load(self, least: int = 1, max_memory: int | None = None, times: int = 1) -> None:
        """Loads all counts into memory, and drops pieces with fewer than ``least`` occurrences.

        Raises TooLittleMemory if training, at ``times`` the memory of byte-level BPE, needs more
        than ``max_memory`` bytes.
        """
        most = None if max_memory is None else max_memory // times
        if self.files:
            self.spill()
            lost, occurrences, fits = self.pieces.read(self.files, least, most)
            self.close()
        else:
            lost, occurrences = self.pieces.drop_rare(least) if least > 1 else (0, 0)
            fits = most is None or self.pieces.training_memory() <= most
        if not fits:
            raise TooLittleMemory(
                f"training on the distinct pieces needs more than the {max_memory:,} bytes of "
                f"max-memory; allow more, or leave rare pieces out with --drop-rare 2"
            )
        self.dropped = (self.dropped[0] + lost, self.dropped[1] + occurrences)


def count_corpus(
    corpus: Paths,
    cutting: Cutting,
    *,
    field: str = "text",
    errors: str = "strict",
    max_memory: int | None = None,
    num_threads: int | None = None,
    progress: ProgressFunction | None = None,
) -> CorpusCounts:
    """Counts the pieces of text files.

    Args:
        corpus: files, folders, globs and URIs of text, JSON lines, Parquet, Arrow and CSV,
            compressed or not; ``-`` is standard input.
        cutting: how text is cut into pieces.
        field: the field that contains the text, such as ``meta.text``.
        errors: "strict", or "replace" to read bytes that are not UTF-8 as U+FFFD.
        max_memory: bytes of memory for the tables; further counts go to temporary files. Text that
            waits to be counted takes two more blocks per thread, of up to a megabyte or one longer
            line each.
        num_threads: the number of threads; at most one per processor, which is the default.
        progress: called repeatedly with the number of bytes done and the total number of bytes.

    Raises:
        ValueError: a file is not UTF-8, or lacks the field.
        OSError: a file cannot be read.
    """
    if not isinstance(cutting, Cutting):
        raise TypeError(
            f"cutting is {describe(cutting)}; vocab_tools.corpus.cutting.cutting makes one of a pattern"
        )
    check_progress(progress)
    counts = CorpusCounts(cutting)
    files = corpus_files(corpus)
    sizes = [size_or_zero(path) for path in files]
    blocks = (
        (number, texts)
        for number, path in enumerate(files)
        for texts in read_texts(path, field, errors, inside_lines=cutting.inside_lines)
    )
    is_over = False

    def until_full() -> Iterator[tuple[int, list[str]]]:
        nonlocal is_over
        for block in blocks:
            yield block
            if max_memory is not None and counts.pieces.memory() * TABLES_SHARE > max_memory:
                return
        is_over = True

    def count(block: tuple[int, list[str]]) -> int:
        return counts.pieces.count(block[1])

    total, file, done = sum(sizes), 0, 0
    try:
        while not is_over:
            threads = min(num_threads or cores(), cores())
            with closing(on_threads(count, until_full(), threads)) as counted:
                for (number, texts), size in counted:
                    counts.characters += sum(map(len, texts))
                    counts.text_bytes += size
                    file, done = number, size + (done if number == file else 0)
                    if progress is not None:
                        # A compressed file is smaller than its text, so progress stops at the
                        # file's size. The size of a pipe is unknown.
                        before, most_done = sum(sizes[:number]), sizes[number]
                        progress(before + min(done, most_done) if total else done, total)
            if not is_over:
                counts.spill()
    except BaseException:
        counts.close()
        raise
    return counts


def outside_note(counts: CorpusCounts, piece_bytes: int) -> str | None:
    """Returns a note about text outside all pieces, which encoding loses; None without such text.

    Patterns of published encodings match every character. The number of bytes is unknown if rare
    pieces were dropped or text was normalized.

    Args:
        counts: the counts.
        piece_bytes: the number of bytes in all pieces.
    """
    cut = counts.cutting
    outside = counts.text_bytes - piece_bytes
    if is_published(cut.pattern) or cut.nfc or counts.dropped[0] or outside <= 0:
        return None
    names = ", names of special tokens included" if cut.special_tokens else ""
    return (
        f"the pattern leaves out {plural(outside, 'byte')} of the corpus{names}: the encoding loses text "
        f"that the pattern does not match; add an alternative that matches the rest, such as |.|\\s+"
    )


def dropped_note(counts: CorpusCounts) -> str | None:
    """Returns a note about rare pieces that were dropped; None without such pieces."""
    pieces, occurrences = counts.dropped
    if not pieces:
        return None
    return (
        f"{plural(pieces, 'rare piece')} left out, which occurred {plural(occurrences, 'time')} "
        f"together"
    )
