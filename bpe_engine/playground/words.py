"""Stepwise merges, and the pages of the vocabulary."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from typing import Any

from ..vocabulary import make_encoding
from .vocabularies import Vocabulary

__all__ = ["merge_steps", "search", "steps", "token_page"]

#: Maximum bytes of a piece with shown merges: each step lists all parts.
_LONGEST_PIECE = 200
_MOST_PIECES = 500
_MOST_FOUND = 200
#: Time limit of a search, in seconds, which then returns partial results.
_SECONDS = 3.0
_NEIGHBORS = 4


def merge_steps(piece: bytes, ranks: dict[bytes, int]) -> Iterator[dict[str, Any]]:
    """Yields the parts before each merge, the ranks of their pairs, and the merged pair: lowest
    rank, leftmost on ties. The last step has None.

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


def search(vocabulary: Vocabulary, kind: str, query: str) -> dict[str, Any]:
    """Finds tokens.

    Args:
        kind: "text", "bytes" in hexadecimal, "id" (one, or a range 10-20), or "regex" in the
            language of split patterns, matched inside tokens that are UTF-8.
        query: The search term.
    """
    if not query:
        return {"total": 0, "tokens": [], "complete": True}
    matches, order = _matcher(vocabulary, kind, query)
    end = time.monotonic() + _SECONDS
    found, complete = [], True
    for count, (id, token) in enumerate(vocabulary.tokens.items()):
        if count % 4096 == 0 and time.monotonic() > end:
            complete = False
            break
        if matches(id, token):
            found.append(id)
    if order is not None:
        found.sort(key=order)
    rows = [_row(vocabulary, id) for id in found[:_MOST_FOUND]]
    return {"total": len(found), "tokens": rows, "complete": complete}


def _matcher(
    vocabulary: Vocabulary, kind: str, query: str
) -> tuple[Callable[[int, bytes], bool], Callable[[int], tuple[bool, int]] | None]:
    if kind == "id":
        numbers = re.fullmatch(r"\s*(\d{1,9})\s*(?:-\s*(\d{1,9})\s*)?", query, re.ASCII)
        if numbers is None:
            raise ValueError(f"{query!r} is not an id, such as 1234, or a range, such as 100-199")
        first, last = int(numbers[1]), int(numbers[2] or numbers[1])
        return lambda id, token: first <= id <= last, None
    if kind == "regex":
        # The engine's linear-time regular expressions: no user pattern can hang the server.
        letters = {bytes([byte]): byte for byte in range(256)}
        finder = make_encoding("search", letters, query, {})

        def matches(id: int, token: bytes) -> bool:
            try:
                return bool(finder.split(token.decode()))
            except UnicodeDecodeError:
                return False

        return matches, None
    if kind == "bytes":
        try:
            wanted = bytes.fromhex(query.replace("0x", " ").replace("\\x", " "))
        except ValueError:
            raise ValueError(f"{query!r} is not bytes in hexadecimal, such as e2 82 ac") from None
    elif kind == "text":
        wanted = query.encode("utf-8", "replace")
    else:
        raise ValueError(f"search by text, bytes, id or regex, not {kind!r}")
    tokens = vocabulary.tokens
    # Exact and short matches first.
    return (
        lambda id, token: wanted in token,
        lambda id: (not tokens[id].startswith(wanted), len(tokens[id])),
    )


def _row(vocabulary: Vocabulary, id: int) -> dict[str, Any]:
    special = vocabulary.is_special(id)
    return {"id": id, "bytes": vocabulary.bytes_of(id).hex(), "special": special}


def token_page(vocabulary: Vocabulary, id: int) -> dict[str, Any]:
    """Returns all facts about a token: merge path, longer tokens that contain it, neighbors, and
    class in `vocab-tools check`."""
    tokens = vocabulary.tokens
    if id not in tokens:
        raise ValueError(f"{vocabulary.name} has no token {id}; its largest id is {max(tokens)}")
    token = tokens[id]
    special = vocabulary.is_special(id)
    round_trip, merging = vocabulary.audit(id)
    ranks = vocabulary.ranks
    containing = [other for other, its in tokens.items() if token in its and other != id]
    containing.sort(key=lambda other: (len(tokens[other]), other))
    parts = []
    for other in () if special else containing[:_MOST_FOUND]:
        if isinstance(ranks, str):
            break
        path = list(merge_steps(tokens[other], ranks))
        used = any(token in step["parts"] for step in path)
        parts.append(_row(vocabulary, other) | {"used": used and path[-1]["taken"] is None})
    near = range(id - _NEIGHBORS, id + _NEIGHBORS + 1)
    return {
        **_row(vocabulary, id),
        "class": round_trip,
        "merging": merging,
        "path": None if special else _path(vocabulary, token),
        "part_of": parts,
        "part_of_total": 0 if special else len(containing),
        "neighbors": [_row(vocabulary, other) for other in near if other in tokens],
    }
