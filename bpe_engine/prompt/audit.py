"""`Audit`: where each id of a prompt comes from, and masks for training."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from .fields import FIELDS, spoken
from .segments import Origin

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
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


class Details(NamedTuple):
    """The origin of each id."""

    ids: list[int]
    #: The index of the segment with its first byte, or that names it.
    segments: list[int]
    #: The first and the last segment with bytes of it.
    spans: list[tuple[int, int]]
    #: 1 for a special token of a trusted segment.
    special: bytes | bytearray


class Tables(NamedTuple):
    """The bytes of each id of an encoding, and whether it is a special token, as numpy arrays."""

    decode: Callable[[Any], bytes]
    sizes: npt.NDArray[np.int32]
    special: npt.NDArray[np.bool_]


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
        ids: Any,
        given: Sequence[Sequence[Any]],
        details: Callable[[], Details],
        controls: Callable[[], list[ControlString]],
        unmarked: Collection[str],
        tables: Callable[[], Tables | None],
    ):
        self._buffer = memoryview(ids).cast("B").cast("I")
        self._given = given
        self._make_details = details
        self._make_controls = controls
        self._unmarked = frozenset(unmarked)
        self._make_tables = tables

    def __getstate__(self) -> dict[str, Any]:
        return {
            "_buffer": self._buffer.tobytes(),
            "_given": self._given,
            "_details": self._details,
            "controls": self.controls,
            "_unmarked": self._unmarked,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _buffer=memoryview(state["_buffer"]).cast("I"))
        self._make_tables = lambda: None

    @cached_property
    def ids(self) -> list[int]:
        """The ids."""
        try:
            import numpy as np
        except ImportError:
            return self._buffer.tolist()
        return np.frombuffer(self._buffer, np.uint32).tolist()  # type: ignore[no-any-return]

    @cached_property
    def _details(self) -> Details:
        return self._make_details()

    @property
    def segments(self) -> list[int]:
        """The index of each id's segment: the one with its first byte, or that names it."""
        return self._details.segments

    @cached_property
    def special(self) -> list[bool]:
        """True for each id that is a special token of a trusted segment."""
        return [bool(flag) for flag in self._details.special]

    @cached_property
    def controls(self) -> list[ControlString]:
        """The control strings in untrusted text, which are encoded as ordinary text."""
        return self._make_controls()

    def __repr__(self) -> str:
        return f"<Audit of {len(self._buffer)} ids, {len(self.controls)} control strings>"

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
        """Whether the prompt is that of a template with ``{% generation %}`` tags."""
        return any(origin is not None and origin.has_tags for origin in self._origins)

    @cached_property
    def _origins(self) -> list[Origin | None]:
        """The origin of each segment."""
        return [segment[6] if len(segment) > 6 else None for segment in self._given]

    @cached_property
    def _empty(self) -> list[bool]:
        """Whether each segment has no text and no ids."""
        return [not segment[0] and not is_tokens(segment) for segment in self._given]

    @cached_property
    def _specials(self) -> Mapping[int, list[int]]:
        return self._borders.specials

    @cached_property
    def _borders(self) -> _Borders:
        return _located(self._buffer, self._given, self._make_tables()) or _Listed(self._details)

    def mask(
        self,
        role: str = "assistant",
        *,
        end: bool = True,
        last: bool = False,
        reasoning: bool = True,
        messages: Collection[int] | None = None,
        mixed: bool = False,
    ) -> list[int]:
        """Returns 1 for each id whose bytes all come from this role, 0 for others.

        In a prompt of `render_template`, that is what the messages of the role say: their content,
        reasoning and tool calls. If the template has ``{% generation %}`` tags, it is the text
        inside of these for the assistant. Labels of segments that the caller made win.

        Args:
            role: The role.
            end: Whether to add the token with which the template ends the turn after this text.
                Tags decide that themselves.
            last: Whether to keep only the last message of the role.
            reasoning: Whether to keep reasoning.
            messages: The indices of the messages to keep. None for all.
            mixed: Whether to keep ids with bytes of this role and of something else: see
                `Audit.mixed`.

        Returns:
            As many numbers as there are ids.

        Raises:
            ValueError: `last` or `messages` are given, but the segments do not say which message
                they come from, because `render_template` did not make them.

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
        said = self._said(role)
        chosen = self._chosen(role, said, last, messages)
        kept = said
        if chosen is not None or not reasoning:
            kept = [
                flag
                and (reasoning or origin is None or origin.field != "reasoning")
                and (chosen is None or (origin is not None and origin.message in chosen))
                for flag, origin in zip(said, self._origins)
            ]
        result = self._borders.any_of(self._runs(kept)) if mixed else self._all_of(kept)
        if end and not (role == "assistant" and self.has_tags):
            for message, place in self._ends(said).items():
                if chosen is None or message in chosen:
                    result[place] = 1
        return result

    def mixed(self, role: str = "assistant") -> list[int]:
        """Returns the places of ids that have bytes of this role and of something else."""
        said = self._said(role)
        whole, touched = self._all_of(said), self._borders.any_of(self._runs(said))
        return [place for place, bit in enumerate(touched) if bit and not whole[place]]

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

    # ---- Parts of masks ----

    def _said(self, role: str) -> list[bool]:
        """Returns for each segment whether it is text of this role."""
        is_tagged = role == "assistant" and self.has_tags
        said: list[bool] = []
        before: int | None = None
        # Text before which the template wrote text around another message.
        doubtful: list[tuple[int, int | None]] = []
        for segment, origin in zip(self._given, self._origins):
            if origin is not None and origin.field == "template" and segment[0]:
                before = origin.message
                if doubtful:
                    for place, message in doubtful:
                        said[place] = before is None or before == message
                    doubtful = []
            label = segment[2] if len(segment) > 2 else None
            if label is not None:
                said.append(label == role)
            elif origin is None or is_tagged or origin.role != role or origin.field not in FIELDS:
                said.append(False)
            else:
                if before is not None and before != origin.message:
                    # A template may repeat the name of a call around its result.
                    doubtful.append((len(said), origin.message))
                said.append(True)
        for place, _ in doubtful:
            said[place] = False
        return said

    def _chosen(
        self, role: str, said: list[bool], last: bool, messages: Collection[int] | None
    ) -> frozenset[int] | None:
        """Returns the indices of the messages that a mask keeps, or None for all."""
        if not last and messages is None:
            return None
        if not any(origin is not None for origin in self._origins):
            raise ValueError(
                "the segments do not say which message they come from; make them with "
                "render_template, or choose messages by labels of your own"
            )
        indices = {
            origin.message
            for flag, origin in zip(said, self._origins)
            if origin is not None and origin.message is not None and (flag or origin.role == role)
        }
        if messages is not None:
            indices &= set(messages)
        return frozenset({max(indices)} if last and indices else indices)

    def _runs(self, kept: list[bool]) -> list[tuple[int, int]]:
        """Returns the first and the last segment of each run of these; empty ones belong to any."""
        runs: list[tuple[int, int]] = []
        is_open = False
        for place, (flag, is_empty) in enumerate(zip(kept, self._empty)):
            if is_empty:
                continue
            if flag:
                runs.append((runs.pop()[0] if is_open else place, place))
            is_open = flag
        return runs

    def _all_of(self, kept: list[bool]) -> list[int]:
        """Returns 1 for ids whose bytes all come from these segments."""
        return self._borders.all_of(self._runs(kept))

    def _ends(self, said: list[bool]) -> dict[int, int]:
        """Returns the place of the id that ends the turn of each message that says something."""
        last_text: dict[int, int] = {}
        origins = self._origins
        for place, (flag, origin) in enumerate(zip(said, origins)):
            if flag and origin is not None and origin.message is not None and self._given[place][0]:
                last_text[origin.message] = place
        found: dict[int, tuple[list[int], bool]] = {}
        specials = self._specials if last_text else {}
        for message, place in last_text.items():
            tail: list[int] = []
            is_cut = False
            for segment in range(place + 1, len(origins)):
                origin = origins[segment]
                if self._empty[segment]:
                    continue
                if origin is None or origin.field != "template":
                    is_cut = True
                    break
                if origin.message != message:
                    break
                tail += specials.get(segment, ())
            if tail:
                found[message] = tail, is_cut
        calls = {message for message in found if _is_call(origins[last_text[message]])}
        usual = {self.ids[tail[0]] for message, (tail, _) in found.items() if message not in calls}
        result = {}
        for message, (tail, is_cut) in found.items():
            end = tail[0]
            if message in calls:
                # Tags around calls may be special tokens, too.
                same = [place for place in tail if self.ids[place] in usual]
                end = same[0] if same else tail[0 if is_cut else -1]
            result[message] = end
        return result


def _is_call(origin: Origin | None) -> bool:
    return origin is not None and origin.field == "tool_calls"


class _Borders(Protocol):
    """Where segments begin and end among the ids."""

    @property
    def specials(self) -> Mapping[int, list[int]]:
        """The places of the special tokens of each segment."""

    def all_of(self, runs: list[tuple[int, int]]) -> list[int]:
        """Returns 1 for ids whose bytes are all inside of one of these runs of segments."""

    def any_of(self, runs: list[tuple[int, int]]) -> list[int]:
        """Returns 1 for ids with a byte in one of these runs of segments."""


class _Listed(NamedTuple):
    """Borders in the details of each id."""

    details: Details

    @property
    def specials(self) -> Mapping[int, list[int]]:
        found: dict[int, list[int]] = {}
        for place, is_special in enumerate(self.details.special):
            if is_special:
                found.setdefault(self.details.segments[place], []).append(place)
        return found

    def _before(self, runs: list[tuple[int, int]]) -> list[int]:
        spans = self.details.spans
        flags = [0] * (1 + max((last for _, last in spans), default=0))
        for first, last in runs:
            flags[first : last + 1] = [1] * (min(last + 1, len(flags)) - first)
        return [0, *accumulate(flags)]

    def all_of(self, runs: list[tuple[int, int]]) -> list[int]:
        before = self._before(runs)
        return [
            int(before[last + 1] - before[first] == last + 1 - first)
            for first, last in self.details.spans
        ]

    def any_of(self, runs: list[tuple[int, int]]) -> list[int]:
        before = self._before(runs)
        return [int(before[last + 1] != before[first]) for first, last in self.details.spans]


class _Located(NamedTuple):
    """Borders by bytes, for ids whose bytes are those of the text."""

    #: Where each id ends, and where each segment begins, in bytes.
    ends: npt.NDArray[np.int64]
    starts: Sequence[int]
    special: npt.NDArray[np.bool_]

    @property
    def specials(self) -> Mapping[int, list[int]]:
        places = self.special.nonzero()[0]
        # No token begins inside of the segment of a special token.
        lasts = (self.ends[places] - 1).tolist()
        found: dict[int, list[int]] = {}
        for place, last in zip(places.tolist(), lasts):
            found.setdefault(bisect_right(self.starts, last) - 1, []).append(place)
        return found

    def _mask(self, runs: list[tuple[int, int]], is_whole: bool) -> list[int]:
        bits = bytearray(len(self.ends))
        edges = [self.starts[place] for first, last in runs for place in (first, last + 1)]
        # The ids that end after the first byte, and the ids that end with the last one.
        after = self.ends.searchsorted(edges, "right").tolist()
        until = self.ends.searchsorted(edges, "left").tolist()
        for run in range(0, len(edges), 2):
            begin, end = edges[run], edges[run + 1]
            first, stop = after[run], after[run + 1] if is_whole else until[run + 1] + 1
            if is_whole and first < len(bits) and (self.ends[first - 1] if first else 0) < begin:
                first += 1
            stop = min(stop, len(bits))
            if begin < end and first < stop:
                bits[first:stop] = b"\1" * (stop - first)
        return list(bits)

    def all_of(self, runs: list[tuple[int, int]]) -> list[int]:
        return self._mask(runs, True)

    def any_of(self, runs: list[tuple[int, int]]) -> list[int]:
        return self._mask(runs, False)


def _located(
    ids: memoryview, segments: Sequence[Sequence[Any]], tables: Tables | None
) -> _Borders | None:
    """Returns the borders by bytes, or None if the ids are not one by one those of the text."""
    if tables is None or any(map(is_tokens, segments)):
        return None
    try:
        texts = [segment[0].encode() for segment in segments]
    except UnicodeEncodeError:
        return None
    import numpy as np

    places, joined = np.frombuffer(ids, np.uint32), b"".join(texts)
    # Normalization may have changed text that is not ASCII.
    if not joined.isascii() and tables.decode(places) != joined:
        return None
    starts = [0, *accumulate(map(len, texts))]
    return _Located(tables.sizes[places].cumsum(dtype=np.int64), starts, tables.special[places])


def forbidden(found: ControlString) -> ValueError:
    return ValueError(
        f"untrusted text holds the control string {found.token!r}: segments[{found.segment}], "
        f'character {found.offset}; refuse it, or take it out with on_control="strip"'
    )
