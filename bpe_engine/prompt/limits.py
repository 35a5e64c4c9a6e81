"""Limits the rendering of a template: its time, and how much its operations read and make.

Every block of a template, and every call, filter and operator whose operands decide its cost, tells
`use` that cost before it runs. The time it takes is proportional, so that `use` looks at the clock
often enough.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

from jinja2.utils import Namespace

from .._core import size_of_plain

__all__ = [
    *("ITEM", "STRING", "Limits", "TemplateLimitError"),
    *("active", "guard", "limited", "size_of", "use"),
]

# Bytes that an item takes in a list, and a short string with its origin, roughly.
ITEM = 8
STRING = 64
# The cost between two looks at the clock.
_STEP = 1 << 14

_SCALARS = frozenset([int, float, bool, type(None)])
_ITEMS: type = type({}.items())
_CONTAINERS: tuple[type, ...] = (list, tuple, set, deque, type({}.keys()), type({}.values()))

#: Tests put a clock here that counts how often it is looked at.
clock: Callable[[], float] = time.monotonic


class TemplateLimitError(ValueError):
    """A template needs more time, depth or room than it may have."""


class Limits:
    """The limits of one rendering, and the rest of each."""

    __slots__ = ("characters", "deadline", "next_look", "room", "seconds")

    def __init__(self, seconds: float, characters: int, room: int):
        self.seconds: float = seconds
        self.deadline: float = clock() + seconds
        #: For one operation.
        self.characters: int = characters
        #: For all operations together.
        self.room: int = room
        #: The room at which the limits are checked.
        self.next_look: int = room

    def check(self, amount: int) -> None:
        if amount > self.characters or self.room < 0:
            made = "a text or a list" if amount > self.characters else "texts and lists"
            raise TemplateLimitError(
                f"the template makes {made} with more characters or items than {self.characters} "
                "allows; simplify it, or allow more with ChatTemplate(template, max_characters=...)"
            )
        if clock() > self.deadline:
            raise TemplateLimitError(
                f"the template takes longer than {self.seconds:g} seconds; simplify it, or allow "
                "more with ChatTemplate(template, max_seconds=...)"
            )
        self.next_look = max(0, self.room - min(_STEP, self.characters))


class _Active(threading.local):
    limits: Limits = Limits(float("inf"), 1 << 62, 1 << 62)


#: The limits of the rendering that this thread is in.
active: _Active = _Active()


@contextmanager
def limited(limits: Limits) -> Iterator[None]:
    """A context in which `use` holds this thread to `limits`."""
    before, active.limits = active.limits, limits
    try:
        yield
    finally:
        active.limits = before


def use(amount: int) -> None:
    """Counts what an operation reads and makes: characters of text, bytes of anything else.

    Raises:
        TemplateLimitError: It is too much for one operation or for the rest of the rendering, or
            the time is up.
    """
    limits = active.limits
    if amount > 0:
        limits.room -= amount
        if limits.room < limits.next_look:
            limits.check(amount)


def guard(value: Any) -> None:
    """Counts a value that an operation walks over, to print, compare or hash it."""
    use(size_of(value))


def size_of(value: Any) -> int:
    """The size of a value to an operation that visits everything in it.

    A list may hold a second one many times, and the second a third: small in memory, but endless to
    print. So everything counts as often as it occurs.
    """
    size = size_of_plain(value)
    return _size_of(value, {}) if size is None else size


def _size_of(value: Any, known: dict[int, int]) -> int:
    """The size of any value. `known` has the sizes of containers by id."""
    kind = type(value)
    if kind in _SCALARS:
        return ITEM
    if kind is str or isinstance(value, str):
        return ITEM + len(value)
    items: Any
    if isinstance(value, (dict, MappingProxyType)):
        items = [*value, *value.values()]
    elif isinstance(value, Namespace):
        items = [object.__getattribute__(value, "_Namespace__attrs")]
    elif isinstance(value, _ITEMS):
        pairs: Any = value
        items = [item for pair in pairs for item in pair]
    elif isinstance(value, range):
        return ITEM * len(value)
    elif isinstance(value, _CONTAINERS):
        items = value
    else:
        return ITEM
    if id(value) not in known:
        known[id(value)] = ITEM  # For a container that contains itself.
        size = ITEM
        for item in items:
            size += _size_of(item, known)
        known[id(value)] = size
    return known[id(value)]
