"""`Traced`: strings that record which of their characters the template itself wrote.

Plain ``str`` is untrusted. Operations on a `Traced` that this module does not define return a plain
``str`` as well: an unknown operation can lose trust but never gain it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice, repeat, tee
from typing import Any, SupportsIndex

from .._core import Labels, cost_of_joining, join_traced, strip_traced
from .limits import STRING, guard, use

__all__ = [
    "GENERATED",
    "GIVEN",
    "MOST_LABELS",
    "PIECES",
    "TRUSTED",
    "Scalar",
    "Traced",
    "concat",
    "cuts",
    "each_opened",
    "flagged",
    "finding",
    "found",
    "generated",
    "is_trusted",
    "opened",
    "runs_of",
    "text_of",
    "traced",
    "trusted",
    "unplaced",
    "values",
]

# Flags of characters.
TRUSTED = 1  # The template wrote it.
GENERATED = 2  # It is inside a {% generation %} block.
GIVEN = 4  # Times the number of the caller's value, from 1 on.
MOST_LABELS = (1 << 30) - 1
_START = 1 << 32  # Times the first character in the caller's value.
_NOWHERE = _START * ((1 << 31) - 1)  # The characters do not map one by one to the value.

# The parts of one text that may have origins of their own. A text with more is untrusted.
PIECES = 1 << 16
# Parts that may be joined before their size is counted.
_FEW = 16

# (length, flags) of consecutive characters. A run of length 0 separates its neighbors: trusted
# text on both sides of an empty untrusted text is not one text.
Runs = tuple[tuple[int, int], ...]
_APART: Runs = ((0, 0),)
# (first, last + 1) of characters.
Span = tuple[int, int]


class Traced(str):
    """A string with the flags of its characters. Only `traced` makes them."""

    __slots__ = ("_flags",)
    #: One flag for the whole string, or (length, flag) runs.
    _flags: int | Runs

    @property
    def _runs(self) -> Runs:
        flags = self._flags
        return flags if type(flags) is tuple else ((len(self), flags),)  # type: ignore[return-value]

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
        if not text:
            return traced(text, _APART)
        if len(runs) == 1 and runs[0][1] < GIVEN:
            return traced(text, ((len(text), runs[0][1]),))
        return traced(text, runs * times) if len(runs) * times <= PIECES else text

    __rmul__ = __mul__

    def __getitem__(self, index: SupportsIndex | slice) -> str:
        if not isinstance(index, slice):
            text = str.__getitem__(self, index)
            start = index.__index__()
            start += len(self) if start < 0 else 0
            return traced(text, _part(self, start, start + 1))
        text = str.__getitem__(self, index)
        start, stop, step = index.indices(len(self))
        if step == 1:
            return traced(text, _part(self, start, max(start, stop)))
        if step == -1:
            return traced(text, unplaced(_part(self, stop + 1, max(start, stop) + 1)[::-1]))
        flags = {flags for _, flags in unplaced(self._runs)}
        return traced(text, ((len(text), flags.pop()),)) if len(flags) == 1 and text else text

    def __iter__(self) -> Iterator[str]:
        use(STRING * len(self))
        runs = self._runs
        if len(runs) == 1 and runs[0][1] < GIVEN:
            one = ((1, runs[0][1]),)
            for character in str.__iter__(self):
                yield traced(character, one)
            return
        spans = ((at, at + 1) for at in range(len(self)))
        for character, cut in zip(str.__iter__(self), _parts(self, spans)):
            yield traced(character, cut)

    def join(self, parts: Iterable[str]) -> str:
        if isinstance(parts, str):
            use(STRING * len(parts))
        parts = list(parts)
        if not all(isinstance(part, str) for part in parts):
            return str.join(self, parts)  # The TypeError of str.
        use(sum(map(len, parts)) + len(self) * len(parts))
        if len(parts) > PIECES:
            return str.join(self, parts)
        return concat([each for part in parts for each in (self, part)][1:])

    # ---- Parts ----

    def _part(self, start: int, end: int) -> Traced:
        return traced(str.__getitem__(self, slice(start, end)), _part(self, start, end))

    def _all_parts(self, spans: Iterable[Span]) -> list[str]:
        flags = self._flags
        if type(flags) is int:
            text = str.__str__(self)
            return [
                traced(
                    text[start:end],
                    ((end - start, _from(flags, start)),) if start < end else _APART,
                )
                for start, end in spans
            ]
        spans = list(spans)
        cuts = _parts(self, spans)
        return [traced(str.__getitem__(self, slice(*span)), cut) for span, cut in zip(spans, cuts)]

    def strip(self, chars: str | None = None, /) -> str:
        return self._stripped(chars, (True, True))

    def lstrip(self, chars: str | None = None, /) -> str:
        return self._stripped(chars, (True, False))

    def rstrip(self, chars: str | None = None, /) -> str:
        return self._stripped(chars, (False, True))

    def _stripped(self, chars: str | None, sides: tuple[bool, bool]) -> str:
        if chars is None or isinstance(chars, str):
            part: str | None = strip_traced(self, chars, sides, Traced)
            if part is not None:
                return part
        start, end = 0, len(self)
        if sides[0]:
            start = end - len(str.lstrip(self, chars))
        if sides[1]:
            end = max(start, len(str.rstrip(self, chars)))
        return self if end - start == len(self) else self._part(start, end)

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
        starts = _starts(map(len, str.splitlines(self, True)))
        lines = str.splitlines(self, keepends)
        use(STRING * len(lines))
        if len(lines) > PIECES:
            return lines
        return self._all_parts((at, at + len(line)) for at, line in zip(starts, lines))

    def _located(self, parts: Sequence[str], sep: str | None, gap: int) -> list[str]:
        """Returns the parts that `split` found, in their order, with their origins."""
        use(STRING * len(parts))
        if len(parts) > PIECES:
            return list(parts)
        if type(self._flags) is int:
            return list(_located(parts, str.__str__(self), self._flags, sep, gap))
        spans, at = [], 0
        for part in parts:
            # White space separates words, and no word begins with it.
            at = at if sep is not None else str.index(self, part, at)
            spans.append((at, at + len(part)))
            at += len(part) + gap
        return self._all_parts(spans)

    # ---- Rewriting ----

    def replace(self, old: str, new: str, count: SupportsIndex = -1, /) -> str:
        found = str.count(self, old)
        times = found if int(count) < 0 else min(int(count), found)
        use(len(self) + times * max(0, len(new) - len(old)))
        text = str.replace(self, old, new, count)
        if len(self._runs) == 1 and runs_of(new) == ((len(new), self._runs[0][1]),):
            return traced(text, ((len(text), self._runs[0][1]),)) if text else text
        if times > PIECES:
            return text
        starts = list(_occurrences(self, old, times))
        ends = [0, *(start + len(old) for start in starts)]
        parts: list[str] = []
        kept = cuts(self._runs, zip(ends, [*starts, len(self)]))
        gone = cuts(self._runs, zip(starts, ends[1:]))
        for end, start, cut in zip(ends, starts, kept):
            parts += (traced(str.__getitem__(self, slice(end, start)), cut), new)
            if not is_trusted(next(gone)):
                parts.append("")  # Untrusted text went: its neighbors stay apart.
        parts.append(traced(str.__getitem__(self, slice(ends[-1], None)), next(kept)))
        result = concat(parts)
        return result if result == text else text

    def zfill(self, width: SupportsIndex, /) -> str:
        use(int(width))
        return str.zfill(self, width)

    def expandtabs(self, tabsize: SupportsIndex = 8) -> str:
        use(len(self) + str.count(self, "\t") * max(0, int(tabsize)))
        return str.expandtabs(self, tabsize)

    def translate(self, table: Any, /) -> str:
        values = table.values() if isinstance(table, dict) else table
        longest = max((len(value) for value in values if isinstance(value, str)), default=1)
        use(len(self) * max(1, longest))
        return str.translate(self, table)


# Errors of operators name the type of the caller's string.
Traced.__name__ = "str"


def _is_text(value: object) -> bool:
    """Whether it is a string that joins others without escaping them, as Markup does not."""
    kind = type(value)
    if kind is str or kind is Traced:
        return True
    return isinstance(value, str) and not hasattr(value, "__html__")


def traced(text: str, runs: Runs) -> Traced:
    """Returns `text` with the flags `runs`, whose lengths add up to its length."""
    self = str.__new__(Traced, text)
    self._flags = runs[0][1] if len(runs) == 1 else runs
    return self


_EMPTY = traced("", _APART)


def flagged(text: str, flags: int) -> Traced:
    """Returns a text whose characters all have these flags."""
    self = str.__new__(Traced, text)
    self._flags = flags if text else 0
    return self


def trusted(text: str) -> Traced:
    """Returns a text that the template wrote."""
    return flagged(text, TRUSTED)


def _from(flags: int, offset: int) -> int:
    """Returns the flags of a part that begins `offset` characters later."""
    return flags + _START * offset if offset > 0 and GIVEN <= flags < _NOWHERE else flags


def unplaced(runs: Runs) -> Runs:
    """Returns the runs of characters that do not map one by one to the caller's values."""
    return tuple(
        (length, flags % _START + _NOWHERE if flags >= GIVEN else flags) for length, flags in runs
    )


