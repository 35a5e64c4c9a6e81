"""Reads the ``tekken.json`` of Mistral."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any, TypeVar

from ..common.values import describe
from ..core import Encoding

__all__ = ["encoding_of_tekken"]

_T = TypeVar("_T", dict, list, str, int)


def encoding_of_tekken(
    contents: str, name: str, special_tokens: Mapping[str, int] | None = None
) -> Encoding:
    """The encoding that a ``tekken.json`` of Mistral describes.

    The first ids are those of special tokens; those of the tokens follow.

    Args:
        contents: The file.
        name: The name of the encoding.
        special_tokens: Names and ids, for files that do not list them.

    Raises:
        ValueError: The file is malformed.
    """
    try:
        file = json.loads(contents)
        config = _field(file, "the file", "config", dict)
        first = _count(config, "config", "default_num_special_tokens")
        count = _count(config, "config", "default_vocab_size") - first
        tokens = _ranked(_field(file, "the file", "vocab", list), "vocab")[: max(count, 0)]
        ranks = {_bytes(token, rank): rank + first for rank, token in tokens}
        has_special = file.get("special_tokens") is not None
        listed = _field(file, "the file", "special_tokens", list) if has_special else []
        listed = _ranked(listed, "special_tokens")
        special = {_field(token, "a special token", "token_str", str): id for id, token in listed}
        special.update(special_tokens or {})
        pattern = _field(config, "config", "pattern", str)
        return Encoding(name, pat_str=pattern, mergeable_ranks=ranks, special_tokens=special)
    except RecursionError:
        raise ValueError("not a tekken.json: the JSON is nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"not a tekken.json: {error}") from error


_NAMES = {dict: "an object", list: "a list", str: "text", int: "a whole number"}


def _field(holder: Any, where: str, name: str, kind: type[_T]) -> _T:
    """Returns a field of an object. Raises ValueError for another type."""
    value = holder.get(name) if isinstance(holder, dict) else None
    if type(value) is not kind:
        given = "missing" if value is None else describe(value)
        raise ValueError(f"{name} of {where} must be {_NAMES[kind]}, and is {given}")
    return value


def _count(holder: Any, where: str, name: str) -> int:
    number = _field(holder, where, name, int)
    if number < 0:
        raise ValueError(f"{name} of {where} is {number}; it must be at least 0")
    return number


def _ranked(tokens: list[Any], where: str) -> list[tuple[int, Any]]:
    """Returns tokens with their ranks, in the order of ranks."""
    ranked = [(_count(token, f"{where}[{at}]", "rank"), token) for at, token in enumerate(tokens)]
    return sorted(ranked, key=lambda pair: pair[0])


def _bytes(token: Any, rank: int) -> bytes:
    where = f"the token with the rank {rank}"
    written = _field(token, where, "token_bytes", str)
    try:
        found = base64.b64decode(written, validate=True)
    except ValueError as error:
        raise ValueError(f"token_bytes of {where} is {describe(written)}: {error}") from None
    if not found:
        raise ValueError(f"token_bytes of {where} is empty")
    return found
