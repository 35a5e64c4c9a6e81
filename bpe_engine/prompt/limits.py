"""What a template may use: time, and characters and items in any one value."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from typing import Any

__all__ = ["SMALL", "Limits", "TemplateLimitError", "check_size", "limited", "ticking", "tick"]

# Sizes below this one are never looked at more closely.
SMALL = 1 << 20
# How many steps are done between two looks at the clock.
_STEPS = 256


class TemplateLimitError(ValueError):
    """A template took more time, depth or room than it may."""


class Limits:
    """The limits of one rendering, and what is left of them."""

    __slots__ = ("seconds", "characters", "deadline", "steps")

    def __init__(self, seconds: float, characters: int):
        self.seconds = seconds
        self.characters = characters
        self.deadline = time.monotonic() + seconds
        self.steps = _STEPS

    def tick(self) -> None:
        """One step: an iteration, a call, a filter."""
        self.steps -= 1
        if self.steps < 0:
            self.steps = _STEPS
            self.check_time()

    def check_time(self) -> None:
        """TemplateLimitError when the time is up."""
        if time.monotonic() > self.deadline:
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
    """TemplateLimitError when a value would have more characters or items than it may."""
    if size <= SMALL:
        return
    limits = _limits()
    if limits is None or size <= limits.characters:
        if limits is not None:
            limits.check_time()
        return
    raise TemplateLimitError(
        f"the template makes a text or a list of {size} characters or items, but may make "
        f"{limits.characters}; simplify it, or allow more with "
        "ChatTemplate(template, max_characters=...)"
    )


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
