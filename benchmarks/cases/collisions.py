"""Generates words with colliding hashes, to attack tokenizers that cache pieces.

Whoever sends text to a tokenizer with an unseeded or weakly seeded cache can make the tokenizer
slow. Random words are tried until enough of them agree in the bits that choose the set. The search
needs the seed, so its result shows the cost of a leaked seed.

Keys are pieces: the UTF-8 bytes of a word with the space before it. The words of an attack have the
same length.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

# Sixteen letters: 0x68 with any of the bits 1, 2, 4 flipped, and the bits 0x18 flipped together.
_BASE = 0x68
_DIRECTIONS = (0x01, 0x02, 0x04, 0x18)
_PLANE = [_BASE ^ a ^ b ^ c ^ d for a, b, c, d in itertools.product(*((0, x) for x in _DIRECTIONS))]


def searched_collisions(letters: int, count: int, attempts: int = 3_000_000) -> list[str]:
    """Returns up to ``count`` random words of one set of the piece cache.

    ``attempts`` bounds the work, in words hashed.
    """
    import random

    pick = random.Random(3)
    found: dict[int, list[str]] = {}
    for _ in range(attempts):
        word = "".join(pick.choices("abcdefghijklmnopqrstuvwxyz", k=letters))
        place = found.setdefault(piece_cache_place(b" " + word.encode()), [])
        place.append(word)
        if len(place) >= count:
            return place
    return max(found.values(), key=len, default=[])


def piece_cache_place(piece: bytes, seeds: tuple[int, int] = (0, 0)) -> int:
    """Returns the set of the piece cache of this project for a piece of up to 15 bytes.

    Uses the algebra of core/src/hash.rs and core/src/cache/: the bytes and their number make two
    words of 64 bits, each word is xored with a seed, the product's halves are xored, and bits 20 to
    35 choose the set. Each cache draws new seeds, so (0, 0) is an attacker's guess.
    """
    block = piece.ljust(15, b"\0") + bytes([len(piece)])
    low, high = (int.from_bytes(block[at : at + 8], "little") for at in (0, 8))
    product = (low ^ seeds[0]) * (high ^ seeds[1])
    return (product ^ product >> 64) >> 20 & 0xFFFF


def varied_words(letters: int, places: range, count: int) -> list[str]:
    """Returns words of ``letters`` letters that differ only at the indices ``places``.

    For any seeds, a hash that mixes halves or words of a piece separately sees a mostly constant
    input; a hash that mixes badly then fills few sets.

    >>> varied_words(4, range(2, 4), 3)
    ['hhhh', 'hhph', 'hhlh']
    """
    words = []
    for number in range(min(count, 16 ** len(places))):
        word = bytearray([_BASE] * letters)
        for place in places:
            number, digit = divmod(number, 16)
            word[place] = _PLANE[digit]
        words.append(word.decode("ascii"))
    return words


#: Letters of the words of an attack.
LETTERS = 14

#: Attacks of the collision cases, each a function of the number of words: 16 words of one set, more
#: than a set holds, found with guessed seeds; and words with a constant second half.
ATTACKS: dict[str, Callable[[int], list[str]]] = {
    "one place of the piece cache": lambda count: searched_collisions(LETTERS, 16),
    "a constant second half": lambda count: varied_words(LETTERS, range(2, 7), count),
}


def control_words(letters: int, count: int) -> list[str]:
    """Returns ``count`` random words of the same letters and length, for comparison.

    >>> words = control_words(7, 100)
    >>> len(set(words)), {len(word) for word in words}
    (100, {7})
    """
    import random

    pick = random.Random(4)
    plane = "".join(map(chr, _PLANE))
    words: dict[str, None] = {}
    while len(words) < count:
        words["".join(pick.choices(plane, k=letters))] = None
    return list(words)


def as_text(words: list[str], size: int) -> str:
    """Joins the words, each after a space, repeated up to ``size`` bytes in a mixed order.

    >>> as_text(["ab", "cd"], 6)
    ' ab cd'
    """
    if not words:
        raise ValueError("An attack without words: its search found none.")
    import random

    pick = random.Random(5)
    text: list[str] = []
    length = 0
    while length < size:
        for word in words:
            text.append(" " + word)
            length += len(word) + 1
        words = pick.sample(words, len(words))
    return "".join(text)[:size]
