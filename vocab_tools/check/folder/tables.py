"""Tables of a tokenizer: all tokens, merges or scores, and settings. Compares two tables.

Texts contain only a few thousand tokens; a table has all tokens.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...text import quoted

#: Names of SentencePiece's piece types by number, except the ordinary type.
_TYPES = {2: "unknown", 3: "control", 4: "user-defined", 5: "unused", 6: "byte"}

#: Types whose names differ between formats.
_ADDED = ("unknown", "control", "user-defined", "special", "not special")

_ORDINARY = "ordinary"


@dataclass(frozen=True)
class Table:
    """A tokenizer's tables, with tokens in the spelling of a ``tokenizer.json``."""

    #: File and format; empty for AutoTokenizer.
    file: str = ""
    format: str = ""
    #: Tokens and ids.
    tokens: Mapping[str, int] = field(default_factory=dict)
    #: Types of tokens that are not ordinary, such as "special" or "unused".
    types: Mapping[str, str] = field(default_factory=dict)
    #: Merges in order, each written as two tokens; None if the format lists no merges.
    merges: Sequence[str] | None = None
    #: Priority of each token that merging produces; the smallest value merges first.
    turns: Mapping[str, float] = field(default_factory=dict)
    #: Scores of a Unigram model.
    scores: Mapping[str, float] = field(default_factory=dict)
    #: True if the format lists special tokens.
    lists_special: bool = True
    #: Truncation and padding, as JSON.
    settings: Mapping[str, str] = field(default_factory=dict)


def of_settings(contents: Mapping[str, Any], *, lists_merges: bool = True) -> Table:
    """Returns the table of a ``tokenizer.json``.

    Args:
        contents: the contents of the file.
        lists_merges: False if the merges follow from the ids.
    """
    model = contents["model"]
    vocab, scores = model.get("vocab") or {}, {}
    if isinstance(vocab, list):
        scores = dict(vocab)
        vocab = {token: id for id, (token, _) in enumerate(vocab)}
    tokens, types = dict(vocab), {}
    if model.get("byte_fallback"):
        types = {token: "byte" for token in map("<0x{:02X}>".format, range(256)) if token in vocab}
    for token in contents.get("added_tokens") or []:
        tokens[token["content"]] = int(token["id"])
        types[token["content"]] = "special" if token.get("special") else "not special"
    prefix = len(model.get("continuing_subword_prefix") or "")
    turns: dict[str, float] = {}
    merges = [_pair(merge) for merge in model.get("merges") or ()]
    for turn, (left, right) in enumerate(merges):
        turns.setdefault(left + right[prefix:], turn)
    listed = [f"{left} {right}" for left, right in merges]
    settings = {
        name: json.dumps(contents[name], sort_keys=True)
        for name in ("truncation", "padding")
        if contents.get(name)
    }
    return Table(
        tokens=tokens,
        types=types,
        merges=listed if lists_merges and "merges" in model else None,
        turns=turns,
        scores=scores,
        settings=settings,
    )


def _pair(merge: str | list[str]) -> tuple[str, str]:
    left, right = merge.split(" ", 1) if isinstance(merge, str) else merge
    return left, right


def of_pieces(contents: Mapping[str, Any]) -> Table:
    """Returns the table of a SentencePiece model, given the model's contents as JSON."""
    model = contents["model"]
    rows = [(token, score, type) for (token, score), type in zip(model["vocab"], model["kinds"])]
    ordinary = {token: score for token, score, type in rows if type not in _TYPES}
    merges = model["algorithm"] == "BPE"
    return Table(
        tokens={token: id for id, (token, _, _) in enumerate(rows)},
        types={token: _TYPES[type] for token, _, type in rows if type in _TYPES},
        turns={token: -score for token, score in ordinary.items()} if merges else {},
        scores=ordinary if model["algorithm"] == "Unigram" else {},
    )


@dataclass(frozen=True)
class Difference:
    """The difference between two tables: the number of entries, and a description of the first."""

    count: int
    first: str


