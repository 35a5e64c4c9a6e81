"""The result of a comparison, and figures derived from it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..brief import Brief, Reported
from ..text import show, text_of
from .segments import Size
from .subjects import Subject

#: Order of the Renyi entropy. In Zouhar et al. ("Tokenization and the Noiseless Channel", 2023),
#: the efficiency correlates best with translation quality at 2.5.
RENYI_ORDER = 2.5

#: Maximum share of unknown tokens in a ranked tokenizer, unless every tokenizer has at least half
#: as many: a tokenizer that encodes unknown words as one token would otherwise win with few tokens.
MOST_UNKNOWN = 0.05
#: Minimum share of unknown tokens that the conclusions mention.
NAMED_UNKNOWN = 0.01

#: Number of longest tokens, and of rarest tokens, to list.
LISTED = 20


@dataclass(repr=False)
class Measured(Brief):
    """Token counts of one tokenizer on a corpus."""

    subject: Subject
    #: Token counts by file and by script.
    files: dict[str, int] = field(default_factory=dict)
    scripts: dict[str, int] = field(default_factory=dict)
    #: Number of uses of each id.
    times: dict[int, int] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.subject.name

    @property
    def tokens(self) -> int:
        """Total number of tokens."""
        return sum(self.files.values())

    @property
    def used_share(self) -> float:
        """Share of the vocabulary that the corpus uses."""
        return len(self.times) / self.subject.size if self.subject.size else 0.0

    @property
    def renyi_efficiency(self) -> float:
        """Renyi entropy of the tokens, as a share of the maximum for this vocabulary."""
        return renyi_efficiency(self.times, self.subject.size)

    @property
    def single_bytes(self) -> int:
        """Number of tokens that are one byte of a longer character."""
        return sum(times for number, times in self.times.items() if self._is_single_byte(number))

    @property
    def broken(self) -> int:
        """Number of tokens with an incomplete character, including single bytes."""
        found = (n for n, _ in self.times.items() if text_of(self.subject.token(n)) is None)
        return sum(self.times[number] for number in found)

    @property
    def unknown(self) -> int:
        """Number of unknown tokens, which stand for text that the vocabulary cannot encode."""
        return 0 if self.subject.unknown is None else self.times.get(self.subject.unknown, 0)

    @property
    def unknown_share(self) -> float:
        """Share of tokens that are unknown."""
        return self.unknown / self.tokens if self.tokens else 0.0

    def _is_single_byte(self, number: int) -> bool:
        token = self.subject.token(number)
        return len(token) == 1 and token[0] >= 0x80

    def longest(self) -> list[tuple[bytes, int]]:
        """Returns the longest used tokens and their counts."""
        used = [(self.subject.token(number), times) for number, times in self.times.items()]
        return sorted(used, key=lambda row: (-len(row[0].decode(errors="replace")), row[0]))[
            :LISTED
        ]

    def rarest(self) -> list[tuple[bytes, int]]:
        """Returns the least used tokens and their counts; ties are listed by descending id."""
        used = sorted(self.times.items(), key=lambda row: (row[1], -row[0]))[:LISTED]
        return [(self.subject.token(number), times) for number, times in used]


@dataclass(frozen=True)
class Differing:
    """A text that has many more tokens in one tokenizer than in another."""

    text: str
    #: The tokens of the text in each tokenizer.
    cuts: list[list[bytes]]


@dataclass(repr=False)
class Comparison(Reported):
    """Token counts of one or more tokenizers on the same corpus."""

    rows: list[Measured]
    #: Size of the text by file and by script.
    files: dict[str, Size] = field(default_factory=dict)
    scripts: dict[str, Size] = field(default_factory=dict)
    #: Texts on which the tokenizers differ, largest difference first.
    differing: list[Differing] = field(default_factory=list)

    @property
    def ranking(self) -> list[Measured]:
        """Ranked tokenizers, fewest tokens first."""
        least = min((row.unknown_share for row in self.rows), default=0.0)
        known = [row for row in self.rows if row.unknown_share <= max(MOST_UNKNOWN, 2 * least)]
        return sorted(known, key=lambda row: row.tokens)

    def best_by_script(self) -> dict[str, list[str]]:
        """Returns for each script the names of the ranked tokenizers with the fewest tokens."""
        names = {row.name for row in self.ranking}
        rows = [row for row in self.rows if row.name in names]
        fewest = {
            script: min(row.scripts.get(script, 0) for row in rows) for script in self.scripts
        }
        return {
            script: [row.name for row in rows if row.scripts.get(script, 0) == tokens]
            for script, tokens in fewest.items()
        }

    def conclusions(self) -> list[str]:
        """Returns the conclusions in sentences.

        >>> from vocab_tools.compare import compare_texts, load_subject
        >>> found = compare_texts([load_subject("gpt2"), load_subject("qwen")], "a", ["一只猫\\n"])
        >>> found.conclusions()
        ['qwen needs 57% fewer tokens than gpt2 on this text.']
        """
        return [*self._ranked(), *self._unknown()]

    def _unknown(self) -> list[str]:
        """Returns a sentence about each tokenizer with unknown tokens."""
        ranked = {row.name for row in self.ranking}
        return [
            f"{row.unknown_share:.0%} of the tokens of {row.name} stand for unknown text"
            f"{'' if row.name in ranked else ', so it is not ranked'}."
            for row in self.rows
            if row.unknown_share > NAMED_UNKNOWN
        ]

    def _ranked(self) -> list[str]:
        total = self.total
        if len(self.ranking) == 1:
            (row,) = self.ranking
            per_token = total.bytes / row.tokens if row.tokens else 0.0
            found = [f"{row.name} needs a token for {per_token:.2f} bytes of this text."]
            if len(self.scripts) > 1:
                dear = {
                    script: row.scripts.get(script, 0) / size.characters
                    for script, size in self.scripts.items()
                    if size.characters
                }
                most, least = max(dear, key=dear.__getitem__), min(dear, key=dear.__getitem__)
                found.append(
                    f"A character of {most} takes {dear[most]:.2f} tokens, one of {least} "
                    f"{dear[least]:.2f}."
                )
            return found
        first, *others = self.ranking
        if first.tokens == others[0].tokens:
            found = [f"{first.name} and {others[0].name} need the fewest tokens, and equally many."]
        else:
            shares = [
                f"{1 - first.tokens / row.tokens:.0%} fewer than {row.name}" for row in others
            ]
            shares[0] = shares[0].replace("fewer", "fewer tokens", 1)
            named = shares if len(shares) < 3 else [shares[0], shares[-1]]
            found = [f"{first.name} needs {' and '.join(named)} on this text."]
        if len(self.scripts) > 1:
            best = self.best_by_script()
            counts = {
                row.name: sum(names == [row.name] for names in best.values())
                for row in self.ranking
            }
            winners = sorted(
                (row for row in self.rows if counts.get(row.name)),
                key=lambda row: -counts[row.name],
            )
            parts = [f"{row.name} in {counts[row.name]}" for row in winners]
            if parts:
                found.append(f"Best by script: {', '.join(parts)} of {len(best)}.")
        return found

    @property
    def total(self) -> Size:
        """Size of the whole text."""
        total = Size()
        for size in self.files.values():
            total += size
        return total

    def to_plain(self) -> dict[str, Any]:
        """Returns the whole result as plain types, for JSON."""
        return {
            "conclusions": self.conclusions(),
            "text": vars(self.total),
            "files": {name: vars(size) for name, size in self.files.items()},
            "scripts": {name: vars(size) for name, size in self.scripts.items()},
            "tokenizers": [self._plain(row) for row in self.rows],
            "differing": [self._plain_cuts(text) for text in self.differing],
        }

    def _plain(self, row: Measured) -> dict[str, Any]:
        return {
            "name": row.name,
            "method": row.subject.method,
            "vocabulary": row.subject.size,
            "tokens": row.tokens,
            **rates(row.tokens, self.total),
            "used": len(row.times),
            "used_share": row.used_share,
            "renyi_efficiency": row.renyi_efficiency,
            "single_bytes": row.single_bytes,
            "broken_characters": row.broken,
            "unknown": row.unknown,
            "files": _plain_groups(row.files, self.files),
            "scripts": _plain_groups(row.scripts, self.scripts),
            "longest": [{"token": show(token), "times": times} for token, times in row.longest()],
            "rarest": [{"token": show(token), "times": times} for token, times in row.rarest()],
        }

    def _plain_cuts(self, text: Differing) -> dict[str, Any]:
        cuts = zip(self.rows, text.cuts)
        return {
            "text": text.text,
            "tokens": {row.name: [show(token) for token in cut] for row, cut in cuts},
        }


def _plain_groups(tokens: Mapping[str, int], sizes: Mapping[str, Size]) -> dict[str, Any]:
    return {name: {"tokens": count, **rates(count, sizes[name])} for name, count in tokens.items()}


def rates(tokens: int, size: Size) -> dict[str, float]:
    """Returns the tokens per byte, character and word.

    >>> rates(10, Size(1, 40, 20, 5))
    {'per_byte': 0.25, 'per_character': 0.5, 'per_word': 2.0}
    """
    return {
        "per_byte": tokens / size.bytes if size.bytes else 0.0,
        "per_character": tokens / size.characters if size.characters else 0.0,
        "per_word": tokens / size.words if size.words else 0.0,
    }


def renyi_efficiency(times: Mapping[int, int], size: int, order: float = RENYI_ORDER) -> float:
    """Returns the Renyi entropy of a distribution, divided by its maximum for this vocabulary size.

    Args:
        times: the count of each id.
        size: the number of tokens in the vocabulary.
        order: the order of the entropy; not 1.

    >>> renyi_efficiency({0: 5, 1: 5}, 2), renyi_efficiency({0: 5, 1: 5}, 4)
    (1.0, 0.5)
    >>> renyi_efficiency({0: 7}, 10)
    0.0
    """
    total = sum(times.values())
    if total == 0 or size < 2:
        return 0.0
    powers = sum((count / total) ** order for count in times.values())
    return math.log2(powers) / (1 - order) / math.log2(size) + 0.0
