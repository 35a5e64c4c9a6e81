"""A plain trainer of byte-level BPE that counts all pairs anew before every merge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Pair = tuple[bytes, bytes]


def train(
    counts: Mapping[bytes, int],
    base: Sequence[bytes],
    size: int,
    min_frequency: int = 1,
    max_length: int | None = None,
) -> list[Pair]:
    """Merges until there are ``size`` tokens, or no pair is left."""
    ids = {token: number for number, token in enumerate(base)}
    words = [([bytes([byte]) for byte in piece], count) for piece, count in counts.items()]
    merges: list[Pair] = []
    while len(ids) < size:
        found: dict[Pair, int] = {}
        for tokens, count in words:
            for pair in zip(tokens, tokens[1:]):
                if max_length is None or len(pair[0] + pair[1]) <= max_length:
                    found[pair] = found.get(pair, 0) + count
        best = min(found, key=lambda p: (-found[p], ids[p[0]], ids[p[1]]), default=None)
        if best is None or found[best] < min_frequency:
            break
        merges.append(best)
        ids.setdefault(best[0] + best[1], len(ids))
        for tokens, _ in words:
            for place in range(len(tokens) - 1):
                if (*tokens[place : place + 2],) == best:
                    tokens[place : place + 2] = [best[0] + best[1]]
    return merges
