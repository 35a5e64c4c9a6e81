"""Shows the merges of a piece step by step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .vocabularies import Vocabulary

__all__ = ["merge_steps", "steps"]

#: Maximum length in bytes of a piece whose merges are shown: each step lists all parts.
_LONGEST_PIECE = 200
_MOST_PIECES = 500


def merge_steps(piece: bytes, ranks: dict[bytes, int]) -> Iterator[dict[str, Any]]:
    """Yields the parts before each merge, the ranks of their pairs, and the merged pair: lowest
    rank, leftmost on ties. In the last step, the merged pair is None.

    >>> ranks = {b"a": 0, b"b": 1, b"ab": 2}
    >>> [(step["parts"], step["ranks"], step["taken"]) for step in merge_steps(b"aba", ranks)]
    [([b'a', b'b', b'a'], [2, None], 0), ([b'ab', b'a'], [None], None)]
    """
    parts = [piece[i : i + 1] for i in range(len(piece))]
    while True:
        pairs = [ranks.get(a + b) for a, b in zip(parts, parts[1:])]
        known = [(rank, i) for i, rank in enumerate(pairs) if rank is not None]
        taken = min(known)[1] if known else None
        yield {"parts": parts, "ranks": pairs, "taken": taken}
        if taken is None:
            return
        parts = [*parts[:taken], parts[taken] + parts[taken + 1], *parts[taken + 2 :]]


def steps(vocabulary: Vocabulary, text: str, index: int = 0) -> dict[str, Any]:
    """Returns the pieces of a short text, and the stepwise merges of one piece."""
    pieces = vocabulary.tokenizer.split(text[:10_000])
    if not pieces:
        return {"pieces": [], "more": 0}
    index = min(max(index, 0), len(pieces) - 1, _MOST_PIECES - 1)
    piece = pieces[index].encode()
    shown = {
        "pieces": [each.encode().hex() for each in pieces[:_MOST_PIECES]],
        "more": max(0, len(pieces) - _MOST_PIECES) + (len(text) > 10_000),
        "index": index,
    }
    return shown | _path(vocabulary, piece)


def _path(vocabulary: Vocabulary, piece: bytes) -> dict[str, Any]:
    if len(piece) > _LONGEST_PIECE:
        return {
            "refused": f"this piece has {len(piece)} bytes; merges are shown for at most "
            f"{_LONGEST_PIECE}"
        }
    ranks = vocabulary.ranks
    if isinstance(ranks, str):
        return {"refused": ranks}
    path = list(merge_steps(piece, ranks))
    # The engine looks up a piece before merging.
    whole = ranks.get(piece)
    ends = path[-1]["parts"]
    return {
        "steps": [
            {
                "parts": [part.hex() for part in step["parts"]],
                "ids": [ranks.get(part) for part in step["parts"]],
                "ranks": step["ranks"],
                "taken": step["taken"],
            }
            for step in path
        ],
        "whole": whole,
        "ids": [ranks[part] for part in ends if part in ranks] if whole is None else [whole],
        "reached": whole is None or ends == [piece],
    }
