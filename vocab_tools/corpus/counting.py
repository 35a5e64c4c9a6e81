"""Counting the pieces of a corpus, on all processors and in bounded memory."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from bpe_engine import vocabulary

from ..patterns import Pattern, is_published
from .reading import STANDARD, read_texts

#: The most distinct pieces that are kept. When there are more, the rarest are forgotten.
MOST_PIECES = 4_000_000

#: Called with bytes done and bytes in all.
ProgressFunction = Callable[[int, int], None]


@dataclass
class PieceCounts:
    """How often each piece occurs."""

    counts: dict[str, int] = field(default_factory=dict)
    #: All pieces, also those that were forgotten.
    total: int = 0
    #: Pieces that occurred at most this often may be missing; 0 when nothing was forgotten.
    forgotten_up_to: int = 0
    #: Pieces with counts up to this were forgotten the last time.
    _rarest: int = 0

    def add(self, pieces: Iterable[tuple[str, int]], most: int = MOST_PIECES) -> None:
        """Adds counts, and forgets the rarest pieces when there are more than ``most``."""
        counts = self.counts
        for piece, count in pieces:
            counts[piece] = counts.get(piece, 0) + count
            self.total += count
        while len(self.counts) > most:
            # What is forgotten may come again, and be forgotten again.
            self._rarest += 1
            self.forgotten_up_to += self._rarest
            rarest = self._rarest
            self.counts = {piece: n for piece, n in self.counts.items() if n > rarest}


def count_pieces(
    paths: Iterable[str | os.PathLike[str]],
    pattern: Pattern,
    *,
    field: str = "text",
    errors: str = "strict",
    progress: ProgressFunction | None = None,
    most: int = MOST_PIECES,
) -> Iterator[tuple[str, PieceCounts]]:
    """The pieces of each file: its name, and its counts.

    Args:
        paths: files as :func:`read_texts` takes them.
        pattern: how text is cut; text is normalised first where the encoding does that.
        field: the field of JSON lines and Parquet that has the text.
        errors: "replace" puts U+FFFD where bytes are no UTF-8.
        progress: called now and then with the part of the work that is done.
        most: the most distinct pieces to keep for each file.

    Raises what :func:`read_texts` raises.
    """
    paths = list(paths)
    # What is not known of standard input is not shown of the progress.
    sizes = [0 if os.fspath(path) == STANDARD else Path(path).stat().st_size for path in paths]
    done = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for path, size in zip(paths, sizes):
            counts = PieceCounts()
            waiting: deque[Future[list[tuple[str, int]]]] = deque()
            read = 0
            # A regular expression may have pieces of several words.
            inside_lines = is_published(pattern.pat_str)
            blocks = read_texts(path, field, errors, inside_lines=inside_lines)
            for texts in blocks:
                waiting.append(pool.submit(_count, pattern, texts))
                # Few blocks are in memory at a time.
                if len(waiting) > 2 * (os.cpu_count() or 1):
                    counts.add(waiting.popleft().result(), most)
                read += sum(map(len, texts))
                if progress is not None:
                    # Packed files have more characters than bytes: never more than all.
                    progress(done + min(read, size), sum(sizes))
            while waiting:
                counts.add(waiting.popleft().result(), most)
            done += size
            yield os.fspath(path), counts


def _count(pattern: Pattern, texts: list[str]) -> list[tuple[str, int]]:
    return vocabulary.count_pieces(pattern.pat_str, texts, nfc=pattern.nfc)
