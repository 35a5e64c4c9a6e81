"""`TemplateCache`: renders what the conversations of a server have anew."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .._arguments import whole_number

if TYPE_CHECKING:
    from ..prompt.segments import Segment
    from ..prompt.session import TemplateSession

__all__ = ["TemplateCache"]

#: The most conversations: each is compared with the beginning of a request.
_MOST = 1024


class TemplateCache:
    """Renders requests by the turns that earlier requests did not have.

    For servers: each turn of a conversation comes as a whole request again. Requests need no
    session: the conversation that goes on is found by its messages, compared in full. What is
    rendered is exactly what `ChatTemplate.render` renders. The conversations that were not used for
    longest are dropped first. Any number of threads may use a cache.

    Args:
        max_bytes: The most memory for conversations, roughly.

    >>> from bpe_engine.serving import TemplateCache
    >>> template = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}"
    >>> messages = [{"role": "user", "content": f"Number {i}"} for i in range(100)]
    >>> cache = TemplateCache()
    >>> first = cache.render(template, messages[:99])
    >>> [segment.text for segment in cache.render(template, messages)[-4:]]
    ['<|', 'user', '|>', 'Number 99']
    >>> cache.turns, cache.reused_turns
    (199, 99)
    """

    def __init__(self, *, max_bytes: int = 256 << 20):
        self._max_bytes = whole_number("max_bytes", max_bytes)
        self._lock = threading.Lock()
        # Those that no thread uses, the one that was used last at the end.
        self._idle: list[tuple[str, TemplateSession]] = []
        #: The turns of all requests, and those of them that were not run.
        self.turns: int = 0
        self.reused_turns: int = 0

    def render(
        self, template: str, /, messages: Sequence[Mapping[str, Any]], **options: Any
    ) -> list[Segment]:
        """Renders a request.

        Args:
            template: A chat template.
            messages: The conversation.
            options: The other arguments of `render_template`.
        """
        session = self._taken(template, messages)
        turns, reused = session.turns, session.reused_turns
        try:
            return session.render(messages, **options)
        finally:
            with self._lock:
                self.turns += session.turns - turns
                self.reused_turns += session.reused_turns - reused
                self._put_back(template, session)

    def clear(self) -> None:
        """Drops all conversations that no thread uses."""
        with self._lock:
            self._idle.clear()

    def _taken(self, template: str, messages: Any) -> TemplateSession:
        """Returns the conversation that a request continues, or a new one."""
        from ..prompt.template import chat_template

        best, most = None, 0
        with self._lock:
            for place in range(len(self._idle) - 1, -1, -1):
                source, session = self._idle[place]
                if source != template or session.messages <= most:
                    continue
                shared = session.shared(messages)
                # One that differs early is another conversation.
                if shared > most and 4 * (session.messages - shared) <= shared:
                    best, most = place, shared
            if best is not None:
                return self._idle.pop(best)[1]
        return chat_template(template).session(max_bytes=self._max_bytes)

    def _put_back(self, template: str, session: TemplateSession) -> None:
        if session.memory:
            self._idle.append((template, session))
        while self._idle and (
            len(self._idle) > _MOST
            or sum(session.memory for _, session in self._idle) > self._max_bytes
        ):
            del self._idle[0]

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
