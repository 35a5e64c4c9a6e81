"""Vocabularies for cases that build encodings, and words for cases that learn."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from .encodings import DATA, read_ranks

FILES = ("cl100k_base", "o200k_base", "qwen")
SAMPLE = "Hello, world! 0123456789abcdef " * 50 + "只猫" * 100


def rank_file(name: str) -> Path:
    """Returns the path of a file in data/."""
    return DATA / f"{name}.tiktoken"


def numbers(form: str, prefix: bytes = b"") -> dict[bytes, int]:
    """Returns ranks for every byte, and for ``prefix`` plus each formatted number below 200,000.

    >>> ranks = numbers("%x")
    >>> ranks[b"10"], ranks[b"30d3f"]
    (256, 200239)
    """
    ranks = {bytes([byte]): byte for byte in range(256)}
    for number in range(16, 200_000):
        ranks.setdefault(prefix + (form % number).encode(), len(ranks))
    return ranks


#: Functions that return ranks, by name.
RANKS: dict[str, Callable[[], dict[bytes, int]]] = {
    **{name: lambda name=name: read_ranks(rank_file(name)) for name in FILES},  # type: ignore[misc]
    "hex": lambda: numbers("%x"),
    "decimal": lambda: numbers("%d"),
    "hex, 256 bytes before": lambda: numbers("%x", b"q" * 256),
}
