"""Reads and writes Mistral's ``tekken.json``: tokens, a pattern, special tokens at low ids."""

from __future__ import annotations

import base64
import json
from typing import Any

import bpe_engine

from ..text import show, text_of
from .definition import Definition, by_id

#: Version of the format to write, whose files list special tokens.
VERSION = "v7"


def load(path: str, special_tokens: dict[str, int] | None = None) -> Definition:
    """Reads a ``tekken.json``.

    Raises:
        ValueError: the file is malformed.
        OSError: the file cannot be read.
    """
    encoding = bpe_engine.load_encoding(path, special_tokens=special_tokens)
    tokens = by_id(dict(encoding.mergeable_ranks))
    special = dict(encoding.special_tokens)
    notes = []
    first = min(tokens.values())
    if not special and first:
        notes.append(
            f"{path} does not list its special tokens: the ids 0 to {first - 1} have no names; "
            f"give them with --special-tokens"
        )
    return Definition(tokens, special, encoding.pattern, notes=notes)


def dump(definition: Definition) -> bytes:
    """Returns the ``tekken.json`` of a definition with the ids of the format: special tokens first,
    then single bytes, then tokens in the order of merging.

    Raises ValueError if the format cannot represent the definition.
    """
    if definition.pattern is None:
        reason = "; ".join(definition.inexpressible)
        raise ValueError(f"a tekken.json has one pattern for its text, and this has none: {reason}")
    if definition.normalization or definition.others:
        what = definition.normalization or show(next(iter(definition.others)).encode())
        raise ValueError(f"a tekken.json has no place for {what}")
    single = [bytes([byte]) for byte in range(256)]
    missing = next((byte for byte in single if byte not in definition.tokens), None)
    if missing is not None:
        raise ValueError(f"a tekken.json begins with every byte, and {missing!r} is not a token")
    longer = [token for token in definition.order if len(token) > 1]
    if len(single) + len(longer) != len(definition.tokens):
        raise ValueError("a tekken.json has no place for the empty token")
    special = sorted(definition.special_tokens, key=lambda name: definition.special_tokens[name])
    # Special tokens get the ids below the ordinary tokens; ids that remain are unused.
    reserved = max(len(special), min(definition.tokens.values()))
    contents: dict[str, Any] = {
        "config": {
            "pattern": definition.pattern,
            "num_vocab_tokens": len(definition.tokens),
            "default_vocab_size": len(definition.tokens) + reserved,
            "default_num_special_tokens": reserved,
            "version": VERSION,
        },
        "vocab": [
            {
                "rank": rank,
                "token_bytes": base64.b64encode(token).decode(),
                "token_str": text_of(token),
            }
            for rank, token in enumerate([*single, *longer])
        ],
        "special_tokens": [
            {"rank": rank, "token_str": name, "is_control": True}
            for rank, name in _ranked(special, definition, reserved)
        ],
    }
    return (json.dumps(contents, ensure_ascii=False, indent=1) + "\n").encode()


def _ranked(special: list[str], definition: Definition, reserved: int) -> list[tuple[int, str]]:
    """Returns special tokens with their ids if all are below ``reserved``, or else with new ids
    from 0."""
    if all(definition.special_tokens[name] < reserved for name in special):
        return [(definition.special_tokens[name], name) for name in special]
    return list(enumerate(special))
