"""`TemplateSession`: renders a growing conversation by the turns that read something new."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from operator import is_
from sys import getsizeof
from typing import Any

from .. import _forks
from .._core import Labels, Marks, copy_plain, differing
from .origin import Scalar, Traced
from .outcomes import MISSING, Plan
from .plain import Plain, Unkept, kept
from .records import UNWRITTEN, Record, Run, State, sum_of
from .renderer import Compiled, Renderer
from .segments import Segment

__all__ = ["TemplateSession"]

#: Bytes that a session keeps for a message with its turn, for a value in it (a text, a number or a
#: container, in both copies), for a character and a segment, roughly at most.
_MESSAGE, _VALUE, _CHARACTER, _SEGMENT = 1024, 192, 4, 288
#: The parts of a value of a template whose size is looked at; others are like them.
_SAMPLE = 64
#: The parts of a value of a template that are compared.
_MOST_PARTS = 1000
#: The most renderings in a row that are not recorded, after others that reused little.
_MOST_RESTS = 32
#: Turns that may run again without a reason to rest.
_FEW_TURNS = 4
#: Labels that a session may have made in vain.
_MOST_LABELS = 50_000
#: The bytes of what others replaced, or branches have, above which a conversation may begin anew.
_MOST_GONE = 4 << 20


#: Types of values that stay what they are.
_CONSTANTS = frozenset([str, Traced, int, bool, float, type(None), type(MISSING), type(UNWRITTEN)])
#: Types of values that hold no more than a few bytes.
_NUMBERS = frozenset([int, bool, float, type(None), type(MISSING), type(UNWRITTEN)])
#: A mark in place of data that cannot be compared.
_UNKEPT = object()


class TemplateSession(Renderer):
    """The renderings of one conversation, which grows, is edited or branches.

    Renders exactly as `ChatTemplate.render`, but runs only the turns of the template's loops over
    messages that read something else than before. Compares the messages themselves: they may be
    the same objects, changed in place. Any number of threads may use it, one after the other.
    Made by `ChatTemplate.session`.
    """

    def __init__(self, template: Compiled, max_bytes: int):
        self._template = template
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._process = os.getpid()
        #: The turns of all renderings so far, and those of them that were not run.
        self.turns: int = 0
        self.reused_turns: int = 0
        self._steps: list[tuple[Record | None, int, list[Any]]] = []
        self._entries: list[tuple[Plan, tuple[Any, Any, int], Run, list[Any]]] = []
        #: Whether it does not record some renderings, where recording does not pay.
        self.rests: bool = True
        # The renderings that are not recorded from here on, and how many those were the last time.
        self._rests = self._last_rests = 0
        self._clear()

    def _own_lock(self) -> threading.Lock:
        """Returns the lock; in a forked process a new one, since a thread of its parent may have it."""
        if self._process != os.getpid():
            with _forks.lock:
                if self._process != os.getpid():
                    self._lock = threading.Lock()
                    self._clear()
                    self._process = os.getpid()
        return self._lock

    def _clear(self) -> None:
        # An interrupt may come between two lines: labels go after all that has them.
        # What messages were, their labeled copies, and their characters.
        self._kept: list[Any] = []
        self._marks = Marks()
        self._copies: list[dict[Any, Any]] = []
        self._sizes: list[int] = []
        # The values in them.
        self._counts: list[int] = []
        # The same of other data.
        self._data: dict[str, tuple[Any, Any, int, int, Marks]] = {}
        # The records of turns by loop and message, and what all turns of a loop found.
        self._records: dict[Plan, dict[int, Record]] = {}
        self._fixed: dict[Plan, tuple[State, State]] = {}
        self._runs: dict[Plan, Run] = {}
        #: JSON of the caller's data outside of turns.
        self.texts: dict[Any, str] = {}
        # The flags of texts of data outside of turns, by the data, in their order.
        self._flags: dict[int, list[int]] = {}
        #: The bytes that it keeps apart from what its branches have, too, roughly.
        self.own_memory: int = 0
        # The turns of the last rendering.
        self._last_turns = 0
        # The labels after the first rendering.
        self._first_labels: int | None = None
        labels = self._template.new_labels()
        plain = Plain(labels)
        self._labels: Labels = labels
        self._plain = plain
        self._start()

    def _render(
        self, messages: Any, tools: Any, documents: Any, named: dict[str, Any]
    ) -> list[Segment]:
        messages, tools, documents = map(_as_list, (messages, tools, documents))
        with self._own_lock():
            if self._rests or not self._template.reuses_turns:
                self._rests = max(0, self._rests - 1)
                return self._template._render(messages, tools, documents, named)
            shared = self._plain
            try:
                return self._render_anew(messages, tools, documents, named)
            except BaseException:
                # Also of a conversation that was taken in part.
                self._clear()
                raise
            finally:
                shared.count_memory()

    def _render_anew(
        self, messages: list[Any], tools: Any, documents: Any, named: dict[str, Any]
    ) -> list[Segment]:
        """Renders what changed, and records it."""
        turns, reused = self.turns, self.reused_turns
        most_labels = 2 * (self._first_labels or 0) + _MOST_LABELS
        most = 2 * self._held() + max(_MOST_GONE, self._max_bytes // 16)
        if self._labels.count > most_labels or self._plain.labeled > most:
            self._clear()
        try:
            changed = differing(messages, self._kept, self._marks, Segment, False)
            is_another = self.rests and self._is_another(messages, changed)
            if is_another:
                self._rest()
            else:
                given, characters = self._given(messages, changed, tools, documents, named)
        except Exception:
            # The template tells what is wrong with it.
            is_another = True
        if is_another:
            self._clear()
            return self._template._render(messages, tools, documents, named)
        self._start()
        segments = self._template.rendered(given, self._labels, characters, self)
        written = self._steps[-1][2][-1] if self._steps else 0
        self._finish(segments)
        if self._first_labels is None:
            self._first_labels = self._labels.count
        self.own_memory = self._own_bytes(written + sum(map(len, self.texts.values())))
        self._plain.count_memory()
        is_full = self.memory > self._max_bytes
        if is_full:
            self._clear()
        self._weigh(self.turns - turns, self.reused_turns - reused, is_full)
        return segments

    def _weigh(self, turns: int, reused: int, is_full: bool) -> None:
        """Rests if recording did not pay."""
        is_first, known = not self._last_turns, min(turns, self._last_turns)
        self._last_turns = 0 if is_full else turns
        if is_full or not turns or known > 2 * reused + _FEW_TURNS:
            self._rest()
        elif not is_first:
            self._last_rests = 0

    def _rest(self) -> None:
        """Renders whole without recording, for longer and longer."""
        self._last_rests = min(2 * self._last_rests or 1, _MOST_RESTS)
        self._rests = self._last_rests if self.rests else 0

    def _is_another(self, messages: list[Any], changed: list[int]) -> bool:
        """Whether most messages are others than before, from the places of those that are."""
        known = min(len(messages), len(self._kept))
        return 2 * (len(changed) - len(messages) + known) > known + _FEW_TURNS

    def _own_bytes(self, written: int) -> int:
        runs = self._runs.values()
        return (
            _MESSAGE * (1 + len(self._copies))
            + _CHARACTER * written
            + _SEGMENT * sum(len(run.segments) for run in runs)
            + sum(sum_of(run.sizes) for run in runs)
        )

    def _held(self) -> int:
        """Returns the bytes of what is labeled and in use."""
        data = sum(_size(*known[2:4]) for known in self._data.values())
        return _size(sum(self._sizes), sum(self._counts)) + data

    @property
    def template(self) -> Compiled:
        """The template that it renders."""
        return self._template

    @property
    def shared(self) -> Plain:
        """The values and labels that its branches have, too."""
        return self._plain

    @property
    def memory(self) -> int:
        """The bytes that it keeps, roughly, with what others replaced, and what its branches have."""
        return self.own_memory + self._plain.memory

    @property
    def functions(self) -> Mapping[str, Any]:
        """The functions of the template language."""
        return self._template.functions

    def clear(self) -> None:
        """Forgets the conversation."""
        with self._own_lock():
            self._clear()

    def fork(self) -> TemplateSession:
        """Returns a session of the same conversation, which goes on for itself from here.

        Both have their messages once in memory, and only one of the two renders at a time.

        >>> from bpe_engine.prompt import ChatTemplate
        >>> template = ChatTemplate("{% for m in messages %}<{{ m.content }}>{% endfor %}")
        >>> session, messages = template.session(), [{"role": "user", "content": "Hi"}]
        >>> _ = session.render(messages)
        >>> branch = session.fork()
        >>> [
        ...     "".join(part.text for part in it.render([*messages, {"role": "user", "content": it_says}]))
        ...     for it, it_says in ((session, "One"), (branch, "Two"))
        ... ]
        ['<Hi><One>', '<Hi><Two>']
        """
        other = TemplateSession(self._template, self._max_bytes)
        with self._own_lock():
            # Messages that both have are labeled once, so only one of the two renders at a time.
            other._lock, other._labels, other._plain = self._lock, self._labels, self._plain
            for name in ("_kept", "_copies", "_sizes", "_counts", "_data", "_fixed", "texts"):
                setattr(other, name, getattr(self, name).copy())
            other._records = {plan: records.copy() for plan, records in self._records.items()}
            other._runs = {plan: run.copy() for plan, run in self._runs.items()}
            other._flags = {data: flags.copy() for data, flags in self._flags.items()}
            for name in (
                "rests",
                "_rests",
                "_last_rests",
                "own_memory",
                "_last_turns",
                "_first_labels",
            ):
                setattr(other, name, getattr(self, name))
        return other

    @property
    def messages(self) -> int:
        """The number of messages of the last rendering."""
        return len(self._kept)

    def __repr__(self) -> str:
        return f"<TemplateSession of {len(self._copies)} messages>"

    # ---- What is given ----

    def _given(
        self,
        messages: list[Any],
        changed: list[int],
        tools: Any,
        documents: Any,
        named: dict[str, Any],
    ) -> tuple[dict[str, Any], int]:
        """Returns the variables of the template, and their characters."""
        characters = self._take_messages(messages, changed)
        taken: dict[str, Any] = {"messages": list(self._copies)}
        data: dict[str, tuple[Any, Any, int, int, Marks]] = {}
        for name, value in {**named, "tools": tools, "documents": documents}.items():
            known = self._data.get(name)
            if known is None or differing([value], [known[0]], known[4], Segment, True):
                known = self._taken(name, value)
            data[name] = known
            taken[name] = known[1]
            characters += known[2]
        self._data = data
        return taken, characters

    def _taken(self, name: str, value: Any) -> tuple[Any, Any, int, int, Marks]:
        before, values = self._plain.characters, self._plain.values
        as_given, source, *_ = _kept(value)
        if name not in ("tools", "documents"):
            copy = self._plain.named(name, source)
        elif value is None:
            copy = None
        else:
            copy = self._plain.mappings(name, source)
            self._labels.note_data(name, copy)
        characters, count = self._plain.characters - before, self._plain.values - values
        self._plain.labeled += _size(characters, count)
        return as_given, copy, characters, count, Marks()

    def _take_messages(self, messages: list[Any], changed: list[int]) -> int:
        """Copies the messages that are new, and returns the characters of all."""
        first_new = len(self._kept)
        gone = [self._copies[place] for place in changed if place < first_new]
        gone += self._copies[len(messages) :]
        for records in self._records.values():
            for copy in gone:
                records.pop(id(copy), None)
        rows: tuple[list[Any], ...] = (self._kept, self._copies, self._sizes, self._counts)
        for row in rows:
            del row[len(messages) :]
        other = self._plain.other
        for place in changed:
            before, values = self._plain.characters, self._plain.values
            as_given, source, size, count, others = _kept(messages[place])
            if others:
                copy, size, count, _ = copy_plain(source, other)
                size += self._plain.characters - before
                count += self._plain.values - values
            else:
                # Nothing changes what is in it, so the template may read the copy itself.
                copy = source.copy() if type(source) is dict else source
            if type(copy) is not dict:
                raise TypeError("a message must be a dict")
            self._plain.labeled += _size(size, count)
            for row, item in zip(rows, (as_given, copy, size, count)):
                if place < len(row):
                    row[place] = item
                else:
                    row.append(item)
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
        self.open: Record | None = None
        # The bytes of values of the template that the records of this rendering hold.
        self._recorded: int = 0
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

    def begin(self, plan: Plan, found: tuple[Any, Any, int], run: Run) -> list[Any]:
        """Begins a loop that found this, last the number of its turns. Returns a list for the places of
        turns in the last rendering, and records."""
        self.is_stepping = True
        self.turns += found[2]
        entries: list[Any] = []
        self._entries.append((plan, found, run, entries))
        return entries

    def run(self, plan: Plan) -> Run:
        """Returns the turns of a loop in the last rendering."""
        return self._runs.get(plan) or Run()

    def _finish(self, segments: list[Segment]) -> None:
        """Notes what the turns wrote that were run."""
        for (record, _, output), (_, reused, after) in zip(self._steps, self._steps[1:]):
            if record is not None:
                record.segments = tuple(segments[output[-2] : after[-2] - reused])
                record.characters = after[-1] - after[0] - output[-1]
        for plan, found, old, entries in self._entries:
            records, run = self._records[plan], Run()
            if entries and _is_part(entries[0]) and entries[0][0] == 0:
                if not any(map(_is_part, entries[1:])):
                    # Nearly always, turns are added to those of the last rendering.
                    run = old
                    run.cut(entries.pop(0)[1])
            run.fixed, run.steady, run.length = found
            for is_part, some in groupby(entries, _is_part):
                if is_part:
                    for part in some:
                        run.add(old, *part)
                    continue
                new = list(some)
                run.add_records(new)
                records.update((id(it.message), it) for it in new if it.is_whole)
            self._runs[plan] = run
        self._start()

    def records(self, plan: Plan) -> dict[int, Record]:
        """Returns the records of the turns of a loop, by the identities of messages."""
        return self._records.setdefault(plan, {})

    def are_messages(self, items: Any) -> bool:
        """Whether they are messages, each once."""
        if type(items) is not list or not items:
            return False
        copies = self._copies[len(self._copies) - len(items) :]
        if len(copies) == len(items):
            if all(map(is_, items, copies)) or all(map(is_, items, reversed(copies))):
                return True
        ids = set(map(id, items))
        return len(ids) == len(items) and ids.issubset(map(id, self._copies))

    def fixed(self, plan: Plan, found: State, outcomes: State) -> tuple[State, State]:
        """Returns what all turns of a loop find: the same object as before if it is the same."""
        known = self._fixed.get(plan)
        if known is None or known[1] != outcomes or not self.is_same(known[0], found):
            known = self._fixed[plan] = found, outcomes
        return known

    def is_same(self, state: State, other: State) -> bool:
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

    def size_of(self, state: Sequence[Any]) -> int:
        """Returns the bytes of values of a template, roughly."""
        return sum(_size_of(value, [_SAMPLE]) for value in state if type(value) not in _NUMBERS)

    def has_room(self, size: int) -> bool:
        """Whether a turn may be recorded that holds so many bytes of values of the template."""
        self._recorded += size
        return self._recorded <= self._max_bytes


def _size(characters: int, values: int) -> int:
    # A text is there as it was given and with its label.
    return _CHARACTER * characters + _VALUE * values


def _size_of(value: Any, room: list[int]) -> int:
    room[0] -= 1
    size = getsizeof(value)
    if type(value) not in (dict, list, tuple) or not value:
        return size
    parts = [*value, *value.values()] if type(value) is dict else value
    looked = [_size_of(part, room) for part in parts[: max(1, room[0])]]
    return size + sum(looked) * len(parts) // len(looked)


def _is_constant(value: Any) -> bool:
    return type(value) in _CONSTANTS or isinstance(value, Scalar)


def _is_part(entry: Any) -> bool:
    """Whether it is a part of the last rendering, and no record."""
    return type(entry) is tuple


def _as_list(data: Any) -> Any:
    """Returns data that can be gone through once as a list."""
    is_other = isinstance(data, (str, bytes, Mapping)) or not isinstance(data, Iterable)
    return data if is_other or type(data) is list else list(data)


def _kept(value: Any) -> tuple[Any, Any, int, int, int]:
    """Returns a copy of data to compare later data with, the data to copy for the template, and the
    numbers of characters, of values, and of those that are not plain."""
    try:
        as_given, *counts = kept(value)
    except Unkept:
        return _UNKEPT, value, 0, 0, 1
    return as_given, as_given, *counts
