"""The turns of a template's loop in a session: those that are what they were, and those that run."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from itertools import compress
from operator import is_not, ne
from typing import Any

from jinja2.runtime import LoopContext, Macro
from jinja2.utils import missing

from .language import TemplateNamespace
from .limits import active
from .origin import opened, values
from .outcomes import MISSING, Plan
from .records import UNWRITTEN, Record, Run, State, sum_of
from .session import TemplateSession

__all__ = ["looped", "turns_of"]

#: The turns that are compared at once behind one that was run.
_FEW = 8


class Turns:
    """The turns of a loop that are to be run."""

    def __init__(
        self,
        session: TemplateSession,
        plan: Plan,
        found: State,
        items: list[Any],
        tested: Callable[[int, Any], Any] | None,
        tested_many: Callable[[int, int], list[Any]] | None,
        fixed: Any,
        steady: Any,
    ):
        self._session = session
        self._plan = plan
        self._items = items
        self._tested = tested
        self._tested_many = tested_many
        self._fixed = fixed
        self._steady = steady
        self._read = [(_attributes(found[place]), name) for place, name in plan.read]
        self._written = [(_attributes(found[place]), name) for place, name in plan.only_written]

    def __iter__(self) -> Iterator[Any]:
        for item, _ in self.run(None):
            yield item

    def run(self, loop: LoopContext | None) -> Iterator[tuple[Any, Any]]:
        """Yields the messages of turns that are to be run, with the loop."""
        session, items, tested, fixed = self._session, self._items, self._tested, self._fixed
        limits, records, written = active.limits, session.records(self._plan), self._written
        run, last = session.run(self._plan), len(items) - 1
        entries = session.begin(self._plan, (fixed, self._steady, len(items)), run)
        read = self._read
        state, is_behind, is_known = _state(read), False, True
        tests: Any = ()
        place, start, most = 0, 0, len(items)
        while place <= last:
            if start >= 0:
                # The turns of the last rendering from `start` on may be those from here on.
                count = self._leap(run, place, start, most, state) if run.fixed is fixed else 0
                if count:
                    end = start + count
                    entries.append((start, end))
                    session.reused_turns += count
                    session.parts.append(run.segments_of(start, end))
                    session.characters += sum_of(run.characters, start, end)
                    if written:
                        for values in filter(None, run.written[start:end]):
                            _write(written, values)
                    state, is_behind = run.records[end - 1].after, True
                    place += count
                    start = end if count == most else -1
                    most *= 2
                    continue
                start = -1
            item = items[place]
            if tested is not None:
                try:
                    tests = tested(place, item)
                except Exception:  # it cannot be computed: the turn runs
                    tests = None
            record = records.get(id(item)) if records else None
            if (
                record is not None
                and record.tests == tests
                and record.fixed is fixed
                and (record.before is state or session.is_same(record.before, state))
            ):
                cost = (
                    record.cost if not record.scans else record.cost_now(self._plan, last - place)
                )
                if cost <= limits.characters and cost <= limits.room:
                    limits.room -= cost
                    entries.append(record)
                    session.reused_turns += 1
                    session.parts.append(record.segments)
                    session.characters += record.characters
                    if record.after is not state:
                        state, is_behind = record.after, True
                    if record.written:
                        _write(written, record.written)
                    start, most = run.place(item) + 1 or -1, _FEW
                    place += 1
                    continue
            if is_behind:
                _write(read, state)
                is_behind = False
            if limits.room < limits.next_look:
                limits.check(0)
            if loop is not None:
                _advance(loop, items, place)
            record = Record(item, fixed, tests, state, last - place)
            if written:
                unwritten = _state(written)
                for space, name in written:
                    space[name] = UNWRITTEN
            session.open, session.scans = record, 0
            room = limits.room
            try:
                yield item, loop
            finally:
                session.open = None
                if written:
                    record.written = _state(written)
                    for attribute, value, now in zip(written, unwritten, record.written):
                        if now is UNWRITTEN:
                            _write([attribute], (value,))
            record.cost, record.scans = room - limits.room, session.scans
            was_known, new = is_known, []
            if read:
                after = _state(read)
                new = [now for now, before in zip(after, state) if now is not before]
                if new:
                    record.after = state = after
                    is_known = session.is_plain(new if is_known else after)
            if new or written:
                record.size = session.size_of((*new, *record.written))
            if (
                not (was_known and is_known and tests is not None)
                or not session.has_room(record.size)
                or not session.is_plain(record.written)
            ):
                record.forget()
            entries.append(record)
            place += 1
        if is_behind:
            _write(read, state)
        if limits.room < limits.next_look:
            limits.check(0)

    def _leap(self, run: Run, place: int, start: int, most: int, state: State) -> int:
        """Returns how many turns from a place on are those of the last rendering from `start` on,
        and takes off what they cost."""
        items, limits, most = self._items, active.limits, min(most, len(run.records) - start)
        if most <= 0 or not self._session.is_same(run.records[start].before, state):
            return 0
        differ = map(is_not, items[place : place + most], run.items[start : start + most])
        count: int = next(compress(itertools.count(), differ), min(most, len(items) - place))
        same = self._same_outcomes(run, start, count) if place == start else 0
        if same:
            count = same
        elif count and self._tested_many is not None:
            try:
                tests = self._tested_many(place, place + count)
            except Exception:  # one of them cannot be computed
                return 0
            before = run.tests[start : start + count]
            if tests != before:
                count = next(compress(itertools.count(), map(ne, tests, before)))
        cost = sum_of(run.costs, start, start + count)
        if self._plan.scan is not None:
            ahead = range(len(items) - place - 1, 0, -1)
            chosen = zip(run.records[start : start + count], itertools.chain(ahead, (0,)))
            cost = sum(record.cost_now(self._plan, messages) for record, messages in chosen)
        if cost > limits.characters or cost > limits.room:
            return 0
        limits.room -= cost
        return count

    def _same_outcomes(self, run: Run, place: int, count: int) -> int:
        """Returns how many turns from a place on, whose messages are those of the last rendering, have
        the same outcomes, without testing them."""
        items, tested = self._items, self._tested
        if self._steady is None or run.steady is None or tested is None or not count:
            return 0
        (inputs, lists), (inputs_before, lists_before) = self._steady, run.steady
        if not all(map(_is_same_input, inputs, inputs_before)):
            return 0
        if place == 0:
            # Before the first message is the last one.
            try:
                if tested(0, items[0]) != run.tests[0]:
                    return 0
            except Exception:  # it cannot be computed
                return 0
        if len(items) != run.length:
            count = min(count, min(len(items), run.length) - 1 - place)
        for now, before in zip(lists, lists_before):
            differ = map(is_not, now, before)
            most = next(compress(itertools.count(), differ), min(len(now), len(before)))
            if most < max(len(now), len(before)):
                count = min(count, most - 1 - place)
        return max(count, 0)


def _is_same_input(one: Any, two: Any) -> bool:
    """Whether a value that tests read is what it was."""
    kind = type(one)
    is_simple = kind is int or kind is str or kind is bool
    return one is two or (is_simple and kind is type(two) and bool(one == two))


def turns_of(plan: Plan, found: State) -> Callable[[Any], Any]:
    """Returns a function that takes the items of a loop, and returns those of turns to run.

    Args:
        plan: What the turns read.
        found: The values of the variables from outside.
    """
    session: TemplateSession | None = values.session
    if session is None:
        return opened

    def chosen(items: Any) -> Any:
        items = opened(items)
        if not session.are_messages(items):
            return items
        seen = tuple(MISSING if value is missing else value for value in found)
        functions = session.functions
        if (
            any(type(seen[place]) is not TemplateNamespace for place in plan.spaces)
            or any(type(seen[place]) is not Macro for place in plan.macros)
            or any(seen[place] is not functions[plan.names[place]] for place in plan.functions)
        ):
            return items
        try:
            tested, many, outcomes, steady = plan.tests(
                seen, items, len(items), session._labels.turn
            )
        except Exception:  # it cannot be computed: all turns run
            return items
        fixed = session.fixed(plan, tuple(seen[place] for place in sorted(plan.values)), outcomes)
        return Turns(session, plan, seen, items, tested, many, fixed, steady)

    return chosen


def looped(items: Any, undefined: Any) -> Any:
    """Returns the turns of a loop that reads its own attributes."""
    if type(items) is Turns:
        return items.run(LoopContext(items._items, undefined))
    return LoopContext(items, undefined)


def _advance(loop: LoopContext, items: list[Any], place: int) -> None:
    """Puts a loop before a place of its list, as if it had gone there."""
    if loop.index0 != place - 1:
        loop.index0 = place - 1
        loop._current = items[place - 1]
        loop._after = missing
        iterator: Any = iter(items)
        iterator.__setstate__(place)
        loop._iterator = iterator
    next(loop)


def _attributes(space: TemplateNamespace) -> dict[str, Any]:
    attributes: dict[str, Any] = object.__getattribute__(space, "_Namespace__attrs")
    return attributes


def _state(attributes: list[tuple[dict[str, Any], str]]) -> State:
    return tuple([space.get(name, MISSING) for space, name in attributes])


def _write(
    attributes: list[tuple[dict[str, Any], str]], state: State, is_mark: bool = False
) -> None:
    for (space, name), value in zip(attributes, state):
        if value is MISSING:
            space.pop(name, None)
        elif value is not UNWRITTEN or is_mark:
            space[name] = value