def tokens_differ(one: Table, two: Table, names: tuple[str, str]) -> Difference | None:
    """Compares the ids of tokens in both tables, and finds ordinary tokens that one table lacks.

    Args:
        one: a table.
        two: another.
        names: the name of each table as the end of a clause: "by tokenizer.json", or "before".
    """
    by_id, other_by_id = _by_id(one), _by_id(two)
    ids = {id for id, token in by_id.items() if other_by_id.get(id, token) != token}
    lines = [
        f"{id} is {quoted(by_id[id])} {names[0]}, and {quoted(other_by_id[id])} {names[1]}"
        for id in sorted(ids)
    ]
    for token, id in one.tokens.items():
        other = two.tokens.get(token, id)
        if other != id and id not in ids and other not in ids:
            lines.append(f"{quoted(token)} is {id} {names[0]}, and {other} {names[1]}")
    missing = [
        line
        for a, b, sides in ((one, two, names), (two, one, names[::-1]))
        for token, line in _lacking(a, b, ids, sides)
        if a.types.get(token) not in _ADDED
    ]
    return _difference([*lines, *missing])


def tokens_missing(one: Table, two: Table, names: tuple[str, str]) -> Difference | None:
    """Finds special and added tokens that only one of two tables has."""
    lines = [
        line
        for a, b, sides in ((one, two, names), (two, one, names[::-1]))
        if b.lists_special
        for token, line in _lacking(a, b, {*b.tokens.values()}, sides)
        if a.types.get(token) in _ADDED
    ]
    return _difference(lines)


def _lacking(
    one: Table, two: Table, known: set[int], names: tuple[str, str]
) -> Iterator[tuple[str, str]]:
    for token, id in one.tokens.items():
        if token not in two.tokens and id not in known:
            yield token, f"{id} is {quoted(token)} {names[0]}, and no token {names[1]}"


def _by_id(table: Table) -> dict[int, str]:
    found: dict[int, str] = {}
    for token, id in table.tokens.items():
        found.setdefault(id, token)
    return found


def merges_differ(
    one: Table, two: Table, names: tuple[str, str], *, exactly: bool = False
) -> Difference | None:
    """Compares merges and their order, scores, and the types of tokens.

    Args:
        one: a table.
        two: another.
        names: the name of each table as the end of a clause: "by tokenizer.json", or "before".
        exactly: also compare types whose names differ between formats.
    """
    lines = [*_merges(one, two, names), *_scores(one, two, names)]
    for token, id in one.tokens.items():
        a, b = (table.types.get(token, _ORDINARY) for table in (one, two))
        if token in two.tokens and (a != b if exactly else _coarse(a) != _coarse(b)):
            lines.append(f"{id} {quoted(token)} is {a} {names[0]}, and {b} {names[1]}")
    return _difference(lines)


def _coarse(type: str) -> str:
    return "added" if type in _ADDED else type


def _merges(one: Table, two: Table, names: tuple[str, str]) -> Iterator[str]:
    if one.merges is not None and two.merges is not None:
        places = [
            {merge: at for at, merge in enumerate(table.merges or ())} for table in (one, two)
        ]
        for here, there, sides in ((0, 1, names), (1, 0, names[::-1])):
            for merge, at in places[here].items():
                if merge not in places[there]:
                    yield f"merge {at:,}, {quoted(merge)}, is there {sides[0]}, and missing {sides[1]}"
        kept = [[merge for merge in places[side] if merge in places[1 - side]] for side in (0, 1)]
        for a, b in zip(*kept):
            if a != b:
                yield f"{quoted(a)} is merged before {quoted(b)} {names[0]}, and after it {names[1]}"
        return
    common = [token for token in one.turns if token in two.turns]
    common.sort(key=lambda token: (one.turns[token], two.turns[token]))
    last = None
    for token in common:
        if last is not None and two.turns[token] < two.turns[last]:
            pair = f"{quoted(last)} is merged before {quoted(token)}"
            yield f"{pair} {names[0]}, and after it {names[1]}"
        else:
            last = token


def _scores(one: Table, two: Table, names: tuple[str, str]) -> Iterator[str]:
    for token, score in one.scores.items():
        other = two.scores.get(token)
        hidden = any(
            _coarse(table.types.get(token, "")) in ("added", "byte") for table in (one, two)
        )
        if other is not None and not hidden and _single(score) != _single(other):
            yield f"the score of {quoted(token)} is {score:g} {names[0]}, and {other:g} {names[1]}"


def _single(score: float) -> bytes:
    """Returns a score in single precision, as models store scores."""
    return struct.pack("<f", score)


def _difference(lines: Sequence[str]) -> Difference | None:
    return Difference(len(lines), lines[0]) if lines else None
