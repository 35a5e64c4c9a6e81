"""Counts the tokens of a corpus with several tokenizers in one pass."""

from __future__ import annotations

import bisect
import itertools
import os
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, Union

from bpe_engine import Encoding
from bpe_engine.common.system import cores
from bpe_engine.common.threads import on_threads
from bpe_engine.common.values import describe
from bpe_engine.texts.access import size_or_zero
from bpe_engine.texts.listed import Paths, corpus_files
from bpe_engine.texts.reading import read_texts

from ..arguments import check_progress
from ..corpus.piece_counts import ProgressFunction
from .comparison import Comparison, Differing, Measured
from .segments import MOST_SHOWN, Size, lines_of, script_parts, segments_of
from .subjects import Subject, subject_of

#: A tokenizer, or an argument for :func:`load_subject`.
AnySubject = Union[Subject, Encoding, str, "os.PathLike[str]"]

#: Maximum number of differing texts to show: in total, and per script.
MOST_DIFFERING, MOST_OF_A_SCRIPT = 20, 3

#: Share of common words above which two texts are similar.
ALIKE = 0.5

#: Minimum length of a shown text in tokens, for each tokenizer; shorter texts tell little.
FEWEST_TOKENS = 8


@dataclass(frozen=True)
class _Counted:
    """Token counts of one tokenizer for a block."""

    tokens: int
    #: Token counts by script.
    scripts: Counter[str]
    #: Number of uses of each id.
    times: Counter[int]
    #: Token counts of each text that may be shown.
    shown: list[int]


@dataclass(frozen=True)
class _Block:
    """A part of a file, with the counts of all tokenizers."""

    size: Size
    scripts: dict[str, Size]
    #: Texts that are short enough to show, with the script of each text.
    shown: list[tuple[str, str]]
    #: The counts of each tokenizer.
    counted: list[_Counted]


def compare_tokenizers(
    subjects: AnySubject | Iterable[AnySubject],
    corpus: Paths,
    *,
    field: str = "text",
    errors: str = "strict",
    progress: ProgressFunction | None = None,
) -> Comparison:
    """Measures tokenizers on the same text.

    Lines and paragraphs are encoded one by one. A line counts for the script of most of its
    letters; a line without letters counts for the script of the previous line. Words are separated
    by whitespace.

    Args:
        subjects: arguments for :func:`load_subject` (names of encodings, files, folders),
            results of :func:`load_subject`, or encodings.
        corpus: files, folders and globs: text, JSON lines or Parquet, compressed or not.
        field: the text field of JSON lines and Parquet.
        errors: "strict", or "replace" to read bytes that are not UTF-8 as U+FFFD.
        progress: called repeatedly with the number of bytes done and the total number of bytes.

    Returns:
        Token counts by file and by script, how often each id is used, and the texts on which the
        tokenizers differ most.

    Raises:
        ValueError: a file is not UTF-8, or all files are empty.
        OSError: a file cannot be read.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "text.txt"
    ...     _ = path.write_text("hello world\\n")
    ...     found = compare_tokenizers(["gpt2"], [path])
    >>> found.rows[0].tokens, found.total.words
    (3, 2)
    """
    check_progress(progress)
    paths = corpus_files(corpus)
    sizes = [size_or_zero(path) for path in paths]
    several = (
        [subjects] if isinstance(subjects, (str, os.PathLike, Encoding, Subject)) else subjects
    )
    if not isinstance(several, Iterable):
        raise TypeError(f"the tokenizers to compare are a list, not {describe(subjects)}")
    measured = [subject_of(source) for source in several]
    meter = _Meter(measured)
    inside_lines = all(subject.inside_lines for subject in measured)
    done = 0
    for path, size in zip(paths, sizes):
        meter.start_file(path)
        read = 0
        blocks = read_texts(path, field, errors, inside_lines=inside_lines)
        counted = on_threads(lambda block: _count(measured, segments_of(block)), blocks, cores())
        for block, found in counted:
            meter.add(found)
            read += sum(map(len, block))
            if progress is not None:
                progress(done + min(read, size), sum(sizes))
        done += size
    return meter.comparison()


def compare_texts(subjects: Sequence[Subject], name: str, texts: list[str]) -> Comparison:
    """Compares tokenizers on texts in memory, which count as a file with this name."""
    meter = _Meter(subjects)
    meter.start_file(name)
    meter.add(_count(subjects, texts))
    return meter.comparison()


