"""Records of turns: what they read and wrote, as a session keeps it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from .outcomes import Plan
from .segments import Segment

__all__ = ["UNWRITTEN", "Record", "Run", "State", "sum_of"]


class _Unwritten:
    """The value of attributes that a turn did not set."""


#: The value of such attributes.
UNWRITTEN = _Unwritten()

State = tuple[Any, ...]


class Record:
    """The reads and writes of a turn."""

    __slots__ = (
        *("after", "ahead", "before", "characters", "cost", "fixed", "is_whole", "message"),
        *("scans", "segments", "size", "tests", "written"),
    )

    def __init__(self, message: Any, fixed: Any, tests: Any, before: State, ahead: int):
        self.message = message
        self.fixed = fixed
        self.tests = tests
        #: Attributes of namespaces before and after it, and those that are only written.
        self.before: State = before
        self.after: State = before
        self.written: State = ()
        #: The messages after it.
        self.ahead = ahead
        #: Whether it came to its end and wrote what can be written again.
        self.is_whole: bool = True
        #: Its cost, and its loops over later messages.
        self.cost: int = 0
        self.scans: int = 0
        self.segments: Sequence[Segment] = ()
        self.characters: int = 0
        #: The bytes of values of the template that it holds, roughly.
        self.size: int = 0

    def forget(self) -> None:
        """Keeps no values of the template: the turn runs again."""
        self.is_whole = False
        self.before = self.after = self.written = ()
        self.size = 0

    def cost_now(self, plan: Plan, ahead: int) -> int:
        """Returns what the turn would cost with so many messages after it."""
        return self.cost + self.scans * plan.scan_cost * (ahead - self.ahead)


class Run:
    """The turns of a loop in one rendering, in their order: what counts of their records."""

    __slots__ = (
        *("_places", "characters", "costs", "ends", "fixed", "items", "length", "records"),
        *("segments", "sizes", "steady", "tests", "written"),
    )
    _ROWS = ("items", "records", "tests", "written")
    _SUMS = ("characters", "costs", "ends", "sizes")

    def __init__(self) -> None:
        self.fixed: Any = None
        #: The values that its outcomes depend on, and the messages of the loop.
        self.steady: Any = None
        self.length: int = 0
        self._places: dict[int, int] | None = None
        #: The characters, costs, segments and bytes of values up to the end of each turn.
        self.characters: list[int] = []
        self.costs: list[int] = []
        self.ends: list[int] = []
        self.sizes: list[int] = []
        #: The messages; None where a turn must run again.
        self.items: list[Any] = []
        self.records: list[Record] = []
        #: The segments of all turns.
        self.segments: list[Segment] = []
        self.tests: list[Any] = []
        self.written: list[State | None] = []

    def copy(self) -> Run:
        """Returns the same turns, to which others are added."""
        other = Run()
        other.fixed, other.steady, other.length = self.fixed, self.steady, self.length
        for row in (*self._ROWS, *self._SUMS, "segments"):
            setattr(other, row, getattr(self, row).copy())
        return other

    def cut(self, end: int) -> None:
        """Keeps so many turns."""
        del self.segments[sum_of(self.ends, 0, end) :]
        for row in (*self._ROWS, *self._SUMS):
            del getattr(self, row)[end:]
        self._places = None

    def add(self, other: Run, start: int, end: int) -> None:
        """Adds turns of another rendering."""
        for row in self._ROWS:
            getattr(self, row).extend(getattr(other, row)[start:end])
        for row in self._SUMS:
            own, others = getattr(self, row), getattr(other, row)
            more = sum_of(own, 0, len(own)) - sum_of(others, 0, start)
            own += [it + more for it in others[start:end]]
        self.segments += other.segments_of(start, end)

    def add_records(self, records: Iterable[Record]) -> None:
        """Adds turns."""
        characters, costs, sizes = map(sum_of, (self.characters, self.costs, self.sizes))
        for it in records:
            characters, costs, sizes = characters + it.characters, costs + it.cost, sizes + it.size
            self.segments += it.segments
            self.characters.append(characters)
            self.costs.append(costs)
            self.ends.append(len(self.segments))
            self.sizes.append(sizes)
            self.items.append(it.message if it.is_whole else None)
            self.records.append(it)
            self.tests.append(it.tests)
            written = it.written
            if written and all(value is UNWRITTEN for value in written):
                written = ()
            self.written.append(written or None)

    def segments_of(self, start: int, end: int) -> list[Segment]:
        """Returns the segments of turns."""
        return self.segments[sum_of(self.ends, 0, start) : sum_of(self.ends, 0, end)]

    def place(self, item: Any) -> int:
        """Returns the place of a message, or -1."""
        if self.items and self.items[0] is item:
            return 0
        if self._places is None:
            self._places = {id(item): place for place, item in enumerate(self.items)}
        return self._places.get(id(item), -1)


def sum_of(sums: list[int], start: int = 0, end: int | None = None) -> int:
    """Returns the sum over turns, of one up to each."""
    end = len(sums) if end is None else end
    return (sums[end - 1] if end else 0) - (sums[start - 1] if start else 0)
