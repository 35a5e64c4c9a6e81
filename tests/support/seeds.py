"""Seeds all random tests from BPE_ENGINE_TEST_SEED, 0 by default.

A failing test prints the seed. A different seed generates different texts:

    BPE_ENGINE_TEST_SEED=7 python -m pytest tests/engine/test_new_text.py
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

VARIABLE = "BPE_ENGINE_TEST_SEED"
SEED = int(os.environ.get(VARIABLE, "0"))
#: Number of examples in each hypothesis test. `make nightly` raises the number.
EXAMPLES = int(os.environ.get("BPE_ENGINE_TEST_EXAMPLES", "30"))


def seeded(*key: object) -> random.Random:
    """Returns a random generator for a test or part of a test, seeded by the seed and ``key``.

    >>> seeded("a", 1).random() == seeded("a", 1).random() != seeded("a", 2).random()
    True
    """
    return random.Random(repr((SEED, *key)))


def seed_for(*key: object) -> int:
    """Returns a 32-bit seed for random generators of other packages."""
    return seeded(*key).getrandbits(32)


def rounds(count: int) -> int:
    """Returns the number of random cases to try: a quarter of ``count``, or ``count`` nightly.

    >>> rounds(100) == (100 if EXAMPLES >= 120 else 100 * EXAMPLES // 120)
    True
    """
    return max(1, count * min(EXAMPLES, 120) // 120)


def few(items: Sequence[T], count: int = 1) -> Sequence[T]:
    """Returns the first ``count`` items, or all items nightly."""
    return items if EXAMPLES >= 120 else items[:count]
