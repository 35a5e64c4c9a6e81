"""The taint rule of chat templates: which characters of a rendered text are trusted.

1. A character is trusted if the template wrote it, as a literal or between its tags (`trusted`), or if
   the caller gave it in a trusted segment (`given`). There is no other source of trust.
2. Each character has flags: trusted or not, and the caller's value it comes from. An operation of
   this module that moves characters moves their flags with them. Any other operation returns a plain
   ``str``, whose characters are untrusted: an unknown operation loses trust, and never adds trust.
3. Trusted texts on both sides of an untrusted text are never joined into one text, even if the
   untrusted text is empty, or was removed. A run of length 0 (`_APART`) keeps them apart.
4. Special tokens are found only inside one run of trusted text (`collect_segments` in Rust makes
   one segment of it).

`bindings/src/taint.rs` joins and cuts the same strings in native code. No other module creates
flags: `tests/prompt/test_template.py` checks who calls `trusted`, `given` and `traced`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice, tee
from typing import Any, SupportsIndex

from .._core import cost_of_joining, join_traced
from .labels import found
from .limits import STRING, guard, use

__all__ = [
    "PIECES",
    "Runs",
    "Span",
    "Traced",
    "as_traced",
    "by_character",
    "by_run",
    "concat",
    "generated",
    "given",
    "labeled",
    "parts_of",
    "runs_of",
    "text_of",
    "trusted",
    "written_of",
]

# Flags that each character has.
_TRUSTED = 1
_GENERATED = 2  # Inside a {% generation %} block.
_GIVEN = 4  # Multiplied by the number of the caller's value, starting at 1.
_START = 1 << 32  # Multiplied by the offset of the first character in the caller's value.
_NOWHERE = _START * ((1 << 31) - 1)  # The characters do not map one by one to the value.

# Maximum number of parts that keep their origins in one text. A text with more parts is untrusted.
PIECES = 1 << 16
# Maximum number of parts joined before their size is counted.
_FEW = 16

# The length and the flags of consecutive characters.
Runs = tuple[tuple[int, int], ...]
_APART: Runs = ((0, 0),)
# The offsets of the first character and after the last character.
Span = tuple[int, int]


# ---- Where trust begins ----


def trusted(text: str) -> Traced:
    """Returns `text`, marked as written by the template."""
    return traced(text, ((len(text), _TRUSTED if text else 0),))


def given(text: str, is_trusted: bool, number: int) -> str:
    """Returns text of a caller's segment; `number` has the flags of its labels."""
    flags = number + _TRUSTED * is_trusted
    return traced(text, ((len(text), flags if text else 0),)) if flags else text


def labeled(text: str, flags: int) -> str:
    """Returns untrusted text with the origin that `flags` name."""
    flags &= ~(_TRUSTED | _GENERATED)
    return traced(text, ((len(text), flags if text else 0),)) if flags else text


def written_of(value: object, write: Callable[[Any], str] = str) -> str:
    """Returns untrusted text made of a value, with the value's origin, if any."""
    if type(value) is Traced:
        origins = {flags & ~(_TRUSTED | _GENERATED) for _, flags in _unplaced(value._runs)}
        return labeled(write(value), origins.pop() if len(origins) == 1 else 0)
    flags, plain = found(value)
    return labeled(write(plain), flags) if flags else write(value)


def generated(text: str) -> Traced:
    """Returns the text with the flags of a {% generation %} block."""
    return traced(text, tuple((length, flags | _GENERATED) for length, flags in runs_of(text)))


# ---- Strings with flags ----


