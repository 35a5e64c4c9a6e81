"""`Traced`: strings that know which of their characters the template itself wrote.

Plain ``str`` is untrusted. Whatever Python does to a `Traced` that is not written down here gives
a plain ``str`` as well, so that an unknown operation can lose trust but never gain it.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, repeat
from typing import Any, SupportsIndex

from .limits import SMALL, check_size

__all__ = ["GENERATED", "TRUSTED", "Traced", "concat", "generated", "runs_of", "text_of", "trusted"]

# Flags of characters.
TRUSTED = 1  # The template wrote it.
GENERATED = 2  # It stands inside a {% generation %} block.

# Strings that may be joined between two checks of their total size.
_FEW = 8

# (length, flags), one after the other. A run of length 0 separates its neighbours: trusted text
# on both sides of an empty untrusted text is not one text.
Runs = tuple[tuple[int, int], ...]


class Traced(str):
    """A string with the flags of its characters. Made by `traced` alone."""

    __slots__ = ("_runs",)
    _runs: Runs

    def __str__(self) -> str:
        return self

    def __add__(self, other: str) -> str:
        if type(other) is str:
            return traced(str.__add__(self, other), (*self._runs, (len(other), 0)))
        if _is_text(other):
            return _add(self, other)
        if hasattr(other, "__html__") or not type(other).__module__ == "builtins":
            return NotImplemented
        return str.__add__(self, other)  # The TypeError of str.

    def __radd__(self, other: str) -> str:
        return _add(other, self) if _is_text(other) else NotImplemented

    def __mul__(self, count: SupportsIndex) -> str:
        text, runs, times = str.__mul__(self, count), self._runs, int(count)
        if len(runs) == 1:
            return traced(text, ((len(text), runs[0][1]),))
        return traced(text, runs * times) if len(runs) * times <= SMALL else text

    __rmul__ = __mul__

    def __mod__(self, values: Any) -> str:
        return _percent(self, values)

    def __rmod__(self, format: str) -> str:
        return str.__mod__(format, (str.__str__(self),))

    def __getitem__(self, index: SupportsIndex | slice) -> str:
        text = str.__getitem__(self, index)
        if not isinstance(index, slice):
            start = index.__index__()
            start += len(self) if start < 0 else 0
            return traced(text, _cut(self._runs, start, start + 1))
        start, stop, step = index.indices(len(self))
        if step == 1:
            return traced(text, _cut(self._runs, start, max(start, stop)))
        return traced(text, _grouped(_flags(self)[index]))

    def __iter__(self) -> Iterator[str]:
        for character, flag in zip(str.__iter__(self), _flags(self)):
            yield traced(character, ((1, flag),))

    def join(self, parts: Iterable[str]) -> str:
        parts = list(parts)
        if not all(isinstance(part, str) for part in parts):
            return str.join(self, parts)  # The TypeError of str.
        check_size(sum(map(len, parts)) + len(self) * len(parts))
        return concat([each for part in parts for each in (self, part)][1:])

    # ---- Parts ----

    def _part(self, start: int, end: int) -> str:
        return traced(str.__getitem__(self, slice(start, end)), _cut(self._runs, start, end))

    def strip(self, chars: str | None = None, /) -> str:
        start = len(self) - len(str.lstrip(self, chars))
        return self._part(start, start + len(str.strip(self, chars)))

    def lstrip(self, chars: str | None = None, /) -> str:
        return self._part(len(self) - len(str.lstrip(self, chars)), len(self))

    def rstrip(self, chars: str | None = None, /) -> str:
        return self._part(0, len(str.rstrip(self, chars)))

    def removeprefix(self, prefix: str, /) -> str:
        return self._part(len(self) - len(str.removeprefix(self, prefix)), len(self))

    def removesuffix(self, suffix: str, /) -> str:
        return self._part(0, len(str.removesuffix(self, suffix)))

    def partition(self, separator: str, /) -> tuple[str, str, str]:
        return self._three(str.partition(self, separator))

    def rpartition(self, separator: str, /) -> tuple[str, str, str]:
        return self._three(str.rpartition(self, separator))

    def _three(self, parts: tuple[str, str, str]) -> tuple[str, str, str]:
        start, end = len(parts[0]), len(parts[0]) + len(parts[1])
        return self._part(0, start), self._part(start, end), self._part(end, len(self))

    def split(self, sep: str | None = None, maxsplit: SupportsIndex = -1) -> list[str]:
        parts = str.split(self, sep, maxsplit)
        return self._located(parts, sep, 0 if sep is None else len(sep))

    def rsplit(self, sep: str | None = None, maxsplit: SupportsIndex = -1) -> list[str]:
        parts = str.rsplit(self, sep, maxsplit)
        return self._located(parts, sep, 0 if sep is None else len(sep))

    def splitlines(self, keepends: bool = False) -> list[str]:
        starts = _ends(map(len, str.splitlines(self, True)))
        lines = str.splitlines(self, keepends)
        return [self._part(at, at + len(line)) for at, line in zip(starts, lines)]

    def _located(self, parts: Sequence[str], sep: str | None, gap: int) -> list[str]:
        """The parts that `split` found, in their order, with their origins."""
        result, at = [], 0
        for part in parts:
            # Between words stands white space, which no word begins with.
            at = at if sep is not None else str.index(self, part, at)
            result.append(self._part(at, at + len(part)))
            at += len(part) + gap
        return result

    # ---- Rewriting ----

    def replace(self, old: str, new: str, count: SupportsIndex = -1, /) -> str:
        times = str.count(self, old) if int(count) < 0 else int(count)
        check_size(len(self) + min(times, str.count(self, old)) * max(0, len(new) - len(old)))
        text = str.replace(self, old, new, count)
        parts: list[str] = []
        at = 0
        for start in _occurrences(self, old, times):
            parts += (self._part(at, start), new)
            at = start + len(old)
            if any(not flag & TRUSTED for _, flag in _cut(self._runs, start, at)):
                parts.append("")  # What went was untrusted: its neighbours stay apart.
        result = concat([*parts, self._part(at, len(self))])
        return result if result == text else text

    def upper(self) -> str:
        return _by_character(self, str.upper)

    def lower(self) -> str:
        return _by_character(self, str.lower)

    def title(self) -> str:
        return _by_character(self, str.title)

    def capitalize(self) -> str:
        return _by_character(self, str.capitalize)

    def swapcase(self) -> str:
        return _by_character(self, str.swapcase)

    def casefold(self) -> str:
        return _by_character(self, str.casefold)

    def center(self, width: SupportsIndex, fill: str = " ", /) -> str:
        return _padded(self, str.center, width, fill)

    def ljust(self, width: SupportsIndex, fill: str = " ", /) -> str:
        return _padded(self, str.ljust, width, fill)

    def rjust(self, width: SupportsIndex, fill: str = " ", /) -> str:
        return _padded(self, str.rjust, width, fill)

    def zfill(self, width: SupportsIndex, /) -> str:
        check_size(int(width))
        return str.zfill(self, width)

    def expandtabs(self, tabsize: SupportsIndex = 8) -> str:
        check_size(len(self) + str.count(self, "\t") * max(0, int(tabsize)))
        return str.expandtabs(self, tabsize)

    def translate(self, table: Any, /) -> str:
        values = table.values() if isinstance(table, dict) else table
        longest = max((len(value) for value in values if isinstance(value, str)), default=1)
        check_size(len(self) * max(1, longest))
        return str.translate(self, table)


def _is_text(value: object) -> bool:
    """Whether it is a string, and none that escapes what it is joined with, as Markup does."""
    kind = type(value)
    if kind is str or kind is Traced:
        return True
    return isinstance(value, str) and not hasattr(value, "__html__")


def traced(text: str, runs: Runs) -> Traced:
    """`text` with the flags `runs`, whose lengths add up to its length."""
    self = str.__new__(Traced, text)
    self._runs = runs
    return self


def trusted(text: str) -> Traced:
    """A text that the template says."""
    return traced(text, ((len(text), TRUSTED),) if text else ())


def generated(text: str) -> Traced:
    """The same text, all of it inside a {% generation %} block."""
    return traced(text, tuple((length, flags | GENERATED) for length, flags in runs_of(text)))


def runs_of(text: str) -> Runs:
    """The flags of any string."""
    return text._runs if type(text) is Traced else ((len(text), 0),)


def text_of(value: object) -> str:
    """`str(value)` of the template language."""
    kind = type(value)
    return value if kind is str or kind is Traced else str(value)  # type: ignore[return-value]


def concat(parts: Iterable[str]) -> str:
    """The strings one after the other."""
    if type(parts) is not tuple:
        parts = tuple(parts)
    if len(parts) > _FEW:
        check_size(sum(map(len, parts)))
    text = "".join(parts)
    if len(text) > SMALL:
        check_size(len(text))
    runs: list[tuple[int, int]] = []
    is_traced = False
    for part in parts:
        if type(part) is Traced:
            runs += part._runs
            is_traced = True
        else:
            runs.append((len(part), 0))
    if not is_traced:
        return text
    self = str.__new__(Traced, text)
    self._runs = tuple(runs)
    return self


def _add(left: str, right: str) -> Traced:
    self = str.__new__(Traced, str.__add__(left, right))
    self._runs = runs_of(left) + runs_of(right)
    return self


def _cut(runs: Runs, start: int, end: int) -> Runs:
    """The runs of the characters from `start` to `end`."""
    if len(runs) == 1:
        return ((end - start, runs[0][1]),)
    result = []
    for length, flags in runs:
        if end <= 0:
            break
        if start < length or (length == 0 and start <= 0):
            first = max(start, 0)
            result.append((min(length, end) - first, flags))
        start, end = start - length, end - length
    return tuple(result)


def _flags(text: str) -> bytes:
    """One byte for each character."""
    return b"".join(bytes((flags,)) * length for length, flags in runs_of(text))


def _grouped(flags: bytes) -> Runs:
    return tuple((sum(1 for _ in same), flag) for flag, same in groupby(flags))


def _ends(lengths: Iterable[int]) -> Iterator[int]:
    """Where each begins, of parts with these lengths."""
    at = 0
    for length in lengths:
        yield at
        at += length


def _occurrences(text: str, old: str, times: int) -> Iterator[int]:
    """Where `str.replace` finds `old`."""
    at = 0
    for _ in repeat(None, times):
        at = str.find(text, old, at)
        if at < 0:
            return
        yield at
        at += max(1, len(old))


def _by_character(text: Traced, change: Callable[[str], str]) -> str:
    """For changes that make at least one character of each: if there are as many afterwards, each
    stands where it stood."""
    result = change(text)
    return traced(result, text._runs) if len(result) == len(text) else result


def _padded(text: Traced, pad: Callable[..., str], width: SupportsIndex, fill: str) -> str:
    check_size(int(width))
    result = pad(text, width, fill)
    before = len(result) - len(text)
    if pad is str.ljust:
        before = 0
    elif pad is str.center:
        # Where the text stands in the middle is for str to say.
        before = str.index(str.center("\0" * len(text), width, "\1"), "\0") if text else before
    # The character that fills is trusted only where it came as such.
    flags = runs_of(fill)[0][1] if fill else 0
    after = len(result) - len(text) - before
    return traced(result, ((before, flags), *text._runs, (after, flags)))


# ---- Formatting ----

_DIRECTIVE = re.compile(r"%(?:(%)|(?:\((\w+)\))?(s)|[^%]*?[a-zA-Z%])")


def _percent(text: Traced, values: Any) -> str:
    """``text % values``: what stands for %s keeps its origin."""
    _check_widths(text)
    whole = str.__mod__(text, values)
    check_size(len(whole))
    rest = list(values) if isinstance(values, tuple) else [values]
    parts: list[str] = []
    at = 0
    for found in _DIRECTIVE.finditer(text):
        parts.append(text._part(at, found.start()))
        at = found.end()
        if found[1]:
            parts.append(text._part(at - 1, at))
        elif found[3] and (found[2] or rest):
            parts.append(text_of(values[found[2]] if found[2] else rest.pop(0)))
        else:
            return whole
    result = concat([*parts, text._part(at, len(text))])
    return result if result == whole else whole


def formatted(text: str, args: Sequence[Any], kwargs: Any, native: Callable[[], str]) -> str:
    """``text.format(*args, **kwargs)``; `native` does it without origins."""
    _check_widths(text)
    whole = native()
    check_size(len(whole))
    if type(text) is not Traced:
        text = traced(text, runs_of(text))
    parts: list[str] = []
    at = next_argument = 0
    for literal, name, spec, conversion in string.Formatter().parse(str.__str__(text)):
        if "{" in literal or "}" in literal:
            return whole
        parts.append(text._part(at, at + len(literal)))
        at += len(literal)
        if name is None:
            continue
        if spec or conversion or not (name == "" or name.isdigit() or name.isidentifier()):
            return whole
        if name == "":
            value, next_argument = args[next_argument], next_argument + 1
        else:
            value = args[int(name)] if name.isdigit() else kwargs[name]
        if not isinstance(value, str):
            return whole
        parts.append(text_of(value))
        at = str.index(text, "}", at) + 1
    result = concat(parts)
    return result if result == whole else whole


_NUMBER = re.compile(r"\d+")


def _check_widths(text: str) -> None:
    """Widths and precisions ask for memory, too."""
    for number in _NUMBER.findall(text):
        if len(number) > 4:
            check_size(int(number[:12]))
    if "*" in text:
        raise ValueError("a format with a width or precision of * is not allowed in a template")


def percent(text: str, values: Any) -> str:
    """``text % values`` for any string."""
    return _percent(text if type(text) is Traced else traced(text, runs_of(text)), values)
