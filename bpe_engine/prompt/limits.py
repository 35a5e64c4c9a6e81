"""What a template may use: time, and characters and items in any one value."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator
from types import MappingProxyType
from typing import Any

from jinja2.utils import Namespace

__all__ = [
    "PIECES",
    "SMALL",
    "Limits",
    "TemplateLimitError",
    "charge",
    "check_compared",
    "check_expanded",
    "check_made",
    "check_product",
    "check_size",
    "expanded",
    "limited",
    "listed",
    "sized",
    "spend",
    "tick",
    "ticking",
]

# Sizes below this one are never looked at more closely.
SMALL = 1 << 16
# The bytes that an item of a list or dict takes, or more of them.
_ITEM = 8
# The bytes that a string in a list takes, with its origin, or about as many.
_STRING = 64
# How many pieces of one text may have origins of their own. What has more is untrusted.
PIECES = 1 << 16
# The characters that Python compares, searches or copies in a second, or fewer of them.
_RATE = 1 << 28
# How many pairs of characters a search may compare, which at worst compares all.
_PAIRS = 1 << 30

# How many items of a list are made between two checks.
_CHUNK = 1 << 12
# How many steps are done between two looks at the clock.
_STEPS = 256
_SEQUENCES = frozenset([list, tuple])
# What a template makes of dicts, besides.
_VIEWS: tuple[type, ...] = (type({}.keys()), type({}.values()), type({}.items()), set)
_SCALARS = frozenset([str, int, float, bool, type(None)])


class TemplateLimitError(ValueError):
    """A template took more time, depth or room than it may."""


class Limits:
    """The limits of one rendering, and what is left of them."""

    __slots__ = ("seconds", "characters", "room", "deadline", "steps")

    def __init__(self, seconds: float, characters: int, room: int):
        self.seconds = seconds
        self.characters = characters
        #: What all values together may still have that are not small.
        self.room = room
        self.deadline = time.monotonic() + seconds
        self.steps = _STEPS

    def tick(self) -> None:
        """One step: an iteration, a call, a filter."""
        self.steps -= 1
        if self.steps < 0:
            self.steps = _STEPS
            self.check_time()

    def check_time(self, seconds: float = 0.0) -> None:
        """TemplateLimitError when the time is up, or will be after this many seconds."""
        if time.monotonic() + seconds > self.deadline:
            raise TemplateLimitError(
                f"the template takes longer than {self.seconds:g} seconds; simplify it, or allow "
                "more with ChatTemplate(template, max_seconds=...)"
            )


_active = threading.local()


class limited:  # noqa: N801 - used as a function is
    """Inside, the functions of this module hold this thread to `limits`."""

    __slots__ = ("_before", "_limits")

    def __init__(self, limits: Limits):
        self._limits = limits

    def __enter__(self) -> None:
        self._before = getattr(_active, "limits", None)
        _active.limits = self._limits

    def __exit__(self, *error: object) -> None:
        _active.limits = self._before


def _limits() -> Limits | None:
    return getattr(_active, "limits", None)


def check_size(size: int) -> None:
    """TemplateLimitError when a value has more characters than it may, or all values together."""
    if size <= SMALL:
        return
    limits = _limits()
    if limits is None:
        return
    limits.check_time()
    limits.room -= size
    if size <= limits.characters and limits.room >= 0:
        return
    what = "a text or a list" if size > limits.characters else "texts and lists"
    raise TemplateLimitError(
        f"the template makes {what} with more characters or items than {limits.characters} "
        "allows; simplify it, or allow more with ChatTemplate(template, max_characters=...)"
    )


def charge(characters: int) -> None:
    """TemplateLimitError when there is no time for an operation that looks at this many characters,
    or at a number of items that takes as long. Call it before."""
    if characters > SMALL:
        limits = _limits()
        if limits is not None:
            limits.check_time(characters / _RATE)


def check_made(count: int, characters: int = 0) -> None:
    """TemplateLimitError when there is no room for `count` strings of `characters` characters
    together. Call it before they are made."""
    check_size(count * _STRING + characters)


def check_compared(one: Any, other: Any) -> None:
    """TemplateLimitError when there is no time to find out whether two values are equal. To compare
    them walks over both at once, no farther than the smaller one goes."""
    if isinstance(one, str) and isinstance(other, str):
        if len(one) > SMALL and len(other) > SMALL:
            charge(min(len(one), len(other)))
    elif type(one) not in _SCALARS and type(other) not in _SCALARS:
        charge(min(expanded(one, {})[0], expanded(other, {})[0]))


def check_product(one: int, other: int) -> None:
    """TemplateLimitError for a search that may take as many steps as the product of two sizes."""
    if one * other > _PAIRS:
        raise TemplateLimitError(
            f"the template searches {one} characters for {other}, which may take too long"
        )


def listed(iterable: Iterable[Any]) -> list[Any]:
    """The items as a list, with checks on the way."""
    if type(iterable) in _SEQUENCES:
        return list(iterable)
    if isinstance(iterable, str):
        check_made(len(iterable))
        return list(iterable)
    result: list[Any] = []
    for item in ticking(iterable):
        result.append(item)
        if len(result) % _CHUNK == 0:
            check_made(_CHUNK)
            check_size(len(result) * _ITEM)
    return result


def sized(value: Any) -> Any:
    """The value, whose size is checked if it has one."""
    if isinstance(value, str):
        if len(value) > SMALL:
            check_size(len(value))
    elif isinstance(value, (list, tuple, dict, bytes)) and len(value) > SMALL // _ITEM:
        check_size(len(value) * _ITEM)
    return value


def check_expanded(value: Any) -> None:
    """TemplateLimitError when a container has too much in it. A list may hold another one many
    times, and so on: what is small in memory may be endless for whatever walks over it."""
    if type(value) not in _SCALARS and (items := _items(value)) is not None and items:
        check_size(expanded(value, {})[0])


def _items(value: Any) -> Iterable[Any] | None:
    """What a container prints, compares and hashes; None for other values."""
    if isinstance(value, (dict, MappingProxyType)):
        return [*value, *value.values()]
    if isinstance(value, Namespace):
        attributes: dict[Any, Any] = object.__getattribute__(value, "_Namespace__attrs")
        return [attributes]
    if isinstance(value, (list, tuple, deque, *_VIEWS)):
        return value  # type: ignore[return-value]
    return None


def expanded(value: Any, known: dict[int, tuple[int, int, int]]) -> tuple[int, int, int]:
    """How many characters, items and levels there are in a value, everything counted as often as
    it occurs. `known` has those of containers by their id."""
    if isinstance(value, str):
        return len(value) + _ITEM, 1, 1
    items = None if type(value) in _SCALARS else _items(value)
    if items is None:
        return _ITEM, 1, 1
    found = known.get(id(value))
    if found is not None:
        return found
    known[id(value)] = (_ITEM, 1, 1)  # Where it holds itself.
    size, count, depth = _ITEM, 1, 0
    for item in items:
        inner = expanded(item, known)
        size, count, depth = size + inner[0], count + inner[1], max(depth, inner[2])
    known[id(value)] = (size, count, depth + 1)
    return known[id(value)]


def spend(steps: int) -> None:
    """As many steps of the rendering on this thread."""
    limits = _limits()
    if limits is not None:
        limits.steps -= steps
        if limits.steps < 0:
            limits.tick()


def tick() -> None:
    """One step of the rendering on this thread."""
    limits = _limits()
    if limits is not None:
        limits.tick()


def ticking(iterable: Iterable[Any]) -> Iterator[Any]:
    """The items, each a step."""
    limits = _limits()
    if limits is None:
        yield from iterable
        return
    for item in iterable:
        limits.steps -= 1
        if limits.steps < 0:
            limits.tick()
        yield item