class Traced(str):
    """A string with the flags of its characters."""

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
        if _is_text(other):
            return _add(self, other)
        if hasattr(other, "__html__") or not type(other).__module__ == "builtins":
            return NotImplemented
        return str.__add__(self, other)  # Raises the same TypeError as str.

    def __radd__(self, other: str) -> str:
        return _add(other, self) if _is_text(other) else NotImplemented

    def __mul__(self, count: SupportsIndex) -> str:
        text, runs, times = str.__mul__(self, count), self._runs, int(count)
        if not text:
            return traced(text, _APART)
        if len(runs) == 1 and runs[0][1] < _GIVEN:
            return traced(text, ((len(text), runs[0][1]),))
        return traced(text, runs * times) if len(runs) * times <= PIECES else text

    __rmul__ = __mul__

    def __getitem__(self, index: SupportsIndex | slice) -> str:
        text = str.__getitem__(self, index)
        if not isinstance(index, slice):
            start = index.__index__()
            start += len(self) if start < 0 else 0
            return self._part(start, start + 1)
        start, stop, step = index.indices(len(self))
        if step == 1:
            return self._part(start, max(start, stop))
        if step == -1:
            cut = next(_parts(self, [(stop + 1, max(start, stop) + 1)]))
            return traced(text, _unplaced(cut[::-1]))
        flags = {flags for _, flags in _unplaced(self._runs)}
        return traced(text, ((len(text), flags.pop()),)) if len(flags) == 1 and text else text

    def __iter__(self) -> Iterator[str]:
        use(STRING * len(self))
        spans = ((at, at + 1) for at in range(len(self)))
        for character, cut in zip(str.__iter__(self), _parts(self, spans)):
            yield traced(character, cut)

    def join(self, parts: Iterable[str]) -> str:
        if isinstance(parts, str):
            use(STRING * len(parts))
        parts = list(parts)
        if not all(isinstance(part, str) for part in parts):
            return str.join(self, parts)  # Raises the same TypeError as str.
        use(sum(map(len, parts)) + len(self) * len(parts))
        if len(parts) > PIECES:
            return str.join(self, parts)
        return concat([each for part in parts for each in (self, part)][1:])

    # ---- Parts ----

    def _part(self, start: int, end: int) -> Traced:
        return traced(str.__getitem__(self, slice(start, end)), next(_parts(self, [(start, end)])))

    def strip(self, chars: str | None = None, /) -> str:
        return self._cut(len(self) - len(str.lstrip(self, chars)), len(str.rstrip(self, chars)))

    def lstrip(self, chars: str | None = None, /) -> str:
        return self._cut(len(self) - len(str.lstrip(self, chars)), len(self))

    def rstrip(self, chars: str | None = None, /) -> str:
        return self._cut(0, len(str.rstrip(self, chars)))

    def _cut(self, start: int, end: int) -> str:
        is_whole = start == 0 and end == len(self)
        return self if is_whole else self._part(start, max(start, end))

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
        return self._located(str.split(self, sep, maxsplit), sep)

    def rsplit(self, sep: str | None = None, maxsplit: SupportsIndex = -1) -> list[str]:
        return self._located(str.rsplit(self, sep, maxsplit), sep)

    def splitlines(self, keepends: bool = False) -> list[str]:
        starts = _starts(map(len, str.splitlines(self, True)))
        lines = str.splitlines(self, keepends)
        use(STRING * len(lines))
        if len(lines) > PIECES:
            return lines
        return parts_of(self, [(at, at + len(line)) for at, line in zip(starts, lines)])

    def _located(self, parts: list[str], sep: str | None) -> list[str]:
        """Returns the parts that `split` found, in order, with their flags."""
        use(STRING * len(parts))
        if len(parts) > PIECES:
            return parts
        spans, at, text = [], 0, str.__str__(self)
        for part in parts:
            # Words are separated by whitespace, so the next occurrence is the word itself.
            at = at if sep is not None else text.index(part, at)
            spans.append((at, at + len(part)))
            at += len(part) + (0 if sep is None else len(sep))
        return parts_of(self, spans)

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
        ends = [start + len(old) for start in starts]
        kept = parts_of(self, zip([0, *ends], [*starts, len(self)]))
        result = concat([each for part in kept for each in (new, part)][1:])
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


def traced(text: str, runs: Runs) -> Traced:
    """Returns `text` with the flags `runs`, whose lengths add up to its length."""
    self = str.__new__(Traced, text)
    self._flags = runs[0][1] if len(runs) == 1 else runs
    return self


def runs_of(text: str) -> Runs:
    """Returns the flags of any string."""
    runs: Runs | None = None if type(text) is str else getattr(text, "_runs", None)
    return ((len(text), 0),) if runs is None else runs


def text_of(value: object) -> str:
    """Returns ``str(value)`` with the flags of a string."""
    kind = type(value)
    if kind is str or kind is Traced:
        return value  # type: ignore[return-value]
    if isinstance(value, str) and hasattr(value, "_runs"):
        return traced(str.__str__(value), value._runs)
    guard(value)
    return written_of(value)


def as_traced(value: object) -> Traced:
    """Returns ``str(value)`` with the methods of `Traced`."""
    text = text_of(value)
    return text if type(text) is Traced else traced(text, runs_of(text))


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


