"""Proposes words of a corpus that are worth new tokens.

:mod:`~vocab_tools.extend.selection` selects words from the pieces of the corpus.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass, field
from typing import Any

from bpe_engine.common.atomic_write import write_at_once
from bpe_engine.texts.listed import Paths, given_paths

from ..arguments import checked_options, checked_path, number_of, progress_of, several_names
from ..bases import Base, Recognized, open_base
from ..brief import Brief
from ..corpus.cutting import cutting
from ..corpus.piece_counts import DEFAULT_MEMORY, CorpusCounts, count_corpus
from ..corpus.scripts import script_named, scripts_of
from ..patterns import Pattern
from ..ranks import RankSource
from .learn_result import MOST_WORDS
from .selection import ProposedWord, learned_tokens, priced, savings_of, select

#: Default minimum number of occurrences for a candidate.
MIN_FREQUENCY = 5

#: Maximum length of a word in characters; longer pieces are base64, tables and ornaments.
LONGEST_CANDIDATE = 64

ProgressFunction = Callable[[str, int, int], None]


@dataclass(frozen=True)
class ExtendOptions:
    """Options of :func:`vocab_tools.propose_words` and :func:`vocab_tools.extend_vocabulary`.

    Raises:
        ValueError: a number is below 1, or a script is unknown.
        TypeError: an option has a wrong type; the message names the option.
    """

    #: Maximum number of ids for the words and their intermediate tokens.
    new_ids: int = 2000
    #: Minimum number of occurrences for a word.
    min_frequency: int = MIN_FREQUENCY
    #: Propose only words whose letters are all in these scripts, such as "thai" or "devanagari";
    #: "other" is text without letters. By default, any script is allowed.
    scripts: Collection[str] = ()
    #: Words not to propose, including a leading space.
    exclude: Collection[str] = ()
    #: The id of the first new token; see :func:`vocab_tools.learn_merges`.
    start_id: int | None = None
    #: Learn only tokens of whole characters.
    whole_characters: bool = False
    #: Text field of JSON lines and tables.
    field: str = "text"
    #: "strict", or "replace" to read bytes that are not UTF-8 as U+FFFD.
    errors: str = "strict"

    def __post_init__(self) -> None:
        scripts = several_names("scripts", self.scripts, '["thai", "han"]')
        checked = {
            "new_ids": number_of("new_ids", self.new_ids, 1),
            "min_frequency": number_of("min_frequency", self.min_frequency, 1),
            "scripts": frozenset(map(script_named, scripts)),
            "exclude": frozenset(several_names("exclude", self.exclude, '[" the"]')),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)


@dataclass(repr=False)
class Proposal(Brief):
    """The words that are worth new tokens, and their total savings."""

    #: Words in the order in which they were chosen. Their savings add up to ``saved``.
    words: list[ProposedWord]
    #: Number of new ids for all words, by-products included; shared by-products count once.
    new_ids: int
    #: Number of tokens in the corpus now; number of tokens with the words as tokens.
    tokens_before: int
    tokens_after: int
    #: Number of distinct pieces that were not candidates, by reason.
    left_out: dict[str, int] = field(default_factory=dict)
    #: The pattern; the published vocabulary that the base equals or extends.
    pattern: Pattern | None = None
    recognized: Recognized | None = None
    #: Names of the corpus files.
    files: list[str] = field(default_factory=list)

    @property
    def saved(self) -> int:
        """Number of tokens saved in the corpus."""
        return self.tokens_before - self.tokens_after

    def by_gain(self) -> list[ProposedWord]:
        """Returns the words with the largest savings first."""
        return sorted(self.words, key=lambda word: (-word.saved, word.word))

    @property
    def frequencies(self) -> dict[str, int]:
        """Words and their frequencies, for :func:`vocab_tools.learn_merges`."""
        return {word.word: word.frequency for word in self.words}

    def to_plain(self) -> dict[str, Any]:
        """Returns the proposal as plain types, for JSON."""
        return {
            "words": [{**asdict(word), "saved_per_id": word.saved_per_id} for word in self.words],
            "new_ids": self.new_ids,
            "tokens_before": self.tokens_before,
            "tokens_after": self.tokens_after,
            "left_out": self.left_out,
            "recognized": None if self.recognized is None else str(self.recognized),
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the result of :meth:`dump` to a file, replacing an existing file."""
        write_at_once(checked_path(path), self.dump())

    def dump(self) -> bytes:
        """Returns a word list for ``vocab-tools learn``."""
        return "".join(f"{word.word}\t{word.frequency}\n" for word in self.words).encode()


