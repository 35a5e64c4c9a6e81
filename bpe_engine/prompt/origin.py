"""`Traced`: strings that know which of their characters the template itself wrote.

Plain ``str`` is untrusted. Whatever Python does to a `Traced` that is not written down here gives
a plain ``str`` as well, so that an unknown operation can lose trust but never gain it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice, repeat, tee
from typing import Any, SupportsIndex

from .limits import (
    PIECES,
    SMALL,
    charge,
    check_expanded,
    check_made,
    check_size,
    listed,
    spend,
)

__all__ = [
    "GENERATED",
    "GIVEN",
    "LINES",
    "TRUSTED",
    "Traced",
    "check_split",
    "concat",
    "cuts",
    "flagged",
    "generated",
    "is_trusted",
    "runs_of",
    "text_of",
    "traced",
    "trusted",
]

# Flags of characters.
TRUSTED = 1  # The template wrote it.
GENERATED = 2  # It stands inside a {% generation %} block.
GIVEN = 4  # Times the number of the segment that the caller gave, from 1 on.

# Strings that may be joined between two checks of their total size.
_FEW = 8

# (length, flags), one after the other. A run of length 0 separates its neighbours: trusted text
# on both sides of an empty untrusted text is not one text.
Runs = tuple[tuple[int, int], ...]
_APART: Runs = ((0, 0),)
# (first, last + 1) of characters.
Span = tuple[int, int]


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
        if not text:
            return traced(text, _APART)
        if len(runs) == 1:
            return traced(text, ((len(text), runs[0][1]),))
        return traced(text, runs * times) if len(runs) * times <= SMALL else text

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
            return traced(text, _part(self, stop + 1, max(start, stop) + 1)[::-1])
        flags = {flags for _, flags in self._runs}
        return traced(text, ((len(text), flags.pop()),)) if len(flags) == 1 and text else text

    def __iter__(self) -> Iterator[str]:
        # What makes strings of characters makes many objects.
        check_size(len(self) * 16)
        runs = self._runs
        if len(runs) == 1:
            one = ((1, runs[0][1]),)
            for character in str.__iter__(self):
                yield traced(character, one)
            return
        spans = ((at, at + 1) for at in range(len(self)))
        for character, cut in zip(str.__iter__(self), _parts(self, spans)):
            yield traced(character, cut)

    def join(self, parts: Iterable[str]) -> str:
        parts = listed(parts)
        if not all(isinstance(part, str) for part in parts):
            return str.join(self, parts)  # The TypeError of str.
        check_size(sum(map(len, parts)) + len(self) * len(parts))
        if len(parts) > PIECES:
            return str.join(self, parts)
        return concat([each for part in parts for each in (self, part)][1:])

    # ---- Parts ----

    def _part(self, start: int, end: int) -> Traced:
        return traced(str.__getitem__(self, slice(start, end)), _part(self, start, end))

    def _all_parts(self, spans: Iterable[Span]) -> list[str]:
        spans = list(spans)
        spend(len(spans))
        cuts = _parts(self, spans)
        return [traced(str.__getitem__(self, slice(*span)), cut) for span, cut in zip(spans, cuts)]

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
        check_split(self, sep, maxsplit)
        parts = str.split(self, sep, maxsplit)
        return self._located(parts, sep, 0 if sep is None else len(sep))

    def rsplit(self, sep: str | None = None, maxsplit: SupportsIndex = -1) -> list[str]:
        check_split(self, sep, maxsplit)
        parts = str.rsplit(self, sep, maxsplit)
        return self._located(parts, sep, 0 if sep is None else len(sep))

    def splitlines(self, keepends: bool = False) -> list[str]:
        check_split(self, LINES)
        starts = _starts(map(len, str.splitlines(self, True)))
        lines = str.splitlines(self, keepends)
        if len(lines) > PIECES:
            return lines
        return self._all_parts((at, at + len(line)) for at, line in zip(starts, lines))

    def _located(self, parts: Sequence[str], sep: str | None, gap: int) -> list[str]:
        """The parts that `split` found, in their order, with their origins."""
        if len(parts) > PIECES:
            return list(parts)
        spans, at = [], 0
        for part in parts:
            # Between words stands white space, which no word begins with.
            at = at if sep is not None else str.index(self, part, at)
            spans.append((at, at + len(part)))
            at += len(part) + gap
        return self._all_parts(spans)

    # ---- Rewriting ----

    def replace(self, old: str, new: str, count: SupportsIndex = -1, /) -> str:
        found = str.count(self, old)
        times = found if int(count) < 0 else min(int(count), found)
        check_size(len(self) + times * max(0, len(new) - len(old)))
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
                parts.append("")  # What went was untrusted: its neighbours stay apart.
        parts.append(traced(str.__getitem__(self, slice(ends[-1], None)), next(kept)))
        result = concat(parts)
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


#: The characters that end lines.
LINES = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
_SPACES = "".join(chr(c) for c in range(0x3001) if chr(c).isspace())


def check_split(text: str, separators: str | None, most: SupportsIndex = -1) -> None:
    """The bound for what `split` and `splitlines` make of a text. `LINES` stands for each of its
    characters, and None for each character of white space."""
    if len(text) <= SMALL:
        return
    charge(16 * len(text))
    if separators is None or separators is LINES:
        count = sum(str.count(text, c) for c in separators or _SPACES)
        count = min(count, len(text) - count) if separators is None else count
    else:
        # Nothing is no separator, which split says itself.
        count = str.count(text, separators) if separators else 0
    most = most.__index__()
    check_made(1 + (count if most < 0 else min(count, most)), len(text))


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


def flagged(text: str, flags: int) -> Traced:
    """A text with the same flags everywhere."""
    return traced(text, ((len(text), flags),) if text else _APART)


def trusted(text: str) -> Traced:
    """A text that the template says."""
    return flagged(text, TRUSTED)


def generated(text: str) -> Traced:
    """The same text, all of it inside a {% generation %} block."""
    return traced(text, tuple((length, flags | GENERATED) for length, flags in runs_of(text)))


def runs_of(text: str) -> Runs:
    """The flags of any string."""
    kind = type(text)
    if kind is str:
        return ((len(text), 0),)
    runs: Runs | None = getattr(text, "_runs", None)
    return ((len(text), 0),) if runs is None else runs


def text_of(value: object) -> str:
    """`str(value)` of the template language."""
    kind = type(value)
    if kind is str or kind is Traced:
        return value  # type: ignore[return-value]
    if isinstance(value, str) and hasattr(value, "_runs"):
        return traced(str.__str__(value), value._runs)
    check_expanded(value)
    return str(value)


def concat(parts: Iterable[str]) -> str:
    """The strings one after the other."""
    if type(parts) is not tuple:
        parts = tuple(parts)
    if len(parts) > _FEW:
        spend(len(parts) >> 4)
        check_size(sum(map(len, parts)))
    text = "".join(parts)
    if len(text) > SMALL:
        check_size(len(text))
    runs: list[tuple[int, int]] = []
    is_traced = False
    for part in parts:
        if type(part) is str:
            runs.append((len(part), 0))
        else:
            runs += runs_of(part)
            is_traced = True
    if not is_traced:
        return text
    self = str.__new__(Traced, text)
    self._runs = tuple(runs)
    return self


def _add(left: str, right: str) -> Traced:
    self = str.__new__(Traced, str.__add__(left, right))
    self._runs = runs_of(left) + runs_of(right)
    return self


def is_trusted(runs: Runs) -> bool:
    return all(flags & TRUSTED for _, flags in runs)


def cuts(runs: Runs, spans: Iterable[Span]) -> Iterator[Runs]:
    """The runs of the characters in each of `spans`, which ascend."""
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
                result.append((inside, flags))
            position += length
        yield tuple(result) if end > start else _APART


def _parts(text: Traced, spans: Iterable[Span]) -> Iterator[Runs]:
    """The same for parts that are taken out of `text`: where it had untrusted text before or
    behind one, the part stays apart from whatever is put there instead."""
    runs = text._runs
    spend(len(runs) >> 5)
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


def _part(text: Traced, start: int, end: int) -> Runs:
    """The same for one part."""
    return next(_parts(text, ((start, end),)))


def _starts(lengths: Iterable[int]) -> Iterator[int]:
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
    if len(result) == len(text):
        return traced(result, text._runs)
    # Some became more. Nearly always they do so whatever stands beside them.
    starts = _starts(length for length, _ in text._runs)
    pieces = [
        change(str.__getitem__(text, slice(start, start + length)))
        for start, (length, _) in zip(starts, text._runs)
    ]
    if "".join(pieces) != result:
        return result
    return traced(
        result, tuple((len(piece), flags) for piece, (_, flags) in zip(pieces, text._runs))
    )


def _padded(text: Traced, pad: Callable[..., str], width: SupportsIndex, fill: str) -> str:
    check_size(int(width))
    result = pad(text, width, fill)
    before = len(result) - len(text)
    if pad is str.ljust:
        before = 0
    elif pad is str.center:
        # Where the text stands in the middle is for str to say.
        before = str.index(str.center("\0" * len(text), width, "\1"), "\0") if text else before
    # The character that fills is trusted only where it came as such, and alone.
    runs = runs_of(fill)
    flags = runs[0][1] if len(runs) == 1 else 0
    after = len(result) - len(text) - before
    return traced(result, ((before, flags), *text._runs, (after, flags)))