def _is_text(value: object) -> bool:
    """Returns True for a string that joins other strings without escaping, unlike Markup."""
    kind = type(value)
    if kind is str or kind is Traced:
        return True
    return isinstance(value, str) and not hasattr(value, "__html__")


# ---- Runs ----


def parts_of(text: Traced, spans: Iterable[Span]) -> list[str]:
    """Returns the parts of `text` at these spans, given in ascending order."""
    spans = list(spans)
    cuts = _parts(text, spans)
    return [traced(str.__getitem__(text, slice(*span)), cut) for span, cut in zip(spans, cuts)]


def _parts(text: Traced, spans: Iterable[Span]) -> Iterator[Runs]:
    """Yields the runs of the parts cut out of `text`. If untrusted text followed a trusted part or
    came before it, the part stays separate from its new neighbor."""
    flags = text._flags
    if type(flags) is int:
        for start, end in spans:
            yield ((end - start, _from(flags, start)),) if start < end else _APART
        return
    runs = text._runs
    dirty = [
        (start, start + length)
        for start, (length, flags) in zip(_starts(length for length, _ in runs), runs)
        if not flags & _TRUSTED
    ]
    first, last = (dirty[0][0], dirty[-1][1]) if dirty else (len(text), 0)
    spans, again = tee(spans)
    for cut, (start, end) in zip(_cuts(runs, spans), again):
        if first < start and cut[0][1] & _TRUSTED:
            cut = (*_APART, *cut)
        yield (*cut, *_APART) if last > end and cut[-1][1] & _TRUSTED else cut


def _cuts(runs: Runs, spans: Iterable[Span]) -> Iterator[Runs]:
    """Yields the runs of the characters in each of `spans`, given in ascending order."""
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


def _from(flags: int, offset: int) -> int:
    """Returns the flags of a part that begins `offset` characters later."""
    return flags + _START * offset if offset > 0 and _GIVEN <= flags < _NOWHERE else flags


def _unplaced(runs: Runs) -> Runs:
    """Returns the runs of characters that do not map one by one to the caller's values."""
    return tuple(
        (length, flags % _START + _NOWHERE if flags >= _GIVEN else flags) for length, flags in runs
    )


def _starts(lengths: Iterable[int]) -> Iterator[int]:
    """Yields the start offsets of consecutive parts with these lengths."""
    at = 0
    for length in lengths:
        yield at
        at += length


def _occurrences(text: str, old: str, times: int) -> Iterator[int]:
    """Yields the offsets at which `str.replace` finds `old`."""
    at = 0
    for _ in range(times):
        at = str.find(text, old, at)
        if at < 0:
            return
        yield at
        at += max(1, len(old))


# ---- Changes of all characters ----


def by_run(text: Traced, change: Callable[[str], str]) -> Traced:
    """Changes each run of a text separately. The new characters have the flags of their run."""
    pieces, at = [], 0
    for length, flags in text._runs:
        pieces.append((change(str.__getitem__(text, slice(at, at + length))), flags))
        at += length
    return traced(
        "".join(piece for piece, _ in pieces), tuple((len(piece), flags) for piece, flags in pieces)
    )


def by_character(change: Callable[[str], str]) -> Callable[[Traced], str]:
    """Returns the method for a change that turns each character into one or more characters. If
    the length is unchanged, so is the position of each character."""

    def method(self: Traced) -> str:
        result = change(str.__str__(self))
        if len(result) == len(self):
            return traced(result, self._runs)
        # A character became several characters; the result rarely depends on its neighbors.
        pieces = by_run(self, change)
        return traced(result, _unplaced(pieces._runs)) if pieces == result else result

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
            # Let str decide how to round the middle.
            before = str.index(str.center("\0" * len(self), width, "\1"), "\0") if self else before
        # The fill is trusted only if all of its text is trusted.
        runs = runs_of(fill)
        flags = runs[0][1] if len(runs) == 1 else 0
        after = len(result) - len(self) - before
        return traced(result, ((before, flags), *self._runs, (after, flags)))

    return method


for _change in (str.upper, str.lower, str.title, str.capitalize, str.swapcase, str.casefold):
    setattr(Traced, _change.__name__, by_character(_change))
for _pad in (str.center, str.ljust, str.rjust):
    setattr(Traced, _pad.__name__, _padding(_pad))
