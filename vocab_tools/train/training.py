"""Trains a vocabulary: counts pieces, and then merges."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, Union

from bpe_engine import vocabulary
from bpe_engine.read import byte_level

from ..arguments import number_of, several_names, shown
from ..bases import Base, open_base
from ..corpus.cutting import Cutting, cutting
from ..corpus.piece_counts import CorpusCounts, count_corpus, dropped_note, outside_note
from ..patterns import Pattern
from ..ranks import RankSource, check_special_tokens
from .superwords import LINES, MAX_WORDS, can_be_read_twice, count_lines
from .train_result import TrainedMerge, TrainResult, shortage_note

#: A text file or several; or pieces and how often each occurs.
Corpus = Union[
    str,
    "os.PathLike[str]",
    Iterable[Union[str, "os.PathLike[str]"]],
    Mapping[str, int],
    CorpusCounts,
]

_CORPUS = "a corpus is the path of a file, a list of paths, or a dict of pieces and their counts"

#: Called with the name of a step, the work done and the whole work.
ProgressFunction = Callable[[str, int, int], None]

#: Rules for pairs with the same count.
TIES = ("lowest-ids", "first", "bytes")

_SURROGATE = re.compile("[\ud800-\udfff]")

#: Units that the compression of several corpora is measured by.
UNITS = ("bytes", "characters", "lines")


def train_vocabulary(
    corpus: Corpus | Sequence[Corpus],
    vocab_size: int,
    *,
    pattern: str | Pattern | None = None,
    special_tokens: Sequence[str] = (),
    min_frequency: int = 2,
    max_token_length: int | None = None,
    ties: str = "lowest-ids",
    base: RankSource | Base | None = None,
    nfc: bool | None = None,
    superwords_from: int | None = None,
    max_words: int = MAX_WORDS,
    balance: str | None = None,
    field: str = "text",
    errors: str = "strict",
    max_memory: int | None = None,
    drop_rare: int = 1,
    num_threads: int | None = None,
    progress: ProgressFunction | None = None,
) -> TrainResult:
    """Trains a byte-level BPE vocabulary: merges the most frequent pair of neighboring tokens,
    again and again.

    The result depends on the text and the options only, not on the number of threads or the order
    of files.

    Args:
        corpus: text files, folders and globs; or pieces and how often each occurs; or counts of
            :func:`count_corpus`, which are used up.
        vocab_size: the number of tokens, with single bytes, base and special tokens.
        pattern: the name of an encoding, or a regular expression: no token crosses the pieces it
            cuts. By default ``base``'s, or else o200k_base's.
        special_tokens: names that get the last ids; in the corpus they are cut out.
        min_frequency: pairs that occur less often are not merged.
        max_token_length: the most bytes of a new token.
        ties: of pairs with the same count, "lowest-ids" takes the one whose left token has the
            lowest id, and then whose right token has (as Hugging Face's trainer does); "bytes" the
            same by the bytes of tokens; "first" the one that is met first in the distinct pieces,
            the most frequent piece first, equal ones in the order of their bytes.
        base: ranks to start from; their ids stay.
        nfc: normalize text to Unicode NFC; by default as the named encoding does.
        superwords_from: from this many tokens on, merges may cross the borders of pieces inside a
            line (SuperBPE).
        max_words: the most words of such a token.
        balance: "bytes", "characters" or "lines": each item of ``corpus`` is a separate corpus, and
            the next merge serves the one that has the fewest of these for a token (parity-aware
            BPE). Lines compare what the same lines, translated, need.
        field: the field of JSON lines and Parquet that has the text.
        errors: "strict", or "replace" to read bytes that are not UTF-8 as U+FFFD.
        max_memory: bytes of memory for counting; beyond it, counts go to temporary files.
        drop_rare: leave out pieces that occur less often than this.
        num_threads: the number of threads; by default one for each processor.
        progress: called with the name of a step, the work done and the whole work.

    Returns:
        The vocabulary. If no pair is left, it has fewer tokens than requested, and a note about it.

    Raises:
        ValueError: the corpus is empty, an option is invalid, or a file is not UTF-8.
        TypeError: an argument is of another type; the message names it.
        OSError: a file cannot be read.
        MemoryError: memory is not sufficient.

    The algorithm follows Sennrich et al. (arXiv 1508.07909) on bytes, superwords Liu et al. (arXiv
    2503.13423), balance Foroutan et al. (arXiv 2508.04796).

    >>> counts = {"hug": 10, "pug": 5, "pun": 12, "bun": 4, "hugs": 5}
    >>> result = train_vocabulary(counts, 259)
    >>> list(result.new_tokens.items())
    [(b'ug', 256), (b'un', 257), (b'hug', 258)]
    >>> [result.encoding().decode_single_token_bytes(i) for i in result.encoding().encode("hugs")]
    [b'hug', b's']
    """
    min_frequency = number_of("min_frequency", min_frequency, 0)
    special_tokens = several_names("special_tokens", special_tokens, '["<|endoftext|>"]')
    for name, count in [("max_memory", max_memory), ("num_threads", num_threads)]:
        if count is not None:
            number_of(name, count, 0)
    job = _Job(vocab_size, min_frequency, max_token_length, ties, progress)
    own = None if base is None else open_base(base)
    found, old_special = base_cutting(own, pattern)
    if own is None:
        ranks = {bytes([byte]): place for place, byte in enumerate(byte_level.ORDER)}
    else:
        ranks = own.ranks
    cut = cutting(found, [*old_special, *special_tokens], nfc)
    special = len(cut.special_tokens)
    if not isinstance(corpus, (str, os.PathLike, Mapping, CorpusCounts)):
        corpus = _listed(corpus)
    elif balance in UNITS:
        raise ValueError("balance needs several corpora; give a list of them")
    if superwords_from is not None and not can_be_read_twice(corpus):
        raise ValueError(
            "superwords are learned from text files, which are read twice; counts have no lines, "
            "and pipes and standard input are read once"
        )
    if balance == "lines" and not all(map(can_be_read_twice, corpus)):  # type: ignore[arg-type]
        raise ValueError(
            "balance by lines needs text files, which are read twice; balance by bytes or characters"
        )
    job.check(len(ranks), special, superwords_from, max_words, balance)
    reading = {
        "field": field,
        "errors": errors,
        "max_memory": max_memory,
        "num_threads": num_threads,
    }

    def counted(cut: Cutting) -> list[_Part]:
        parts: list[Corpus] = list(corpus) if balance else [corpus]  # type: ignore[arg-type, list-item]
        found = []
        for number, part in enumerate(parts):
            counts = _counted(part, cut, progress, reading)
            counts.load(drop_rare, max_memory)
            found.append(_part(counts, number if balance else None))
        return found

    parts = counted(cut)
    until = vocab_size if superwords_from is None else superwords_from
    taken = max([*ranks.values(), *old_special.values()]) + 1
    result = job.train(
        ranks, taken, cut, parts, until - special, _units(corpus, parts, balance, field, errors)
    )
    if superwords_from is not None:
        lines = replace(cut, pattern=LINES)
        again = counted(lines)
        units = _units(corpus, again, balance, field, errors)
        result = job.superwords(result, taken, lines, again, vocab_size - special, units, max_words)
    result.notes += [note for part in parts if (note := dropped_note(part.counts))]
    outside = [outside_note(part.counts, part.totals[2]) for part in parts]
    result.notes += [note for note in outside if note is not None]
    result.files = _names(corpus)
    result.recognized = None if own is None else own.recognized
    return job.finish(result, old_special, special_tokens)


def _listed(corpus: object) -> list[Corpus]:
    """Returns the items of a corpus as a list. Raises TypeError for another type."""
    if not isinstance(corpus, Iterable) or isinstance(corpus, (bytes, bytearray)):
        raise TypeError(f"{_CORPUS}, not {shown(corpus)}")
    listed = list(corpus)
    for part in listed:
        if isinstance(part, tuple) and not all(isinstance(one, (str, os.PathLike)) for one in part):
            raise TypeError(f"{_CORPUS}; make a dict of pairs such as {part!r}: dict(pairs)")
        if isinstance(part, bytes) or not isinstance(
            part, (str, os.PathLike, CorpusCounts, Iterable)
        ):
            raise TypeError(f"{_CORPUS}, and has {shown(part)}")
    return listed


def _names(corpus: Corpus | Sequence[Corpus]) -> list[str]:
    """Returns the names of the files of a corpus, or of several."""
    if isinstance(corpus, (str, os.PathLike)):
        return [os.fspath(corpus)]
    if isinstance(corpus, (Mapping, CorpusCounts)):
        return []
    return [name for part in corpus for name in _names(part)]


def base_cutting(
    base: Base | None, pattern: str | Pattern | None
) -> tuple[Pattern | str | None, dict[str, int]]:
    """Returns the pattern to train with, and the special tokens of the base."""
    if base is None or base.name is None:
        return pattern, {}
    return pattern or base.pattern, dict(base.special_tokens)


def _counted(
    corpus: Corpus,
    cut: Cutting,
    progress: ProgressFunction | None,
    reading: Mapping[str, object],
) -> CorpusCounts:
    if isinstance(corpus, CorpusCounts):
        cut.check_same(json.loads(corpus.cutting.dump()), "the corpus")
        return corpus
    if isinstance(corpus, Mapping):
        counts = CorpusCounts(cut)
        for piece, count in corpus.items():
            if not _is_piece(piece) or not isinstance(count, int) or not 0 <= count < 1 << 64:
                raise ValueError(f"{piece!r}: {count!r} is not a piece and its count")
        counts.pieces.add([piece.encode() for piece in corpus], list(corpus.values()))
        return counts
    paths = [corpus] if isinstance(corpus, (str, os.PathLike)) else list(corpus)

    def update(done: int, total: int) -> None:
        if progress is not None:
            progress("counting", done, total)

    return count_corpus(paths, cut, progress=update, **reading)  # type: ignore[arg-type]


def _is_piece(piece: object) -> bool:
    """True for text: a str without surrogates."""
    return isinstance(piece, str) and (piece.isascii() or not _SURROGATE.search(piece))


class _Part(NamedTuple):
    """A corpus of several."""

    counts: CorpusCounts
    #: Distinct pieces, and their occurrences, bytes and characters: each is read for them.
    totals: tuple[int, int, int, int]


def _part(counts: CorpusCounts, number: int | None) -> _Part:
    """Adds up the counts of a corpus. Raises ValueError for an empty one."""
    totals = counts.pieces.totals()
    if totals[0] == 0:
        what = "the corpus" if number is None else f"corpus {number + 1}"
        rare = f" but {counts.dropped[0]:,} rare pieces" if counts.dropped[0] else ""
        raise ValueError(f"{what} is empty: it has no pieces{rare}; give more text")
    return _Part(counts, totals)


def _units(
    corpus: Corpus | Sequence[Corpus],
    parts: Sequence[_Part],
    balance: str | None,
    field: str,
    errors: str,
) -> list[int]:
    """Returns the units that each corpus is measured by."""
    if balance == "lines":
        return [count_lines(part, field, errors) for part in corpus]  # type: ignore[union-attr]
    place = 3 if balance == "characters" else 2
    return [part.totals[place] for part in parts]


class _Job:
    """The options of a training, and its stages."""

    def __init__(
        self,
        vocab_size: int,
        min_frequency: int,
        max_token_length: int | None,
        ties: str,
        progress: ProgressFunction | None,
    ) -> None:
        if not isinstance(vocab_size, int):
            raise TypeError(
                f"vocab_size must be an int, as in 32_000, not {type(vocab_size).__name__}"
            )
        self.vocab_size, self.min_frequency = vocab_size, min_frequency
        self.max_token_length, self.ties, self.progress = max_token_length, ties, progress

    def check(
        self,
        base: int,
        special: int,
        superwords_from: int | None,
        max_words: int,
        balance: str | None,
    ) -> None:
        """Raises ValueError for an invalid option."""
        least = base + special
        if self.vocab_size < least:
            what = "single bytes" if base == 256 else "tokens of the base"
            raise ValueError(
                f"a vocabulary of {self.vocab_size:,} tokens has no room for the {base:,} {what} "
                f"and {special:,} special tokens; ask for {least:,} or more"
            )
        if self.vocab_size > vocabulary.MAX_TOKENS:
            raise ValueError(
                f"vocab_size is {self.vocab_size:,}; at most {vocabulary.MAX_TOKENS:,}"
            )
        if self.max_token_length is not None and self.max_token_length < 1:
            raise ValueError(f"max_token_length is {self.max_token_length}; it must be 1 or more")
        if self.ties not in TIES:
            raise ValueError(f"ties is {self.ties!r}; choose one of {', '.join(TIES)}")
        if balance is not None and balance not in UNITS:
            raise ValueError(f"balance is {balance!r}; choose one of {', '.join(UNITS)}")
        if superwords_from is not None and not least <= superwords_from <= self.vocab_size:
            raise ValueError(
                f"superwords_from is {superwords_from:,}; it must be from {least:,}, where nothing "
                f"is learned yet, to the vocabulary size of {self.vocab_size:,}"
            )
        if max_words < 1:
            raise ValueError(f"max_words is {max_words}; it must be 1 or more")

    def train(
        self,
        ranks: Mapping[bytes, int],
        first_id: int,
        cut: Cutting,
        parts: Sequence[_Part],
        tokens: int,
        units: Sequence[int],
        max_words: int | None = None,
    ) -> TrainResult:
        """Trains one stage: adds tokens to ``ranks``, up to ``tokens``, with the ids
        from ``first_id`` on."""
        sizes = [part.totals[2] for part in parts]

        def update(done: int, total: int) -> None:
            if self.progress is not None:
                self.progress("merging", done, total)

        corpora = [(part.counts.pieces, unit) for part, unit in zip(parts, units)]
        new, merges, corpus_tokens = vocabulary.train_bpe(
            list(ranks),
            corpora,
            tokens=tokens,
            min_frequency=self.min_frequency,
            tie_rule=self.ties,
            max_token_bytes=self.max_token_length,
            max_token_words=max_words,
            progress=update,
        )
        all_ranks = {**ranks, **{token: first_id + place for place, token in enumerate(new)}}
        tokens_by_place = list(all_ranks)
        rows = [
            TrainedMerge(tokens_by_place[left], tokens_by_place[right], frequency, corpus)
            for left, right, _, frequency, corpus in merges
        ]
        base_merges = list(vocabulary.token_splits(dict(ranks)).values())
        return TrainResult(
            all_ranks, {}, cut, len(ranks), rows, self.vocab_size, corpus_tokens, sizes,
            base_merges=base_merges,
        )  # fmt: skip

    def superwords(
        self,
        first: TrainResult,
        taken: int,
        lines: Cutting,
        parts: Sequence[_Part],
        tokens: int,
        units: Sequence[int],
        max_words: int,
    ) -> TrainResult:
        """Trains the second stage: its base is the vocabulary of the first, and it cuts only lines."""
        first_id = max(first.ranks.values()) + 1 if first.new_tokens else taken
        result = self.train(first.ranks, first_id, lines, parts, tokens, units, max_words)
        result.base_size = first.base_size
        result.merges = first.merges + result.merges
        result.base_merges = first.base_merges
        return result

    def finish(
        self, result: TrainResult, old_special: Mapping[str, int], special_tokens: Sequence[str]
    ) -> TrainResult:
        """Gives the special tokens their ids, and adds notes for the user."""
        first = max([*result.ranks.values(), *old_special.values()]) + 1
        new = {name: first + place for place, name in enumerate(special_tokens)}
        result.special_tokens = {**old_special, **new}
        check_special_tokens(result.special_tokens)
        if result.size < self.vocab_size:
            limited = self.max_token_length is not None
            least = max(self.min_frequency, 1)
            result.notes.append(shortage_note(result.size, self.vocab_size, least, limited))
        made = len(result.merges) - len(result.new_tokens)
        if made:
            result.notes.append(
                f"{made:,} merges make tokens that exist already, which only the merge list of a "
                f"tokenizer.json can express: rare text may have other tokens with the .tiktoken file"
            )
        return result
