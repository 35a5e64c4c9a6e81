"""Counting the tokens of a corpus with several tokenizers at once."""

from __future__ import annotations

import heapq
import itertools
import os
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from ..corpus.reading import STANDARD, corpus_files, read_texts
from .result import Comparison, Differing, Measured
from .segments import MOST_SHOWN, Size, main_script, segments_of
from .subjects import Subject

#: Texts on which the tokenizers differ most.
MOST_DIFFERING = 20

#: A text with fewer tokens in each tokenizer says little.
FEWEST_TOKENS = 8

#: Called with bytes done and bytes in all.
ProgressFunction = Callable[[int, int], None]

#: What each tokenizer makes of a block: tokens by segment, and how often each id comes.
_Counted = list[tuple[list[int], Counter[int]]]


def compare_tokenizers(
    subjects: Sequence[Subject],
    corpus: Iterable[str | os.PathLike[str]],
    *,
    field: str = "text",
    errors: str = "strict",
    progress: ProgressFunction | None = None,
) -> Comparison:
    """Measures tokenizers on the same text.

    Lines and paragraphs are encoded one by one. A text counts for the script that most of its
    letters are written in; words are what white space separates.

    Args:
        subjects: from :func:`load_subject`.
        corpus: files, folders and globs: text, JSON lines or Parquet, packed or not.
        field: the field of JSON lines and Parquet that has the text.
        errors: "strict", or "replace" for U+FFFD where bytes are no UTF-8.
        progress: called now and then with bytes done and bytes in all.

    Returns:
        Tokens by file and by script, how often each id was used, and the texts on which the
        tokenizers differ most.

    Raises:
        ValueError: a file is not UTF-8, or there is no text.
        OSError: a file cannot be read.

    >>> import tempfile
    >>> from vocab_tools.compare import load_subject
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "text.txt"
    ...     _ = path.write_text("hello world\\n")
    ...     found = compare_tokenizers([load_subject("gpt2")], [path])
    >>> found.rows[0].tokens, found.total.words
    (3, 2)
    """
    paths = corpus_files(corpus)
    sizes = [0 if path == STANDARD else Path(path).stat().st_size for path in paths]
    meter = _Meter(subjects)
    done = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for path, size in zip(paths, sizes):
            meter.start_file(path)
            waiting: deque[tuple[list[str], Future[_Counted]]] = deque()
            read = 0
            for block in _blocks(read_texts(path, field, errors)):
                waiting.append((block, pool.submit(_count, subjects, block)))
                # Few blocks are in memory at a time.
                if len(waiting) > 2 * (os.cpu_count() or 1):
                    segments, counted = waiting.popleft()
                    meter.add(segments, counted.result())
                read += sum(map(len, block))
                if progress is not None:
                    progress(done + min(read, size), sum(sizes))
            for segments, counted in waiting:
                meter.add(segments, counted.result())
            done += size
    return meter.comparison()


def compare_texts(subjects: Sequence[Subject], name: str, texts: list[str]) -> Comparison:
    """The same for texts that are in memory, as one file of this name."""
    meter = _Meter(subjects)
    meter.start_file(name)
    meter.add(texts, _count(subjects, texts))
    return meter.comparison()


def _blocks(blocks: Iterable[list[str]]) -> Iterator[list[str]]:
    for block in blocks:
        if segments := segments_of(block):
            yield segments


def _count(subjects: Sequence[Subject], texts: list[str]) -> _Counted:
    counted = (subject.count(texts) for subject in subjects)
    return [(lengths, Counter(times)) for lengths, times in counted]


class _Meter:
    """The sums over all blocks."""

    def __init__(self, subjects: Sequence[Subject]) -> None:
        self.subjects = subjects
        self.comparison_so_far = Comparison([Measured(subject) for subject in subjects])
        self.times: list[Counter[int]] = [Counter() for _ in subjects]
        self.file = ""
        #: How much they differ, a number that is never the same, and the text.
        self.differing: list[tuple[float, int, str]] = []
        self.numbers = itertools.count()

    def start_file(self, name: str) -> None:
        self.file = name
        self.comparison_so_far.files.setdefault(name, Size())
        for row in self.comparison_so_far.rows:
            row.files.setdefault(name, 0)

    def add(self, segments: list[str], counted: _Counted) -> None:
        """Takes a block."""
        found = self.comparison_so_far
        scripts = [main_script(segment) for segment in segments]
        size = found.files[self.file]
        for segment, script in zip(segments, scripts):
            one = Size()
            one.add(segment)
            size += one
            of_script = found.scripts.setdefault(script, Size())
            of_script += one
        for row, times, (lengths, used) in zip(found.rows, self.times, counted):
            row.files[self.file] += sum(lengths)
            for script, length in zip(scripts, lengths):
                row.scripts[script] = row.scripts.get(script, 0) + length
            times.update(used)
        if len(self.subjects) > 1:
            self._keep_differing(segments, [lengths for lengths, _ in counted])

    def _keep_differing(self, segments: list[str], lengths: list[list[int]]) -> None:
        for segment, counts in zip(segments, zip(*lengths)):
            fewest, most = min(counts), max(counts)
            if fewest < FEWEST_TOKENS or fewest == most or len(segment) > MOST_SHOWN:
                continue
            entry = (most / fewest, next(self.numbers), segment)
            if any(text == segment for _, _, text in self.differing):
                continue
            if len(self.differing) < MOST_DIFFERING:
                heapq.heappush(self.differing, entry)
            elif entry > self.differing[0]:
                heapq.heapreplace(self.differing, entry)

    def comparison(self) -> Comparison:
        """What was measured."""
        found = self.comparison_so_far
        if not found.total.characters:
            raise ValueError("there is no text to measure; give files that have some")
        for row, times in zip(found.rows, self.times):
            row.times = dict(times)
            row.scripts = dict(sorted(row.scripts.items(), key=lambda item: -item[1]))
        found.scripts = dict(sorted(found.scripts.items(), key=lambda item: -item[1].bytes))
        ordered = sorted(self.differing, key=lambda entry: (-entry[0], entry[1]))
        found.differing = [self.cut(text) for _, _, text in ordered]
        return found

    def cut(self, text: str) -> Differing:
        """A text, cut by each."""
        return Differing(text, [subject.cut(text) for subject in self.subjects])
