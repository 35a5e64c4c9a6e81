"""Reads the two files of GPT-2: ``vocab.json`` maps tokens to ids, ``merges.txt`` lists merges."""

from __future__ import annotations

import json
import os
from pathlib import Path

__all__ = ["read_merges", "read_vocab"]


def read_vocab(path: str | os.PathLike[str]) -> dict[str, int]:
    """Returns the tokens, as the file spells them, and their ids.

    Raises:
        ValueError: The file is not a JSON object that maps tokens to ids.
        OSError: The file cannot be read.
    """
    try:
        vocab = json.loads(_read(path))
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"{os.fspath(path)} is not JSON: {error}") from None
    if not isinstance(vocab, dict) or not all(type(id) is int and id >= 0 for id in vocab.values()):
        raise ValueError(f"{os.fspath(path)} must map tokens to ids, as in {{'a': 64}}")
    return vocab


def read_merges(path: str | os.PathLike[str]) -> list[tuple[str, str]]:
    """Returns the merges, as the file spells them. Skips empty lines and the version, as
    tokenizers does.

    Raises:
        ValueError: A line is not two tokens with a space between them.
        OSError: The file cannot be read.
    """
    merges = []
    for number, line in enumerate(_read(path).split("\n"), 1):
        line = line.removesuffix("\r")
        if not line or line.startswith("#version"):
            continue
        parts = line.split(" ")
        if len(parts) != 2 or not all(parts):
            raise ValueError(f"{os.fspath(path)}, line {number}: {line!r} is not two tokens")
        merges.append((parts[0], parts[1]))
    return merges


def _read(path: str | os.PathLike[str]) -> str:
    try:
        return Path(path).read_bytes().decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"{os.fspath(path)} is not UTF-8 (byte {error.start})") from None
