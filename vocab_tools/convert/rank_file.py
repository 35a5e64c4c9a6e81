"""Reads and writes ``.tiktoken`` files, with the pattern and special tokens in a sidecar file."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import bpe_engine
from bpe_engine.read.sidecar import beside, read_sidecar

from ..bases import recognize
from ..patterns import Pattern, encoding_pattern, find_pattern, named_pattern
from ..ranks import check_special_tokens, dump_ranks, load_ranks
from ..text import plural, show
from .definition import Definition
from .sidecar import dump_sidecar


class UnknownPatternError(ValueError):
    """Error for a rank file without a pattern.

    Args:
        path: the path of the file.
        way_out: advice for the user.
    """

    def __init__(self, path: str | Path, way_out: str = "give --pattern or --pattern-regex"):
        super().__init__(
            f"the pattern of {path} is unknown: it is not a published vocabulary, and "
            f"{beside(path).name} is missing; {way_out}"
        )


def from_encoding(encoding: bpe_engine.Encoding) -> Definition:
    """Returns the definition of an encoding."""
    pattern = encoding_pattern(encoding)
    return _definition(dict(encoding.mergeable_ranks), pattern, pattern.special_tokens)


def load(
    path: str | Path,
    pattern: str | None = None,
    special_tokens: Mapping[str, int] | None = None,
) -> Definition:
    """Reads a rank file and its sidecar file.

    Raises:
        ValueError: the file is malformed, or its pattern is unknown.
        OSError: the file cannot be read.
    """
    ranks = load_ranks(path)
    found = read_sidecar(path)
    if pattern is None and found is not None:
        return _with_sidecar(ranks, found, special_tokens)
    known = recognize(ranks) if found is None else None
    if pattern is None and known is None:
        raise UnknownPatternError(path)
    own = None if known is None else named_pattern(known.name)
    used = ["pattern"] if pattern is None else []
    if special_tokens is None:
        special_tokens = own.special_tokens if own else (found or {}).get("special_tokens") or {}
        used += ["special tokens"] if own else []
    definition = _definition(ranks, find_pattern(pattern) if pattern else own, special_tokens)
    if not used or known is None:
        return definition
    verb = "is" if used == ["pattern"] else "are"
    note = f"{path} is recognized as {known}: its {' and '.join(used)} {verb} used"
    return dataclasses.replace(definition, notes=[note])


def _definition(
    ranks: Mapping[bytes, int], pattern: Pattern | None, special_tokens: Mapping[str, int]
) -> Definition:
    assert pattern is not None
    tokens = load_ranks(ranks)
    check_special_tokens(special_tokens)
    taken = {number: token for token, number in tokens.items()}
    for name, number in special_tokens.items():
        if number in taken:
            raise ValueError(
                f"the special token {name!r} has the id {number} of the token "
                f"{show(taken[number])}; name the special tokens with --special-tokens"
            )
    normalization = "NFC" if pattern.nfc else None
    return Definition(tokens, dict(special_tokens), pattern.pat_str, normalization)


def _with_sidecar(
    ranks: Mapping[bytes, int],
    found: Mapping[str, Any],
    special_tokens: Mapping[str, int] | None,
) -> Definition:
    if not found.get("pattern"):
        raise ValueError("the sidecar names no pattern; give --pattern or --pattern-regex")
    pattern = Pattern(None, found["pattern"], {}, nfc=found.get("normalization") == "NFC")
    given = special_tokens is not None
    specials = special_tokens if special_tokens is not None else found.get("special_tokens", {})
    definition = _definition(ranks, pattern, specials)
    return dataclasses.replace(definition, settings=None if given else found.get("tokenizer_json"))


def dump(definition: Definition, path: str | Path) -> dict[str, bytes]:
    """Returns the contents of the rank file and its sidecar, by path.

    Raises ValueError if the format cannot represent the definition.
    """
    if definition.pattern is None:
        reason = "; ".join(definition.inexpressible)
        raise ValueError(f"a rank file has one pattern for its text, and this has none: {reason}")
    ids = set(definition.tokens.values())
    for name, number in definition.special_tokens.items():
        if number in ids:
            raise ValueError(
                f"{name!r} is a special token and a token that merging makes, both with the id "
                f"{number}; a rank file has an id for each"
            )
    return {
        str(path): dump_ranks(definition.tokens),
        str(beside(path)): dump_sidecar(definition),
    }


def notes(definition: Definition) -> list[str]:
    """Returns notes on parts of a definition that a rank file cannot store."""
    if not definition.others:
        return []
    entries = plural(len(definition.others), "entry", "entries")
    return [f"{entries} of the vocabulary that are not byte-level are omitted"]
