"""`TemplateCache`: renders what the conversations of a server have anew."""

from __future__ import annotations

import contextlib
import marshal
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .. import _forks
from .._arguments import whole_number

if TYPE_CHECKING:
    from ..prompt.segments import Segment
    from ..prompt.session import TemplateSession

__all__ = ["TemplateCache"]

#: The most conversations.
_MOST = 1024
#: The bytes of what is kept of a conversation that came only once.
_BASE = 4096
#: The messages at the end of a conversation of which others may take the place.
_REPLACED = 2
#: The characters of a longer content that its mark depends on, at each end and between.
_LOOKED_AT = 512


class _Known:
    """A conversation that no thread uses. It has no session while it came only once. Its keys are the
    marks of its last beginnings, the longest first."""

    __slots__ = ("keys", "memory", "session", "shared")
    #: The values and labels of all branches, and the template.
    shared: tuple[Any, ...]

    def __init__(self, session: TemplateSession | None, keys: list[int]):
        self.session = session
        self.keys = keys
        self.memory: int = _BASE + (session.own_memory if session is not None else 0)
        self.shared = () if session is None else (session.shared, session.template)

    def is_of(self, template: str) -> bool:
        """Whether it has that template: the marks of others may be the same."""
        known = None if self.session is None else self.session.template
        return known is None or template in (known, known.source)


