"""Tokens of each part of a prompt, the first difference of two prompts, and the turns that fit a budget."""

from __future__ import annotations

import json
import re
import zlib
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from functools import cached_property
from itertools import accumulate, groupby, takewhile
from typing import Any, NamedTuple

from .._arguments import whole_number
from .._core import audit_segments
from ..model import encoding_for_model
from .apply_template import without_none
from .fields import REASONING_KEYS, field_of
from .openai_count import count_chat_tokens
from .segments import Origin, Segment, trusted

__all__ = ["Account", "Comparison", "Fitted", "Part", "PartChange", "Side", "account_prompt", "fit"]

_SYSTEM = ("system", "developer")
_RESULTS = ("tool", "function", "ipython")
# The top-level parts in order; labels of segments follow.
_GROUPS = ("template", "system", "tools", "documents", "messages")
# Earlier prompts of a log that each prompt is compared with.
_RECENT = 32


class Part(NamedTuple):
    """A part of a prompt, and its tokens."""

    #: The place, such as "tools[1]" or "messages[2].content"; or the label of a segment.
    name: str
    #: The tokens, including all `parts`. A token belongs to the part with its first byte.
    tokens: int
    #: The role of a message, or the name of a tool.
    label: str = ""
    #: The tokens that end in another part.
    crossing: int = 0
    parts: tuple[Part, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Returns the part as JSON data, without empty fields."""
        data = {name: value for name, value in self._asdict().items() if value or name == "tokens"}
        return data | ({"parts": [part.to_dict() for part in self.parts]} if self.parts else {})


# A leaf of the tree: the group ("messages" for system messages, too), the index in it or -1, the field or "".
_Place = tuple[str, int, str]


class Side(NamedTuple):
    """The first token that differs, in one of two prompts."""

    place: int
    #: The name of the part, such as "messages[0].content".
    part: str
    origin: Origin | None
    text: str
    #: The text of this token and its neighbors.
    context: str


class Account:
    """The tokens of each part of a prompt. Made by `account_prompt`."""

    def __init__(
        self,
        segments: list[Any],
        tokenizer: Any,
        messages: list[Any],
        tools: list[Any],
        audited: Any = None,
        closed: tuple[list[int], list[int], list[str]] | None = None,
    ):
        self._segments, self._tokenizer = segments, tokenizer
        self._messages, self._tools = messages, tools
        self._audited = audited
        # For a closed model: a number for each counted token, and its segment.
        self._closed = closed
        # The leaves of the tree, and the index of the leaf of each segment.
        self._leaves, self._leaf_of = _leaves(segments)
        #: The tokens of the whole prompt.
        self.total: int = len(closed[0] if closed else audited)
        #: The parts that are estimates, each with the reason; empty if all numbers are exact.
        self.estimates: list[str] = closed[2] if closed else []

    @cached_property
    def ids(self) -> list[int] | None:
        """The ids; None for a closed model, whose prompts are not public."""
        return None if self._closed else self._audited.ids()

    @property
    def _numbers(self) -> list[int]:
        return self._closed[0] if self._closed else self.ids or []

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The parts, whose tokens sum to `total`."""
        leaves, labels = self._leaves, self._labels
        tokens, crossing = [0] * len(leaves), [0] * len(leaves)
        if self._closed is None:
            tokens, crossing = self._audited.totals(self._leaf_of, len(leaves))
        for owner in self._closed[1] if self._closed else ():
            tokens[self._leaf_of[owner]] += 1
        items: dict[tuple[str, int], list[Part]] = {}
        for (group, at, field), count, across in zip(leaves, tokens, crossing):
            part = Part(_name(group, at, field), count, "", across)
            if (item := items.get((group, at))) is None:
                items[group, at] = [part]
            else:
                item.append(part)
        groups: dict[str, list[Part]] = {name: [] for name in _GROUPS}
        for (group, at), parts in sorted(items.items(), key=lambda item: item[0][1]):
            name = _name(group, at)
            label = labels.get(name, "")
            if label in _SYSTEM:
                groups["system"] += parts
            elif at >= 0:
                groups[group].append(_sum(name, parts, label))
            elif parts[0].tokens or group != "template":
                groups.setdefault(group, []).extend(parts)
        return tuple(_sum(name, parts) for name, parts in groups.items() if parts)

    def __iter__(self) -> Iterator[Part]:
        """Yields all parts, each before the parts inside."""
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
        """Compares this prompt with an earlier one.

        >>> from bpe_engine.prompt import account_prompt
        >>> old, new = (
        ...     account_prompt([{"role": "user", "content": text}], model="gpt-4o")
        ...     for text in ("It is 2026-01-31 now.", "It is 2026-02-01 now.")
        ... )
        >>> found = new.compare(old)
        >>> found.kept, found.first[1].text, [(change.kind, change.part) for change in found.changes]
        (10, '02', [('date', 'messages[0].content')])
        """
        if not isinstance(before, Account):
            raise TypeError(f"compare takes an Account, not {type(before).__name__}")
        if (before.ids is None) != (self.ids is None):
            raise ValueError("one prompt is of a closed model; make both accounts for one model")
        return Comparison(before, self)

    def _side(self, place: int) -> Side | None:
        if place >= self.total:
            return None
        numbers = self._numbers
        if self._closed:
            at = self._closed[1][place]
        else:
            each, _ = self._audited.totals([*range(len(self._segments))], len(self._segments))
            at = bisect_right(list(accumulate(each)), place)
        segment = self._segments[at]
        known = list(takewhile(lambda id: id >= 0, numbers[place : place + 6]))
        before = numbers[max(place - 6, 0) : place] if known else []
        around = known if min(before, default=0) < 0 else before + known
        texts = [self._decoded(some) if known else segment[0][:40] for some in (known[:1], around)]
        return Side(place, _name(*self._leaves[self._leaf_of[at]]), segment[6], *texts)

    def _decoded(self, ids: list[int]) -> str:
        try:
            return str(self._tokenizer.decode_bytes(ids).decode("utf-8", "replace"))
        except ValueError:  # A token of this model has no bytes by itself.
            return str(self._tokenizer.decode(ids, skip_special_tokens=False))

    @cached_property
    def _labels(self) -> dict[str, str]:
        """The roles of messages and the names of tools."""
        labels = {f"messages[{at}]": m.get("role") for at, m in enumerate(self._messages)}
        for at, tool in enumerate(self._tools):
            function = tool.get("function", tool) if isinstance(tool, Mapping) else None
            labels[f"tools[{at}]"] = function.get("name") if isinstance(function, Mapping) else None
        for _, _, role, source, _, _, origin, _ in () if self._messages else self._segments:
            if role := role if origin is None else origin[1]:
                labels.setdefault(source if origin is None else f"messages[{origin[0]}]", role)
        return {name: str(label or "") for name, label in labels.items()}

    @cached_property
    def _units(self) -> dict[str, list[_Unit]]:
        """The tools, documents and messages, by group."""
        texts: list[list[str]] = [[] for _ in self._leaves]
        for at, segment in zip(self._leaf_of, self._segments):
            texts[at].append(segment[0] or str(segment[5] or ""))
        groups: dict[str, dict[int, _Unit]] = {}
        for (group, at, field), found in zip(self._leaves, texts):
            name = _name(group, at)
            unit = _Unit(at, name, self._labels.get(name, ""), {})
            unit = groups.setdefault(group, {}).setdefault(at, unit)
            unit.fields[field] = "".join(found)
        return {name: [units[at] for at in sorted(units)] for name, units in groups.items()}


def _sum(name: str, parts: list[Part], label: str = "") -> Part:
    if len(parts) == 1 and parts[0].name == name:
        return parts[0]._replace(label=label, parts=())
    tokens = crossing = 0
    for part in parts:
        tokens, crossing = tokens + part[1], crossing + part[3]
    return Part(name, tokens, label, crossing, tuple(parts))


def _name(group: str, at: int, field: str = "") -> str:
    item = f"{group}[{at}]" if at >= 0 else group
    return f"{item}.{field}" if field else item


class _Unit(NamedTuple):
    """A tool, a document or a message, with the text of each field."""

    at: int
    name: str
    label: str
    fields: dict[str, str]

    @property
    def said(self) -> tuple[Any, ...]:
        """The label and the fields, without the text that the template writes around a message."""
        return self.label, *sorted(it for it in self.fields.items() if it[0] != "template")


def _leaves(segments: Sequence[Any]) -> tuple[list[_Place], list[int]]:
    """Returns the leaves of the tree, and the index of the leaf of each segment."""
    known: dict[_Place, int] = {("template", -1, ""): 0}
    leaf_of: list[int] = []
    before: Any = None
    last = start = leaf = 0
    for number, segment in enumerate(segments):
        origin = segment[6]
        if origin is None:
            leaf = known.setdefault(_labeled(*segment[2:4]), len(known))
        elif origin is not before:
            message, field = origin[0], origin[2]
            if message is None:
                key = (field, origin[3][0] if origin[3] else -1, "")
            else:
                key = ("messages", message, field)
            leaf = known.setdefault(key, len(known))
        before = origin
        leaf_of.append(leaf)
        if leaf:
            # What the template writes between two texts of one tool belongs to the tool.
            if leaf == last and number > start and origin and origin[2] in ("tools", "documents"):
                leaf_of[start:number] = [leaf] * (number - start)
            last, start = leaf, number + 1
    return list(known), leaf_of


def _labeled(role: str | None, source: str | None) -> _Place:
    """Returns the place of a segment that no template made, by its labels."""
    group = source or role or "text"
    if found := re.fullmatch(r"messages\[(\d+)\]", group):
        return "messages", int(found[1]), "content"
    return ("template" if source == "format" else group), -1, ""


def part_rows(title: str, parts: Sequence[Part], width: int = 80, bar: str = "█") -> list[str]:
    """Returns the rows of a table: the name, tokens, share and bar of each part.

    Parts under 1 % share a row: messages by role, others by group.
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
    """Counts the tokens of each part of a prompt.

    With a tokenizer the numbers are exact: the ids equal `encode_segments`. Text that a template
    writes around a message is the message's part "template"; text inside a tool belongs to the tool.

    Args:
        prompt: Messages, or segments, as `render_template` and `render_chat` return them.
        tokenizer: An encoding or a tokenizer.
        template: The text of a chat template, for messages; by default the `tokenizer`'s own.
        model: A chat model of OpenAI, instead of a tokenizer: `count_chat_tokens` counts the parts.
        tools: The tools of the request.
        max_seconds: The longest time for the template.
        more: As in `render_template`; `add_generation_prompt` is True by default.

    Raises:
        TypeError: The prompt is neither messages nor segments.
        ValueError: A tokenizer or a template is missing, or `model` is not a chat model of OpenAI.
        Exception: What rendering, encoding and counting raise.

    >>> from bpe_engine.prompt import account_prompt
    >>> chat = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "1 + 1?"}]
    >>> account = account_prompt(chat, model="gpt-4o")
    >>> account.total, [(part.name, part.tokens) for part in account.parts]
    (19, [('template', 3), ('system', 7), ('messages', 9)])
    """
    if isinstance(prompt, (str, bytes, Mapping)) or not isinstance(prompt, Iterable):
        raise TypeError(f"a prompt is a list of messages or segments, not {type(prompt).__name__}")
    segments, messages, tools = list(prompt), [], list(tools or ())
    if model is not None:
        return _estimated(segments, tools, model)
    if tokenizer is None:
        raise ValueError("give a tokenizer, or for OpenAI's closed models a name: model='gpt-4o'")
    if not segments or not all(isinstance(segment, tuple) for segment in segments):
        if template is None and not getattr(tokenizer, "chat_template", None):
            raise ValueError("messages need template=, the text of the model's chat template")
        from .template import chat_template

        names = getattr(tokenizer, "special_tokens_map", {})
        known = {name: trusted(token) for name, token in names.items() if isinstance(token, str)}
        messages = segments
        template = template or tokenizer.get_chat_template(tools=tools or None)
        segments = chat_template(template, max_seconds).render(
            without_none(messages),
            tools=tools or None,
            tokenizer=tokenizer,
            **{"add_generation_prompt": True, **known, **more},
        )
    audited = audit_segments(tokenizer, segments, True)
    if not messages:
        segments = [Segment(*segment) for segment in segments]
    return Account(segments, tokenizer, messages, tools, audited)


def _estimated(messages: list[Any], tools: list[Any], model: str) -> Account:
    """Returns the account of a closed model, tools first, with a number for each counted token."""
    total = count_chat_tokens(messages, model, tools)
    nothing, blank = count_chat_tokens([], model), count_chat_tokens([{}], model)
    encoding = encoding_for_model(model)
    numbers: list[int] = []
    owners: list[int] = []
    segments: list[Segment] = []

    def add(text: str, count: int, origin: Origin) -> None:
        ids = encoding.encode(text, disallowed_special=())
        # If the rule counts another text, the part is kept as a whole or not at all.
        unknown = [-1 - zlib.crc32(text.encode("utf-8", "replace"))] * count
        numbers.extend(ids if len(ids) == count else unknown)
        owners.extend([len(segments)] * count)
        segments.append(Segment(text, False, origin=origin))

    for at, tool in enumerate(tools):
        once, twice = (count_chat_tokens([], model, [tool] * times) for times in (1, 2))
        add(json.dumps(tool, default=str), twice - once, Origin(None, None, "tools", (at,)))
    for at, message in enumerate(messages):
        role = message.get("role")
        add("", blank - nothing, Origin(at, role, "template"))
        for key, value in message.items():
            if count := count_chat_tokens([{key: value}], model) - blank:
                text = value if isinstance(value, str) else json.dumps(value, default=str)
                add(text, count, Origin(at, role, field_of(str(key)), (key,)))
    add("", total - len(numbers), Origin(None, None, "template"))
    closed = numbers, owners, total.estimates
    return Account(segments, encoding, messages, tools, closed=closed)


class PartChange(NamedTuple):
    """A change between two prompts."""

    #: "grown" (at the end), "added", "removed", "moved", "date", "key order", "whitespace" or
    #: "edited"; "reasoning" and "template" if the template writes the same messages in another way.
    kind: str
    #: The name of the part in the later prompt; of a removed part, in the earlier one.
    part: str
    #: The role of the message, or the name of the tool.
    label: str
    advice: str


class Comparison:
    """The tokens of a prompt that a cache of an earlier prompt saves. Made by `Account.compare`."""

    def __init__(self, before: Account, after: Account):
        self.before: Account = before
        self.after: Account = after
        #: The number of tokens at the beginning that both prompts have.
        self.kept: int = _common(before._numbers, after._numbers)

    @cached_property
    def first(self) -> tuple[Side | None, Side | None]:
        """The first token that differs, in the earlier and in the later prompt; None at an end."""
        return self.before._side(self.kept), self.after._side(self.kept)

    def cached(self, block: int = 16) -> int:
        """Returns the kept tokens in whole blocks; as in vLLM, never the last token."""
        if whole_number("block", block) < 1:
            raise ValueError(f"block must be at least 1, not {block}")
        return min(self.kept, max(self.after.total - 1, 0)) // block * block

    @property
    def cached_by_openai(self) -> int:
        """The tokens in OpenAI's cache: none under 1,024, then in steps of 128."""
        return self.kept // 128 * 128 if self.kept >= 1024 else 0

    @property
    def billed_as_cached(self) -> int:
        """The cached tokens: of a closed model by OpenAI's rule, of others in blocks of 16."""
        return self.cached_by_openai if self.after.ids is None else self.cached()

    @cached_property
    def changes(self) -> list[PartChange]:
        """The changes of parts; a change at the first difference comes first."""
        old, new = self.before._units, self.after._units
        found: list[PartChange] = []
        for group in dict.fromkeys((*_GROUPS[2:], *old, *new)):
            if group != "template":
                found += self._of_group(group, old.get(group, []), new.get(group, []))
        if all(change.kind == "grown" for change in found):
            for group, field in (("template", ""), ("messages", "template")):
                for one, other in zip(old.get(group, []), new.get(group, [])):
                    texts = [unit.fields.get(field, "") for unit in (one, other)]
                    if texts[0] != texts[1]:
                        kind = "date" if len(set(map(_dateless, texts))) == 1 else "template"
                        found.append(_change(kind, "template", other, field))
        parts = [side.part for side in self.first if side]
        found.sort(key=lambda it: not any(part.startswith(it.part) for part in parts))
        return found

    def _of_group(self, group: str, old: list[_Unit], new: list[_Unit]) -> Iterator[PartChange]:
        start = _common(old, new)
        old, new = old[start:], new[start:]
        keys = [[unit.said for unit in units] for units in (old, new)]
        blocks = SequenceMatcher(None, keys[0], keys[1], False).get_opcodes()
        gone = [at for tag, a, b, *_ in blocks if tag != "equal" for at in range(a, b)]
        come = [at for tag, *_, c, d in blocks if tag != "equal" for at in range(c, d)]
        added = []
        for at in come:
            same = [it for it in gone if keys[0][it] == keys[1][at]]
            # A tool is known by its name; a message, by its role and place.
            alike = [it for it in gone if old[it].label == new[at].label]
            pairs = same or [it for it in alike if it == at or group != "messages"]
            if not pairs:
                added.append(at)
                continue
            gone.remove(pairs[0])
            if same:
                yield _change("moved", group, new[at])
            else:
                yield from self._edited(group, old[pairs[0]], new[at])
        end = len(new)
        while group == "messages" and end - 1 in added:
            end -= 1
        yield from (_change("grown" if at >= end else "added", group, new[at]) for at in added)
        yield from (_change("removed", group, old[at]) for at in gone)

    def _edited(self, group: str, old: _Unit, new: _Unit) -> Iterator[PartChange]:
        for field in dict.fromkeys((*old.fields, *new.fields)):
            one, other = old.fields.get(field), new.fields.get(field)
            if one == other or field == "template":
                continue
            if other is None:
                message = (*self.after._messages[new.at :], {})[0]
                is_given = field == "reasoning" and any(map(message.get, REASONING_KEYS))
                yield _change("reasoning" if is_given else "removed", group, old, field)
            elif one is None:
                yield _change("added", group, new, field)
            else:
                given, now = self.before._tools, self.after._tools
                tools = given[old.at : old.at + 1], now[new.at : new.at + 1]
                is_same = group == "tools" and tools[0] == tools[1] != []
                yield _change(_kind(one, other, is_same), group, new, field)

    def to_dict(self) -> dict[str, Any]:
        """Returns the comparison as JSON data."""
        sides = [side and side._replace(origin=None)._asdict() for side in self.first]
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
            where = f"{side.part}  {side.context!r}" if side else "the end of the prompt"
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
    """Returns the number of equal items at the beginning."""
    low, high = 0, min(len(old), len(new))
    while low < high:
        at = (low + high + 1) // 2
        low, high = (at, high) if old[low:at] == new[low:at] else (low, at - 1)
    return low


