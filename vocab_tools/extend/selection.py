"""Selects the candidates that are worth new ids; shared merges count once.

All candidates are learned together: the most frequent pair of adjacent tokens is merged first, in
every word that has the pair. A merge saves as many tokens as its pair has occurrences, whether the
merge completes a word or is a step towards several words. A word is worth the savings of the merges
that no earlier word needed. Repeatedly choosing the word with the largest savings per new id makes
a good list, though not always the best list: if only the list is learned, pairs are rarer, and the
merges may differ. Therefore the list is also learned on its own, and only these savings count.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import bpe_engine
from bpe_engine import vocabulary

from ..corpus.piece_counts import ProgressFunction
from ..corpus.savings import Savings
from ..patterns import Pattern

#: Number of merges in learning all candidates together: per new id, and the minimum in total. Words
#: that need later merges are ignored.
MERGES_PER_ID, LEAST_MERGES = 8, 5000

#: Maximum number of additional words to try for the remaining ids.
MOST_TRIES = 12


@dataclass(frozen=True)
class ProposedWord:
    """A proposed word, and its savings."""

    word: str
    #: Number of occurrences in the corpus.
    frequency: int
    #: Number of the word's tokens in the base.
    tokens_now: int
    #: Number of new ids that the word needs and no earlier word needed.
    new_ids: int
    #: Number of tokens that these ids save in the corpus, also in other words that contain the
    #: word or its by-products. Each saved token counts for only one word.
    saved: int

    @property
    def saved_per_id(self) -> float:
        """Number of saved tokens per new id of the word."""
        return self.saved / max(self.new_ids, 1)


@dataclass
class _Candidates:
    """The candidates after all of them were learned together."""

    words: list[tuple[str, int]]
    #: Number of tokens that each merge saves: the frequency of its pair.
    saved: list[int]
    #: Merges of each word that became one token, by the index of the word in ``words``.
    steps: dict[int, frozenset[int]]
    #: Words that need each merge.
    users: dict[int, list[int]] = field(default_factory=dict)

    def worth(self, word: int, made: set[int]) -> float:
        """Returns the number of tokens saved per missing merge of a word."""
        missing = self.steps[word] - made
        return sum(self.saved[step] for step in missing) / len(missing) if missing else 0.0


def select(
    words: Mapping[str, int],
    ranks: dict[bytes, int],
    current: bpe_engine.Encoding,
    pattern: Pattern,
    new_ids: int,
    progress: ProgressFunction | None = None,
) -> list[tuple[str, int]]:
    """Selects the words with the largest savings for at most ``new_ids`` new tokens, and returns
    each word with its frequency.

    Args:
        words: the candidates and their frequencies.
        ranks: the base.
        current: an encoding of the base.
        pattern: the pattern of the base.
        new_ids: the maximum number of new tokens, by-products included.
        progress: called with the number of merges done and the number of all merges.
    """
    if not words:
        return []
    found = _learned_together(words, ranks, new_ids, progress)
    listed = list(words.items())
    best: tuple[int, list[int]] = (-1, [])
    for order in (_by_worth(found, new_ids), _by_completion(found, new_ids)):
        chosen = _fitting(found, order, ranks, new_ids)
        tokens = learned_tokens([listed[number] for number in chosen], ranks)
        saved = -savings_of(words.items(), current, pattern, ranks, tokens).after
        if not best[1] or saved > best[0]:
            best = (saved, chosen)
    return [listed[number] for number in best[1]]


def _learned_together(
    words: Mapping[str, int],
    ranks: dict[bytes, int],
    new_ids: int,
    progress: ProgressFunction | None,
) -> _Candidates:
    merges, paths = vocabulary.learn_merges(
        ranks,
        [(word.encode(), count) for word, count in words.items()],
        max_tokens=max(MERGES_PER_ID * new_ids, LEAST_MERGES),
        progress=progress,
    )
    steps = {
        number: frozenset(steps)
        for number, (_, last, steps, _) in enumerate(paths)
        if len(last) == 1 and steps
    }
    users: dict[int, list[int]] = {}
    for number, path in steps.items():
        for step in path:
            users.setdefault(step, []).append(number)
    return _Candidates(list(words.items()), [merge[3] for merge in merges], steps, users)


def _by_worth(found: _Candidates, new_ids: int) -> list[int]:
    """Chooses words by descending savings per new id, until no ids remain."""
    made: set[int] = set()
    worth = {number: found.worth(number, made) for number in found.steps}
    heap = [(-value, number) for number, value in worth.items()]
    heapq.heapify(heap)
    chosen: list[int] = []
    while heap and len(made) < new_ids:
        value, number = heapq.heappop(heap)
        if worth.get(number) != -value:
            continue  # The word is already chosen, or its savings have changed.
        missing = found.steps[number] - made
        del worth[number]
        if len(made) + len(missing) > new_ids:
            continue  # A word further down may need fewer ids.
        chosen.append(number)
        made |= missing
        for other in {user for step in missing for user in found.users[step]} & worth.keys():
            worth[other] = found.worth(other, made)
            heapq.heappush(heap, (-worth[other], other))
    return chosen


def _by_completion(found: _Candidates, new_ids: int) -> list[int]:
    """Chooses words in the order in which learning completed them, until no ids remain."""
    made: set[int] = set()
    chosen = []
    for number in sorted(found.steps, key=lambda number: (max(found.steps[number]), number)):
        steps = found.steps[number]
        if len(made | steps) <= new_ids:
            chosen.append(number)
            made |= steps
    return chosen


def _fitting(
    found: _Candidates, order: Sequence[int], ranks: dict[bytes, int], new_ids: int
) -> list[int]:
    """Returns a prefix of ``order`` that needs at most ``new_ids`` ids when learned alone, then
    other words that fit into the remaining ids."""
    chosen = list(order)
    while (left := new_ids - _cost(found, chosen, ranks)) < 0:
        del chosen[left:]
    made = {step for number in chosen for step in found.steps[number]}
    others = [number for number in found.steps if number not in set(chosen)]
    others.sort(key=lambda number: -found.worth(number, made))
    tries = MOST_TRIES
    for number in others:
        if left == 0 or tries == 0:
            break
        if len(found.steps[number] - made) <= left:
            tries -= 1
            rest = new_ids - _cost(found, [*chosen, number], ranks)
            if rest >= 0:
                chosen.append(number)
                made |= found.steps[number]
                left = rest
    return chosen


def _cost(found: _Candidates, chosen: Sequence[int], ranks: dict[bytes, int]) -> int:
    return len(learned_tokens([found.words[number] for number in chosen], ranks))


def learned_tokens(words: Iterable[tuple[str, int]], ranks: dict[bytes, int]) -> list[bytes]:
    """Returns the new tokens that the given words need."""
    rows = [(word.encode(), count) for word, count in words]
    merges, _ = vocabulary.learn_merges(ranks, rows)
    return [left + right for left, right, novelty, _, _ in merges if novelty == "new"]


def priced(
    words: Sequence[tuple[str, int]],
    ranks: dict[bytes, int],
    current: bpe_engine.Encoding,
    saved: Counter[bytes],
) -> list[ProposedWord]:
    """Returns each word's number of new ids and savings if only these words are learned.

    Args:
        words: words and their frequencies.
        ranks: the base.
        current: an encoding of the base.
        saved: the savings of each new token.
    """
    merges, paths = vocabulary.learn_merges(ranks, [(word.encode(), n) for word, n in words])
    made: set[int] = set()
    proposed = []
    for (word, count), (_, _, steps, _) in zip(words, paths):
        new = {step for step in steps if merges[step][2] == "new"} - made
        made |= new
        now = len(vocabulary.encode_piece(current, word))
        gain = sum(saved[merges[step][0] + merges[step][1]] for step in new)
        proposed.append(ProposedWord(word, count, now, len(new), gain))
    return proposed


def savings_of(
    counts: Iterable[tuple[str, int]],
    current: bpe_engine.Encoding,
    pattern: Pattern,
    ranks: Mapping[bytes, int],
    tokens: Iterable[bytes],
) -> Savings:
    """Counts the tokens of pieces in the base, and with the new tokens."""
    first = max(ranks.values()) + 1
    added = {token: first + number for number, token in enumerate(tokens)}
    savings = Savings(current, pattern.encoding({**ranks, **added}, {}))
    for piece, count in counts:
        savings.add(piece, count)
    return savings
