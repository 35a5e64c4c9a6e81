"""Finds learned tokens that no word needs, and that can be dropped.

A by-product is a token learned as a step on the way to a word. In the extended vocabulary, merging
may reach every word without the by-product, since a token can be made from different parts. The
by-product's id is then free for a better use.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from .learn_result import Step

#: Maximum length of words merged here; all tokens inside longer words are kept, to save time.
LONGEST_WORD = 256


def unneeded(
    base: Mapping[bytes, int], merges: Sequence[Step], words: Iterable[bytes]
) -> set[bytes]:
    """Returns the tokens of ``merges`` other than words that can be dropped without changing the
    tokens of any word.

    Tries the least used tokens first; among equals, the latest.

    >>> base = {bytes([byte]): byte for byte in range(256)} | {b"bc": 256}
    >>> both = [Step(b"a", right, None, "new", 1, 1) for right in (b"b", b"bc")]
    >>> unneeded(base, both, [b"abc"])
    {b'ab'}
    """
    listed = list(words)
    first = max(base.values()) + 1
    learned = {
        merge.token: first + number for number, merge in enumerate(merges) if merge.novelty == "new"
    }
    ranks = {**base, **learned}
    users: dict[bytes, set[int]] = {}
    needed = set(listed)
    results: dict[int, list[bytes]] = {}
    for number, word in enumerate(listed):
        if len(word) > LONGEST_WORD:
            needed.update(token for token in learned if token in word)
            continue
        results[number], used = _merge(word, ranks)
        # A word that remains several tokens needs all of them.
        needed.update(results[number])
        for token in used & learned.keys():
            users.setdefault(token, set()).add(number)
    candidates = [token for token in learned if token not in needed]
    candidates.sort(key=lambda token: (len(users.get(token, ())), -learned[token]))
    left_out: set[bytes] = set()
    for token in candidates:
        rank = ranks.pop(token)
        affected = users.get(token, set())
        again = _same_without(affected, listed, ranks, results)
        if again is None:
            ranks[token] = rank
            continue
        left_out.add(token)
        for number, used in again.items():
            for other in used & learned.keys():
                users.setdefault(other, set()).add(number)
    return left_out


def _same_without(
    affected: Iterable[int],
    words: Sequence[bytes],
    ranks: Mapping[bytes, int],
    results: Mapping[int, list[bytes]],
) -> dict[int, set[bytes]] | None:
    """Returns the tokens made on the way to each affected word; None if a result changes."""
    again = {}
    for number in affected:
        pieces, again[number] = _merge(words[number], ranks)
        if pieces != results[number]:
            return None
    return again


def _merge(word: bytes, ranks: Mapping[bytes, int]) -> tuple[list[bytes], set[bytes]]:
    """Returns the tokens at the end of merging, and all intermediate tokens."""
    parts = [word[i : i + 1] for i in range(len(word))]
    used: set[bytes] = set()
    while True:
        known = [
            (rank, i)
            for i, (left, right) in enumerate(zip(parts, parts[1:]))
            if (rank := ranks.get(left + right)) is not None
        ]
        if not known:
            return parts, used
        i = min(known)[1]
        parts[i : i + 2] = [parts[i] + parts[i + 1]]
        used.add(parts[i])