_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\.?"
_DATE = re.compile(
    r"\b\d{4}-\d\d?-\d\d?(?:T(?=\d))?|\b\d\d?[./]\d\d?[./]\d{2,4}\b|"
    rf"\b\d\d?(?:st|nd|rd|th)? {_MONTH}(?: \d{{4}})?|\b{_MONTH} \d\d?(?:st|nd|rd|th)?(?:,? \d{{4}})?|"
    r"\b(?:Mon|Tues?|Wed(?:nes)?|Thu(?:rs)?|Fri|Sat(?:ur)?|Sun)(?:day)?\b|"
    r"\d\d?:\d\d(?::\d\d(?:\.\d+)?)?(?: ?[AaPp][Mm])?(?:Z|[+-]\d\d:?\d\d)?"
)


def _dateless(text: str) -> str:
    return _DATE.sub("\0", text)


def _kind(one: str, other: str, is_same: bool) -> str:
    """Returns the kind of an edit; `is_same` if both texts are of equal data."""
    if "".join(one.split()) == "".join(other.split()):
        return "whitespace"
    if _dateless(one) == _dateless(other):
        return "date"
    try:
        is_same = is_same or json.loads(one) == json.loads(other)
    except (ValueError, RecursionError):
        pass
    return "key order" if is_same else "edited"


