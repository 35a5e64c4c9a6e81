"""`Escaped`: Markup that keeps its origin, returned by ``|safe`` and escaping.

Markup escapes text joined to it. Operations not defined in this module return untrusted text, as in
`Traced`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, SupportsIndex

import markupsafe
from markupsafe import Markup

from .taint import Runs, Traced, as_traced, by_run, concat, runs_of, text_of

__all__ = ["Escaped", "escaped", "marked_safe"]


class Escaped(Markup):
    """Markup with the flags of its characters."""

    __slots__ = ("_runs",)
    _runs: Runs

    def __new__(cls, base: object = "", *args: Any) -> Escaped:  # noqa: PYI034
        self = super().__new__(cls, base, *args)
        self._runs = ((len(self), 0),)
        return self

    def __add__(self, other: Any) -> Escaped:
        return _wrapped(concat((self, escaped(other)))) if _is_text(other) else NotImplemented

    def __radd__(self, other: Any) -> Escaped:
        return _wrapped(concat((escaped(other), self))) if _is_text(other) else NotImplemented

    def __iter__(self) -> Iterator[str]:
        return iter(as_traced(self))

    def __repr__(self) -> str:
        # The same repr as Jinja's Markup.
        return f"Markup({str.__repr__(self)})"

    def join(self, parts: Iterable[Any], /) -> Escaped:
        return _wrapped(as_traced(self).join(text_of(escaped(part)) for part in parts))

    def replace(self, old: str, new: str, count: SupportsIndex = -1, /) -> Escaped:
        return _wrapped(as_traced(self).replace(old, text_of(escaped(new)), count))

    def center(self, width: SupportsIndex, fill: str = " ", /) -> Escaped:
        return _wrapped(as_traced(self).center(width, text_of(escaped(fill))))

    def ljust(self, width: SupportsIndex, fill: str = " ", /) -> Escaped:
        return _wrapped(as_traced(self).ljust(width, text_of(escaped(fill))))

    def rjust(self, width: SupportsIndex, fill: str = " ", /) -> Escaped:
        return _wrapped(as_traced(self).rjust(width, text_of(escaped(fill))))


def _kept(name: str) -> Callable[..., Any]:
    """Returns a method of `Traced` for escaped text, which does not escape its arguments."""
    native = getattr(Traced, name)

    def method(self: Escaped, *args: Any, **kwargs: Any) -> Any:
        return _all_wrapped(native(as_traced(self), *args, **kwargs))

    method.__name__ = name
    return method


for _name in (
    *("__getitem__", "__mul__", "__rmul__", "capitalize", "casefold", "expandtabs", "lower"),
    *("lstrip", "partition", "removeprefix", "removesuffix", "rpartition", "rsplit", "rstrip"),
    *("split", "splitlines", "strip", "swapcase", "title", "translate", "upper", "zfill"),
):
    setattr(Escaped, _name, _kept(_name))


def _all_wrapped(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(map(_wrapped, value))
    return _wrapped(value)


def _wrapped(value: str) -> Escaped:
    result = Escaped(str.__str__(value))
    result._runs = runs_of(value)
    return result


def _is_text(value: object) -> bool:
    return isinstance(value, str) or hasattr(value, "__html__")


def marked_safe(value: Any) -> Escaped:
    """Implements ``value|safe``."""
    if isinstance(value, Markup) or not hasattr(value, "__html__"):
        return value if isinstance(value, Escaped) else _wrapped(text_of(value))
    return Escaped(value.__html__())


def escaped(value: Any) -> Escaped:
    """Implements ``value|e``: returns escaped text, which also escapes text joined to it."""
    if hasattr(value, "__html__"):
        return marked_safe(value)
    text = text_of(value)
    if type(text) is not Traced:
        return Escaped(markupsafe.escape(text))
    return _wrapped(by_run(text, lambda run: str(markupsafe.escape(run))))
