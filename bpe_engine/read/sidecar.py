"""Reads the sidecar of a rank file: pattern and special tokens.

A rank file has only tokens. ``vocab-tools train`` and ``convert`` write the rest to
``NAME.encoding.json`` in the same folder: a JSON object with ``pattern``, ``special_tokens`` and
``normalization``; and, if converted from a ``tokenizer.json``, with ``tokenizer_json``: the whole
file except vocabulary and merges.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from .text_files import read_text

__all__ = ["beside", "read_sidecar"]

ENDING = ".encoding.json"


def beside(path: str | os.PathLike[str]) -> Path:
    """Returns the path of the sidecar, which need not exist.

    >>> beside("a/qwen.tiktoken").name, beside("vocab.json").name, beside("qwen").name
    ('qwen.encoding.json', 'vocab.encoding.json', 'qwen.encoding.json')
    """
    path = Path(path)
    name = path.name.removesuffix(".gz")
    return path.with_name((name.rpartition(".")[0] or name) + ENDING)


def read_sidecar(path: str | os.PathLike[str]) -> dict[str, Any] | None:
    """Reads the sidecar of a rank file; returns None if the sidecar does not exist.

    Raises:
        ValueError: The sidecar is malformed.
        OSError: The sidecar cannot be read.
    """
    sidecar = beside(path)
    if not sidecar.exists():
        return None
    try:
        found = json.loads(read_text(sidecar))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{sidecar}: the JSON is broken: {error}") from None
    if not isinstance(found, dict):
        raise ValueError(f"{sidecar}: expected a JSON object")
    _expect(found, sidecar, "a text", str, "pattern", "normalization")
    _expect(found, sidecar, "an object", dict, "special_tokens", "tokenizer_json")
    for name, id in (found.get("special_tokens") or {}).items():
        if type(id) is not int or id < 0:
            raise ValueError(f"{sidecar}: the special token {name!r} has the id {id!r}")
    if found.get("normalization") not in (None, "NFC"):
        raise ValueError(f"{sidecar}: the normalization is NFC or null")
    return found


def _expect(found: dict[str, Any], path: Path, what: str, kind: type, *keys: str) -> None:
    for key in keys:
        if not isinstance(found.get(key), (kind, type(None))):
            raise ValueError(f"{path}: {key!r} is not {what}")
