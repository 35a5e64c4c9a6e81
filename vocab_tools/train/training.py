"""Trains a vocabulary: counts pieces, then merges pairs."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Union

from bpe_engine import vocabulary
from bpe_engine.common.values import check_choice, describe, is_arrow, listed, safe_repr
from bpe_engine.read import byte_level

from ..arguments import checked_options, is_text, number_of, progress_of, several_names
from ..bases import Base, open_base
from ..corpus.cutting import Cutting, cutting
from ..corpus.piece_counts import CorpusCounts, count_corpus, dropped_note, outside_note
from ..patterns import Pattern
from ..ranks import RankSource, check_special_tokens
from ..text import plural
from .superwords import LINES, MAX_WORDS, can_be_read_twice, count_lines
from .train_result import TrainedMerge, TrainResult, shortage_note

#: One or more text files; or pieces and their counts.
Corpus = Union[
    str,
    "os.PathLike[str]",
    Iterable[Union[str, "os.PathLike[str]"]],
    Mapping[str, int],
    CorpusCounts,
]

_CORPUS = "a corpus is the path of a file, a list of paths, or a dict of pieces and their counts"

#: Called with the name of a step, the work done and the total work.
ProgressFunction = Callable[[str, int, int], None]

#: Units for the compression of several corpora.
UNITS = ("bytes", "characters", "lines")


@dataclass(frozen=True)
class TrainOptions:
    """Options of :func:`vocab_tools.train_vocabulary`.

    Raises:
        ValueError: an option is invalid.
        TypeError: an option has a wrong type; the message names the option.
    """

    #: Name of an encoding, or a regular expression that cuts text into pieces; no token spans two
    #: pieces. By default the pattern of the base if known; otherwise o200k_base's pattern.
    pattern: str | Pattern | None = None
    #: Names of special tokens, which get the last ids and are cut out of the corpus.
    special_tokens: Sequence[str] = ()
    #: Minimum number of occurrences for a pair to be merged.
    min_frequency: int = 2
    #: Maximum length of a new token in bytes.
    max_token_length: int | None = None
    #: Whether to normalize text to Unicode NFC; by default as the named encoding does.
    nfc: bool | None = None
    #: Number of tokens after which merges may cross piece boundaries inside a line (SuperBPE).
    superwords_from: int | None = None
    #: Maximum number of words in a token that crosses piece boundaries.
    max_words: int = MAX_WORDS
    #: "bytes", "characters" or "lines": each item of the corpus is a corpus, and the next merge
    #: serves the corpus with the fewest of these units per token (parity-aware BPE). "lines"
    #: compares translations line by line.
    balance: str | None = None
    #: Text field of JSON lines and tables.
    field: str = "text"
    #: "strict", or "replace" to read bytes that are not UTF-8 as U+FFFD.
    errors: str = "strict"
    #: Bytes of memory for counting; further counts go to temporary files.
    max_memory: int | None = None
    #: Drop pieces with fewer occurrences than this.
    drop_rare: int = 1
    #: Number of threads; by default one per processor.
    num_threads: int | None = None

    def __post_init__(self) -> None:
        names = several_names("special_tokens", self.special_tokens, '["<|endoftext|>"]')
        object.__setattr__(self, "special_tokens", names)
        number_of("min_frequency", self.min_frequency, 0)
        number_of("max_words", self.max_words, 1)
        least = {"max_token_length": 1, "max_memory": 0, "num_threads": 0}
        for name, at_least in least.items():
            if getattr(self, name) is not None:
                number_of(name, getattr(self, name), at_least)
        if self.balance is not None:
            check_choice("balance", self.balance, UNITS)

    def cutting(self, base: Base | None) -> Cutting:
        """Returns the settings for cutting text into pieces between special tokens."""
        if base is None or base.name is None:
            return cutting(self.pattern, self.special_tokens, self.nfc)
        names = [*base.special_tokens, *self.special_tokens]
        return cutting(self.pattern or base.pattern, names, self.nfc)


def train_vocabulary(
    corpus: Corpus | Sequence[Corpus],
    vocab_size: int,
    options: TrainOptions | None = None,
    *,
    base: RankSource | Base | None = None,
    progress: ProgressFunction | None = None,
) -> TrainResult:
    """Trains a byte-level BPE vocabulary: repeatedly merges the most frequent pair of adjacent
    tokens. Ties go to the lowest id of the left token, then to the lowest id of the right token, as
    in Hugging Face's trainer.

    The result depends only on the text and the options, and not on the number of threads or the
    order of files.

    Args:
        corpus: text files, folders and globs; or pieces and their counts; or a result of
            :func:`count_corpus`, which is used up.
        vocab_size: the number of tokens, including single bytes, the base and special tokens.
        options: how to read and cut text, and which pairs to merge.
        base: ranks to start from, which keep their ids.
        progress: called with the name of a step, the work done and the total work.

    Returns:
        The vocabulary. If pairs run out, it is smaller than requested, and a note says so.

    Raises:
        ValueError: the corpus is empty or does not suit an option, or a file is not UTF-8.
        TypeError: an argument has a wrong type; the message names the argument.
        OSError: a file cannot be read.
        MemoryError: memory runs out.

    The algorithm follows Sennrich et al. (arXiv 1508.07909) on bytes, superwords Liu et al. (arXiv
    2503.13423), balance Foroutan et al. (arXiv 2508.04796).

    >>> counts = {"hug": 10, "pug": 5, "pun": 12, "bun": 4, "hugs": 5}
    >>> result = train_vocabulary(counts, 259)
    >>> list(result.new_tokens.items())
    [(b'ug', 256), (b'un', 257), (b'hug', 258)]
    >>> [result.encoding().decode_single_token_bytes(i) for i in result.encoding().encode("hugs")]
    [b'hug', b's']
    """
    chosen = checked_options(options, TrainOptions)
    job = _Job(vocab_size, chosen, progress)
    own = None if base is None else open_base(base)
    if own is None:
        ranks = {bytes([byte]): place for place, byte in enumerate(byte_level.ORDER)}
    else:
        ranks = own.ranks
    old_special = {} if own is None or own.name is None else dict(own.special_tokens)
    cut = chosen.cutting(own)
    special = len(cut.special_tokens)
    if not isinstance(corpus, (str, os.PathLike, Mapping, CorpusCounts)):
        corpus = _listed(corpus)
    elif chosen.balance:
        raise ValueError("balance needs several corpora; give a list of them")
    superwords_from = chosen.superwords_from
    if superwords_from is not None and not can_be_read_twice(corpus):
        raise ValueError(
            "superwords are learned from text files, which are read twice; counts have no lines, "
            "and pipes and standard input are read once"
        )
    if chosen.balance == "lines" and not all(map(can_be_read_twice, corpus)):  # type: ignore[arg-type]
        raise ValueError(
            "balance by lines needs text files, which are read twice; balance by bytes or characters"
        )
    job.check(len(ranks), special)
    parts, units = job.counted(corpus, cut)
    until = vocab_size if superwords_from is None else superwords_from
    taken = max([*ranks.values(), *old_special.values()]) + 1
    result = job.train(ranks, taken, cut, parts, until - special, units)
    if superwords_from is not None:
        lines = replace(cut, pattern=LINES)
        again, units = job.counted(corpus, lines)
        result = job.superwords(result, taken, lines, again, vocab_size - special, units)
    result.notes += [note for part in parts if (note := dropped_note(part.counts))]
    outside = [outside_note(part.counts, part.totals[2]) for part in parts]
    result.notes += [note for note in outside if note is not None]
    result.files = _names(corpus)
    result.recognized = None if own is None else own.recognized
    return job.finish(result, old_special)


def _listed(corpus: object) -> list[Corpus]:
    """Returns the items of a corpus as a list. Raises TypeError if it is not a corpus."""
    is_wrong = isinstance(corpus, (bytes, bytearray)) or is_arrow(corpus)
    if is_wrong or not isinstance(corpus, Iterable):
        raise TypeError(f"{_CORPUS}, not {describe(corpus)}")
    parts = listed(corpus)
    for part in parts:
        if isinstance(part, tuple) and not all(isinstance(one, (str, os.PathLike)) for one in part):
            raise TypeError(
                f"{_CORPUS}; make a dict of pairs such as {safe_repr(part)}: dict(pairs)"
            )
        if isinstance(part, bytes) or not isinstance(
            part, (str, os.PathLike, CorpusCounts, Iterable)
        ):
            raise TypeError(f"{_CORPUS}, and has {describe(part)}")
    return parts


def _names(corpus: Corpus | Sequence[Corpus]) -> list[str]:
    """Returns the file names of one or more corpora."""
    if isinstance(corpus, (str, os.PathLike)):
        return [os.fspath(corpus)]
    if isinstance(corpus, (Mapping, CorpusCounts)):
        return []
    return [name for part in corpus for name in _names(part)]


class _Part(NamedTuple):
    """The counts of one corpus."""

    counts: CorpusCounts
    #: Numbers of distinct pieces, occurrences, bytes and characters, from one pass.
    totals: tuple[int, int, int, int]


def _part(counts: CorpusCounts, number: int | None) -> _Part:
    """Computes the totals of a corpus. Raises ValueError for an empty corpus."""
    totals = counts.pieces.totals()
    if totals[0] == 0:
        what = "the corpus" if number is None else f"corpus {number + 1}"
        rare = f" but {counts.dropped[0]:,} rare pieces" if counts.dropped[0] else ""
        if counts.text_bytes and not rare:
            raise ValueError(
                f"the pattern finds no piece in {plural(counts.text_bytes, 'byte')} of {what}; give "
                "another pattern"
            )
        raise ValueError(f"{what} is empty: it has no pieces{rare}; give more text")
    return _Part(counts, totals)


class _Job:
    """One run of training, with its options and stages."""

    def __init__(
        self, vocab_size: int, options: TrainOptions, progress: ProgressFunction | None
    ) -> None:
        if not isinstance(vocab_size, int):
            raise TypeError(
                f"vocab_size must be an int, as in 32_000, not {type(vocab_size).__name__}"
            )
        self.vocab_size, self.options, self.progress = vocab_size, options, progress

    def check(self, base: int, special: int) -> None:
        """Raises ValueError if the size is too small for the base and the special tokens."""
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
        superwords_from = self.options.superwords_from
        if superwords_from is not None and not least <= superwords_from <= self.vocab_size:
            raise ValueError(
                f"superwords_from is {superwords_from:,}; it must be from {least:,}, where nothing "
                f"is learned yet, to the vocabulary size of {self.vocab_size:,}"
            )

    def counted(
        self, corpus: Corpus | Sequence[Corpus], cut: Cutting
    ) -> tuple[list[_Part], list[int]]:
        """Counts the pieces of each corpus; returns the counts, and the sizes in units."""
        options = self.options
        several: list[Corpus] = list(corpus) if options.balance else [corpus]  # type: ignore[arg-type, list-item]
        parts = []
        for number, one in enumerate(several):
            counts = self._counts_of(one, cut)
            counts.load(options.drop_rare, options.max_memory)
            parts.append(_part(counts, number if options.balance else None))
        if options.balance == "lines":
            units = [count_lines(one, options.field, options.errors) for one in several]
        else:
            place = 3 if options.balance == "characters" else 2
            units = [part.totals[place] for part in parts]
        return parts, units

    def _counts_of(self, corpus: Corpus, cut: Cutting) -> CorpusCounts:
        if isinstance(corpus, CorpusCounts):
            cut.check_same(json.loads(corpus.cutting.dump()), "the corpus")
            return corpus
        if isinstance(corpus, Mapping):
            counts = CorpusCounts(cut)
            for piece, count in corpus.items():
                if not is_text(piece) or not isinstance(count, int) or not 0 <= count < 1 << 64:
                    raise ValueError(
                        f"{safe_repr(piece)}: {safe_repr(count)} is not a piece and its count"
                    )
            counts.pieces.add([piece.encode() for piece in corpus], list(corpus.values()))
            return counts
        options = self.options
        return count_corpus(
            [corpus] if isinstance(corpus, (str, os.PathLike)) else list(corpus),
            cut,
            field=options.field,
            errors=options.errors,
            max_memory=options.max_memory,
            num_threads=options.num_threads,
            progress=progress_of(self.progress, "counting"),
        )

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
        """Trains one stage: adds tokens with ids from ``first_id`` on to ``ranks``, up to
        ``tokens`` tokens in total."""
        sizes = [part.totals[2] for part in parts]

        corpora = [(part.counts.pieces, unit) for part, unit in zip(parts, units)]
        new, merges, corpus_tokens = vocabulary.train_bpe(
            list(ranks),
            corpora,
            tokens=tokens,
            min_frequency=self.options.min_frequency,
            max_token_bytes=self.options.max_token_length,
            max_token_words=max_words,
            progress=progress_of(self.progress, "merging"),
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
    ) -> TrainResult:
        """Trains the second stage: text is cut into lines, and the first stage is the base."""
        first_id = max(first.ranks.values()) + 1 if first.new_tokens else taken
        most = self.options.max_words
        result = self.train(first.ranks, first_id, lines, parts, tokens, units, most)
        result.base_size = first.base_size
        result.merges = first.merges + result.merges
        result.base_merges = first.base_merges
        return result

    def finish(self, result: TrainResult, old_special: Mapping[str, int]) -> TrainResult:
        """Assigns ids to the special tokens, and adds notes for the user."""
        first = max([*result.ranks.values(), *old_special.values()]) + 1
        new = {name: first + place for place, name in enumerate(self.options.special_tokens)}
        result.special_tokens = {**old_special, **new}
        check_special_tokens(result.special_tokens)
        if result.size < self.vocab_size:
            limited = self.options.max_token_length is not None
            least = max(self.options.min_frequency, 1)
            result.notes.append(shortage_note(result.size, self.vocab_size, least, limited))
        made = len(result.merges) - len(result.new_tokens)
        if made:
            result.notes.append(
                f"{made:,} merges make tokens that exist already, which only the merge list of a "
                f"tokenizer.json can express: rare text may have other tokens with the .tiktoken file"
            )
        return result
