"""Generates words whose hashes collide in a table, to attack tokenizers that cache pieces.

A tokenizer that caches pieces under an unseeded or a weakly seeded hash can be made slow by
anybody who may send it text. The words are searched: random ones are tried until enough of them
agree in the bits that choose the set. This needs the seed, and so tells the cost of a leaked seed.

Keys are pieces: the UTF-8 bytes of a word with the space before it. The words of one attack have
one length.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

# Sixteen letters: 0x68 with any of the bits 1, 2, 4 flipped, and the bits 0x18 flipped together.
_BASE = 0x68
_DIRECTIONS = (0x01, 0x02, 0x04, 0x18)
_PLANE = [_BASE ^ a ^ b ^ c ^ d for a, b, c, d in itertools.product(*((0, x) for x in _DIRECTIONS))]


def searched_collisions(letters: int, count: int, attempts: int = 3_000_000) -> list[str]:
    """Returns up to ``count`` random words that fall into one set of the piece cache.

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

    The algebra of core/src/hash.rs and core/src/cache/: the bytes and their number make two words
    of 64 bits, each is xored with a seed, the product's halves are xored, and bits 20 to 35 choose
    the set. The seeds are drawn anew for each cache, so (0, 0) is an attacker's guess.
    """
    block = piece.ljust(15, b"\0") + bytes([len(piece)])
    low, high = (int.from_bytes(block[at : at + 8], "little") for at in (0, 8))
    product = (low ^ seeds[0]) * (high ^ seeds[1])
    return (product ^ product >> 64) >> 20 & 0xFFFF


def varied_words(letters: int, places: range, count: int) -> list[str]:
    """Returns words of ``letters`` letters that differ at ``places`` only.

    Whatever the seeds, a hash that mixes halves or words of a piece separately sees most of its
    input constant; one that mixes badly then fills few places.

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


#: The letters of the words of an attack.
LETTERS = 14

#: The attacks of the collision cases, each from a number of words: 16 words of one set, more than a
#: set holds, found with guessed seeds; and words whose second half is constant.
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
