"""Writes a ``tokenizer.json`` as an equivalent SentencePiece ``.model``, if possible."""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterable, Iterator
from typing import Any

#: Numbers of the piece types in a ``.model``.
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)

_MODELS = {"Unigram": 1, "BPE": 2}
_MARK = "▁"


def written(contents: dict[str, Any]) -> bytes:
    """Returns a ``tokenizer.json`` as a ``.model``.

    Special tokens become control pieces; other added tokens become user-defined pieces.

    Raises ValueError, naming the feature, for a feature that such a file cannot express.
    """
    model = contents["model"]
    check_pipeline(contents)
    _refuse(_problems_of_tokens(model))
    if model["type"] == "Unigram":
        unknown = model["unk_id"]
        pieces = [(token, score) for token, score in model["vocab"]]
    else:
        ordered = sorted(model["vocab"].items(), key=lambda item: item[1])
        unknown = model["vocab"].get(model["unk_token"])
        rank = _scores(model)
        pieces = [(token, rank.get(token, 0.0)) for token, _ in ordered]
    kinds = {token["content"]: token["special"] for token in contents["added_tokens"]}
    body = b""
    for id, (token, score) in enumerate(pieces):
        kind = NORMAL
        if id == unknown:
            kind = UNKNOWN
        elif token in kinds:
            kind = CONTROL if kinds[token] else USER_DEFINED
        elif model.get("byte_fallback") and _is_byte(token):
            kind = BYTE
        body += message(1, text(1, token), real(2, score), number(3, kind))
    special = {name: _id_of(pieces, names) for name, names in _IDS.items()}
    names = zip((45, 46, 47, 48), (unknown, *special.values()))
    trainer = [
        number(3, _MODELS[model["type"]]),
        number(4, len(pieces)),
        number(35, int(bool(model.get("byte_fallback")))),
        number(40, unknown),
        number(41, special["bos"]),
        number(42, special["eos"]),
        number(43, special["pad"]),
        *(text(field, pieces[id][0]) for field, id in names if id >= 0),
    ]
    table, settings, _ = _rules(contents)
    normalizer = [
        text(1, "user_defined" if table else "identity"),
        message(2, table),
        number(3, int("prefix" in settings)),
        number(4, int("spaces" in settings)),
        number(5, 1),
    ]
    return body + message(2, *trainer) + message(3, *normalizer)


#: Pieces whose ids a ``.model`` stores in separate fields.
_IDS = {"bos": ("<s>", "[CLS]"), "eos": ("</s>", "[SEP]"), "pad": ("<pad>", "[PAD]")}


def check_pipeline(contents: dict[str, Any]) -> None:
    """Raises those errors of :func:`written` that do not depend on the tokens."""
    _refuse(_problems(contents))


def _refuse(problems: Iterable[str]) -> None:
    if found := "; ".join(problems):
        raise ValueError(f"a .model cannot express {found}; write a .json")


def _problems(contents: dict[str, Any]) -> Iterator[str]:
    model = contents["model"]
    if model["type"] not in _MODELS:
        yield f"a {model['type']} model"
        return
    for name in ("continuing_subword_prefix", "end_of_word_suffix"):
        if model.get(name):
            yield f"the {name} {model[name]!r}"
    yield from _rules(contents)[2]


def _problems_of_tokens(model: dict[str, Any]) -> Iterator[str]:
    if (
        model["type"] == "Unigram"
        and model["unk_id"] is None
        or not (model["type"] == "Unigram" or model["unk_token"] in model["vocab"])
    ):
        yield "a model without a token for unknown characters"
    if model.get("byte_fallback"):
        tokens = model["vocab"] if model["type"] == "BPE" else [it[0] for it in model["vocab"]]
        if sum(map(_is_byte, tokens)) != 256:
            yield "byte_fallback without a token for each byte"


