"""Which words of a corpus are worth a token.

The candidates are the pieces that the pre-tokeniser makes of the corpus; which of them are chosen
is in :mod:`~vocab_tools.extend.selection`.
"""

from __future__ import annotations

import functools
import os
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

import bpe_engine

from ..bases import Recognised, identify
from ..corpus.counting import PieceCounts, count_pieces
from ..corpus.scripts import script_named, scripts_of
from ..patterns import Pattern
from ..ranks import RankSource, load_ranks
from ..text import plural
from .learn import MOST_WORDS
from .selection import ProposedWord, learned_tokens, select, tokens_of

#: Candidates that occur less often are not looked at, by default.
MIN_FREQUENCY = 5

#: Longer pieces are no words: base64, tables, ornaments.
LONGEST_CANDIDATE = 64

ProgressFunction = Callable[[str, int, int], None]


@dataclass
class Proposal:
    """The words worth a token, and what all of them together save."""

    #: In the order in which they are paid for: those that save most for an id come first.
    words: list[ProposedWord]
    #: New ids for all words, by-products included, counted once.
    new_ids: int
    #: Tokens of the corpus now, and with the words.
    tokens_before: int
    tokens_after: int
    #: Why pieces were no candidates, and how many distinct ones.
    left_out: dict[str, int] = field(default_factory=dict)
    #: Pieces that occurred at most this often may have been forgotten to bound memory.
    forgotten_up_to: int = 0
    #: How the text was cut, and the published vocabulary that the base is or begins with.
    pattern: Pattern | None = None
    recognised: Recognised | None = None

    @property
    def saved(self) -> int:
        """Tokens of the corpus that are saved."""
        return self.tokens_before - self.tokens_after

    @property
    def frequencies(self) -> dict[str, int]:
        """What :func:`vocab_tools.learn_merges` takes."""
        return {word.word: word.frequency for word in self.words}

    def dump(self) -> bytes:
        """A word list: what ``vocab-tools learn --keep-space`` reads."""
        return "".join(f"{word.word}\t{word.frequency}\n" for word in self.words).encode()


def propose_words(
    base: RankSource,
    corpus: Iterable[str | os.PathLike[str]],
    new_ids: int = 2000,
    *,
    pattern: str | None = None,
    min_frequency: int = MIN_FREQUENCY,
    scripts: Collection[str] = (),
    exclude: Collection[str] = (),
    field: str = "text",
    errors: str = "strict",
    progress: ProgressFunction | None = None,
) -> Proposal:
    """The words of a corpus that save most tokens, for a number of new ids.

    Args:
        base: a rank file, ranks, or an encoding.
        corpus: text files; ``.jsonl``, ``.parquet`` and ``.gz`` are understood.
        new_ids: the most ids to use, for the words and for the by-products on their way.
        pattern: the name of an encoding, or a regular expression; by default that of ``base``.
        min_frequency: how often a word must occur.
        scripts: propose only words whose letters are all of these scripts, such as "thai" or
            "devanagari"; "other" is what has no letters. By default any.
        exclude: words not to propose, with their space.
        field: the field of JSON lines and Parquet that has the text.
        errors: "replace" puts U+FFFD where bytes are no UTF-8.
        progress: called with the name of a step, what is done of it and all of it.

    Returns:
        The words in the order of their gain, with what they save together. What they need is at
        most ``new_ids`` when they are given to :func:`vocab_tools.learn_merges`.

    Raises:
        ValueError: a file is not UTF-8, or a number is below 1.
        OSError: a file cannot be read.
        ImportError: reading Parquet needs the package pyarrow.

    >>> import tempfile, pathlib
    >>> text = pathlib.Path(tempfile.mkdtemp()) / "text.txt"
    >>> _ = text.write_text("low lower lower slow " * 5)
    >>> base = {bytes([byte]): byte for byte in range(256)}
    >>> proposal = propose_words(base, [text], 5)
    >>> [(word.word, word.frequency, word.new_ids) for word in proposal.words]
    [(' lower', 10, 5)]
    >>> proposal.tokens_before, proposal.tokens_after
    (105, 37)
    """
    for name, number in [("new_ids", new_ids), ("min_frequency", min_frequency)]:
        if number < 1:
            raise ValueError(f"{name} is {number}; it must be 1 or more")
    ranks = load_ranks(base)
    encoding = base if isinstance(base, bpe_engine.Encoding) else None
    found = identify(ranks, encoding, pattern)
    counts = _counted(corpus, found.pattern, field, errors, progress)
    wanted = frozenset(map(script_named, scripts))
    chosen = _candidates(
        counts.counts, ranks, found.pattern, min_frequency, wanted, frozenset(exclude)
    )
    current = found.pattern.encoding(ranks, {})
    update = None if progress is None else functools.partial(progress, "choosing")
    words = select(chosen.words, ranks, current, found.pattern, new_ids, update)
    tokens = learned_tokens(((word.word, word.frequency) for word in words), ranks)
    before, after = tokens_of(counts.counts, current, found.pattern, ranks, tokens)
    return Proposal(
        words,
        len(tokens),
        before,
        after,
        chosen.left_out,
        counts.forgotten_up_to,
        found.pattern,
        found.recognised,
    )


