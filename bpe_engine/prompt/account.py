"""Counts tokens by prompt part, compares prompts, and truncates conversations to a budget."""

from __future__ import annotations

import json
import re
import zlib
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache, cached_property, partial
from itertools import accumulate, compress, groupby, pairwise, takewhile
from operator import itemgetter, not_
from typing import Any, NamedTuple

from .._arguments import whole_number
from .._core import AuditedIds, audit_segments
from ..common.values import for_json, listed, safe_repr
from ..model import encoding_for_model
from .apply_template import without_none
from .fields import REASONING_KEYS, value_of
from .openai_count import counted_parts
from .segments import Origin, Segment, trusted

__all__ = ["Account", "Comparison", "Fitted", "Part", "PartChange", "Side", "account_prompt", "fit"]

_SYSTEM = ("system", "developer")
_RESULTS = ("tool", "function", "ipython")
# Order of the top-level parts. Segment labels follow.
_GROUPS = ("template", "system", "tools", "documents", "messages")
_DATA = ("tools", "documents")
# Maximum number of earlier prompts in a log with which each prompt is compared.
_RECENT = 32
# Numbers from here on are not ids: tokens of a closed model whose text is not public.
_UNKNOWN = 1 << 31


class Part(NamedTuple):
    """A part of a prompt with its token count."""

    #: Path such as "tools[1]" or "messages[2].content", or the label of a segment.
    name: str
    #: Number of tokens, including all `parts`. A token belongs to the part with its first byte.
    tokens: int
    #: Role of a message, or name of a tool.
    label: str = ""
    #: Number of tokens that end in another part.
    crossing: int = 0
    parts: tuple[Part, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Returns the part as JSON data, without empty fields."""
        data = {name: value for name, value in self._asdict().items() if value or name == "tokens"}
        return data | ({"parts": [part.to_dict() for part in self.parts]} if self.parts else {})


# Group and index of the template's own part.
_TEMPLATE = ("template", -1)
# Makes a `Part` in half the time of `Part(...)`.
_part: Callable[[Any], Part] = partial(tuple.__new__, Part)


class Side(NamedTuple):
    """The first differing token in one of two prompts."""

    place: int
    #: Name of the part, such as "messages[0].content".
    part: str
    origin: Origin
    text: str
    #: Text of the token and its neighbors.
    context: str


class Account:
    """The token counts of a prompt's parts. Created by `account_prompt`."""

    def __init__(
        self,
        segments: list[Any],
        tokenizer: Any,
        messages: list[Any],
        tools: list[Any],
        counted: AuditedIds,
        estimates: list[str] | None = None,
    ):
        self._segments, self._tokenizer = segments, tokenizer
        self._given: dict[str, list[Any]] = {"messages": messages, "tools": tools}
        self._counted, self._is_closed = counted, estimates is not None
        self._items, self._leaf_of = _leaves(segments)
        #: Number of tokens of the whole prompt.
        self.total: int = len(counted)
        #: Estimated parts, each with the reason. Empty if all counts are exact.
        self.estimates: list[str] = estimates or []

    @property
    def ids(self) -> list[int] | None:
        """Token ids. None for a closed model, whose prompts are not public."""
        return None if self._is_closed else self._numbers

    @cached_property
    def _numbers(self) -> list[int]:
        return self._counted.ids()

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """Top-level parts, whose tokens sum to `total`."""
        size = sum(map(len, self._items.values()))
        counts, crossing = self._counted.totals(self._leaf_of, size)
        groups, labels = {name: list[Part]() for name in _GROUPS}, self._labels
        for item, fields in self._items.items():
            name, label = _name(*item), labels.get(item, "")
            tokens, across, parts = 0, 0, list[Part]()
            for field, leaf in fields.items():
                tokens, across = tokens + counts[leaf], across + crossing[leaf]
                each = f"{name}.{field}" if field else name
                parts.append(_part((each, counts[leaf], "", crossing[leaf], ())))
            if item[0] == "messages" and label in _SYSTEM:
                groups["system"] += parts
            elif item[0] == "messages":
                groups["messages"].append(_part((name, tokens, label, across, tuple(parts))))
            elif tokens or item != _TEMPLATE:
                groups.setdefault(item[0], []).append(parts[0]._replace(label=label))
        return tuple(_sum(name, parts) for name, parts in groups.items() if parts)

    def __iter__(self) -> Iterator[Part]:
        """Yields all parts in pre-order."""
        ahead = [*reversed(self.parts)]
        while ahead:
            yield (part := ahead.pop())
            ahead += reversed(part.parts)

    def __repr__(self) -> str:
        return f"<Account of {self.total} tokens>"

    def __str__(self) -> str:
        return "\n".join(part_rows("prompt", self.parts))

    def to_dict(self) -> dict[str, Any]:
        """Returns the account as JSON data."""
        parts = [part.to_dict() for part in self.parts]
        return {"total": self.total, "estimates": self.estimates, "parts": parts}

    def compare(self, before: Account) -> Comparison:
        """Compares this prompt with an earlier prompt for the same model."""
        if not isinstance(before, Account):
            raise TypeError(f"compare takes an Account, not {type(before).__name__}")
        one, other = before._tokenizer, self._tokenizer
        is_same = one is other or one.fingerprint == other.fingerprint
        if not is_same or before._is_closed != self._is_closed:
            raise ValueError("the prompts are of two models; make both accounts for one model")
        return Comparison(before, self)

    def _side(self, place: int) -> Side | None:
        if place >= self.total:
            return None
        size = len(self._segments)
        at = bisect_right([*accumulate(self._counted.totals([*range(size)], size)[0])], place)
        segment, numbers = self._segments[at], self._numbers
        before, after = (
            [*takewhile(_UNKNOWN.__gt__, near)]
            for near in (numbers[max(place - 6, 0) : place][::-1], numbers[place : place + 6])
        )
        shown = (after[:1], before[::-1] + after)
        texts = map(self._decoded, shown) if after else (segment.text[:40],) * 2
        return Side(place, _name(*self._places[self._leaf_of[at]]), segment.origin, *texts)

    def _decoded(self, ids: list[int]) -> str:
        try:
            return str(self._tokenizer.decode_bytes(ids).decode("utf-8", "replace"))
        except ValueError:  # A token of this model has no bytes of its own.
            return str(self._tokenizer.decode(ids, skip_special_tokens=False))

    @cached_property
    def _labels(self) -> dict[tuple[str, int], str]:
        """Message roles and tool names."""
        messages, tools = self._given.values()
        labels = {("messages", at): value_of(m, "role") for at, m in enumerate(messages)}
        for at, tool in enumerate(tools):
            labels["tools", at] = value_of(value_of(tool, "function") or tool, "name")
        for leaf, segment in () if messages else zip(self._leaf_of, self._segments):
            if segment.origin.role:
                labels.setdefault(self._places[leaf][:2], segment.origin.role)
        return {item: str(label or "") for item, label in labels.items()}

    @cached_property
    def _places(self) -> dict[int, tuple[str, int, str]]:
        """Group, index and field by leaf."""
        items = self._items.items()
        return {leaf: (*item, field) for item, them in items for field, leaf in them.items()}

    @cached_property
    def _units(self) -> dict[str, _Unit]:
        """Template, tools, documents and messages by name."""
        texts: dict[int, list[str]] = {leaf: [] for leaf in self._places}
        for leaf, segment in zip(self._leaf_of, self._segments):
            texts[leaf].append(segment.text or str(segment.ids or ""))
        units = {}
        for item, leaves in self._items.items():
            own = "template" if item == _TEMPLATE else ""
            fields = {field or own: "".join(texts[leaf]) for field, leaf in leaves.items()}
            units[_name(*item)] = _Unit(*item, _name(*item), self._labels.get(item, ""), fields)
        return units


def _sum(name: str, parts: list[Part]) -> Part:
    if len(parts) == 1 and parts[0].name == name:
        return parts[0]
    crossing = sum(part.crossing for part in parts)
    return Part(name, sum(part.tokens for part in parts), "", crossing, tuple(parts))


def _name(group: str, at: int, field: str = "") -> str:
    item = f"{group}[{at}]" if at >= 0 else group
    return f"{item}.{field}" if field else item


@dataclass(eq=False)
class _Unit:
    """A tool, document or message, with the text of each field."""

    group: str
    at: int
    name: str
    label: str
    fields: dict[str, str]

    @cached_property
    def said(self) -> tuple[Any, ...]:
        """The label and fields, without the template's text around a message."""
        return self.label, *sorted(it for it in self.fields.items() if it[0] != "template")


def _leaves(segments: Sequence[Segment]) -> tuple[dict[tuple[str, int], dict[str, int]], list[int]]:
    """Numbers the leaves in the tree. Returns the leaves by part and by field (or ""), and the leaf
    of each segment."""
    items: dict[tuple[str, int], dict[str, int]] = {_TEMPLATE: {"": 0}}
    leaf_of: list[int] = []
    size = 1
    last, message, leaf = None, -1, 0
    # Makes no tuples in the loop: garbage collection would cost more than the loop itself.
    for origin in map(itemgetter(6), segments):
        if origin is not last:
            last, at = origin, origin[0]
            if at is None:
                item = origin[2], origin[3][0] if origin[3] else -1
                leaf = items.setdefault(item, {}).setdefault("", size)
            else:
                if at != message:
                    message, fields = at, items.setdefault(("messages", at), {})
                leaf = fields.setdefault(origin[2], size)
            size += leaf == size
        leaf_of.append(leaf)
    data = {it for (group, _), them in items.items() if group in _DATA for it in them.values()}
    inside = [number for number, leaf in enumerate(leaf_of) if leaf in data]
    for start, end in pairwise(inside):
        # Template text between two texts of the same tool belongs to the tool.
        if leaf_of[start] == leaf_of[end] and not any(leaf_of[start + 1 : end]):
            leaf_of[start:end] = [leaf_of[start]] * (end - start)
    return dict(sorted(items.items(), key=lambda item: item[0][1])), leaf_of


def _with_origin(segment: Segment) -> Segment:
    """Returns a segment with the origin that its labels name: "messages[1]" or a part's name."""
    name = segment.source or segment.role or "text"
    origin = Origin(None, segment.role, "template" if segment.source == "format" else name)
    if found := re.fullmatch(r"messages\[(\d+)\]", name):
        origin = origin._replace(message=int(found[1]), field="content")
    return segment._replace(origin=origin)


def part_rows(title: str, parts: Sequence[Part], width: int = 80, bar: str = "█") -> list[str]:
    """Returns table rows with the name, tokens, share and bar of each part.

    Parts under 1 % share a row: messages by role, other parts by group.
    """
    total = sum(part.tokens for part in parts)
    rows = [(title, total), *_rows(parts, total / 100, "  ", "")]
    figures = len(f"{total:,}")
    names = min(max(len(name) for name, _ in rows), max(width - figures - 24, 12))
    room = max(4, min(40, width - names - figures - 13))
    lines = []
    for name, tokens in rows:
        share = tokens / total if total else 0.0
        name = name if len(name) <= names else f"{name[: names - 1]}…"
        drawn = bar * max(round(share * room), int(tokens > 0))
        lines.append(f"{name:{names}}  {tokens:{figures},}  {share:6.1%}  {drawn}".rstrip())
    if crossing := sum(part.crossing for part in parts):
        lines.append(f"tokens that end in another part, counted where they begin: {crossing:,}")
    return lines


def _rows(
    parts: Sequence[Part], least: float, indent: str, group: str
) -> Iterator[tuple[str, int]]:
    small: dict[str, list[Part]] = {}
    for part in parts:
        if part.tokens >= least:
            yield f"{indent}{part.name} {part.label}".rstrip(), part.tokens
            inner = part.name if part.name in _GROUPS[2:] else "parts"
            if inner != "parts" or sum(it.tokens >= least for it in part.parts) > 1:
                yield from _rows(part.parts, least, indent + "  ", inner)
        elif part.tokens:
            kind = part.label if group == "messages" else group or part.name
            small.setdefault(kind, []).append(part)
    for kind, few in small.items():
        name = f"{few[0].name} {few[0].label}" if len(few) == 1 else f"{len(few):,} small {kind}"
        yield f"{indent}{name}".rstrip(), sum(part.tokens for part in few)


def account_prompt(
    prompt: Iterable[Any],
    tokenizer: Any = None,
    *,
    template: str | None = None,
    model: str | None = None,
    tools: Sequence[Mapping[str, Any]] | None = None,
    max_seconds: float = 10.0,
    **more: Any,
) -> Account:
    """Counts the tokens in each part of a prompt.

    With a tokenizer, the counts are exact, for the ids of `encode_segments`. Template text around a
    message is the message's part "template". Template text inside a tool belongs to the tool.

    Args:
        prompt: Messages, or segments as returned by `render_template` and `render_chat`.
        tokenizer: An encoding or a tokenizer.
        template: Chat template source for messages. Default: the template of `tokenizer`.
        model: OpenAI chat model, instead of a tokenizer. `count_chat_tokens` counts the parts.
        tools: Tools of the request.
        max_seconds: Time limit for rendering the template.
        more: As in `render_template`; `add_generation_prompt` is True by default.

    Raises:
        TypeError: The prompt is neither messages nor segments.
        ValueError: A tokenizer or a template is missing, or `model` is not an OpenAI chat model.
        Exception: Any error of rendering, encoding or counting.
    """
    segments, messages, tools = _listed(prompt), [], _listed(tools or (), "tools")
    if model is not None:
        if tokenizer is not None or template is not None:
            raise ValueError("give a tokenizer and its template, or model= for a closed model")
        with _named_keys(messages=segments, tools=tools):
            return _closed(segments, tools, model)
    if tokenizer is None:
        raise ValueError("give a tokenizer, or for OpenAI's closed models a name: model='gpt-4o'")
    if not segments or not all(isinstance(segment, tuple) for segment in segments):
        if template is None:
            if not getattr(tokenizer, "chat_template", None):
                raise ValueError("messages need template=, the text of the model's chat template")
            template = tokenizer.get_chat_template(tools=tools or None)
        from .template import chat_template

        names = getattr(tokenizer, "special_tokens_map", {})
        known = {name: trusted(token) for name, token in names.items() if isinstance(token, str)}
        messages = segments
        with _named_keys(messages=messages, tools=tools):
            segments = chat_template(template, max_seconds).render(
                without_none(messages),
                tools=tools or None,
                tokenizer=tokenizer,
                **{"add_generation_prompt": True, **known, **more},
            )
    counted = audit_segments(tokenizer, segments, True)
    if not messages:
        segments = [Segment(*segment) for segment in segments]
        segments = [it if it.origin else _with_origin(it) for it in segments]
    return Account(segments, tokenizer, messages, tools, counted)


def _listed(values: Any, name: str = "a prompt of messages or segments") -> list[Any]:
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
        raise TypeError(f"{name} must be a list, not {type(values).__name__}")
    return listed(values)


@contextmanager
def _named_keys(**given: list[Any]) -> Iterator[None]:
    """Adds the place of a key that is not valid in JSON to an error."""
    try:
        yield
    except TypeError as error:
        for name, items in given.items() if "keys must be" in str(error) else ():
            for at, item in enumerate(items):
                try:
                    json.dumps(item, default=for_json)
                except TypeError as reason:
                    raise TypeError(
                        f"{name}[{at}]: {reason}; make its data JSON, as in {{str(key): value}}"
                    ) from None
        raise


def _closed(messages: list[Any], tools: list[Any], model: str) -> Account:
    """Counts a request to a closed model, tools first."""
    parts, estimates = counted_parts(messages, model, tools)
    encoding = encoding_for_model(model)
    numbers, runs, segments = list[int](), list[int](), list[Segment]()
    for origin, count in parts:
        whole: Any = tools if origin.message is None else messages[origin.message]
        value = whole[origin.path[0]] if origin.path else ""
        text = value if isinstance(value, str) else json.dumps(value, default=for_json)
        ids = encoding.encode(text, disallowed_special=())
        if len(ids) != count:
            # The rule counts a different text, so the part is kept as a whole or not at all.
            ids = [_UNKNOWN | zlib.crc32(text.encode("utf-8", "replace"))] * count
        numbers += ids
        runs += (len(numbers), *[len(segments)] * 3, 0)
        segments.append(Segment(text, False, origin=origin))
    return Account(segments, encoding, messages, tools, AuditedIds(numbers, runs), estimates)


class PartChange(NamedTuple):
    """The change of a part between two prompts."""

    #: "grown" (at the end), "added", "removed", "moved", "date", "key order", "whitespace" or
    #: "edited"; "reasoning" and "template" if the template renders the same messages differently.
    kind: str
    #: Name of the part in the later prompt. For a removed part, the name in the earlier prompt.
    part: str
    #: Role of the message, or name of the tool.
    label: str
    advice: str


class Comparison:
    """The tokens of a prompt that an earlier prompt's cache saves. Created by `Account.compare`."""

    def __init__(self, before: Account, after: Account):
        self.before: Account = before
        self.after: Account = after
        #: Length of the common prefix in tokens.
        self.kept: int = _common(before._numbers, after._numbers)

    @cached_property
    def first(self) -> tuple[Side | None, Side | None]:
        """The first differing token of the earlier and the later prompt; None at a prompt's end."""
        return self.before._side(self.kept), self.after._side(self.kept)

    def cached(self, block: int = 16) -> int:
        """Returns the number of kept tokens, rounded down to whole blocks. Never includes the last
        token, as in vLLM."""
        block = whole_number("block", block, at_least=1)
        return min(self.kept, max(self.after.total - 1, 0)) // block * block

    @property
    def cached_by_openai(self) -> int:
        """Number of tokens in OpenAI's cache: 0 below 1,024, then in steps of 128."""
        return self.kept // 128 * 128 if self.kept >= 1024 else 0

    @property
    def billed_as_cached(self) -> int:
        """Number of cached tokens: OpenAI's rule for closed models, else blocks of 16 tokens."""
        return self.cached_by_openai if self.after.ids is None else self.cached()

    @cached_property
    def changes(self) -> list[PartChange]:
        """The changed parts. A change at the first difference comes first."""
        old, new = self.before._units, self.after._units
        found: list[PartChange] = []
        groups = (unit.group for units in (old, new) for unit in units.values())
        for group in dict.fromkeys((*_GROUPS[2:], *groups)):
            sides = ([it for it in units.values() if it.group == group] for units in (old, new))
            found += self._of_group(*sides)
        if all(change.kind == "grown" for change in found):
            for name in filter(new.__contains__, old):
                one, other = (units[name].fields.get("template", "") for units in (old, new))
                if one != other:
                    kind = "date" if _dateless(one) == _dateless(other) else "template"
                    found.append(_change(kind, new[name], "template"))
        # The first token of a text can belong to the template part of its message.
        units = [side.part.partition(".")[0] for side in self.first if side]
        found.sort(key=lambda it: it.part.partition(".")[0] not in units)
        return found

    def _of_group(self, old: list[_Unit], new: list[_Unit]) -> Iterator[PartChange]:
        keys = [[unit.said for unit in units] for units in (old, new)]
        start = _common(*keys)
        end = _common(*(each[start:][::-1] for each in keys))
        middles = [each[start : len(each) - end] for each in keys]
        gone, come = (dict.fromkeys(units[start : len(units) - end]) for units in (old, new))
        for a, b, size in SequenceMatcher(None, middles[0], middles[1]).get_matching_blocks():
            for at in range(start, start + size):
                del gone[old[a + at]], come[new[b + at]]
        is_message = bool(new) and new[0].group == "messages"
        for is_same in (True, False):

            def key(unit: _Unit, is_same: bool = is_same) -> Any:
                # A tool is identified by name, and a message by role and position.
                return unit.said if is_same else (unit.label, is_message and unit.at)

            alike: dict[Any, list[_Unit]] = {}
            for unit in reversed(gone):
                alike.setdefault(key(unit), []).append(unit)
            for unit in [*come]:
                if others := alike.get(key(unit)):
                    del gone[other := others.pop()], come[unit]
                    yield from [_change("moved", unit)] if is_same else self._edited(other, unit)
        grown = {*takewhile(come.__contains__, reversed(new))} if is_message else set()
        yield from (_change("grown" if unit in grown else "added", unit) for unit in come)
        yield from (_change("removed", unit) for unit in gone)

    def _edited(self, old: _Unit, new: _Unit) -> Iterator[PartChange]:
        for field in dict.fromkeys((*old.fields, *new.fields)):
            one, other = old.fields.get(field), new.fields.get(field)
            if one == other or field == "template":
                continue
            if other is None:
                message = (*self.after._given["messages"][new.at :], {})[0]
                is_given = field == "reasoning" and any(
                    value_of(message, it) for it in REASONING_KEYS
                )
                yield _change("reasoning" if is_given else "removed", old, field)
            elif one is None:
                yield _change("added", new, field)
            else:
                given, now = (it._given.get(new.group, []) for it in (self.before, self.after))
                is_same = given[old.at : old.at + 1] == now[new.at : new.at + 1] != []
                yield _change(_kind(one, other, is_same, new.label), new, field)

    def to_dict(self) -> dict[str, Any]:
        """Returns the comparison as JSON data."""
        sides = [side and {**side._asdict(), "origin": str(side.origin)} for side in self.first]
        return {
            "before": self.before.total,
            "after": self.after.total,
            "kept": self.kept,
            "cached": {"16": self.cached(), "64": self.cached(64), "openai": self.cached_by_openai},
            "first": dict(zip(("before", "after"), sides)),
            "changes": [change._asdict() for change in self.changes],
        }

    def __str__(self) -> str:
        share = self.kept / self.after.total if self.after.total else 1.0
        lines = [f"kept {self.kept:,} of {self.after.total:,} tokens ({share:.1%})"]
        for name, side in zip(("before", "now"), self.first):
            where = f"{side.part}  {side.text!r} in {side.context!r}" if side else "the end"
            lines.append(f"  token {self.kept:,} {name:6}  {where}")
        lines.append(
            f"in a cache: {self.cached():,} with blocks of 16, {self.cached(64):,} with blocks of "
            f"64, {self.cached_by_openai:,} by OpenAI's rule"
        )
        for (kind, advice), found in groupby(self.changes, lambda it: (it.kind, it.advice)):
            first, *rest = found
            more = f" and {len(rest):,} more" if rest else ""
            lines += [f"{kind}: {first.part} {first.label}".rstrip() + more, f"  {advice}"]
        return "\n".join(lines)


def _common(old: Sequence[Any], new: Sequence[Any]) -> int:
    """Returns the length of the common prefix."""
    low, high = 0, min(len(old), len(new))
    while low < high:
        at = (low + high + 1) // 2
        low, high = (at, high) if old[low:at] == new[low:at] else (low, at - 1)
    return low


_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\.?"
_DATE = re.compile(
    r"\b\d{4}-\d\d?-\d\d?(?:T(?=\d))?|\b\d\d?(?:/\d\d?/\d{2,4}|\.\d\d?\.\d{4})\b|"
    rf"\b\d\d?(?:st|nd|rd|th)? {_MONTH}(?: \d{{4}})?|\b{_MONTH} \d\d?(?:st|nd|rd|th)?(?:,? \d{{4}})?|"
    r"\b(?:Mon|Tues?|Wed(?:nes)?|Thu(?:rs)?|Fri|Sat(?:ur)?|Sun)(?:day)?\b|"
    r"\d\d?:\d\d(?::\d\d(?:\.\d+)?)?(?: ?[AaPp][Mm])?(?:Z|[+-]\d\d:?\d\d)?"
)
_dateless = partial(_DATE.sub, "\0")


def _kind(one: str, other: str, is_same: bool, role: str) -> str:
    """Returns the kind of an edit. `is_same` is True if both requests have equal data here."""
    if "".join(one.split()) == "".join(other.split()):
        return "whitespace"
    if _dateless(one) == _dateless(other):
        return "date"
    if sorted(one) == sorted(other):
        with suppress(ValueError, RecursionError):
            if is_same or json.loads(one) == json.loads(other):
                return "key order"
    # Templates also cut reasoning out of an answer's content.
    is_cut = role == "assistant" and one.endswith(other)
    return "edited" if not is_same else "reasoning" if is_cut else "template"


_AGAIN = "All text after {} is computed again: "
_ON_TOOLS = _AGAIN.format("the tools") + "offer the same tools, texts and order in every request."
# Advice for each kind of change, or for a kind in one group.
_ADVICE = {
    "grown": "Text added at the end costs only the new tokens.",
    "added": _AGAIN.format("an added part") + "add new text at the end.",
    "removed": _AGAIN.format("a removed part") + "remove much at a time, and seldom.",
    "moved": _AGAIN.format("the first moved part") + "keep the earlier order.",
    "date": _AGAIN.format("a date that changes") + "write no time, or put it at the end.",
    "date template": _AGAIN.format("the template's date") + "see whether a variable sets the date.",
    "key order": "Keys in another order are other text: write JSON with sort_keys=True.",
    "whitespace": "Only whitespace differs, but a cache compares tokens: send the earlier text.",
    "edited": _AGAIN.format("an edited part") + "leave earlier text, and correct it at the end.",
    "reasoning": "The request has this reasoning, but the template now leaves it out: see whether a "
    "variable of the template keeps it.",
    "template": "The template writes other text for the same messages: compare its variables.",
    **{f"{kind} tools": _ON_TOOLS for kind in ("added", "removed", "moved", "edited")},
}


def _change(kind: str, unit: _Unit, field: str = "") -> PartChange:
    advice = _ADVICE.get(f"{kind} {field}") or _ADVICE.get(f"{kind} {unit.group}") or _ADVICE[kind]
    name = f"{unit.name}.{field}" if field not in ("", unit.name) else unit.name
    return PartChange(kind, name, unit.label, advice)


class Step(NamedTuple):
    """A prompt of a log, compared with an earlier prompt."""

    account: Account
    #: Comparison with one of the last 32 prompts: the same conversation, or the longest common
    #: prefix.
    compared: Comparison | None
    #: Change that shortened the cached prefix.
    change: PartChange | None


def follow(accounts: Iterable[Account]) -> Iterator[Step]:
    """Yields a step for each prompt of a log."""
    recent: deque[tuple[Account, set[Any]]] = deque(maxlen=_RECENT)
    for account in accounts:
        messages = [unit for unit in account._units.values() if unit.group == "messages"]
        said = {unit.said for unit in messages if unit.label not in _SYSTEM}
        found = [(bool(said & them), account.compare(before)) for before, them in reversed(recent)]
        is_same, best = max(found, key=lambda it: (it[0], it[1].kept), default=(False, None))
        change = next((it for it in best.changes if it.kind != "grown"), None) if best else None
        # Different conversations have different text. Only a difference in shared text is a change.
        if change and not is_same and change.kind in ("added", "removed", "edited", "template"):
            change = None
        yield Step(account, best, change)
        recent.append((account, said))


class Fitted(NamedTuple):
    """Messages that fit a token budget. Created by `fit`."""

    messages: list[Any]
    #: Dropped messages in order.
    dropped: list[Any]
    #: Number of tokens in the prompt for `messages`, including tools and template.
    total: int


def fit(
    messages: Iterable[Mapping[str, Any]],
    limit: int,
    template: str | None = None,
    tokenizer: Any = None,
    tools: Sequence[Mapping[str, Any]] | None = None,
    **more: Any,
) -> Fitted:
    """Drops the oldest turns of a conversation until its prompt has at most `limit` tokens.

    Keeps system messages and whole turns from the end. A turn begins with a user message. Tool
    results stay with their calls.

    Args:
        messages: The conversation.
        limit: The maximum number of tokens, including tools and template.
        template, tokenizer, tools, more: As in `account_prompt`, such as ``model="gpt-4o"``.

    Raises:
        TypeError: A message is not a mapping.
        ValueError: The last turn alone exceeds the limit. The message names the largest part.
        Exception: Any error of `account_prompt`.
    """
    given, limit = _listed(messages), whole_number("limit", limit)
    if segment := next((each for each in given if isinstance(each, tuple)), None):
        raise TypeError(
            f"fit drops whole messages, so give messages, not segments: {safe_repr(segment)}"
        )

    def split(start: int) -> tuple[list[Any], list[Any]]:
        is_kept = [at >= start or value_of(m, "role") in _SYSTEM for at, m in enumerate(given)]
        return [*compress(given, is_kept)], [*compress(given, map(not_, is_kept))]

    @cache
    def account(start: int) -> Account:
        kept = split(start)[0]
        return account_prompt(kept, tokenizer, template=template, tools=tools, **more)

    starts = _starts(given)
    least = account(starts[-1])
    if least.total > limit:
        largest = max((part for part in least if not part.parts), key=lambda part: part.tokens)
        raise ValueError(
            f"the last turn needs {least.total:,} tokens with the system message, the tools and the "
            f"template, more than limit, {limit:,}; raise it, or shorten {largest.name} "
            f"({largest.tokens:,} tokens)"
        )
    size = len(starts) - 1
    start = starts[bisect_left(starts, True, 0, size, key=lambda it: account(it).total <= limit)]
    return Fitted(*split(start), account(start).total)


def _starts(messages: Sequence[Any]) -> list[int]:
    """Returns the start indices of turns: user messages, except between a call and its result."""
    calls: dict[Any, int] = {}
    # Index of the first message required by each message: a result requires its call.
    needs: list[int] = []
    for at, message in enumerate(messages):
        made, parts = (
            value if isinstance(value := value_of(message, key), (list, tuple)) else ()
            for key in ("tool_calls", "content")
        )
        calls |= {str(value_of(call, "id")): at for call in made}
        calls |= {"None": at} if made or value_of(message, "function_call") else {}
        is_result = value_of(message, "role") in _RESULTS
        need = calls.get(str(value_of(message, "tool_call_id")), -1) if is_result else at
        # Items of OpenAI's Responses API, and parts of Anthropic messages.
        for item in (message, *parts):
            kind, key = str(value_of(item, "type")), value_of(item, "call_id")
            if kind.endswith(("_call", "tool_use")):
                calls[str(key or value_of(item, "id"))] = at
            elif kind.endswith(("_call_output", "tool_result")):
                need = min(need, calls.get(str(key or value_of(item, "tool_use_id")), -1))
        needs.append(need)
    firsts = [*accumulate(reversed(needs), min)][::-1]
    users = [
        at for at, message in enumerate(messages) if at and value_of(message, "role") == "user"
    ]
    return [0, *(at for at in users if firsts[at] == at)]