def generated(text: str) -> Traced:
    """Returns the text as it is inside a {% generation %} block."""
    return traced(text, tuple((length, flags | GENERATED) for length, flags in runs_of(text)))


def runs_of(text: str) -> Runs:
    """Returns the flags of any string."""
    kind = type(text)
    if kind is str:
        return ((len(text), 0),)
    runs: Runs | None = getattr(text, "_runs", None)
    return ((len(text), 0),) if runs is None else runs


def text_of(value: object) -> str:
    """``str(value)``, which keeps the origin of a string."""
    kind = type(value)
    if kind is str or kind is Traced:
        return value  # type: ignore[return-value]
    if isinstance(value, str) and hasattr(value, "_runs"):
        return traced(str.__str__(value), value._runs)
    guard(value)
    flags, _ = found(value)
    return flagged(str(value), flags) if flags else str(value)


class Scalar:
    """A number, truth value or None of the caller whose text has flags."""

    __slots__ = ()
    text_flags: int
    #: The value itself.
    plain: Any


class _Values(threading.local):
    #: The values of the caller of the rendering that this thread is in.
    labels: Labels | None = None


values: _Values = _Values()


class finding:  # noqa: N801 - used as a function is
    """A context in which `found` and `opened` know the values of the caller."""

    __slots__ = ("_before", "_now")

    def __init__(self, labels: Labels):
        self._now = labels

    def __enter__(self) -> None:
        self._before = values.labels
        values.labels = self._now

    def __exit__(self, *error: object) -> None:
        values.labels = self._before