def _count(subjects: Sequence[Subject], texts: list[str]) -> _Block:
    sizes: dict[str, Size] = {}
    total = Size()
    parts = [script_parts(text) for text in texts]
    for text, parts_of_text in zip(texts, parts):
        for script, part in parts_of_text:
            sizes.setdefault(script, Size()).add(part)
        total.add(text)
    lines = [line for text in texts if len(text) > MOST_SHOWN for line in lines_of(text)]
    lines = [line for line in lines if len(line) <= MOST_SHOWN] if len(subjects) > 1 else []
    shown = [(text, found[0][0]) for text, found in zip(texts, parts) if len(text) <= MOST_SHOWN]
    shown += [(line, script_parts(line)[0][0]) for line in lines]
    counted = []
    for subject in subjects:
        lengths, times = subject.count(texts)
        scripts: Counter[str] = Counter()
        for text, length, parts_of_text in zip(texts, lengths, parts):
            if len(parts_of_text) == 1:
                scripts[parts_of_text[0][0]] += length
            else:
                for (script, _), tokens in zip(
                    parts_of_text, _by_part(subject, text, parts_of_text)
                ):
                    scripts[script] += tokens
        short = [length for text, length in zip(texts, lengths) if len(text) <= MOST_SHOWN]
        short += subject.count(lines)[0] if lines else []
        counted.append(_Counted(sum(lengths), scripts, Counter(times), short))
    return _Block(total, sizes, shown, counted)


def _by_part(subject: Subject, text: str, parts: Sequence[tuple[str, str]]) -> list[int]:
    """Returns the number of tokens that begin in each part of a text. If the tokens do not have the
    bytes of the text, as in WordPiece, each part is encoded separately."""
    tokens = [len(token) for token in subject.cut(text)]
    for form in (None, "NFC"):
        sizes = [len(_in_form(part, form).encode()) for _, part in parts]
        if sum(sizes) == sum(tokens):
            ends = list(itertools.accumulate(sizes))
            starts = itertools.accumulate(tokens, initial=0)
            found = [0] * len(parts)
            for start, _ in zip(starts, tokens):
                found[bisect.bisect_right(ends, start)] += 1
            return found
    return subject.count([part for _, part in parts])[0]


def _in_form(text: str, form: Literal["NFC"] | None) -> str:
    return text if form is None else unicodedata.normalize(form, text)


def _are_alike(one: str, other: str) -> bool:
    """Returns True for texts that share most of their words, or most of their characters if the
    texts have no spaces."""
    parts = [set(text.split() if " " in text.strip() else text) for text in (one, other)]
    return len(parts[0] & parts[1]) > ALIKE * min(map(len, parts))


class _Meter:
    """Sums the counts of all blocks."""

    def __init__(self, subjects: Sequence[Subject]) -> None:
        self.subjects = subjects
        self.comparison_so_far = Comparison([Measured(subject) for subject in subjects])
        self.times: list[Counter[int]] = [Counter() for _ in subjects]
        self.file = ""
        #: By script: size of the difference, a descending number to break ties, and the text.
        self.differing: dict[str, list[tuple[float, int, str]]] = {}
        self.numbers = itertools.count()

    def start_file(self, name: str) -> None:
        self.file = name
        self.comparison_so_far.files.setdefault(name, Size())
        for row in self.comparison_so_far.rows:
            row.files.setdefault(name, 0)

    def add(self, block: _Block) -> None:
        """Adds the counts of a block."""
        found = self.comparison_so_far
        size = found.files[self.file]
        size += block.size
        for script, of_block in block.scripts.items():
            of_script = found.scripts.setdefault(script, Size())
            of_script += of_block
        for row, times, counted in zip(found.rows, self.times, block.counted):
            row.files[self.file] += counted.tokens
            for script, tokens in counted.scripts.items():
                row.scripts[script] = row.scripts.get(script, 0) + tokens
            times.update(counted.times)
        if len(self.subjects) > 1:
            self._keep_differing(block.shown, [counted.shown for counted in block.counted])

    def _keep_differing(self, texts: list[tuple[str, str]], lengths: list[list[int]]) -> None:
        for (text, script), counts in zip(texts, zip(*lengths)):
            fewest, most = min(counts), max(counts)
            if fewest < FEWEST_TOKENS or fewest == most:
                continue
            entry = (most / fewest, -next(self.numbers), text)
            kept = self.differing.setdefault(script, [])
            if len(kept) == MOST_OF_A_SCRIPT and entry < kept[-1]:
                continue
            alike = [one for one in kept if _are_alike(one[2], text)]
            if not alike or entry > alike[0]:
                kept[:] = sorted({*kept, entry} - {*alike}, reverse=True)[:MOST_OF_A_SCRIPT]

    def comparison(self) -> Comparison:
        """Returns the result."""
        found = self.comparison_so_far
        if not found.total.characters:
            raise ValueError("the files have no text to measure")
        for row, times in zip(found.rows, self.times):
            row.times = dict(times)
            row.scripts = dict(sorted(row.scripts.items(), key=lambda item: -item[1]))
        found.scripts = dict(sorted(found.scripts.items(), key=lambda item: -item[1].bytes))
        # Takes the first text of each script, then the second text of each script, and so on.
        turns = itertools.zip_longest(*self.differing.values())
        ordered = [entry for turn in turns for entry in sorted(filter(None, turn), reverse=True)]
        found.differing = [self.cut(text) for _, _, text in ordered[:MOST_DIFFERING]]
        return found

    def cut(self, text: str) -> Differing:
        """Cuts a text with every tokenizer."""
        return Differing(text, [subject.cut(text) for subject in self.subjects])