_AGAIN = "All text after {} is computed again: "
_ON_TOOLS = _AGAIN.format("the tools") + "offer the same tools, texts and order in every request."
# The advice for each kind of change, or for a kind in one group.
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
    "template": "The template writes other text around the same messages: compare its variables.",
    **{f"{kind} tools": _ON_TOOLS for kind in ("added", "removed", "moved", "edited")},
}


def _change(kind: str, group: str, unit: _Unit, field: str = "") -> PartChange:
    advice = _ADVICE.get(f"{kind} {group}") or _ADVICE[kind]
    name = f"{unit.name}.{field}" if field else unit.name
    return PartChange(kind, name, unit.label, advice)


class Step(NamedTuple):
    """A prompt of a log, compared with an earlier one."""

    account: Account
    #: With one of the last 32 prompts: of the same conversation, or with the most tokens in common.
    compared: Comparison | None
    #: The change that ended the cache early.
    change: PartChange | None


def follow(accounts: Iterable[Account]) -> Iterator[Step]:
    """Yields a step for each prompt of a log."""
    recent: deque[tuple[Account, set[Any]]] = deque(maxlen=_RECENT)
    for account in accounts:
        units = account._units.get("messages", [])
        said = {unit.said for unit in units if unit.label not in _SYSTEM}
        found = [(bool(said & them), account.compare(before)) for before, them in reversed(recent)]
        is_same, best = max(found, key=lambda it: (it[0], it[1].kept), default=(False, None))
        change = next((it for it in best.changes if it.kind != "grown"), None) if best else None
        # Another conversation has other text; only shared text that differs is a change.
        if change and not is_same and change.kind in ("added", "removed", "edited", "template"):
            change = None
        yield Step(account, best, change)
        recent.append((account, said))