def propose_words(
    base: RankSource | Base,
    corpus: Paths,
    options: ExtendOptions | None = None,
    *,
    progress: ProgressFunction | None = None,
) -> Proposal:
    """Proposes the words of a corpus that save the most tokens, for a given number of new ids.

    Args:
        base: a rank file, ranks, or an encoding; use :func:`vocab_tools.open_base` to set a
            different pattern.
        corpus: text files; also JSON lines, Parquet, Arrow, CSV and compressed files.
        options: how many ids to use, and which words to propose.
        progress: called with the name of a step, the work done and the total work.

    Returns:
        The words in the order in which they were chosen: the missing merges of the next word save
        the most tokens per new id. :func:`vocab_tools.learn_merges` needs at most ``new_ids`` ids
        for these words.

    Raises:
        ValueError: a file is not UTF-8.
        TypeError: an argument has another type; the message names the argument.
        OSError: a file cannot be read.
        ImportError: reading Parquet needs the package pyarrow.

    >>> import tempfile, pathlib
    >>> text = pathlib.Path(tempfile.mkdtemp()) / "text.txt"
    >>> _ = text.write_text("low lower lower slow " * 5)
    >>> base = {bytes([byte]): byte for byte in range(256)}
    >>> proposal = propose_words(base, [text], ExtendOptions(5))
    >>> [(word.word, word.frequency, word.new_ids) for word in proposal.words]
    [(' lower', 10, 5)]
    >>> proposal.tokens_before, proposal.tokens_after
    (105, 37)
    """
    chosen = checked_options(options, ExtendOptions)
    files = given_paths(corpus)
    found = open_base(base)
    ranks = found.ranks
    current = found.pattern.encoding(ranks, {})
    reading = count_corpus(
        files,
        cutting(found.pattern),
        field=chosen.field,
        errors=chosen.errors,
        max_memory=DEFAULT_MEMORY,
        progress=progress_of(progress, "reading"),
    )
    with reading as counts:
        candidates, left_out = _candidates(counts, found, chosen)
        choosing = progress_of(progress, "choosing")
        words = select(candidates, ranks, current, found.pattern, chosen.new_ids, choosing)
        tokens = learned_tokens(words, ranks)
        savings = savings_of(counts.texts(), current, found.pattern, ranks, tokens)
    return Proposal(
        priced(words, ranks, current, savings.by_token),
        len(tokens),
        savings.before,
        savings.after,
        left_out,
        found.pattern,
        found.recognized,
        files,
    )


def _candidates(
    counts: CorpusCounts, base: Base, options: ExtendOptions
) -> tuple[dict[str, int], dict[str, int]]:
    """Returns the pieces that may become words, most frequent first, and the number of other pieces
    by reason."""
    splitter = base.pattern.splitter()
    left_out: dict[str, int] = {}
    words: list[tuple[str, int]] = []
    for piece, count in counts.texts():
        if piece.encode() in base.ranks:
            continue
        reason = _unfit(piece, count, options)
        if reason is None and splitter.split(piece) != [piece]:
            reason = "not one piece when they are alone"
        if reason is None:
            words.append((piece, count))
        else:
            left_out[reason] = left_out.get(reason, 0) + 1
    words.sort(key=lambda row: (-row[1], row[0]))
    if len(words) > MOST_WORDS:
        left_out[f"not among the {MOST_WORDS:,} most frequent"] = len(words) - MOST_WORDS
    return dict(words[:MOST_WORDS]), left_out


def _unfit(piece: str, count: int, options: ExtendOptions) -> str | None:
    """Returns the reason why a piece is not a candidate; None for a candidate."""
    if count < options.min_frequency:
        return f"less frequent than {options.min_frequency}"
    if len(piece) > LONGEST_CANDIDATE:
        return f"longer than {LONGEST_CANDIDATE} characters"
    if piece.strip(" ") != piece.strip() or piece != piece.rstrip() or "\t" in piece:
        return "with trailing spaces or line ends, which a word list cannot hold"
    if any(c in piece for c in "\n\r\ufeff") or not unicodedata.is_normalized("NFC", piece):
        return "not in normalization form C, or with line ends"
    if options.scripts and not (scripts_of(piece) or {"other"}).issubset(options.scripts):
        return "of other scripts"
    if piece in options.exclude:
        return "excluded"
    return None
