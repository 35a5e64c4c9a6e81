"""`Audit`: where each id of a prompt comes from, and masks for training."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from .._core import AuditedIds
from ..common.values import checked
from .fields import spoken
from .segments import Origin

__all__ = ["Audit", "ControlString", "Unseen", "forbidden"]


class ControlString(NamedTuple):
    """A control string in untrusted text."""

    token: str
    #: The index of the segment in which it begins.
    segment: int
    #: Its first character in the text of that segment.
    offset: int


class Unseen(NamedTuple):
    """Characters of a message that are not in the prompt."""

    #: The index of the message.
    message: int
    #: "content", "reasoning" or "tool_calls".
    field: str
    #: The keys and indices that lead from the message to the text.
    path: tuple[str | int, ...]
    #: The first character, and the one after the last.
    start: int
    end: int
    #: The characters.
    text: str


def is_trusted(segment: Sequence[Any]) -> bool:
    """Returns True if a segment may hold a special token."""
    return bool(segment[1]) or is_tokens(segment)


def is_tokens(segment: Sequence[Any]) -> bool:
    """Returns True for a segment of ids."""
    return len(segment) >= 6 and bool(segment[4] == "tokens")


class Audit:
    """The result of `audit_segments`: the ids of a prompt and their origins."""

    def __init__(
        self,
        ids: AuditedIds,
        given: list[Sequence[Any]],
        controls: Callable[[], list[ControlString]],
        unmarked: Collection[str],
    ):
        self._ids = ids
        self._given = given
        self._make_controls = controls
        self._unmarked = frozenset(unmarked)

    def __getstate__(self) -> dict[str, Any]:
        return {
            "_ids": self._ids,
            "_given": self._given,
            "controls": self.controls,
            "_unmarked": self._unmarked,
        }

    @cached_property
    def ids(self) -> list[int]:
        """The ids."""
        return self._ids.ids()

    @cached_property
    def segments(self) -> list[int]:
        """For each id, the index of the segment that holds its first byte, or that names it."""
        return self._ids.segments()

    @cached_property
    def special(self) -> list[bool]:
        """True for each id that is a special token of a trusted segment."""
        return list(map(bool, self._ids.special()))

    @cached_property
    def controls(self) -> list[ControlString]:
        """The control strings in untrusted text, which are encoded as ordinary text."""
        return self._make_controls()

    def __repr__(self) -> str:
        return f"<Audit of {len(self._ids)} ids, {len(self.controls)} control strings>"

    def assert_safe(self) -> None:
        """Raises ValueError if text from outside could control the model.

        Names of special tokens in untrusted text are safe: they are encoded as ordinary text. The
        other strings of ``control=`` are text in any case, so untrusted text must not hold them.

        Raises:
            ValueError: A special token comes from untrusted text, or untrusted text holds a control
                string that is not a special token.

        >>> import bpe_engine
        >>> from bpe_engine.prompt import special, untrusted
        >>> gpt2 = bpe_engine.get_encoding("gpt2")
        >>> segments = [special("<|endoftext|>"), untrusted("<|endoftext|>")]
        >>> gpt2.audit_segments(segments).assert_safe()
        """
        for id, segment, is_special in zip(self.ids, self.segments, self.special):
            if is_special and not is_trusted(self._given[segment]):
                raise ValueError(f"the special token {id} comes from segments[{segment}]")
        for found in self.controls:
            if found.token in self._unmarked:
                raise forbidden(found)

    @property
    def origins(self) -> list[Origin | None]:
        """The origin of each id's segment, in a prompt of `render_template`; otherwise None."""
        return [self._origins[segment] for segment in self.segments]

    @property
    def has_tags(self) -> bool:
        """Whether the template of the prompt has ``{% generation %}`` tags."""
        return any(origin is not None and origin.has_tags for origin in self._origins)

    @cached_property
    def _origins(self) -> list[Origin | None]:
        """The origin of each segment."""
        return [segment[6] if len(segment) > 6 else None for segment in self._given]

    def mask(
        self,
        role: str = "assistant",
        *,
        end: bool = True,
        last: bool = False,
        reasoning: bool = True,
        messages: Collection[int] | None = None,
        mixed: bool = False,
        said: bool = False,
    ) -> list[int]:
        """Returns 1 for each id that the role writes, 0 for others.

        In a prompt of `render_template`, the assistant writes whole turns: everything from the end
        of the generation prompt to the token that ends the turn, with the markup of calls and the
        tags around reasoning. If the template has ``{% generation %}`` tags, it writes the text
        inside of the tags. Another role writes the content, reasoning and tool calls of its messages.
        Labels of segments that the caller made win. All bytes of an id must be the role's.

        Args:
            role: The role.
            end: Whether to keep the token that ends the turn. Tags decide that themselves.
            last: Whether to keep only the last message of the role.
            reasoning: Whether to keep reasoning, and the tags around it unless a call follows.
            messages: The indices of the messages to keep. None for all.
            mixed: Whether to keep ids with bytes of this role and of something else: see
                `Audit.mixed`.
            said: Whether to keep only content, reasoning and tool calls of messages, without the
                markup that the template writes around them.

        Returns:
            As many numbers as there are ids.

        Raises:
            ValueError: `last` or `messages` are given, but the segments do not say which message
                they come from, because `render_template` did not make them; or an index is
                negative.

        >>> import bpe_engine
        >>> from bpe_engine.prompt import render_template
        >>> template = (
        ...     "{% for m in messages %}<|im_start|>{{ m.role }}\\n{{ m.content }}<|im_end|>\\n"
        ...     "{% endfor %}"
        ... )
        >>> chat = [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": "So."}]
        >>> enc = bpe_engine.get_encoding("qwen3")
        >>> audit = enc.audit_segments(render_template(template, chat))
        >>> enc.decode([id for id, bit in zip(audit.ids, audit.mask()) if bit])
        'So.<|im_end|>'
        """
        chosen = (
            None if messages is None else [operator.index(index) for index in checked(messages)]
        )
        if chosen and min(chosen) < 0:
            raise ValueError(
                f"messages holds {min(chosen)}, but indices begin at 0; last=True keeps the last "
                "message of the role"
            )
        choices = (bool(end), bool(last), bool(reasoning), bool(mixed), bool(said), chosen)
        return self._ids.mask(self._given, role, choices)

    def mixed(self, role: str = "assistant") -> list[int]:
        """Returns the places of ids that have bytes of this role and of something else."""
        return self._ids.mixed(self._given, role)

    def unseen(self, messages: Iterable[Mapping[str, Any]]) -> list[Unseen]:
        """Returns the characters of messages that are not in the prompt.

        Templates may drop earlier reasoning, or strip content. Text that the template wrote in
        another way, as in JSON, counts as seen.

        Args:
            messages: Those that `render_template` was given.

        >>> import bpe_engine
        >>> from bpe_engine.prompt import render_template
        >>> chat = [{"role": "user", "content": " Hi "}]
        >>> segments = render_template("{{ messages[0].content|trim }}", chat)
        >>> for unseen in bpe_engine.get_encoding("gpt2").audit_segments(segments).unseen(chat):
        ...     print(unseen.message, unseen.field, unseen.start, unseen.end)
        0 content 0 1
        0 content 3 4
        """
        shown: dict[tuple[Any, ...], list[tuple[int, int]]] = {}
        whole: set[tuple[Any, ...]] = set()
        for segment, origin in zip(self._given, self._origins):
            if origin is None or origin.field == "template":
                continue
            place = (origin.message, *origin.path)
            if segment[7] is None:
                whole.add(place)
            else:
                span = (segment[7], segment[7] + len(segment[0]))
                shown.setdefault(place, []).append(span)
        result = []
        for index, message in enumerate(messages):
            for field, path, text in spoken(message):
                place = (index, *path)
                if any(place[:size] in whole for size in range(2, len(place) + 1)):
                    continue
                at = 0
                for start, stop in [*sorted(shown.get(place, ())), (len(text), len(text))]:
                    if start > at:
                        result.append(Unseen(index, field, path, at, start, text[at:start]))
                    at = max(at, stop)
        return result


def forbidden(found: ControlString) -> ValueError:
    return ValueError(
        f"untrusted text holds the control string {found.token!r}: segments[{found.segment}], "
        f'character {found.offset}; refuse it, or take it out with on_control="strip"'
    )