def _counted(
    corpus: Iterable[str | os.PathLike[str]],
    pattern: Pattern,
    field: str,
    errors: str,
    progress: ProgressFunction | None,
) -> PieceCounts:
    """The pieces of all files together."""

    def update(done: int, total: int) -> None:
        if progress is not None:
            progress("reading", done, total)

    all_counts = PieceCounts()
    reading = count_pieces(corpus, pattern, field=field, errors=errors, progress=update)
    for _, counts in reading:
        all_counts.add(counts.counts.items())
        all_counts.forgotten_up_to += counts.forgotten_up_to
    return all_counts


@dataclass
class _Candidates:
    words: dict[str, int]
    left_out: dict[str, int]


def _candidates(
    counts: Mapping[str, int],
    ranks: Mapping[bytes, int],
    pattern: Pattern,
    min_frequency: int,
    scripts: frozenset[str],
    exclude: frozenset[str],
) -> _Candidates:
    """The pieces that may become words, the most frequent first."""
    splitter = pattern.splitter()
    left_out: dict[str, int] = {}
    words: dict[str, int] = {}
    for piece, count in sorted(counts.items(), key=lambda row: (-row[1], row[0])):
        if piece.encode() in ranks:
            continue
        reason = _unfit(piece, count, min_frequency, scripts, exclude)
        if reason is None and splitter.split(piece) != [piece]:
            reason = "no piece of their own"
        if reason is None and len(words) >= MOST_WORDS:
            reason = f"behind the {MOST_WORDS:,} most frequent"
        if reason is None:
            words[piece] = count
        else:
            left_out[reason] = left_out.get(reason, 0) + 1
    return _Candidates(words, left_out)


def _unfit(
    piece: str, count: int, min_frequency: int, scripts: frozenset[str], exclude: frozenset[str]
) -> str | None:
    """Why a piece is no candidate."""
    if count < min_frequency:
        return f"less frequent than {min_frequency}"
    if len(piece) > LONGEST_CANDIDATE:
        return f"longer than {LONGEST_CANDIDATE} characters"
    if piece.strip(" ") != piece.strip() or piece != piece.rstrip() or "\t" in piece:
        return "spaces or line ends behind them, which a word list cannot hold"
    if any(c in piece for c in "\n\r\ufeff") or not unicodedata.is_normalized("NFC", piece):
        return "not in normalization form C, or with line ends"
    if scripts and not (scripts_of(piece) or {"other"}) <= scripts:
        return "of other scripts"
    if piece in exclude:
        return "excluded"
    return None


def summary(proposal: Proposal) -> str:
    """What was proposed, in one sentence."""
    share = proposal.saved / proposal.tokens_before if proposal.tokens_before else 0
    per_thousand = proposal.saved * 1000 / proposal.new_ids if proposal.new_ids else 0
    return (
        f"{plural(len(proposal.words), 'word')} with {plural(proposal.new_ids, 'new id')} save "
        f"{proposal.saved:,} of {plural(proposal.tokens_before, 'token')} ({share:.1%}): "
        f"{per_thousand:,.0f} for 1,000 ids"
    )
