"""`Savings`: the number of tokens that each new token saves in a corpus."""

from __future__ import annotations

from collections import Counter

import bpe_engine
from bpe_engine import vocabulary


class Savings:
    """Token counts of pieces with a base and with an extended vocabulary that share a pattern.

    >>> ranks = {bytes([byte]): byte for byte in range(256)}
    >>> base = vocabulary.make_encoding("base", ranks, ".+", {})
    >>> savings = Savings(base, vocabulary.make_encoding("new", {**ranks, b"lo": 256}, ".+", {}))
    >>> savings.add("lolo", 10)
    ([108, 111, 108, 111], [256, 256])
    >>> savings.before, savings.after, dict(savings.by_token)
    (40, 20, {b'lo': 20})
    """

    def __init__(self, base: bpe_engine.Encoding, extended: bpe_engine.Encoding) -> None:
        self._base, self._extended = base, extended
        known = base.mergeable_ranks
        self._new = {id: t for t, id in extended.mergeable_ranks.items() if t not in known}
        self.before: int = 0
        self.after: int = 0
        #: Number of tokens that each new token saves. All savings of a piece count for the piece's
        #: longest new token, so the numbers add up to the savings of the corpus.
        self.by_token: Counter[bytes] = Counter()

    def add(self, piece: str, count: int) -> tuple[list[int], list[int]]:
        """Adds a piece that occurs ``count`` times, and returns its ids before and after."""
        before = vocabulary.encode_piece(self._base, piece)
        after = vocabulary.encode_piece(self._extended, piece)
        self.before += count * len(before)
        self.after += count * len(after)
        if before != after:
            new = (self._new[id] for id in after if id in self._new)
            self.by_token[max(new, key=len, default=b"")] += count * (len(before) - len(after))
        return before, after
