"""Writes a ``.model`` of SentencePiece, as far as its pipeline says what a ``tokenizer.json`` does."""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterable
from typing import Any

#: The numbers of the types of pieces, as in a file.
_NORMAL, _UNKNOWN, _CONTROL, _USER_DEFINED, _UNUSED, _BYTE = range(1, 7)

_MODELS = {"Unigram": 1, "BPE": 2}
_MARK = "▁"


def written(contents: dict[str, Any]) -> bytes:
    """Returns the ``.model`` of a ``tokenizer.json``.

    Special tokens become control pieces, other added tokens user-defined pieces.

    Raises ValueError, which names what such a file cannot express.
    """
    model = contents["model"]
    problems = list(_problems(contents))
    if problems:
        raise ValueError(f"a .model cannot express {'; '.join(problems)}; write a .json")
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
        kind = _NORMAL
        if id == unknown:
            kind = _UNKNOWN
        elif token in kinds:
            kind = _CONTROL if kinds[token] else _USER_DEFINED
        elif model.get("byte_fallback") and _is_byte(token):
            kind = _BYTE
        body += _message(1, _text(1, token), _float(2, score), _number(3, kind))
    special = {name: _id_of(pieces, names) for name, names in _IDS.items()}
    names = zip((45, 46, 47, 48), (unknown, *special.values()))
    trainer = [
        _number(3, _MODELS[model["type"]]),
        _number(4, len(pieces)),
        _number(35, int(bool(model.get("byte_fallback")))),
        _number(40, unknown),
        _number(41, special["bos"]),
        _number(42, special["eos"]),
        _number(43, special["pad"]),
        *(_text(field, pieces[id][0]) for field, id in names if id >= 0),
    ]
    steps, charsmap = _steps(contents["normalizer"]), _charsmap(contents["normalizer"])
    normalizer = [
        _text(1, "user_defined" if charsmap else "identity"),
        _message(2, charsmap),
        _number(3, int(_scheme(contents) == "always")),
        _number(4, int("spaces" in steps)),
        _number(5, 1),
    ]
    return body + _message(2, *trainer) + _message(3, *normalizer)


#: The pieces that have an id of their own in a file.
_IDS = {"bos": ("<s>", "[CLS]"), "eos": ("</s>", "[SEP]"), "pad": ("<pad>", "[PAD]")}


def _problems(contents: dict[str, Any]) -> Iterable[str]:
    model, steps = contents["model"], _steps(contents["normalizer"])
    if model["type"] not in _MODELS:
        yield f"a {model['type']} model"
        return
    if (
        model["type"] == "Unigram"
        and model["unk_id"] is None
        or not (model["type"] == "Unigram" or model["unk_token"] in model["vocab"])
    ):
        yield "a model without a token for unknown characters"
    for name in ("continuing_subword_prefix", "end_of_word_suffix"):
        if model.get(name):
            yield f"the {name} {model[name]!r}"
    for step in steps:
        if step != "spaces":
            yield f"the normalizer {step}"
    if _scheme(contents) is None:
        yield "a pre-tokenizer other than Metaspace"
    if model.get("byte_fallback"):
        tokens = model["vocab"] if model["type"] == "BPE" else [it[0] for it in model["vocab"]]
        if sum(map(_is_byte, tokens)) != 256:
            yield "byte_fallback without a token for each byte"


def _steps(normalizer: Any) -> list[str]:
    """Returns the steps of a normalizer; "spaces" for those that drop spaces in a row and at the ends."""
    if normalizer is None:
        return []
    parts = normalizer.get("normalizers", [normalizer])
    parts = parts[1:] if parts and parts[0]["type"] == "Precompiled" else parts
    names = [part["type"] for part in parts]
    if names == ["Strip", "Replace"] and parts[1]["pattern"] == {"Regex": " {2,}"}:
        return ["spaces"]
    return names


def _charsmap(normalizer: Any) -> bytes:
    """Returns the table of a normalizer that begins with one."""
    parts = [] if normalizer is None else normalizer.get("normalizers", [normalizer])
    is_table = parts and parts[0]["type"] == "Precompiled"
    return base64.b64decode(parts[0]["precompiled_charsmap"]) if is_table else b""


def _scheme(contents: dict[str, Any]) -> str | None:
    part = contents["pre_tokenizer"]
    if not part or part["type"] != "Metaspace" or part["replacement"] != _MARK:
        return None
    scheme: str = part["prepend_scheme"]
    return scheme if part.get("split", True) and scheme != "first" else None


def _scores(model: dict[str, Any]) -> dict[str, float]:
    """Returns the score of each token that a merge makes: the first merge counts."""
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


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _float(field: int, value: float) -> bytes:
    return _varint(field << 3 | 5) + struct.pack("<f", value)


def _text(field: int, value: str) -> bytes:
    encoded = value.encode()
    return _varint(field << 3 | 2) + _varint(len(encoded)) + encoded


def _message(field: int, *parts: bytes) -> bytes:
    body = b"".join(parts)
    return _varint(field << 3 | 2) + _varint(len(body)) + body
