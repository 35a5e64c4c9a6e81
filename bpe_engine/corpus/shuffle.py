"""`Permutation`: a seeded permutation without a table."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["Permutation"]

_ROUNDS = 6


class Permutation:
    """A permutation of ``range(count)``, determined by the seed and the count.

    A Feistel network over the next power of four, with cycle walking for numbers outside the range:
        constant memory, random access.

    Args:
        count: The number of elements.
        seed: Any integer.

    >>> import numpy as np
    >>> order = Permutation(5, seed=7)
    >>> places = order.of(np.arange(5))
    >>> sorted(places.tolist()), order.inverse(places).tolist()
    ([0, 1, 2, 3, 4], [0, 1, 2, 3, 4])
    """

    def __init__(self, count: int, seed: int):
        self.count = count
        self.half: int = max(1, (max(count - 1, 1).bit_length() + 1) // 2)
        key = hashlib.blake2b(f"{seed}/{count}".encode(), digest_size=8 * _ROUNDS).digest()
        self.keys: list[int] = [
            int.from_bytes(key[at : at + 8], "little") for at in range(0, len(key), 8)
        ]

    def of(self, numbers: Any) -> npt.NDArray[np.int64]:
        """Returns the number at each index."""
        return self._walked(numbers, self.keys, False)

    def inverse(self, numbers: Any) -> npt.NDArray[np.int64]:
        """Returns the index of each number."""
        return self._walked(numbers, self.keys[::-1], True)

    def _walked(self, numbers: Any, keys: list[int], is_inverse: bool) -> npt.NDArray[np.int64]:
        import numpy as np

        result = self._once(np.asarray(numbers, np.uint64), keys, is_inverse)
        outside = np.flatnonzero(result >= self.count)
        while len(outside):
            result[outside] = self._once(result[outside], keys, is_inverse)
            outside = outside[result[outside] >= self.count]
        return result.astype(np.int64)  # type: ignore[no-any-return]

    def _once(self, numbers: Any, keys: list[int], is_inverse: bool) -> Any:
        import numpy as np

        bits, mask = np.uint64(self.half), np.uint64((1 << self.half) - 1)
        left, right = numbers >> bits, numbers & mask
        if is_inverse:
            left, right = right, left
        for key in keys:
            left, right = right, left ^ (_mixed(right, key) & mask)
        if is_inverse:
            left, right = right, left
        return (left << bits) | right


def _mixed(values: Any, key: int) -> Any:
    """Mixes 64 bits with a key, as splitmix64 does."""
    import numpy as np

    with np.errstate(over="ignore"):
        values = values + np.uint64(key)
        values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return values ^ (values >> np.uint64(31))
