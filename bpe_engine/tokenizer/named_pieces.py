"""Reads a model of SentencePiece whose ids are those of a vocab.json beside it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..hf.tokenizers import Tokenizer as FileTokenizer
from .files import read_json

__all__ = ["of_named_pieces", "read_ids"]

_CONTROL, _UNKNOWN = 3, 2


def read_ids(path: str | os.PathLike[str]) -> dict[str, int]:
    """Returns the tokens and ids of a vocab.json.

    Raises:
        FileNotFoundError: The file does not exist.
        ValueError: It holds something else, or ids have gaps.
    """
    if not os.path.isfile(path):
        raise FileNotFoundError(2, os.strerror(2), os.fspath(path))
    ids = read_json(Path(path))
    for token, id in ids.items():
        if type(id) is not int:
            raise ValueError(f"{os.fspath(path)}: the id of {token!r} is {id!r}, not a number")
    if sorted(ids.values()) != list(range(len(ids))):
        first = next(id for id in range(len(ids)) if id not in set(ids.values()))
        raise ValueError(
            f"{os.fspath(path)}: {len(ids)} tokens have ids with gaps: no token has the id {first}"
        )
    return ids


def of_named_pieces(
    path: str | os.PathLike[str], ids: Mapping[str, int], unknown: str
) -> tuple[FileTokenizer, frozenset[str]]:
    """Reads a model of SentencePiece that gives the ids of a vocabulary by the texts of pieces.

    A piece that the vocabulary lacks is unknown. Text outside of the pieces that the vocabulary has gets
    its id.

    Args:
        path: The file of the model.
        ids: The vocabulary.
        unknown: The token of the vocabulary for what it lacks.

    Returns:
        The tokenizer, and the pieces that the model has itself.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is malformed, the vocabulary lacks `unknown`, or unknown characters become
            bytes.
    """
    spec: dict[str, Any] = json.loads(FileTokenizer.from_sentencepiece(path).to_str())
    model = spec["model"]
    if unknown not in ids:
        raise ValueError(f"the vocabulary beside {os.fspath(path)} has no token {unknown!r}")
    if model["byte_fallback"]:
        raise ValueError(
            f"{os.fspath(path)} has byte_fallback, which is not supported with the ids of a vocab.json"
        )
    rows: dict[str, tuple[float, int]] = {}
    for (piece, score), kind in zip(model["vocab"], model["kinds"]):
        if kind == _UNKNOWN:
            if piece != unknown:
                raise ValueError(
                    f"the unknown piece of {os.fspath(path)} is {piece!r}, not {unknown!r}"
                )
        rows[piece] = (score, kind)
    names = sorted(ids, key=ids.__getitem__)
    nameless = [piece for piece, (_, kind) in rows.items() if piece not in ids and kind != _CONTROL]
    # A token that is not a piece is as a control piece: text does not become it.
    made = [(piece, *rows.get(piece, (0.0, _CONTROL))) for piece in [*names, *nameless]]
    model["vocab"] = [(piece, score) for piece, score, _ in made]
    model["kinds"] = [kind for _, _, kind in made]
    model["nameless"] = len(nameless)
    spec["added_tokens"] = []
    tokenizer = FileTokenizer(json.dumps(spec))
    tokenizer.encode_special_tokens = False
    return tokenizer, frozenset(rows)