def found(value: object) -> tuple[int, Any]:
    """Returns the flags of text that is made of a value other than a string, and plain data."""
    if isinstance(value, Scalar):
        return value.text_flags, value.plain
    if values.labels is None:
        return 0, value
    return values.labels.found(value)


def opened(value: Any) -> Any:
    """Returns a list or a dict whose items are labeled, for one of the caller, or another value."""
    if (type(value) is dict or type(value) is list) and values.labels is not None:
        return values.labels.opened(value)
    return value


def each_opened(items: Any) -> Any:
    """Returns items that a loop takes apart."""
    items = opened(items)
    return list(map(opened, items)) if type(items) is list else items


def concat(parts: Iterable[str]) -> str:
    """Joins strings."""
    if type(parts) is not tuple:
        parts = tuple(parts)
    if len(parts) > _FEW:
        use(cost_of_joining(parts, Traced))
    text: str
    text, cost = join_traced(parts, Traced)
    use(cost)
    return text


def _add(left: str, right: str) -> Traced:
    return join_traced((left, right), Traced)[0]  # type: ignore[no-any-return]


def is_trusted(runs: Runs) -> bool:
    return all(flags & TRUSTED for _, flags in runs)


def cuts(runs: Runs, spans: Iterable[Span]) -> Iterator[Runs]:
    """Yields the runs of the characters in each of `spans`, which ascend."""
    place = at = 0
    for start, end in spans:
        while place < len(runs) and at + runs[place][0] < start:
            at += runs[place][0]
            place += 1
        result = []
        position = at
        for length, flags in islice(runs, place, None):
            if position > end:
                break
            inside = min(position + length, end) - max(position, start)
            if inside > 0 or (length == 0 and position >= start):
                result.append((inside, _from(flags, start - position)))
            position += length
        yield tuple(result) if end > start else _APART


