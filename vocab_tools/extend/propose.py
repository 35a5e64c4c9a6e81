"""Which words of a corpus are worth a token.

All candidates, the pieces that the pre-tokeniser makes of the corpus, learn together: the pair of
tokens that stands side by side most often is merged first, since that saves most tokens for one new
id, whether the merge ends in a word or is only a step on the way to several. A word is paid for
when the last of its merges is. So merges that words share count once, and a rare word comes in
early when common words have already made its parts.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import bpe_engine
from bpe_engine import vocabulary

from ..bases import identify
from ..corpus.counting import PieceCounts, count_pieces
from ..corpus.scripts import script_named, scripts_of
from ..patterns import Pattern
from ..ranks import RankSource, load_ranks
from ..text import plural
from .learn import MOST_WORDS

#: Candidates that occur less often are not looked at, by default.
MIN_FREQUENCY = 5

#: Longer pieces are no words: base64, tables, ornaments.
LONGEST_CANDIDATE = 64

ProgressFunction = Callable[[str, int, int], None]


@dataclass(frozen=True)
class ProposedWord:
    """A word, and what it is worth."""

    word: str
    #: How often it occurs in the corpus.
    frequency: int
    #: How many tokens it is now.
    tokens_now: int
    #: New ids that it needs beside those that words before it have made.
    new_ids: int

    @property
    def saved(self) -> int:
        """Tokens of the corpus that are saved when this word is one token."""
        return self.frequency * (self.tokens_now - 1)

    @property
    def saved_per_id(self) -> float:
        """Tokens saved for each id that it needs for itself."""
        return self.saved / max(self.new_ids, 1)


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
    found = identify(ranks, encoding, pattern).pattern
    counts = _counted(corpus, found, field, progress)
    wanted = frozenset(map(script_named, scripts))
    chosen = _candidates(counts.counts, ranks, found, min_frequency, wanted, frozenset(exclude))
    current = found.encoding(ranks, {})
    words = _select(chosen.words, ranks, current, new_ids, progress)
    tokens = _learned_tokens(words, ranks)
    before, after = _tokens_of(counts.counts, current, found, ranks, tokens)
    return Proposal(words, len(tokens), before, after, chosen.left_out, counts.forgotten_up_to)


def _counted(
    corpus: Iterable[str | os.PathLike[str]],
    pattern: Pattern,
    field: str,
    progress: ProgressFunction | None,
) -> PieceCounts:
    """The pieces of all files together."""

    def update(done: int, total: int) -> None:
        if progress is not None:
            progress("reading", done, total)

    all_counts = PieceCounts()
    for _, counts in count_pieces(corpus, pattern, field=field, progress=update):
        all_counts.add(counts.counts.items())
        all_counts.forgotten_up_to = max(all_counts.forgotten_up_to, counts.forgotten_up_to)
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


def _select(
    words: Mapping[str, int],
    ranks: dict[bytes, int],
    current: bpe_engine.Encoding,
    new_ids: int,
    progress: ProgressFunction | None,
) -> list[ProposedWord]:
    """The words that are paid for with ``new_ids`` merges.

    Merges that lead to no word of the list are made in vain, so more are learned than there are
    ids, and the words are taken in the order in which they are complete, as long as the merges on
    their ways are no more than the ids.
    """
    rows = [(word.encode(), count) for word, count in words.items()]
    if not rows:
        return []

    def update(done: int, total: int) -> None:
        if progress is not None:
            progress("choosing", done, total)

    limit = new_ids
    while True:
        merges, paths = vocabulary.learn_merges(
            ranks, rows, max_tokens=limit, progress=update if progress else None
        )
        complete = [
            (steps[-1], number)
            for number, (_, last, steps, _) in enumerate(paths)
            if len(last) == 1 and steps
        ]
        made: set[int] = set()
        chosen: list[tuple[int, int]] = []
        for _, number in sorted(complete):
            steps = set(paths[number][2])
            if len(made | steps) > new_ids:
                continue  # A later word may need fewer.
            chosen.append((number, len(steps - made)))
            made |= steps
        # Enough when the ids are used up, or when there is nothing more to learn.
        if len(chosen) < len(complete) or len(merges) < limit:
            break
        limit *= 2
    listed = list(words.items())
    proposed = []
    for number, added in chosen:
        word, count = listed[number]
        now = len(vocabulary.encode_piece(current, word))
        proposed.append(ProposedWord(word, count, now, added))
    return _trimmed(proposed, ranks, new_ids)


def _trimmed(
    words: list[ProposedWord], ranks: dict[bytes, int], new_ids: int
) -> list[ProposedWord]:
    """As many of the words as really need no more than ``new_ids``.

    Learned without the other candidates, pairs have other frequencies, and by-products may differ.
    """
    while words and (extra := len(_learned_tokens(words, ranks)) - new_ids) > 0:
        del words[-extra:]
    return words


def _learned_tokens(words: Sequence[ProposedWord], ranks: dict[bytes, int]) -> list[bytes]:
    """The new tokens that the words need."""
    rows = [(word.word.encode(), word.frequency) for word in words]
    merges, _ = vocabulary.learn_merges(ranks, rows)
    return [left + right for left, right, novelty, _, _ in merges if novelty == "new"]


def _tokens_of(
    counts: Mapping[str, int],
    current: bpe_engine.Encoding,
    pattern: Pattern,
    ranks: Mapping[bytes, int],
    tokens: Iterable[bytes],
) -> tuple[int, int]:
    """The tokens of the corpus, now and with the new tokens."""
    first = max(ranks.values()) + 1
    added = {token: first + number for number, token in enumerate(tokens)}
    extended = pattern.encoding({**ranks, **added}, {})
    before = after = 0
    for piece, count in counts.items():
        before += count * len(vocabulary.encode_piece(current, piece))
        after += count * len(vocabulary.encode_piece(extended, piece))
    return before, after


def summary(proposal: Proposal) -> str:
    """What was proposed, in one sentence."""
    share = proposal.saved / proposal.tokens_before if proposal.tokens_before else 0
    per_thousand = proposal.saved * 1000 / proposal.new_ids if proposal.new_ids else 0
    return (
        f"{plural(len(proposal.words), 'word')} with {plural(proposal.new_ids, 'new id')} save "
        f"{proposal.saved:,} of {plural(proposal.tokens_before, 'token')} ({share:.1%}): "
        f"{per_thousand:,.0f} for 1,000 ids"
    )
