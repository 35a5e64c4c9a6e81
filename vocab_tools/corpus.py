"""What an extension does to a sample of text."""

from __future__ import annotations

import os
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass

import bpe_engine

#: Text is split in blocks of about this many characters, to bound memory.
BLOCK_CHARACTERS = 1 << 20


@dataclass(frozen=True)
class ChangedPiece:
    """A piece of text whose ids are not what they were."""

    text: str
    #: How often it stands in the corpus.
    count: int
    before: list[int]
    after: list[int]


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


def corpus_effect(
    path: str | os.PathLike[str],
    base: bpe_engine.Encoding,
    extended: bpe_engine.Encoding,
    new_words: Collection[str],
    *,
    nfc: bool = False,
) -> CorpusEffect:
    """Encodes a file with two vocabularies that share a pattern, and compares piece by piece.

    Args:
        path: a text file in UTF-8.
        base: the encoding without the new tokens.
        extended: the encoding with them.
        new_words: the words that became tokens.
        nfc: bring the text into Unicode normalization form C first, as Qwen's encoding does.

    Raises:
        ValueError: the file is not UTF-8.
        OSError: the file cannot be read.
    """
    pieces: Counter[str] = Counter()
    for block in _blocks(path):
        # Nothing composes across the newline between two blocks.
        text = unicodedata.normalize("NFC", block) if nfc else block
        pieces.update(base.split(text))
    words = frozenset(new_words)
    lengths = sorted({len(word) for word in words})
    tokens_before = tokens_after = changed = 0
    unexpected = []
    for piece, count in pieces.items():
        before = base._encode_single_piece(piece)
        after = extended._encode_single_piece(piece)
        tokens_before += count * len(before)
        tokens_after += count * len(after)
        if before != after:
            changed += count
            if not _holds(piece, words, lengths):
                unexpected.append(ChangedPiece(piece, count, before, after))
    unexpected.sort(key=lambda change: -change.count)
    return CorpusEffect(tokens_before, tokens_after, pieces.total(), changed, unexpected)


def _holds(piece: str, words: frozenset[str], lengths: list[int]) -> bool:
    """Whether one of the words is in the piece."""
    return any(
        piece[start : start + length] in words
        for length in lengths
        for start in range(len(piece) - length + 1)
    )


def _blocks(path: str | os.PathLike[str]) -> Iterator[str]:
    """The text in blocks, cut where every published pattern cuts: between a newline that stands
    behind text and a letter."""
    rest = ""
    try:
        with open(path, encoding="utf-8", newline="") as file:
            while block := file.read(BLOCK_CHARACTERS):
                rest += block
                end = _cut(rest)
                if end:
                    yield rest[:end]
                    rest = rest[end:]
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8: {error}; give a text file in UTF-8") from error
    if rest:
        yield rest


def _cut(text: str) -> int:
    """The last place to cut, or 0."""
    end = text.rfind("\n", 1, len(text) - 1)
    while end > 0:
        if text[end + 1].isalpha() and not text[end - 1].isspace():
            return end + 1
        end = text.rfind("\n", 1, end)
    return 0