def _parts(text: Traced, spans: Iterable[Span]) -> Iterator[Runs]:
    """Yields the runs of parts that are taken out of `text`. A part that had untrusted text before
    or after it stays apart from whatever is put there instead."""
    runs = text._runs
    if is_trusted(runs):
        yield from cuts(runs, spans)
        return
    untrusted = [
        (start, start + length)
        for start, (length, flags) in zip(_starts(length for length, _ in runs), runs)
        if not flags & TRUSTED
    ]
    first, last = untrusted[0][0], untrusted[-1][1]
    spans, again = tee(spans)
    for cut, (start, end) in zip(cuts(runs, spans), again):
        if first < start and cut[0][1] & TRUSTED:
            cut = (*_APART, *cut)
        yield (*cut, *_APART) if last > end and cut[-1][1] & TRUSTED else cut


def _located(
    parts: Iterable[str], text: str, flags: int, sep: str | None, gap: int
) -> Iterator[Traced]:
    """Yields the parts that `split` found in a text of one origin, with their origins."""
    at = 0
    for part in parts:
        if not part:
            yield _EMPTY
        else:
            at = at if sep is not None else text.index(part, at)
            yield traced(part, ((len(part), _from(flags, at)),))
        at += len(part) + gap


def _part(text: Traced, start: int, end: int) -> Runs:
    """Returns the runs of one part that is taken out of `text`."""
    flags = text._flags
    if type(flags) is int:
        return ((end - start, _from(flags, start)),) if start < end else _APART
    return next(_parts(text, ((start, end),)))


def _starts(lengths: Iterable[int]) -> Iterator[int]:
    """Yields where each of consecutive parts with these lengths begins."""
    at = 0
    for length in lengths:
        yield at
        at += length


def _occurrences(text: str, old: str, times: int) -> Iterator[int]:
    """Yields where `str.replace` finds `old`."""
    at = 0
    for _ in repeat(None, times):
        at = str.find(text, old, at)
        if at < 0:
            return
        yield at
        at += max(1, len(old))


def _by_character(change: Callable[[str], str]) -> Callable[[Traced], str]:
    """Returns the method for a change that makes at least one character of each. If the length
    stays, so does the place of each character."""

    def method(self: Traced) -> str:
        result = change(self)
        if len(result) == len(self):
            return traced(result, self._runs)
        # Some became several, which rarely depends on their neighbors.
        starts = _starts(length for length, _ in self._runs)
        pieces = [
            change(str.__getitem__(self, slice(start, start + length)))
            for start, (length, _) in zip(starts, self._runs)
        ]
        if "".join(pieces) != result:
            return result
        flags_of = (flags for _, flags in unplaced(self._runs))
        return traced(result, tuple(zip(map(len, pieces), flags_of)))

    return method


def _padding(pad: Callable[..., str]) -> Callable[..., str]:
    """Returns the method for `str.center`, `str.ljust` or `str.rjust`."""

    def method(self: Traced, width: SupportsIndex, fill: str = " ", /) -> str:
        use(int(width))
        result = pad(self, width, fill)
        before = len(result) - len(self)
        if pad is str.ljust:
            before = 0
        elif pad is str.center:
            # str alone knows how it rounds the middle.
            before = str.index(str.center("\0" * len(self), width, "\1"), "\0") if self else before
        # The fill is trusted only if all of its text is.
        runs = runs_of(fill)
        flags = runs[0][1] if len(runs) == 1 else 0
        after = len(result) - len(self) - before
        return traced(result, ((before, flags), *self._runs, (after, flags)))

    return method


for _change in (str.upper, str.lower, str.title, str.capitalize, str.swapcase, str.casefold):
    setattr(Traced, _change.__name__, _by_character(_change))
for _pad in (str.center, str.ljust, str.rjust):
    setattr(Traced, _pad.__name__, _padding(_pad))
