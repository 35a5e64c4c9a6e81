"""`TemplateSession`: renders a growing conversation by the turns that read something new."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import compress
from operator import is_, is_not, ne
from typing import Any, Protocol

from jinja2.runtime import LoopContext, Macro
from jinja2.utils import missing

from .._core import Labels, copy_plain, differing
from .encode import Engine
from .language import TemplateNamespace
from .limits import active
from .origin import Scalar, Traced, opened, values
from .plain import Plain, Unkept, kept
from .segments import Segment
from .turns import MISSING, Plan

__all__ = ["TemplateSession", "looped", "turns_of"]

#: Bytes that a session keeps for a message, and for a character, at most but for hostile ones.
_MESSAGE, _CHARACTER = 4096, 8
#: The parts of a value of a template that are compared.
_MOST_PARTS = 1000
#: Labels that a session may have made in vain.
_MOST_LABELS = 50_000
#: The turns that are compared at once behind one that was run.
_FEW = 8


class _Unwritten:
    """The value of attributes that a turn did not set."""


_UNWRITTEN = _Unwritten()
#: Types of values that stay what they are.
_CONSTANTS = frozenset([str, Traced, int, bool, float, type(None), type(MISSING), type(_UNWRITTEN)])
#: A mark in place of data that cannot be compared.
_UNKEPT = object()

_State = tuple[Any, ...]


class Renderer(Protocol):
    """The part of a `ChatTemplate` that a session needs."""

    @property
    def functions(self) -> Mapping[str, Any]:
        """The functions of the template language."""

    def new_labels(self) -> Labels:
        """Returns the origins of values: none so far."""

    def checked(self, variables: dict[str, Any], tokenizer: Engine | None) -> dict[str, Any]:
        """Returns the variables of a caller, with special tokens for their names."""

    def rendered(
        self, values: dict[str, Any], labels: Labels, given: int, session: Any = None
    ) -> list[Segment]:
        """Renders plain values with so many characters."""

    def render(self, /, messages: Any, **options: Any) -> list[Segment]:
        """Renders a conversation."""


class TemplateSession:
    """The renderings of one conversation, which grows, is edited or branches.

    Renders exactly as `ChatTemplate.render`, but runs only the turns of the template's loops over
    messages that read something else than before. Compares the messages themselves: they may be
    the same objects, changed in place. Any number of threads may use it, one after the other.
    Made by `ChatTemplate.session`.
    """

    def __init__(self, template: Renderer, max_bytes: int):
        self._template = template
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        #: The turns of all renderings so far, and those of them that were not run.
        self.turns: int = 0
        self.reused_turns: int = 0
        self._steps: list[tuple[_Record | None, int, list[Any]]] = []
        self._entries: list[tuple[Plan, Any, _Run, list[Any]]] = []
        self._clear()

    def _clear(self) -> None:
        self._labels: Labels = self._template.new_labels()
        self._plain = Plain(self._labels)
        # What messages were, their labeled copies, and their characters.
        self._kept: list[Any] = []
        self._copies: list[dict[Any, Any]] = []
        self._sizes: list[int] = []
        # The same of other data.
        self._data: dict[str, tuple[Any, Any, int]] = {}
        # The records of turns by loop and message, and what all turns of a loop found.
        self._records: dict[Plan, dict[int, _Record]] = {}
        self._fixed: dict[Plan, tuple[_State, _State]] = {}
        self._runs: dict[Plan, _Run] = {}
        #: JSON of the caller's data outside of turns.
        self.texts: dict[Any, str] = {}
        # The flags of texts of data outside of turns, by the data, in their order.
        self._flags: dict[int, list[int]] = {}
        #: The bytes that it keeps, roughly.
        self.memory: int = 0
        # The labels after the first rendering.
        self._first_labels: int | None = None
        self._start()

    def render(
        self,
        /,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        documents: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = False,
        tokenizer: Engine | None = None,
        **variables: Any,
    ) -> list[Segment]:
        """See `render_template`."""
        variables = self._template.checked(variables, tokenizer)
        messages, tools, documents = map(_as_list, (messages, tools, documents))
        named = {**variables, "add_generation_prompt": add_generation_prompt}
        with self._lock:
            if self._labels.count > 2 * (self._first_labels or 0) + _MOST_LABELS:
                self._clear()
            try:
                given, characters = self._given(messages, tools, documents, named)
            except Exception:
                # `render` tells what is wrong with it.
                self._clear()
                return self._template.render(
                    messages,
                    tools=tools,
                    documents=documents,
                    add_generation_prompt=add_generation_prompt,
                    **variables,
                )
            self._start()
            try:
                segments = self._template.rendered(given, self._labels, characters, self)
                written = self._steps[-1][2][-1] if self._steps else 0
                self._finish(segments)
            except BaseException:
                self._clear()
                raise
            if self._first_labels is None:
                self._first_labels = self._labels.count
            written += sum(map(len, self.texts.values()))
            self.memory = _CHARACTER * (characters + written) + _MESSAGE * len(self._copies)
            if self.memory > self._max_bytes:
                self._clear()
            return segments

    @property
    def functions(self) -> Mapping[str, Any]:
        """The functions of the template language."""
        return self._template.functions

    def clear(self) -> None:
        """Forgets the conversation."""
        with self._lock:
            self._clear()

    def shared(self, messages: Sequence[Any]) -> int:
        """Returns how many messages at the beginning are those of the last rendering."""
        if type(messages) is not list:
            return 0
        different = differing(messages, self._kept, Segment, True)
        return different[0] if different else len(messages)

    @property
    def messages(self) -> int:
        """The number of messages of the last rendering."""
        return len(self._kept)

    def __repr__(self) -> str:
        return f"<TemplateSession of {len(self._copies)} messages>"

    # ---- What is given ----

    def _given(
        self, messages: Any, tools: Any, documents: Any, named: dict[str, Any]
    ) -> tuple[dict[str, Any], int]:
        """Returns the variables of the template, and their characters."""
        characters = self._take_messages(messages)
        taken: dict[str, Any] = {"messages": list(self._copies)}
        data: dict[str, tuple[Any, Any, int]] = {}
        for name, value in {**named, "tools": tools, "documents": documents}.items():
            known = self._data.get(name)
            if known is None or differing([value], [known[0]], Segment, True):
                known = self._taken(name, value)
            data[name] = known
            taken[name] = known[1]
            characters += known[2]
        self._data = data
        return taken, characters

    def _taken(self, name: str, value: Any) -> tuple[Any, Any, int]:
        before = self._plain.characters
        as_given, source = _kept(value)
        if name not in ("tools", "documents"):
            copy = self._plain.named(name, source)
        elif value is None:
            copy = None
        else:
            copy = self._plain.mappings(name, source)
            self._labels.note_data(name, copy)
        return as_given, copy, self._plain.characters - before

    def _take_messages(self, messages: list[Any]) -> int:
        """Copies the messages that are new, and returns the characters of all."""
        changed = differing(messages, self._kept, Segment, False)
        first_new = len(self._kept)
        gone = [self._copies[place] for place in changed if place < first_new]
        gone += self._copies[len(messages) :]
        for records in self._records.values():
            for copy in gone:
                records.pop(id(copy), None)
        for row in (self._kept, self._copies, self._sizes):
            del row[len(messages) :]
        other = self._plain.other
        for place in changed:
            before = self._plain.characters
            as_given, source = _kept(messages[place])
            copy, size = copy_plain(source, other)
            if type(copy) is not dict:
                raise TypeError("a message must be a dict")
            size += self._plain.characters - before
            if place == len(self._kept):
                self._kept.append(as_given)
                self._copies.append(copy)
                self._sizes.append(size)
                continue
            for row, item in zip((self._kept, self._copies, self._sizes), (as_given, copy, size)):
                row[place] = item
        self._labels.note_messages(self._copies, changed)
        return sum(self._sizes)

    # ---- Turns ----

    def _start(self) -> None:
        #: Segments of turns that are not run, not given out yet, and their characters.
        self.parts: list[Sequence[Segment]] = []
        self.characters: int = 0
        self._steps.clear()
        self._entries.clear()
        # How often a text of data was made outside of turns.
        self._written: dict[int, int] = {}
        #: The record of the turn that runs.
        self.open: _Record | None = None
        #: The loops over later messages that ran.
        self.scans: int = 0
        #: Whether the steps of a loop are given out.
        self.is_stepping: bool = False

    def step(self) -> list[Any] | None:
        """Returns what turns that were not run wrote, for `collect_segments`."""
        if not self.is_stepping:
            return None
        output = [self.characters, *self.parts] if self.parts else [0]
        # The record of the turn that is run now, and the segments before it.
        self._steps.append((self.open, sum(map(len, self.parts)), output))
        if self.parts:
            self.parts, self.characters = [], 0
        self.is_stepping = self.open is not None
        return output

    def flags_again(self, data: int, flags: int) -> int:
        """Returns the flags of a text of data outside of turns: those of the text that was made of
        it as often before in the last rendering, or else these."""
        known, time = self._flags.setdefault(data, []), self._written.get(data, 0)
        self._written[data] = time + 1
        if time == len(known):
            known.append(flags)
        return known[time]

    def begin(self, plan: Plan, fixed: Any, run: _Run, turns: int) -> list[Any]:
        """Begins a loop. Returns a list for the places of turns in the last one, and records."""
        self.is_stepping = True
        self.turns += turns
        entries: list[Any] = []
        self._entries.append((plan, fixed, run, entries))
        return entries

    def run(self, plan: Plan) -> _Run:
        """Returns the turns of a loop in the last rendering."""
        return self._runs.get(plan) or _Run(None)

    def _finish(self, segments: list[Segment]) -> None:
        """Notes what the turns wrote that were run."""
        for (record, _, output), (_, reused, after) in zip(self._steps, self._steps[1:]):
            if record is not None:
                record.segments = tuple(segments[output[-2] : after[-2] - reused])
                record.characters = after[-1] - after[0] - output[-1]
        for plan, fixed, old, entries in self._entries:
            new, records = _Run(fixed), self._records[plan]
            for is_part, group in itertools.groupby(entries, _is_part):
                if is_part:
                    for start, end in group:
                        new.add(old, start, end)
                    continue
                some = list(group)
                new.add_records(some)
                records.update((id(it.message), it) for it in some if it.is_whole)
            self._runs[plan] = new
        self._start()

    def records(self, plan: Plan) -> dict[int, _Record]:
        """Returns the records of the turns of a loop, by the identities of messages."""
        return self._records.setdefault(plan, {})

    def are_messages(self, items: Any) -> bool:
        """Whether they are messages, each once."""
        if type(items) is not list or not items:
            return False
        copies = self._copies[len(self._copies) - len(items) :]
        if len(copies) == len(items) and all(map(is_, items, copies)):
            return True
        ids = set(map(id, items))
        return len(ids) == len(items) and ids.issubset(map(id, self._copies))

    def fixed(self, plan: Plan, found: _State, outcomes: _State) -> tuple[_State, _State]:
        """Returns what all turns of a loop find: the same object as before if it is the same."""
        known = self._fixed.get(plan)
        if known is None or known[1] != outcomes or not self.is_same(known[0], found):
            known = self._fixed[plan] = found, outcomes
        return known

    def is_same(self, state: _State, other: _State) -> bool:
        """Whether values of a template are the same, also in their origin."""
        room = [_MOST_PARTS]
        return all(one is two or self._are_same(one, two, room) for one, two in zip(state, other))

    def _are_same(self, one: Any, two: Any, room: list[int]) -> bool:
        room[0] -= 1
        if one is two:
            return True
        kind = type(one)
        if kind is not type(two) or room[0] < 0:
            return False
        if kind is str or kind is int:
            return bool(one == two)
        if kind is Traced:
            return str.__eq__(one, two) and one._flags == two._flags
        if kind is float:
            return repr(one) == repr(two)
        if kind not in (dict, list, tuple) or len(one) != len(two):
            return False
        if self._labels.knows(one) or self._labels.knows(two):
            return False
        if kind is dict:
            one, two = ([*it, *it.values()] for it in (one, two))
        return all(self._are_same(*pair, room) for pair in zip(one, two))

    def is_plain(self, state: Sequence[Any]) -> bool:
        """Whether values of a template stay what they are."""
        room = [_MOST_PARTS]
        for value in state:
            if type(value) not in _CONSTANTS and not self._is_plain(value, room):
                return False
        return True

    def _is_plain(self, value: Any, room: list[int]) -> bool:
        room[0] -= 1
        if _is_constant(value):
            return True
        if type(value) not in (dict, list, tuple) or room[0] < 0:
            return False
        parts = [*value, *value.values()] if type(value) is dict else value
        return self._labels.knows(value) or all(self._is_plain(part, room) for part in parts)


def _is_constant(value: Any) -> bool:
    return type(value) in _CONSTANTS or isinstance(value, Scalar)


class _Record:
    """The reads and writes of a turn."""

    __slots__ = (
        *("after", "ahead", "before", "characters", "cost", "fixed", "is_whole", "message"),
        *("scans", "segments", "tests", "written"),
    )

    def __init__(self, message: Any, fixed: Any, tests: Any, before: _State, ahead: int):
        self.message = message
        self.fixed = fixed
        self.tests = tests
        #: Attributes of namespaces before and after it, and those that are only written.
        self.before: _State = before
        self.after: _State = before
        self.written: _State = ()
        #: The messages after it.
        self.ahead = ahead
        #: Whether it came to its end and wrote what can be written again.
        self.is_whole: bool = True
        #: Its cost, and its loops over later messages.
        self.cost: int = 0
        self.scans: int = 0
        self.segments: Sequence[Segment] = ()
        self.characters: int = 0

    def cost_now(self, plan: Plan, ahead: int) -> int:
        """Returns what the turn would cost with so many messages after it."""
        return self.cost + self.scans * plan.scan_cost * (ahead - self.ahead)


class _Run:
    """The turns of a loop in one rendering, in their order: what counts of their records."""

    __slots__ = (
        *("_places", "characters", "costs", "counts", "fixed", "items", "records", "segments"),
        *("tests", "written"),
    )
    _ROWS = ("characters", "costs", "counts", "items", "records", "tests", "written")

    def __init__(self, fixed: Any):
        self.fixed: Any = fixed
        self._places: dict[int, int] | None = None
        self.characters: list[int] = []
        self.costs: list[int] = []
        #: The messages; None where a turn must run again.
        self.items: list[Any] = []
        self.records: list[_Record] = []
        #: The segments of all turns, and how many each has.
        self.segments: list[Segment] = []
        self.counts: list[int] = []
        self.tests: list[Any] = []
        self.written: list[_State | None] = []

    def add(self, other: _Run, start: int, end: int) -> None:
        """Adds turns of another rendering."""
        for row in self._ROWS:
            getattr(self, row).extend(getattr(other, row)[start:end])
        self.segments += other.segments_of(start, end)

    def add_records(self, records: list[_Record]) -> None:
        """Adds turns."""
        self.characters += [it.characters for it in records]
        self.costs += [it.cost for it in records]
        self.items += [it.message if it.is_whole else None for it in records]
        self.records += records
        self.counts += [len(it.segments) for it in records]
        for it in records:
            self.segments += it.segments
        self.tests += [it.tests for it in records]
        self.written += [
            it.written if any(map(is_not, it.written, itertools.repeat(_UNWRITTEN))) else None
            for it in records
        ]

    def segments_of(self, start: int, end: int) -> list[Segment]:
        """Returns the segments of turns."""
        first = sum(self.counts[:start])
        return self.segments[first : first + sum(self.counts[start:end])]

    def place(self, item: Any) -> int:
        """Returns the place of a message, or -1."""
        if self._places is None:
            self._places = {id(item): place for place, item in enumerate(self.items)}
        return self._places.get(id(item), -1)


class _Turns:
    """The turns of a loop that are to be run."""

    def __init__(
        self,
        session: TemplateSession,
        plan: Plan,
        found: _State,
        items: list[Any],
        tested: Callable[[int, Any], Any] | None,
        tested_many: Callable[[int, int], list[Any]] | None,
        fixed: Any,
    ):
        self._session = session
        self._plan = plan
        self._items = items
        self._tested = tested
        self._tested_many = tested_many
        self._fixed = fixed
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
        entries = session.begin(self._plan, fixed, run, len(items))
        read = self._read
        state, is_behind = _state(read), False
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
                    session.characters += sum(run.characters[start:end])
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
            record = _Record(item, fixed, tests, state, last - place)
            if written:
                unwritten = _state(written)
                for space, name in written:
                    space[name] = _UNWRITTEN
            session.open, session.scans = record, 0
            room = limits.room
            try:
                yield item, loop
            finally:
                session.open = None
                if written:
                    record.written = _state(written)
                    for attribute, value, now in zip(written, unwritten, record.written):
                        if now is _UNWRITTEN:
                            _write([attribute], (value,))
            record.cost, record.scans = room - limits.room, session.scans
            if read:
                after = _state(read)
                new = [now for now, before in zip(after, state) if now is not before]
                if new:
                    record.after = state = after
                    record.is_whole = session.is_plain(new)
            if written:
                record.is_whole &= session.is_plain(record.written)
            if tests is None:
                record.is_whole = False
            entries.append(record)
            place += 1
        if is_behind:
            _write(read, state)
        if limits.room < limits.next_look:
            limits.check(0)

    def _leap(self, run: _Run, place: int, start: int, most: int, state: _State) -> int:
        """Returns how many turns from a place on are those of the last rendering from `start` on,
        and takes off what they cost."""
        items, limits, most = self._items, active.limits, min(most, len(run.records) - start)
        if most <= 0 or not self._session.is_same(run.records[start].before, state):
            return 0
        differ = map(is_not, items[place : place + most], run.items[start : start + most])
        count: int = next(compress(itertools.count(), differ), min(most, len(items) - place))
        if count and self._tested_many is not None:
            try:
                tests = self._tested_many(place, place + count)
            except Exception:  # one of them cannot be computed
                return 0
            before = run.tests[start : start + count]
            if tests != before:
                count = next(compress(itertools.count(), map(ne, tests, before)))
        cost = sum(run.costs[start : start + count])
        if self._plan.scan is not None:
            ahead = range(len(items) - place - 1, 0, -1)
            chosen = zip(run.records[start : start + count], itertools.chain(ahead, (0,)))
            cost = sum(record.cost_now(self._plan, messages) for record, messages in chosen)
        if cost > limits.characters or cost > limits.room:
            return 0
        limits.room -= cost
        return count


def _is_part(entry: Any) -> bool:
    """Whether it is a part of the last rendering, and no record."""
    return type(entry) is tuple


def turns_of(plan: Plan, found: _State) -> Callable[[Any], Any]:
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
            tested, many, outcomes = plan.tests(seen, items, len(items), session._labels.turn)
        except Exception:  # it cannot be computed: all turns run
            return items
        fixed = session.fixed(plan, tuple(seen[place] for place in sorted(plan.values)), outcomes)
        return _Turns(session, plan, seen, items, tested, many, fixed)

    return chosen


def looped(items: Any, undefined: Any) -> Any:
    """Returns the turns of a loop that reads its own attributes."""
    if type(items) is _Turns:
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


def _state(attributes: list[tuple[dict[str, Any], str]]) -> _State:
    return tuple([space.get(name, MISSING) for space, name in attributes])


def _write(
    attributes: list[tuple[dict[str, Any], str]], state: _State, is_mark: bool = False
) -> None:
    for (space, name), value in zip(attributes, state):
        if value is MISSING:
            space.pop(name, None)
        elif value is not _UNWRITTEN or is_mark:
            space[name] = value


def _as_list(data: Any) -> Any:
    """Returns data that can be gone through once as a list."""
    is_other = isinstance(data, (str, bytes, Mapping)) or not isinstance(data, Iterable)
    return data if is_other or type(data) is list else list(data)


def _kept(value: Any) -> tuple[Any, Any]:
    """Returns a copy of data to compare later data with, and the data to copy for the template."""
    try:
        as_given = kept(value)
    except Unkept:
        return _UNKEPT, value
    return as_given, as_given
