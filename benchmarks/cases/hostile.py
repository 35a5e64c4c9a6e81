"""Generates inputs that make tokenizers slow: long pieces, and unlimited distinct words.

Every text has a fixed seed, so all engines and all runs get the same text.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_HAN = (0x4E00, 0x9FA5)


def _letters(length: int) -> str:
    import random

    return "".join(random.Random(1).choices(_LETTERS, k=length))


def _digits(length: int) -> str:
    import random

    return "".join(random.Random(3).choices("0123456789", k=length))


def _han(length: int) -> str:
    import random

    pick = random.Random(2)
    return "".join(chr(pick.randint(*_HAN)) for _ in range(length))


#: Functions from a length in characters to a text with one long piece.
LONG_PIECES: dict[str, Callable[[int], str]] = {
    "a": lambda length: "a" * length,
    "spaces": lambda length: " " * length,
    "spaces, then x": lambda length: " " * length + "x",
    "newlines": lambda length: "\n" * length,
    "marks": lambda length: "\u2581" * length,
    "的": lambda length: "的" * length,
    "ab": lambda length: "ab" * (length // 2),
    "dashes": lambda length: "-" * length,
    "a bracket and dashes": lambda length: "(" + "-" * (length - 1),
    "stars among dashes": lambda length: ("-" * 499 + "*") * (length // 500),
    "random digits": _digits,
    "random letters": _letters,
    "random Han": _han,
}


def long_piece(name: str, length: int) -> str:
    """Returns the text ``name`` of :data:`LONG_PIECES`, of about ``length`` characters.

    >>> long_piece("spaces, then x", 3)
    '   x'
    """
    return LONG_PIECES[name](length)


@functools.cache
def _quads() -> list[str]:
    """Returns every word of four letters."""
    return ["".join(letters) for letters in itertools.product(_LETTERS, repeat=4)]


def distinct_words(first: int, count: int) -> str:
    """Returns ``count`` words of eight letters, each after a space, that no other range contains.

    A multiplier coprime to 26**8 spreads neighboring numbers over the alphabet and keeps different
    numbers different.

    >>> len(set(distinct_words(0, 1000).split()) | set(distinct_words(1000, 1000).split()))
    2000
    """
    multiplier, half = 131_071_000_003, 26**4
    quads = _quads()
    words = []
    for number in range(first, first + count):
        high, low = divmod(number * multiplier % half**2, half)
        words.append(quads[high] + quads[low])
    return " " + " ".join(words)


def word_stream(total: int, chunk: int) -> Iterator[str]:
    """Yields ``total`` distinct words in texts of ``chunk`` words each."""
    for first in range(0, total, chunk):
        yield distinct_words(first, min(chunk, total - first))
