"""Words chosen so that all of them fall on one place of a hash table.

A tokenizer that caches pieces under an unseeded or a weakly seeded hash can be made slow by
anybody who may send it text. Two kinds of attack are built here:

* **by algebra**: a CRC, a shift register or any other hash that is affine over the field of two
  elements, ``h(a) ^ h(b) ^ h(c) = h(a ^ b ^ c)`` for keys of one length, is broken by solving a
  linear system. The words found collide under EVERY seed that enters such a hash by xor or as
  its start value, which is why a seed alone does not protect it;
* **by search**: any other hash is tried out on random words until enough of them agree in the
  bits that choose the set. It needs the seed, and so tells what a leaked seed would cost.

Keys are pieces: the UTF-8 bytes of a word with the space before it. The words of one attack have
one length.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

# The sixteen letters h..w are one affine plane: 0x68 with any of the bits 1, 2, 4 flipped, and
# the two bits 0x18 flipped together. A xor of three of them is again one of them.
_BASE = 0x68
_DIRECTIONS = (0x01, 0x02, 0x04, 0x18)
_PLANE = [_BASE ^ a ^ b ^ c ^ d for a, b, c, d in itertools.product(*((0, x) for x in _DIRECTIONS))]

Hash = Callable[[bytes], int]


def affine_collisions(hash_of: Hash, letters: int, count: int, mask: int = -1) -> list[str]:
    """``count`` words of ``letters`` letters whose pieces agree under an affine hash.

    ``hash_of`` takes the piece (a space and the word); only the bits of ``mask`` have to agree.
    Returns fewer words when the plane of letters holds fewer. Whether the hash is affine is
    checked on the words found: ValueError when they do not agree.
    """
    base = bytes([0x20]) + bytes([_BASE]) * letters
    flips = [(i, direction) for i in range(1, letters + 1) for direction in _DIRECTIONS]
    zero = hash_of(base) & mask

    def flipped(choice: int) -> bytes:
        piece = bytearray(base)
        for bit, (place, direction) in enumerate(flips):
            if choice >> bit & 1:
                piece[place] ^= direction
        return bytes(piece)

    kernel = _kernel([(hash_of(flipped(1 << bit)) & mask) ^ zero for bit in range(len(flips))])
    words = []
    for number in range(min(count, 1 << len(kernel))):
        choice = 0
        for bit, vector in enumerate(kernel):
            if number >> bit & 1:
                choice ^= vector
        words.append(flipped(choice)[1:].decode("ascii"))
    for word in words:
        if hash_of(b" " + word.encode()) & mask != zero:
            raise ValueError("The hash is not affine over bits: use searched_collisions.")
    return words


def _kernel(columns: list[int]) -> list[int]:
    """The choices of columns (bit sets) whose xor is zero, as a basis."""
    pivots: dict[int, tuple[int, int]] = {}
    basis = []
    for index, column in enumerate(columns):
        choice = 1 << index
        while column:
            top = column.bit_length()
            if top not in pivots:
                pivots[top] = (column, choice)
                break
            column ^= pivots[top][0]
            choice ^= pivots[top][1]
        else:
            basis.append(choice)
    return basis


def searched_collisions(
    hash_of: Hash, letters: int, count: int, mask: int, attempts: int = 3_000_000
) -> list[str]:
    """Up to ``count`` random words of ``letters`` letters that agree in the bits of ``mask``.

    The place that most words of a first sample fall on is aimed at. ``attempts`` bounds the
    work, in words hashed.
    """
    import random

    pick = random.Random(3)
    found: dict[int, list[str]] = {}
    for _ in range(attempts):
        word = "".join(pick.choices("abcdefghijklmnopqrstuvwxyz", k=letters))
        place = found.setdefault(hash_of(b" " + word.encode()) & mask, [])
        place.append(word)
        if len(place) >= count:
            return place
    return max(found.values(), key=len, default=[])


def _crc_table(polynomial: int) -> list[int]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (polynomial if value & 1 else 0)
        table.append(value)
    return table


_CRC32C = _crc_table(0x82F63B78)


def crc32c(data: bytes, start: int = 0) -> int:
    """The CRC-32C register after ``data``, without the final inversion (as the CPU computes it).

    >>> hex(crc32c(b"123456789", 0xFFFFFFFF) ^ 0xFFFFFFFF)
    '0xe3069283'
    """
    for byte in data:
        start = (start >> 8) ^ _CRC32C[(start ^ byte) & 0xFF]
    return start


def _padded_crc(piece: bytes) -> int:
    return crc32c(piece.ljust(16, b"\0"))


def _fx(piece: bytes) -> int:
    """The rotate-and-multiply hash of rustc over eight-byte words."""
    state = 0
    for start in range(0, len(piece), 8):
        word = int.from_bytes(piece[start : start + 8], "little")
        state = (state << 5 | state >> 59) & (1 << 64) - 1
        state = (state ^ word) * 0x517CC1B727220A95 & (1 << 64) - 1
    return state


def piece_cache_place(piece: bytes, seeds: tuple[int, int] = (0, 0)) -> int:
    """Where the piece cache of this project looks for a piece of up to 15 bytes.

    The algebra of core/src/hash.rs and core/src/cache/: the bytes and their number make two words
    of 64 bits, each is xored with a seed, the product's halves are xored, and bits 20 to 35 choose
    the set. The seeds are drawn anew for each cache, so (0, 0) is an attacker's guess.
    """
    block = piece.ljust(15, b"\0") + bytes([len(piece)])
    low, high = (int.from_bytes(block[at : at + 8], "little") for at in (0, 8))
    product = (low ^ seeds[0]) * (high ^ seeds[1])
    return (product ^ product >> 64) >> 20 & 0xFFFF


def varied_words(letters: int, places: range, count: int) -> list[str]:
    """Words of ``letters`` letters that differ at ``places`` only.

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


@dataclass(frozen=True)
class Attack:
    """A set of words against one hash. ``words(count)`` makes them, ``letters`` long each."""

    name: str
    letters: int
    words: Callable[[int], list[str]]


#: The attacks of the collision cases: on the hash of this project's own piece cache with guessed
#: seeds (16 words, more than its sets hold) and with whole words of its input held constant,
#: and on hashes that others use.
ATTACKS = {
    attack.name: attack
    for attack in (
        Attack(
            "one place of the piece cache", 14,
            lambda count: searched_collisions(piece_cache_place, 14, 16, 0xFFFF),
        ),
        Attack(
            "a constant second half", 14, lambda count: varied_words(14, range(2, 7), count)
        ),
        Attack(
            "a constant first half", 14, lambda count: varied_words(14, range(9, 14), count)
        ),
        Attack(
            "a constant first half, long", 24, lambda count: varied_words(24, range(18, 24), count)
        ),
        Attack("one CRC-32C", 14, lambda count: affine_collisions(_padded_crc, 14, count)),
        Attack("one CRC-32C, short", 6, lambda count: affine_collisions(_padded_crc, 6, count, 0xFFFF)),
        Attack("low bits of FxHash", 7, lambda count: searched_collisions(_fx, 7, count, 0x7F)),
    )
}  # fmt: skip


def control_words(letters: int, count: int) -> list[str]:
    """``count`` random words of the same letters and length, that were chosen against nothing.

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
    """The words, each with a space before it, repeated up to ``size`` bytes, in a mixed order.

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
