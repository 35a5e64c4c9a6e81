"""Segments into ids: the work behind `Encoding.encode_segments` and its neighbours."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias
from weakref import WeakKeyDictionary

from .._core import NameFinder, audit_segments, encode_segments, encode_segments_to_buffer
from .segments import Segment

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from ..core import Encoding

# What finds control strings, by encoding and by the names beside its special tokens.
_FINDERS: WeakKeyDictionary[Encoding, dict[frozenset[str], NameFinder]] = WeakKeyDictionary()
_MOST_FINDERS = 8

__all__ = ["Audit", "ControlString", "OnControl", "audit", "count", "encode", "encode_to_numpy"]


class ControlString(NamedTuple):
    """A control string in untrusted text."""

    token: str
    #: The index of the segment in which it begins.
    segment: int
    #: The character of that segment's text with which it begins.
    offset: int


OnControl: TypeAlias = "Literal['encode', 'raise', 'strip'] | Callable[[ControlString], str]"
_Segments: TypeAlias = "Iterable[Segment | tuple[Any, ...]]"


def encode(
    encoding: Encoding,
    segments: _Segments,
    join: bool = True,
    on_control: OnControl = "encode",
    control: Collection[str] = (),
) -> list[int]:
    """See `Encoding.encode_segments`."""
    segments = _prepared(encoding, segments, on_control, control)
    return encode_segments(encoding._core_bpe, segments, bool(join))


def encode_to_numpy(
    encoding: Encoding,
    segments: _Segments,
    join: bool = True,
    on_control: OnControl = "encode",
    control: Collection[str] = (),
) -> npt.NDArray[np.uint32]:
    """See `Encoding.encode_segments_to_numpy`."""
    segments = _prepared(encoding, segments, on_control, control)
    buffer = encode_segments_to_buffer(encoding._core_bpe, segments, bool(join))
    import numpy as np

    return np.frombuffer(buffer, dtype=np.uint32)  # type: ignore[call-overload,no-any-return]


def count(
    encoding: Encoding,
    segments: _Segments,
    join: bool = True,
    on_control: OnControl = "encode",
    control: Collection[str] = (),
) -> int:
    """See `Encoding.count_segments`."""
    segments = _prepared(encoding, segments, on_control, control)
    return len(encode_segments_to_buffer(encoding._core_bpe, segments, bool(join)))


class Audit:
    """What `Encoding.audit_segments` found out about a prompt."""

    #: The ids.
    ids: list[int]
    #: For each id, the index of the segment with its first byte.
    segments: list[int]
    #: For each id, whether it is a special token: one that a trusted segment asked for.
    special: list[bool]
    #: The control strings in untrusted text. They are encoded as ordinary text.
    controls: list[ControlString]

    def __init__(
        self,
        ids: list[int],
        spans: list[tuple[int, int]],
        special: Iterable[int],
        controls: list[ControlString],
        labels: Sequence[tuple[str | None, bool, bool]],
        unmarked: Collection[str],
    ):
        self.ids = ids
        self.segments = [first for first, _ in spans]
        self.special = [bool(flag) for flag in special]
        self.controls = controls
        self._spans = spans
        self._labels = labels
        self._unmarked = frozenset(unmarked)

    def __repr__(self) -> str:
        return f"<Audit of {len(self.ids)} ids, {len(self.controls)} control strings>"

    def assert_safe(self) -> None:
        """ValueError if text from outside could control the model.

        Special tokens in untrusted text are encoded as ordinary text, which is safe. A control
        string that is no special token of the encoding has no other form than its text: where
        untrusted text holds one of those that ``control=`` named, the prompt is not safe.

        >>> import bpe_engine
        >>> from bpe_engine.prompt import special, untrusted
        >>> gpt2 = bpe_engine.get_encoding("gpt2")
        >>> segments = [special("<|endoftext|>"), untrusted("<|endoftext|>")]
        >>> gpt2.audit_segments(segments).assert_safe()
        """
        for id, span, is_special in zip(self.ids, self._spans, self.special):
            if is_special and not self._labels[span[0]][1]:
                raise ValueError(f"the special token {id} comes from segments[{span[0]}]")
        for found in self.controls:
            if found.token in self._unmarked:
                raise _forbidden(found)

    def mask(self, role: str = "assistant") -> list[int]:
        """1 for each id all of whose bytes come from segments with this role, 0 for the others.

        >>> import bpe_engine
        >>> from bpe_engine.prompt import trusted, untrusted
        >>> gpt2 = bpe_engine.get_encoding("gpt2")
        >>> segments = [trusted("Q: why?\\nA:"), untrusted(" so it is", role="assistant")]
        >>> gpt2.audit_segments(segments).mask()
        [0, 0, 0, 0, 0, 0, 0, 1, 1, 1]
        """
        # Segments without text have no bytes: what stands on both sides of one is not theirs.
        lacks_role = [label != role and not is_empty for label, _, is_empty in self._labels]
        return [int(not any(lacks_role[first : last + 1])) for first, last in self._spans]


def audit(
    encoding: Encoding, segments: _Segments, join: bool = True, control: Collection[str] = ()
) -> Audit:
    """See `Encoding.audit_segments`."""
    segments = _listed(segments)
    ids, spans, special = audit_segments(encoding._core_bpe, segments, bool(join))
    finder, unmarked = _finder(encoding, control)
    labels = [
        (
            segment[2] if len(segment) > 2 else None,
            _is_trusted(segment),
            not segment[0] and not _is_tokens(segment),
        )
        for segment in segments
    ]
    controls = [found for run in _untrusted_runs(segments) for found in _find(finder, run)]
    return Audit(ids, spans, special, controls, labels, unmarked)


# ---- Policies for control strings ----


def _prepared(
    encoding: Encoding, segments: _Segments, on_control: OnControl, control: Collection[str]
) -> _Segments:
    """The segments after the policy for control strings in untrusted ones."""
    if control != ():
        _named(control)
    if on_control == "encode":
        return segments
    if on_control not in ("raise", "strip") and not callable(on_control):
        raise ValueError(
            f'on_control must be "encode", "raise", "strip" or a function, not {on_control!r}'
        )
    segments = _listed(segments)
    # What is wrong with the segments is reported before what is wrong with their text.
    encode_segments(encoding._core_bpe, [_shape(segment) for segment in segments], True)
    finder, _ = _finder(encoding, control)
    for run in _untrusted_runs(segments):
        found = _find(finder, run)
        if not found:
            continue
        if on_control == "raise":
            raise _forbidden(found[0])
        if on_control == "strip":
            texts = finder.strip(_paired(run.texts))
        else:
            texts = _replaced(finder, run, on_control)
        for index, text in zip(run.places, texts):
            segments[index] = (text, *segments[index][1:])
    return segments


def _listed(segments: _Segments) -> list[Any]:
    if isinstance(segments, (str, bytes, dict)) or not isinstance(segments, Iterable):
        hint = "; for one text pass [untrusted(text)]" if isinstance(segments, str) else ""
        raise TypeError(f"segments must be a list of segments, not {type(segments).__name__}{hint}")
    return list(segments)


def _shape(segment: Any) -> Any:
    """The segment with a short text, if it is one."""
    if isinstance(segment, tuple) and len(segment) >= 2 and isinstance(segment[0], str):
        return segment if _is_trusted(segment) else ("", *segment[1:])
    return segment


def _is_trusted(segment: Sequence[Any]) -> bool:
    """Whether something in it may be special."""
    return bool(segment[1]) or _is_tokens(segment)


def _is_tokens(segment: Sequence[Any]) -> bool:
    return len(segment) == 6 and bool(segment[4] == "tokens")


class _Run(NamedTuple):
    """Untrusted texts with nothing between them: together they are one text, in which a control
    string may stand across a border."""

    #: Their indices among the segments.
    places: list[int]
    texts: list[str]


def _untrusted_runs(segments: Sequence[Any]) -> list[_Run]:
    runs: list[_Run] = []
    is_open = False
    for index, segment in enumerate(segments):
        if not _is_trusted(segment):
            if not is_open:
                runs.append(_Run([], []))
            runs[-1].places.append(index)
            runs[-1].texts.append(segment[0])
            is_open = True
        elif segment[5] if _is_tokens(segment) else segment[0]:
            is_open = False
    return runs


def _find(finder: NameFinder, run: _Run) -> list[ControlString]:
    result = []
    number = before = 0
    for token, first, _ in finder.find("".join(run.texts)):
        while first >= before + len(run.texts[number]):
            before += len(run.texts[number])
            number += 1
        result.append(ControlString(token, run.places[number], first - before))
    return result


def _paired(texts: list[str]) -> list[str]:
    """The texts with both halves of a pair of surrogates in the same one."""
    result: list[str] = []
    last = 0
    for text in texts:
        if text and "\udc00" <= text[0] <= "\udfff" and result:
            half = result[last][-1:]
            if "\ud800" <= half <= "\udbff":
                result[last] += text[0]
                text = text[1:]
        if text:
            last = len(result)
        result.append(text)
    return result


def _within(
    texts: list[str], spans: Sequence[tuple[int, int]]
) -> Iterator[tuple[str, list[tuple[int, int, int]]]]:
    """Each text of a run with its parts of `spans`, which are ascending characters of the run: the
    number of the span, and the first and last + 1 character of its part in the text."""
    begin = place = 0
    for text in texts:
        end = begin + len(text)
        parts = []
        for number in range(place, len(spans)):
            first, last = spans[number]
            if first >= end:
                break
            parts.append((number, max(first, begin) - begin, min(last, end) - begin))
            # One that goes on is for the next text, too.
            place = number + (last <= end)
        yield text, parts
        begin = end


def _replaced(finder: NameFinder, run: _Run, replace: Callable[[ControlString], str]) -> list[str]:
    """The texts with what `replace` gives for each control string."""
    found = [(first, last) for _, first, last in finder.find("".join(run.texts))]
    places = _find(finder, run)
    result = []
    for index, (text, spans) in zip(run.places, _within(run.texts, found)):
        parts, at = [], 0
        for number, first, last in spans:
            parts.append(text[at:first])
            if places[number].segment == index:
                parts.append(_replacement(places[number], replace))
            at = last
        result.append("".join([*parts, text[at:]]))
    return result


def _replacement(place: ControlString, replace: Callable[[ControlString], str]) -> str:
    new = replace(place)
    if not isinstance(new, str):
        raise TypeError(f"on_control must return a str, not {type(new).__name__}, for {place}")
    return new


def _forbidden(found: ControlString) -> ValueError:
    return ValueError(
        f"untrusted text holds the control string {found.token!r}: segments[{found.segment}], "
        f'character {found.offset}; refuse it, or take it out with on_control="strip"'
    )


def _finder(encoding: Encoding, control: Collection[str]) -> tuple[NameFinder, frozenset[str]]:
    """What finds control strings, and those that are no special tokens."""
    names = frozenset(_named(control))
    found = _FINDERS.setdefault(encoding, {})
    finder = found.get(names)
    unmarked = names - encoding.special_tokens_set
    if finder is None:
        # Of names with one normalized form, those that nothing but their text marks come first.
        finder = NameFinder(
            encoding._core_bpe, [*sorted(unmarked), *sorted(encoding.special_tokens_set)]
        )
        if len(found) >= _MOST_FINDERS:
            found.clear()
        found[names] = finder
    return finder, unmarked


def _named(control: Collection[str]) -> list[str]:
    """What `control=` names, which is text that there can be."""
    if isinstance(control, (str, bytes)) or not isinstance(control, Iterable):
        hint = f"; for this one pass [{control!r}]" if isinstance(control, str) else ""
        raise TypeError(f"control must be a collection of str, not {control!r}{hint}")
    names = list(control)
    for name in names:
        if not isinstance(name, str) or not name:
            raise TypeError(f"control must be a collection of str that are not empty, not {name!r}")
        if any("\ud800" <= character <= "\udfff" for character in name):
            raise ValueError(f"control holds {name!r}, which has half a character and is no text")
    return names
