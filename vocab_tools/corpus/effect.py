"""What an extension does to a sample of text."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Union

import bpe_engine
from bpe_engine import vocabulary

from ..patterns import Pattern
from .counting import ProgressFunction, count_pieces
from .scripts import script_of

Paths = Union[str, "os.PathLike[str]", Iterable[Union[str, "os.PathLike[str]"]]]


@dataclass(frozen=True)
class ChangedPiece:
    """A piece of text whose ids are not what they were."""

    text: str
    #: How often it stands in the corpus.
    count: int
    before: list[int]
    after: list[int]


@dataclass(frozen=True)
class TokenCounts:
    """Tokens of a part of the corpus: of a file, or of what is written in a script."""

    name: str
    before: int
    after: int

    @property
    def saved(self) -> float:
        """The share of tokens that is saved."""
        return (self.before - self.after) / self.before if self.before else 0.0


@dataclass(frozen=True)
class CorpusEffect:
    """The corpus, encoded with the base and with the extended vocabulary."""

    tokens_before: int
    tokens_after: int
    #: How many pieces the corpus has, and how many of them have other ids now.
    pieces: int
    changed: int
    #: Pieces that changed though none of the new words is in them, the most frequent first.
    unexpected: list[ChangedPiece]
    #: Tokens by file, in the order given, and by script, the most tokens first.
    files: list[TokenCounts] = field(default_factory=list)
    scripts: list[TokenCounts] = field(default_factory=list)
    #: How many pieces have how many tokens: before and after.
    lengths_before: dict[int, int] = field(default_factory=dict)
    lengths_after: dict[int, int] = field(default_factory=dict)


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
    """Encodes files with two vocabularies that share a pattern, and compares piece by piece.

    Args:
        path: a text file in UTF-8, or several; ``.jsonl``, ``.parquet`` and ``.gz`` are understood.
        base: the encoding without the new tokens.
        extended: the encoding with them.
        new_words: the words that became tokens.
        nfc: bring the text into Unicode normalization form C first, as Qwen's encoding does.
        field: the field of JSON lines and Parquet that has the text.
        errors: "replace" puts U+FFFD where bytes are no UTF-8.
        progress: called now and then with bytes done and bytes in all.

    Raises:
        ValueError: a file is not UTF-8.
        OSError: a file cannot be read.
    """
    paths = [path] if isinstance(path, (str, os.PathLike)) else list(path)
    pattern = Pattern(None, vocabulary.pattern(base), {}, nfc=nfc)
    comparison = _Comparison(base, extended, new_words)
    files = []
    reading = count_pieces(paths, pattern, field=field, errors=errors, progress=progress)
    for name, counted in reading:
        files.append(TokenCounts(name, *comparison.add(counted.counts)))
    return comparison.effect(files)


class _Comparison:
    """The sums over all files."""

    def __init__(
        self,
        base: bpe_engine.Encoding,
        extended: bpe_engine.Encoding,
        new_words: Collection[str],
    ) -> None:
        self.base, self.extended = base, extended
        self.words = frozenset(new_words)
        self.word_lengths = sorted({len(word) for word in self.words})
        self.pieces = self.changed = 0
        self.unexpected: dict[str, ChangedPiece] = {}
        self.scripts: dict[str, list[int]] = {}
        self.lengths: tuple[Counter[int], Counter[int]] = (Counter(), Counter())

    def add(self, counts: dict[str, int]) -> tuple[int, int]:
        """The tokens of a file, before and after."""
        tokens_before = tokens_after = 0
        for piece, count in counts.items():
            before = vocabulary.encode_piece(self.base, piece)
            after = vocabulary.encode_piece(self.extended, piece)
            self.pieces += count
            tokens_before += count * len(before)
            tokens_after += count * len(after)
            self.lengths[0][len(before)] += count
            self.lengths[1][len(after)] += count
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
        """Whether one of the words is in the piece."""
        return any(
            piece[start : start + length] in self.words
            for length in self.word_lengths
            for start in range(len(piece) - length + 1)
        )

    def effect(self, files: list[TokenCounts]) -> CorpusEffect:
        scripts = [TokenCounts(name, *tokens) for name, tokens in self.scripts.items()]
        before, after = self.lengths
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
            lengths_before=dict(sorted(before.items())),
            lengths_after=dict(sorted(after.items())),
        )