class Fitted(NamedTuple):
    """The messages that fit into a budget. Made by `fit`."""

    messages: list[Any]
    #: The messages that are left out, in order.
    dropped: list[Any]
    #: The tokens of the prompt of `messages`, including tools and template.
    total: int


def fit(
    messages: Iterable[Mapping[str, Any]],
    limit: int,
    template: str | None = None,
    tokenizer: Any = None,
    tools: Sequence[Mapping[str, Any]] | None = None,
    **more: Any,
) -> Fitted:
    """Leaves out the oldest turns of a conversation, so that its prompt has at most `limit` tokens.

    Keeps system messages, and whole turns from the end: a turn begins with a message of the user. The
    result of a tool stays with its call.

    Args:
        messages: The conversation.
        limit: The most tokens of the prompt, tools and template included.
        template, tokenizer, tools, more: As in `account_prompt`, such as ``model="gpt-4o"``.

    Raises:
        ValueError: The last turn alone is too long; the message names the largest part.
        Exception: What `account_prompt` raises.

    >>> from bpe_engine.prompt import fit
    >>> chat = [{"role": "user", "content": f"Question {number}"} for number in range(9)]
    >>> fitted = fit(chat, 20, model="gpt-4o")
    >>> len(fitted.messages), len(fitted.dropped), fitted.total
    (2, 7, 17)
    """
    given, limit = list(messages), whole_number("limit", limit)
    starts = _starts(given)

    def kept(start: int) -> list[Any]:
        return [m for m in given[:start] if m.get("role") in _SYSTEM] + given[start:]

    def account(start: int) -> Account:
        return account_prompt(kept(start), tokenizer, template=template, tools=tools, **more)

    found = account(starts[-1])
    if found.total > limit:
        largest = max((part for part in found if not part.parts), key=lambda part: part.tokens)
        raise ValueError(
            f"the last turn needs {found.total:,} tokens with the system message, the tools and the "
            f"template, more than limit, {limit:,}; raise it, or shorten {largest.name} "
            f"({largest.tokens:,} tokens)"
        )
    start = starts[bisect_left(starts, True, key=lambda start: account(start).total <= limit)]
    dropped = [m for m in given[:start] if m.get("role") not in _SYSTEM]
    return Fitted(kept(start), dropped, account(start).total)


def _starts(messages: Sequence[Mapping[str, Any]]) -> list[int]:
    """Returns where turns begin: at messages of the user, but not between a call and its result."""
    calls: dict[Any, int] = {}
    # The first message that each one needs: a result needs its call.
    needs: list[int] = []
    for at, message in enumerate(messages):
        made = message.get("tool_calls") or ()
        calls |= {call.get("id"): at for call in made if isinstance(call, Mapping)}
        calls |= {None: at} if made or message.get("function_call") else {}
        is_result = message.get("role") in _RESULTS
        needs.append(calls.get(message.get("tool_call_id"), -1) if is_result else at)
    firsts = [*accumulate(reversed(needs), min)][::-1]
    users = [at for at, message in enumerate(messages) if at and message.get("role") == "user"]
    return [0, *(at for at in users if firsts[at] == at)]
