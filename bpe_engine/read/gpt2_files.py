"""Reads GPT-2's two files: ``vocab.json`` maps tokens to ids, ``merges.txt`` lists merges."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from .text_files import read_text

__all__ = [
    "looks_special",
    "pair",
    "parse_vocab",
    "read_merges",
    "read_vocab",
]

#: Names of the two files, also as suffixes: ``gpt2-vocab.json`` pairs with ``gpt2-merges.txt``.
NAMES = (("vocab.json", "merges.txt"), ("encoder.json", "vocab.bpe"))


def pair(path: str | os.PathLike[str]) -> tuple[Path, Path] | None:
    """Returns the paths of both files, given either path; None for any other name.

    >>> [file.name for file in pair("a/gpt2-merges.txt")]
    ['gpt2-vocab.json', 'gpt2-merges.txt']
    """
    path = Path(path)
    for names in NAMES:
        for ending in names:
            if path.name.lower().endswith(ending):
                start = path.name[: -len(ending)]
                vocab, merges = (path.with_name(start + name) for name in names)
                return vocab, merges
    return None


def read_vocab(path: str | os.PathLike[str]) -> dict[str, int]:
    """Returns the tokens, in the file's spelling, and their ids.

    Raises:
        ValueError: The file is not a JSON object that maps tokens to ids.
        OSError: The file cannot be read.
    """
    return parse_vocab(read_text(path), os.fspath(path))


def parse_vocab(contents: str, path: str) -> dict[str, int]:
    """Parses the contents of a ``vocab.json`` into tokens and ids. Raises like `read_vocab`."""
    wanted = "a JSON object of tokens and ids, such as {'a': 64}"
    try:
        vocab = json.loads(contents)
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"{path} is not {wanted}: {error}") from None
    if not isinstance(vocab, dict) or not all(type(id) is int and id >= 0 for id in vocab.values()):
        reason = "; a tokenizer.json is read by bpe_engine.open_tokenizer"
        raise ValueError(f"{path} is not {wanted}{reason}")
    return vocab


def read_merges(path: str | os.PathLike[str]) -> list[tuple[str, str]]:
    """Returns the merges in the file's spelling. Skips empty lines and the version, as
    `tokenizers` does.

    Raises:
        ValueError: A line is not two tokens with a space between them.
        OSError: The file cannot be read.
    """
    merges = []
    for number, line in enumerate(read_text(path).split("\n"), 1):
        line = line.removesuffix("\r")
        if not line or line.startswith("#version"):
            continue
        parts = line.split(" ")
        if len(parts) != 2 or not all(parts):
            raise ValueError(f"{os.fspath(path)}, line {number}: {line!r} is not two tokens")
        merges.append((parts[0], parts[1]))
    return merges


def looks_special(vocab: Mapping[str, int], merges: Iterable[tuple[str, str]]) -> dict[str, int]:
    """Returns bracketed tokens that no merge produces, and their ids.

    >>> looks_special({"<": 0, ">": 1, "<>": 2, "<end>": 3}, [("<", ">")])
    {'<end>': 3}
    """
    made = {left + right for left, right in merges}
    return {
        token: id
        for token, id in vocab.items()
        if len(token) > 2 and token[0] + token[-1] in ("<>", "[]") and token not in made
    }
