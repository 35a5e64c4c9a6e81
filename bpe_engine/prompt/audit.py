"""`Audit`: the origins of a prompt's ids, and training masks."""

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
    #: Index of the segment in which the string begins.
    segment: int
    #: Offset of the first character in the text of that segment.
    offset: int


class Unseen(NamedTuple):
    """A run of characters that a message contains and the prompt lacks."""

    #: Index of the message.
    message: int
    #: "content", "reasoning" or "tool_calls".
    field: str
    #: Path from the message to the text, as keys and indices.
    path: tuple[str | int, ...]
    #: Start and end offsets in characters. The end is exclusive.
    start: int
    end: int
    #: The characters.
    text: str


def is_trusted(segment: Sequence[Any]) -> bool:
    """Returns True if a segment may contain a special token."""
    return bool(segment[1]) or is_tokens(segment)


def is_tokens(segment: Sequence[Any]) -> bool:
    """Returns True for a segment of token ids."""
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
        self._unmarked = frozenset(checked(unmarked))

    def __getstate__(self) -> dict[str, Any]:
        return {
            "_ids": self._ids,
            "_given": self._given,
            "controls": self.controls,
            "_unmarked": self._unmarked,
        }

    @cached_property
    def ids(self) -> list[int]:
        """The token ids of the prompt."""
        return self._ids.ids()

    @cached_property
    def segments(self) -> list[int]:
        """The index of each id's segment, which contains the first byte or names the token."""
        return self._ids.segments()

    @cached_property
    def special(self) -> list[bool]:
        """A flag for each id: True for special tokens of trusted segments."""
        return list(map(bool, self._ids.special()))

    @cached_property
    def controls(self) -> list[ControlString]:
        """Control strings in untrusted text, which are encoded as ordinary text."""
        return self._make_controls()

    def __repr__(self) -> str:
        return f"<Audit of {len(self._ids)} ids, {len(self.controls)} control strings>"

    def assert_safe(self) -> None:
        """Raises ValueError if untrusted text could control the model.

        Names of special tokens in untrusted text are safe, because they are encoded as ordinary
        text. Other strings in ``control=`` have no special token to guard against, so untrusted
        text must not contain them.

        Raises:
            ValueError: A special token comes from untrusted text, or untrusted text contains a
                control string that is not a special token.

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
        """The origin of each id's segment in a prompt from `render_template`, otherwise None."""
        return [self._origins[segment] for segment in self.segments]

    @property
    def has_tags(self) -> bool:
        """Whether the prompt's template has ``{% generation %}`` tags."""
        return any(origin is not None and origin.has_tags for origin in self._origins)

    @cached_property
    def _origins(self) -> list[Origin | None]:
        """Origins of the segments."""
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
        """Returns a mask with 1 for ids written by the role and 0 for other ids.

        In a prompt from `render_template`, the assistant writes whole turns: all text from the end
        of the generation prompt to the token that ends the turn, including call markup and
        reasoning tags. If the template has ``{% generation %}`` tags, the assistant writes the text
        inside the tags. Other roles write the content, reasoning and tool calls of their messages.
        Labels of the caller's segments take precedence. All bytes of an id must belong to the role.

        Args:
            role: The role.
            end: Whether to keep the token that ends the turn. Ignored if the template has tags.
            last: Whether to keep only the last message of the role.
            reasoning: Whether to keep reasoning, and the tags around it unless a call follows.
            messages: Indices of the messages to keep. None for all.
            mixed: Whether to keep ids with bytes of both this role and other text. See
                `Audit.mixed`.
            said: Whether to keep only content, reasoning and tool calls of messages, without the
                surrounding template markup.

        Returns:
            One number per id.

        Raises:
            ValueError: `last` or `messages` is given, but the segments have no message index
                because they do not come from `render_template`. Or an index is negative.

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
        """Returns the positions of ids that contain bytes of both this role and other text."""
        return self._ids.mixed(self._given, role)

    def unseen(self, messages: Iterable[Mapping[str, Any]]) -> list[Unseen]:
        """Returns the characters of messages that are missing from the prompt.

        Templates may drop earlier reasoning or strip content. Text rewritten by the template, such
        as JSON, counts as present.

        Args:
            messages: Messages passed to `render_template`.

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
