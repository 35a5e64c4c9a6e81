"""Encodes, counts and audits segments with any tokenizer."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias
from weakref import WeakKeyDictionary

from .._core import NameFinder, Pipeline, audit_segments, encode_segments
from ..common.values import listed, safe_repr
from .audit import Audit, ControlString, forbidden, is_tokens, is_trusted
from .segments import Segment

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


__all__ = [
    "OnControl",
    "audit",
    "count_segments",
    "encode",
    "encode_segments_to_numpy",
]


# Searchers for control strings, by engine, then by `control`.
_FINDERS: WeakKeyDictionary[Pipeline, dict[Any, NameFinder]] = WeakKeyDictionary()
_MOST_FINDERS = 8
# Maximum nesting depth of control strings that "strip" removes.
_MOST_NESTED = 15


OnControl: TypeAlias = "Literal['encode', 'raise', 'strip'] | Callable[[ControlString], str]"
_Segments: TypeAlias = "Iterable[Segment | tuple[Any, ...]]"


def encode(
    engine: Pipeline,
    segments: _Segments,
    join: bool = True,
    on_control: OnControl = "encode",
    control: Collection[str] = (),
) -> list[int]:
    """Implements `Encoding.encode_segments`."""
    segments = _prepared(engine, segments, on_control, control)
    return encode_segments(engine, segments, bool(join)).tolist()


def encode_segments_to_numpy(
    engine: Pipeline,
    segments: _Segments,
    *,
    join: bool = True,
    on_control: OnControl = "encode",
    control: Collection[str] = (),
) -> npt.NDArray[np.uint32]:
    """Encodes like `Encoding.encode_segments`, to a numpy array of uint32. Needs numpy."""
    segments = _prepared(engine, segments, on_control, control)
    buffer = encode_segments(engine, segments, bool(join))
    import numpy as np

    return np.frombuffer(buffer, dtype=np.uint32)  # type: ignore[call-overload,no-any-return]


def count_segments(
    engine: Pipeline,
    segments: _Segments,
    *,
    join: bool = True,
    on_control: OnControl = "encode",
    control: Collection[str] = (),
) -> int:
    """Returns the number of ids that `Encoding.encode_segments` returns."""
    segments = _prepared(engine, segments, on_control, control)
    return len(encode_segments(engine, segments, bool(join)))


def audit(
    engine: Pipeline, segments: _Segments, join: bool = True, control: Collection[str] = ()
) -> Audit:
    """Implements `Encoding.audit_segments`."""
    segments = _listed(segments)
    ids = audit_segments(engine, segments, bool(join))
    names = _named(control)
    unmarked = frozenset(names).difference(engine._special_tokens_set if names else ())

    def controls() -> list[ControlString]:
        finder = _finder(engine, names)
        return [found.string for run in _untrusted_runs(segments) for found in _find(finder, run)]

    return Audit(ids, segments, controls, unmarked)


# ---- Policies for control strings ----


def _prepared(
    engine: Pipeline, segments: _Segments, on_control: OnControl, control: Collection[str]
) -> _Segments:
    """Applies the policy for control strings to untrusted segments."""
    if control != ():
        _named(control)
    if on_control == "encode":
        return segments
    if on_control not in ("raise", "strip") and not callable(on_control):
        raise ValueError(
            f'on_control must be "encode", "raise", "strip" or a function, not {safe_repr(on_control)}'
        )
    segments = _listed(segments)
    # Malformed segments raise before their text is checked.
    encode_segments(engine, [_shape(segment) for segment in segments], True)
    finder = _finder(engine, control)
    for run in _untrusted_runs(segments):
        found = _find(finder, run)
        if not found:
            continue
        if on_control == "raise":
            raise forbidden(found[0].string)
        if on_control == "strip":
            texts = _stripped(finder, run, found)
        else:
            texts = _replaced(run, found, on_control)
        for index, text in zip(run.places, texts):
            segments[index] = (text, *segments[index][1:])
    return segments


def _stripped(finder: NameFinder, run: _Run, found: list[_Found]) -> list[str]:
    """Removes control strings from the texts of a run, including strings formed by the removal."""
    for _ in range(_MOST_NESTED):
        run = _Run(run.places, _replaced(run, found, lambda place: ""))
        found = _find(finder, run)
        if not found:
            return run.texts
    raise ValueError(
        f"control strings in untrusted text are nested more than {_MOST_NESTED} deep; refuse it "
        '(on_control="raise") or encode them as ordinary text (on_control="encode")'
    )


def _listed(segments: _Segments) -> list[Any]:
    if isinstance(segments, (str, bytes, dict)) or not isinstance(segments, Iterable):
        hint = "; for one text pass [untrusted(text)]" if isinstance(segments, str) else ""
        raise TypeError(f"segments must be a list of segments, not {type(segments).__name__}{hint}")
    return listed(segments)


def _shape(segment: Any) -> Any:
    """Returns a segment with its untrusted text emptied. Other values are unchanged."""
    if isinstance(segment, tuple) and len(segment) >= 2 and isinstance(segment[0], str):
        return segment if is_trusted(segment) else ("", *segment[1:])
    return segment


class _Run(NamedTuple):
    """Adjacent untrusted texts, whose boundaries control strings may cross."""

    #: Indices of the segments.
    places: list[int]
    texts: list[str]


def _untrusted_runs(segments: Sequence[Any]) -> list[_Run]:
    runs: list[_Run] = []
    is_open = False
    for index, segment in enumerate(segments):
        if not is_trusted(segment):
            if not is_open:
                runs.append(_Run([], []))
            runs[-1].places.append(index)
            runs[-1].texts.append(segment[0])
            is_open = True
        elif segment[5] if is_tokens(segment) else segment[0]:
            is_open = False
    return runs


class _Found(NamedTuple):
    """A control string with its character span in the joined texts of a run."""

    string: ControlString
    start: int
    end: int


def _find(finder: NameFinder, run: _Run) -> list[_Found]:
    result = []
    number = before = 0
    for token, first, last in finder.find("".join(run.texts)):
        while first >= before + len(run.texts[number]):
            before += len(run.texts[number])
            number += 1
        string = ControlString(token, run.places[number], first - before)
        result.append(_Found(string, first, last))
    return result


def _replaced(run: _Run, found: list[_Found], replace: Callable[[ControlString], str]) -> list[str]:
    """Replaces each control string in the texts of a run."""
    result = []
    begin = next_found = 0
    for index, text in zip(run.places, run.texts):
        end = begin + len(text)
        parts, at = [], 0
        for number in range(next_found, len(found)):
            string, first, last = found[number]
            if first >= end:
                break
            parts.append(text[at : max(first - begin, 0)])
            if string.segment == index:
                parts.append(_replacement(string, replace))
            at = min(last, end) - begin
            # A string that crosses the boundary also belongs to the next text.
            next_found = number + (last <= end)
        result.append("".join([*parts, text[at:]]))
        begin = end
    return result


def _replacement(place: ControlString, replace: Callable[[ControlString], str]) -> str:
    new = replace(place)
    if not isinstance(new, str):
        raise TypeError(f"on_control must return a str, not {type(new).__name__}, for {place}")
    return new


def _finder(engine: Pipeline, control: Collection[str]) -> NameFinder:
    """Returns a searcher for control strings."""
    names = frozenset(_named(control))
    found = _FINDERS.setdefault(engine, {})
    finder = found.get(names)
    # The special tokens or the normalizer of a tokenizer file may have changed.
    if finder is None or not finder.is_current(engine):
        # Among names with the same normalized form, names that are not special tokens come first.
        special = engine._special_tokens_set
        finder = NameFinder(engine, [*sorted(names - special), *sorted(special)])
        if len(found) >= _MOST_FINDERS:
            found.clear()
        found[names] = finder
    return finder


def _named(control: Collection[str]) -> list[str]:
    """Validates and returns the strings of `control=`."""
    if isinstance(control, (str, bytes)) or not isinstance(control, Iterable):
        hint = f"; for this one pass [{safe_repr(control)}]" if isinstance(control, str) else ""
        raise TypeError(f"control must be a collection of str, not {safe_repr(control)}{hint}")
    names = listed(control)
    for name in names:
        if not isinstance(name, str) or not name:
            raise TypeError(
                f"control must be a collection of str that are not empty, not {safe_repr(name)}"
            )
        if any("\ud800" <= character <= "\udfff" for character in name):
            raise ValueError(
                f"control holds {safe_repr(name)}, which has half a character, so that no text holds it"
            )
    return names
