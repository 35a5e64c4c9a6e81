"""Reads and writes GPT-2's pair of files: ``vocab.json`` and ``merges.txt``.

The older names of these files are ``encoder.json`` and ``vocab.bpe``.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bpe_engine import patterns
from bpe_engine.read import byte_level
from bpe_engine.read.gpt2_files import looks_special, pair, read_merges, read_vocab
from bpe_engine.read.sidecar import beside, read_sidecar

from ..text import few
from .definition import Definition, Merge, by_id
from .sidecar import dump_sidecar
from .tokenizer_json import definition_of, fresh_settings, settings_and_vocabulary


def load(
    path: str | Path,
    pattern: str | None = None,
    special_tokens: Mapping[str, int] | None = None,
) -> Definition:
    """Reads the two files and their sidecar; without a sidecar, the pattern is GPT-2's.

    Args:
        path: the path of either file.
        pattern: the regular expression that cuts text.
        special_tokens: names and ids.

    Raises:
        ValueError: a file is malformed.
        OSError: a file cannot be read.
    """
    found = pair(path)
    assert found is not None
    vocabulary, merges = _vocabulary(found[0]), _merges(found[1])
    sidecar = read_sidecar(found[0]) or {}
    settings = sidecar.get("tokenizer_json")
    if settings is not None and pattern is None and special_tokens is None:
        return definition_of(vocabulary, merges, _merging_as_listed(settings))
    notes = []
    if pattern is None:
        pattern = sidecar.get("pattern")
    if pattern is None:
        pattern = patterns.R50K
        notes.append(f"no sidecar of {found[0].name} gives the pattern: GPT-2's is taken")
    if special_tokens is None:
        special_tokens = sidecar.get("special_tokens")
    if special_tokens is None:
        special_tokens = _looks_special(vocabulary, merges)
        if special_tokens:
            names = few(list(special_tokens))
            notes.append(f"taken for special tokens, since no merge makes them: {names}")
    settings = fresh_settings(pattern, special_tokens, sidecar.get("normalization"))
    definition = definition_of(vocabulary, merges, settings)
    # Keeps the given pattern in place of the pattern rewritten for Oniguruma.
    return dataclasses.replace(definition, pattern=pattern, inexpressible=[], notes=notes)


def _merging_as_listed(settings: dict[str, Any]) -> dict[str, Any]:
    """Sets `ignore_merges` to false, because the two files cannot express true."""
    return {**settings, "model": {**settings["model"], "ignore_merges": False}}


def _vocabulary(path: Path) -> dict[str, int]:
    found = read_vocab(path)
    if len(set(found.values())) != len(found):
        raise ValueError(f"{path}: two tokens have the same id")
    return found


def _merges(path: Path) -> list[Merge]:
    merges = []
    for left, right in read_merges(path):
        parts = byte_level.try_bytes_of(left), byte_level.try_bytes_of(right)
        if not parts[0] or not parts[1]:
            raise ValueError(f"{path}: {left!r} {right!r} is not a merge of byte-level tokens")
        merges.append((parts[0], parts[1]))
    return merges


def _looks_special(vocabulary: Mapping[str, int], merges: list[Merge]) -> dict[str, int]:
    texts = ((byte_level.text_of(left), byte_level.text_of(right)) for left, right in merges)
    return looks_special(vocabulary, texts)


def dump(definition: Definition, path: str | Path) -> dict[str, bytes]:
    """Returns the contents of both files and the sidecar, by path.

    Raises ValueError if the format cannot represent the definition.
    """
    found = pair(path)
    assert found is not None
    _, vocabulary = settings_and_vocabulary(definition)
    # The vocabulary of this format includes special tokens.
    vocabulary = by_id({**vocabulary, **definition.special_tokens})
    lines = ["#version: 0.2"]
    lines += [
        f"{byte_level.text_of(left)} {byte_level.text_of(right)}"
        for left, right in definition.merge_list
    ]
    return {
        str(found[0]): (json.dumps(vocabulary, ensure_ascii=False) + "\n").encode(),
        str(found[1]): ("\n".join(lines) + "\n").encode(),
        str(beside(found[0])): dump_sidecar(definition),
    }