class TemplateCache:
    """Renders requests by the turns that earlier requests did not have.

    For servers: each turn of a conversation comes as a whole request again. Requests need no
    session: the conversation that goes on is found by its messages. The first request of one is
    rendered whole, the second one is recorded. What is rendered is exactly what
    `ChatTemplate.render` renders. Conversations that branch live side by side. Those that were not used
    for longest are dropped first. Any number of threads may use a cache; a forked process begins without
    conversations.

    Args:
        max_bytes: The most memory for conversations, roughly.

    >>> from bpe_engine.serving import TemplateCache
    >>> template = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}"
    >>> messages = [{"role": "user", "content": f"Number {i}"} for i in range(100)]
    >>> cache = TemplateCache()
    >>> for count in (98, 99):
    ...     segments = cache.render(template, messages[:count])
    >>> [segment.text for segment in cache.render(template, messages)[-4:]]
    ['<|', 'user', '|>', 'Number 99']
    >>> cache.turns, cache.reused_turns
    (199, 99)
    """

    def __init__(self, *, max_bytes: int = 256 << 20):
        self._max_bytes = whole_number("max_bytes", max_bytes)
        #: The turns of requests that continue conversations, and those of them that were not run.
        self.turns: int = 0
        self.reused_turns: int = 0
        self._start()

    def _start(self) -> None:
        self._lock = threading.Lock()
        self._forget()
        self._process = os.getpid()

    def _forget(self) -> None:
        # Those that no thread uses, the one that was used last at the end, by their identities.
        self._idle: dict[int, _Known] = {}
        # The same by marks of their beginnings.
        self._places: dict[int, dict[int, _Known]] = {}
        self._memory = 0
        # What conversations share: the number of these, and the bytes.
        self._shared: dict[Any, tuple[int, int]] = {}

    def _own_lock(self) -> threading.Lock:
        """Returns the lock. A forked process begins anew: a thread of its parent may have the old one."""
        if self._process != os.getpid():
            with _forks.lock:
                if self._process != os.getpid():
                    self._start()
        return self._lock

    @contextlib.contextmanager
    def _changing(self) -> Iterator[None]:
        """Holds the lock. Whatever an interrupt leaves half done is dropped."""
        with self._own_lock():
            try:
                yield
            except BaseException:
                self._forget()
                raise

    def render(
        self, template: str, /, messages: Sequence[Mapping[str, Any]], **options: Any
    ) -> list[Segment]:
        """Renders a request.

        Args:
            template: A chat template.
            messages: The conversation.
            options: The other arguments of `render_template`.
        """
        marks = _marks(template, messages)
        from ..prompt.template import chat_template

        (known, is_branch), session = self._taken(template, marks), None
        try:
            if known is None:
                # Most requests are no part of a conversation, or begin one.
                return chat_template(template).render(messages, **options)
            if known.session is None:
                session = chat_template(template).session(max_bytes=self._max_bytes)
            else:
                session = known.session.fork() if is_branch else known.session
            turns, reused = session.turns, session.reused_turns
            return session.render(messages, **options)
        finally:
            with self._changing():
                if session is not None:
                    self.turns += session.turns - turns
                    self.reused_turns += session.reused_turns - reused
                if known is not None:
                    # Branches may have more in common now, also if this one begins anew.
                    self._count(known.shared, 0)
                self._put_back(session, marks)

    def clear(self) -> None:
        """Drops all conversations that no thread uses."""
        with self._own_lock():
            self._forget()

    def _taken(self, template: str, marks: list[int]) -> tuple[_Known | None, bool]:
        """Returns the conversation that a request continues, and whether it goes on from inside of it.
        One that goes on from its end no other thread has then."""
        with self._changing():
            # The longest beginning that both have.
            for mark in reversed(marks):
                found = self._places.get(mark)
                known = next(reversed(found.values())) if found else None
                if known is not None and known.is_of(template):
                    is_branch = known.keys.index(mark) > _REPLACED
                    if not is_branch:
                        self._drop(known)
                    return known, is_branch
        return None, False

    def _put_back(self, session: TemplateSession | None, marks: list[int]) -> None:
        if not marks:
            return
        # What differs before these is another conversation.
        length, keys, back = len(marks), [], 0
        while 5 * back <= length > back:
            keys.append(marks[length - 1 - back])
            back = 2 * back or 1
        known = _Known(session, keys)
        self._idle[id(known)] = known
        for key in keys:
            self._places.setdefault(key, {})[id(known)] = known
        self._memory += known.memory
        self._count(known.shared, 1)
        while self._idle and (len(self._idle) > _MOST or self._memory > self._max_bytes):
            self._drop(next(iter(self._idle.values())))

    def _drop(self, known: _Known) -> None:
        del self._idle[id(known)]
        self._memory -= known.memory
        self._count(known.shared, -1)
        for key in known.keys:
            del self._places[key][id(known)]
            if not self._places[key]:
                del self._places[key]

    def _count(self, shared: tuple[Any, ...], more: int) -> None:
        """Counts once what conversations share, as it is now, for so many more of them."""
        for it in shared:
            count, memory = self._shared.pop(it, (0, 0))
            self._memory -= memory
            if count + more:
                self._shared[it] = count + more, it.memory
                self._memory += it.memory

    def __copy__(self) -> TemplateCache:
        return self

    def __deepcopy__(self, memo: object) -> TemplateCache:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        # Another process has conversations of its own.
        return _new, (self._max_bytes,)

    def __repr__(self) -> str:
        return f"<TemplateCache of {len(self._idle)} conversations>"


def _new(max_bytes: int) -> TemplateCache:
    return TemplateCache(max_bytes=max_bytes)


def _marks(template: str, messages: Any) -> list[int]:
    """Returns a number for each beginning of a conversation: different ones seldom have the same."""
    marks: list[int] = []
    if type(messages) is list:
        mark = hash(template)
        for message in messages:
            mark = hash((mark, _mark(message)))
            marks.append(mark)
    return marks


def _mark(message: Any) -> int:
    if type(message) is not dict:
        return 0
    content = message.get("content")
    if type(content) is str and len(content) > 4 * _LOOKED_AT:
        ends = content[:_LOOKED_AT], content[-_LOOKED_AT:]
        content = len(content), *ends, content[:: len(content) // _LOOKED_AT]
        message = {**message, "content": content}
    # Segments are tuples, of whose text and trust a role is.
    message = {
        key: tuple.__getitem__(value, slice(2)) if isinstance(value, tuple) else value
        for key, value in message.items()
    }
    try:
        # No code of the caller; the second version gives the same for the same.
        return hash(marshal.dumps(message, 2))
    except ValueError:
        # Segments and other objects.
        texts = [value for value in message.values() if type(value) is str]
        return hash((len(message), *texts))