def _rules(contents: dict[str, Any]) -> tuple[bytes, set[str], list[str]]:
    """Returns the table of normalization rules, the settings that apply ("spaces", "prefix",
    "mark"), and features that a ``.model`` cannot express."""
    normalizer, cut = contents["normalizer"], contents["pre_tokenizer"]
    parts = [] if normalizer is None else list(_steps(normalizer))
    table = b""
    if parts and parts[0]["type"] == "Precompiled":
        table = base64.b64decode(parts.pop(0)["precompiled_charsmap"])
    names = [_name(part) for part in parts]
    settings = set()
    if names[:2] in (["ends", "spaces"], ["Strip", "spaces"]):
        settings.add("spaces")
        del names[:2]
    while names and names[0] in ("prefix", "mark"):
        settings.add(names.pop(0))
    if cut and cut["type"] == "Metaspace" and cut["replacement"] == _MARK:
        settings |= {"mark"} if cut["prepend_scheme"] == "never" else {"mark", "prefix"}
        if cut["prepend_scheme"] != "first":
            cut = None
    problems = [f"the normalizer {_STEPS_SHOWN.get(name, name)}" for name in names]
    if cut:
        scheme = cut.get("prepend_scheme")
        shown = f" with the prepend_scheme {scheme!r}" if scheme else ""
        problems.append(f"the pre-tokenizer {cut['type']}{shown}")
    elif "mark" not in settings:
        problems.append("spaces that are not marked")
    return table, settings, problems


def _steps(normalizer: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yields the steps of nested sequences."""
    if normalizer["type"] != "Sequence":
        yield normalizer
    for part in normalizer.get("normalizers", ()):
        yield from _steps(part)


#: Pattern for the text that SentencePiece removes: spaces at both ends, and marks at the end.
ENDS = f"\\A +|[ {_MARK}]+\\z"

_STEPS: dict[tuple[str, Any, Any], str] = {
    ("Replace", ENDS, ""): "ends",
    ("Replace", " {2,}", " "): "spaces",
    ("Prepend", None, _MARK): "prefix",
    ("Replace", " ", _MARK): "mark",
}
_STEPS_SHOWN = {"ends": "Replace", "spaces": "Replace", "prefix": "Prepend", "mark": "Replace"}


def _name(part: dict[str, Any]) -> str:
    """Returns the setting that a normalizer stands for, or else the normalizer's type."""
    pattern = None if "pattern" not in part else next(iter(part["pattern"].values()))
    kind: str = part["type"]
    return _STEPS.get((kind, pattern, part.get("content", part.get("prepend"))), kind)


def _scores(model: dict[str, Any]) -> dict[str, float]:
    """Returns the score of each token that a merge produces; the first merge of a token counts."""
    scores: dict[str, float] = {}
    for rank, (left, right) in enumerate(model["merges"]):
        scores.setdefault(left + right, -float(rank))
    last = -float(len(model["merges"]))
    for token, id in model["vocab"].items():
        scores.setdefault(token, last - id)
    return scores


def _id_of(pieces: list[tuple[str, float]], names: tuple[str, ...]) -> int:
    ids = [id for id, (token, _) in enumerate(pieces) if token in names]
    return ids[0] if ids else -1


def _is_byte(token: str) -> bool:
    return len(token) == 6 and token.startswith("<0x") and token.endswith(">")


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)


def number(field: int, value: int) -> bytes:
    """Encodes a whole number as a protobuf field."""
    return _varint(field << 3) + _varint(value)


def real(field: int, value: float) -> bytes:
    """Encodes a number in single precision as a protobuf field."""
    return _varint(field << 3 | 5) + struct.pack("<f", value)


def text(field: int, value: str) -> bytes:
    """Encodes a text as a protobuf field."""
    return message(field, value.encode())


def message(field: int, *parts: bytes) -> bytes:
    """Encodes a message made of these parts, or bytes, as a protobuf field."""
    body = b"".join(parts)
    return _varint(field << 3 | 2) + _varint(len(body)) + body
