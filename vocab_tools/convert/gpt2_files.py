"""GPT-2's pair of files: ``vocab.json`` with tokens and ids, and ``merges.txt``.

The first was also called ``encoder.json``, the second ``vocab.bpe``.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bpe_engine import patterns

from ..text import few
from .alphabet import read, written
from .definition import Definition, Merge
from .sidecar import beside, dump_sidecar, read_sidecar
from .tokenizer_json import definition_of, fresh_settings, settings_and_vocabulary

#: The names of the two files, or how they end: ``gpt2-vocab.json`` goes with ``gpt2-merges.txt``.
NAMES = (("vocab.json", "merges.txt"), ("encoder.json", "vocab.bpe"))


def pair(path: str | Path) -> tuple[Path, Path] | None:
    """Both files, from the path of either; None for another name.

    >>> [file.name for file in pair("a/gpt2-merges.txt")]
    ['gpt2-vocab.json', 'gpt2-merges.txt']
    """
    path = Path(path)
    for names in NAMES:
        for ending in names:
            if path.name.endswith(ending):
                start = path.name.removesuffix(ending)
                tokens, merges = (path.with_name(start + name) for name in names)
                return tokens, merges
    return None


def load(
    path: str | Path,
    pattern: str | None = None,
    special_tokens: Mapping[str, int] | None = None,
) -> Definition:
    """What the pair says, with what stands beside it; without, it is cut as GPT-2 cuts.

    Args:
        path: of either file.
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
        notes.append(f"nothing beside {found[0].name} says how text is cut: as GPT-2 does")
    if special_tokens is None:
        special_tokens = sidecar.get("special_tokens")
    if special_tokens is None:
        special_tokens = _looks_special(vocabulary, merges)
        if special_tokens:
            names = few(list(special_tokens))
            notes.append(f"taken for special tokens, since no merge makes them: {names}")
    settings = fresh_settings(pattern, special_tokens, sidecar.get("normalization"))
    definition = definition_of(vocabulary, merges, settings)
    # The pattern as it was given, not as Oniguruma has it.
    return dataclasses.replace(definition, pattern=pattern, inexpressible=[], notes=notes)


def _merging_as_listed(settings: dict[str, Any]) -> dict[str, Any]:
    """The files do not say that merges are to be ignored."""
    return {**settings, "model": {**settings["model"], "ignore_merges": False}}


def _vocabulary(path: Path) -> dict[str, int]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is no JSON object of tokens and ids: {error}") from error
    if not isinstance(found, dict) or not all(
        type(number) is int and number >= 0 for number in found.values()
    ):
        raise ValueError(f"{path} is no JSON object of tokens and ids, such as {{'a': 64}}")
    if len(set(found.values())) != len(found):
        raise ValueError(f"{path}: an id stands for two tokens")
    return found


def _merges(path: Path) -> list[Merge]:
    merges = []
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 (byte {error.start})") from error
    for number, line in enumerate(text.split("\n"), 1):
        line = line.removesuffix("\r")
        if not line or (number == 1 and line.startswith("#version")):
            continue
        parts = [read(part) for part in line.split(" ")]
        if len(parts) != 2 or not parts[0] or not parts[1]:
            raise ValueError(f"{path}, line {number}: expected two tokens, not {line!r}")
        merges.append((parts[0], parts[1]))
    return merges


def _looks_special(vocabulary: Mapping[str, int], merges: list[Merge]) -> dict[str, int]:
    """Names in brackets that no merge makes."""
    made = {written(left + right) for left, right in merges}
    brackets = ("<>", "[]")
    return {
        text: number
        for text, number in vocabulary.items()
        if len(text) > 2 and text[0] + text[-1] in brackets and text not in made
    }


def dump(definition: Definition, path: str | Path) -> dict[str, bytes]:
    """Both files, and what stands beside them, by path.

    Raises ValueError where the format cannot hold the definition.
    """
    found = pair(path)
    assert found is not None
    _, vocabulary = settings_and_vocabulary(definition)
    # Special tokens stand in this vocabulary, too.
    vocabulary = dict(sorted({**vocabulary, **definition.special_tokens}.items(), key=_id))
    lines = ["#version: 0.2"]
    lines += [f"{written(left)} {written(right)}" for left, right in definition.merge_list]
    return {
        str(found[0]): (json.dumps(vocabulary, ensure_ascii=False) + "\n").encode(),
        str(found[1]): ("\n".join(lines) + "\n").encode(),
        str(beside(found[0])): dump_sidecar(definition),
    }


def _id(row: tuple[str, int]) -> int:
    return row[1]
