"""Limits the rendering of a template: time, and the amount of data read and created.

Every block of a template, and every call, filter and operator with operand-dependent cost, reports
its cost to `use` before it runs. Time is proportional to cost, so `use` checks the clock often
enough.
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

# Approximate sizes in bytes of a list item, and of a short string with its origin.
ITEM = 8
STRING = 64
# Cost between two checks of the clock.
_STEP = 1 << 14

_SCALARS = frozenset([int, float, bool, type(None)])
_ITEMS: type = type({}.items())
_CONTAINERS: tuple[type, ...] = (list, tuple, set, deque, type({}.keys()), type({}.values()))

#: Tests replace the clock to count its calls.
clock: Callable[[], float] = time.monotonic


class TemplateLimitError(ValueError):
    """Raised if a template exceeds its limit of time, depth or size."""


class Limits:
    """The limits of one rendering, and the amounts that remain."""

    __slots__ = ("characters", "deadline", "next_look", "room", "seconds")

    def __init__(self, seconds: float, characters: int, room: int):
        self.seconds: float = seconds
        self.deadline: float = clock() + seconds
        #: Limit for one operation.
        self.characters: int = characters
        #: Limit for all operations together.
        self.room: int = room
        #: Remaining amount at which the limits are checked.
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


#: Limits of this thread's current rendering.
active: _Active = _Active()


@contextmanager
def limited(limits: Limits) -> Iterator[None]:
    """Context manager in which `use` enforces `limits` for this thread."""
    before, active.limits = active.limits, limits
    try:
        yield
    finally:
        active.limits = before


def use(amount: int) -> None:
    """Counts the data read and created by an operation: characters of text, bytes of other data.

    Raises:
        TemplateLimitError: The amount exceeds the limit of one operation or the rest of the
            rendering, or the time is up.
    """
    limits = active.limits
    if amount > 0:
        limits.room -= amount
        if limits.room < limits.next_look:
            limits.check(amount)


def guard(value: Any) -> None:
    """Counts a value that an operation traverses to print, compare or hash it."""
    use(size_of(value))


def size_of(value: Any) -> int:
    """Returns the size of a value for an operation that traverses it completely.

    Nested lists with repeated items may be small in memory but extremely long when printed.
    Therefore each occurrence of an object counts.
    """
    size = size_of_plain(value)
    return _size_of(value, {}) if size is None else size


def _size_of(value: Any, known: dict[int, int]) -> int:
    """Returns the size of any value. `known` contains the sizes of containers by id."""
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
        known[id(value)] = ITEM  # The initial size counts if a container contains itself.
        size = ITEM
        for item in items:
            size += _size_of(item, known)
        known[id(value)] = size
    return known[id(value)]
