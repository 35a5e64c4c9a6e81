"""Measures the effect of an extended vocabulary on a corpus."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass, field
from typing import Any

import bpe_engine
from bpe_engine.common.values import describe
from bpe_engine.texts.access import size_or_zero
from bpe_engine.texts.listed import Paths, given_paths

from ..arguments import check_progress, several_names
from ..brief import Brief
from ..patterns import Pattern
from ..text import literal
from .cutting import cutting
from .piece_counts import DEFAULT_MEMORY, CorpusCounts, ProgressFunction, count_corpus
from .savings import Savings
from .scripts import script_of


@dataclass(frozen=True)
class ChangedPiece:
    """A piece of text whose ids change."""

    text: str
    #: Number of occurrences in the corpus.
    count: int
    before: list[int]
    after: list[int]


@dataclass(frozen=True)
class TokenCounts:
    """Token counts for a part of the corpus: one file, or all text in one script."""

    name: str
    before: int
    after: int

    @property
    def saved(self) -> float:
        """Share of the tokens that are saved."""
        return (self.before - self.after) / self.before if self.before else 0.0


@dataclass(frozen=True, repr=False)
class CorpusEffect(Brief):
    """Token counts of a corpus with the base vocabulary and with the extended vocabulary."""

    tokens_before: int
    tokens_after: int
    #: Number of pieces in the corpus; number of pieces whose ids change.
    pieces: int
    changed: int
    #: Pieces that change but contain no new word, most frequent first.
    unexpected: list[ChangedPiece]
    #: Token counts by file, in the given order, and by script, most tokens first.
    files: list[TokenCounts] = field(default_factory=list)
    scripts: list[TokenCounts] = field(default_factory=list)
    #: Number of tokens that each new token saves. The numbers add up to the savings of the corpus.
    saved_by_token: dict[bytes, int] = field(default_factory=dict)

    def to_plain(self) -> dict[str, Any]:
        """Returns the effect as plain types, for JSON."""
        saved = [{"token": literal(t), "saved": n} for t, n in self.saved_by_token.items()]
        return {**asdict(self), "saved_by_token": saved}


def corpus_effect(
    path: Paths,
    base: bpe_engine.Encoding,
    extended: bpe_engine.Encoding,
    new_words: Collection[str],
    *,
    nfc: bool = False,
    field: str = "text",
    errors: str = "strict",
    progress: ProgressFunction | None = None,
) -> CorpusEffect:
    """Encodes files with two vocabularies that share a pattern, and compares the ids of each piece.

    Args:
        path: one or more files: text in UTF-8, JSON lines, Parquet, Arrow, CSV; compressed or not.
        base: the encoding without the new tokens.
        extended: the encoding with the new tokens.
        new_words: the words that became tokens.
        nfc: normalize text to Unicode NFC first, as Qwen's encoding does.
        field: the text field of JSON lines and Parquet.
        errors: "strict", or "replace" to read bytes that are not UTF-8 as U+FFFD.
        progress: called repeatedly with the number of bytes done and the total number of bytes.

    Raises:
        ValueError: a file is not UTF-8.
        TypeError: an argument has a wrong type; the message names the argument.
        OSError: a file cannot be read.
    """
    check_progress(progress)
    paths = given_paths(path)
    for name, encoding in [("base", base), ("extended", extended)]:
        if not isinstance(encoding, bpe_engine.Encoding):
            raise TypeError(f"{name} is an Encoding, not {describe(encoding)}")
    new_words = several_names("new_words", new_words, '[" the"]')
    cut = cutting(Pattern(None, base.pattern, {}, nfc=nfc))
    comparison = _Comparison(base, extended, new_words)
    sizes = [size_or_zero(path) for path in paths]
    files = []
    for number, path in enumerate(paths):

        def update(done: int, _: int, before: int = sum(sizes[:number])) -> None:
            if progress is not None:
                progress(before + done, sum(sizes))

        counts = count_corpus(
            [path], cut, field=field, errors=errors, max_memory=DEFAULT_MEMORY, progress=update
        )
        with counts:
            files.append(TokenCounts(path, *comparison.add(counts)))
    return comparison.effect(files)


class _Comparison:
    """Sums the counts of all files."""

    def __init__(
        self,
        base: bpe_engine.Encoding,
        extended: bpe_engine.Encoding,
        new_words: Collection[str],
    ) -> None:
        self.savings = Savings(base, extended)
        self.words = frozenset(new_words)
        self.word_lengths = sorted({len(word) for word in self.words})
        self.pieces = self.changed = 0
        self.unexpected: dict[str, ChangedPiece] = {}
        self.scripts: dict[str, list[int]] = {}

    def add(self, counts: CorpusCounts) -> tuple[int, int]:
        """Adds the counts of a file, and returns the file's token counts before and after."""
        tokens_before = tokens_after = 0
        for piece, count in counts.texts():
            before, after = self.savings.add(piece, count)
            self.pieces += count
            tokens_before += count * len(before)
            tokens_after += count * len(after)
            script = self.scripts.setdefault(script_of(piece), [0, 0])
            script[0] += count * len(before)
            script[1] += count * len(after)
            if before != after:
                self.changed += count
                if not self._holds_word(piece):
                    earlier = self.unexpected.get(piece)
                    times = count + (earlier.count if earlier else 0)
                    self.unexpected[piece] = ChangedPiece(piece, times, before, after)
        return tokens_before, tokens_after

    def _holds_word(self, piece: str) -> bool:
        """Returns True if the piece contains a new word."""
        return any(
            piece[start : start + length] in self.words
            for length in self.word_lengths
            for start in range(len(piece) - length + 1)
        )

    def effect(self, files: list[TokenCounts]) -> CorpusEffect:
        scripts = [TokenCounts(name, *tokens) for name, tokens in self.scripts.items()]
        return CorpusEffect(
            tokens_before=sum(part.before for part in files),
            tokens_after=sum(part.after for part in files),
            pieces=self.pieces,
            changed=self.changed,
            unexpected=sorted(
                self.unexpected.values(), key=lambda change: (-change.count, change.text)
            ),
            files=files,
            scripts=sorted(scripts, key=lambda part: -part.before),
            saved_by_token=dict(self.savings.by_token),
        )
