"""Reads and writes byte-level BPE in Hugging Face's ``tokenizer.json``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from bpe_engine.hf import Tokenizer, UnsupportedTokenizer
from bpe_engine.read import byte_level

from ..text import few, plural, show
from .definition import Definition, Merge, by_id, missing_bytes
from .pre_tokenizer import pattern_of, pre_tokenizer_of

#: Maximum number of missing bytes; a vocabulary that lacks more bytes is not byte-level.
_MOST_MISSING = 64

_BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False}


def parse(contents: str) -> Definition:
    """Reads a ``tokenizer.json``.

    Raises:
        UnsupportedTokenizer: the file is not byte-level BPE, or needs a feature that is not
            supported exactly; the message has the JSON path.
        ValueError: the file is malformed.
    """
    # Raises an error that names an unsupported or malformed part.
    kind = type(Tokenizer.from_str(contents).model).__name__
    if kind != "BPE":
        raise UnsupportedTokenizer(f"model.type: {kind} does not merge; only BPE is converted")
    settings: dict[str, Any] = json.loads(contents)
    model = settings["model"] = dict(settings["model"])
    vocabulary: dict[str, int] = model.pop("vocab")
    merges = [merge for merge in map(_merge, model.pop("merges")) if merge is not None]
    return definition_of(vocabulary, merges, settings)


def definition_of(
    vocabulary: Mapping[str, int], merges: list[Merge], settings: dict[str, Any]
) -> Definition:
    """Builds the definition from a vocabulary, merges and the rest of a file."""
    added = {token["content"]: int(token["id"]) for token in settings.get("added_tokens") or []}
    made = {left + right for left, right in merges}
    tokens: dict[bytes, int] = {}
    others: dict[str, int] = {}
    for text, number in vocabulary.items():
        token = byte_level.try_bytes_of(text)
        if text in added and (token is None or (token not in made and len(token) != 1)):
            continue
        if token is None:
            others[text] = number
        else:
            tokens[token] = number
    pattern = pattern_of(settings.get("pre_tokenizer"))
    normalization, reasons = _normalization(settings.get("normalizer"))
    if pattern is None:
        reasons.append("pre_tokenizer: no single pattern cuts text as this chain does")
    return Definition(
        by_id(tokens),
        added,
        pattern,
        normalization,
        merges,
        bool(settings["model"].get("ignore_merges")),
        settings,
        others,
        reasons + _flags(settings.get("added_tokens") or []),
    )


def _merge(merge: str | list[str]) -> Merge | None:
    """Parses a merge in either spelling; returns None for the version line, and if a part is not
    byte-level."""
    if isinstance(merge, str):
        if merge.startswith("#version"):
            return None
        merge = merge.split(" ")
    left, right = map(byte_level.try_bytes_of, merge)
    return None if left is None or right is None else (left, right)


def _normalization(normalizer: Any) -> tuple[str | None, list[str]]:
    """Returns the normalizer's Unicode form, or the reasons why no form expresses it."""
    while isinstance(normalizer, dict) and normalizer.get("type") == "Sequence":
        parts = normalizer["normalizers"]
        if len(parts) > 1:
            kinds = ", ".join(str(part.get("type")) for part in parts)
            return None, [f"normalizer: several steps ({kinds})"]
        normalizer = parts[0] if parts else None
    if normalizer is None:
        return None, []
    if normalizer["type"] == "NFC":
        return "NFC", []
    return None, [f"normalizer: {normalizer['type']}"]


def _flags(added: Iterable[Mapping[str, Any]]) -> list[str]:
    """Returns flags of added tokens that an encoding cannot express."""
    reasons = []
    for flag in ("single_word", "lstrip", "rstrip"):
        names = [token["content"] for token in added if token.get(flag)]
        if names:
            reasons.append(f"added_tokens: {flag} of {few(names, 3)}")
    return reasons


def dump(definition: Definition) -> bytes:
    """Returns a definition as a ``tokenizer.json``.

    Raises ValueError if the format cannot represent the definition.
    """
    settings, vocabulary = settings_and_vocabulary(definition)
    model = {
        **settings["model"],
        "vocab": vocabulary,
        "merges": [
            [byte_level.text_of(left), byte_level.text_of(right)]
            for left, right in definition.merge_list
        ],
    }
    return (json.dumps({**settings, "model": model}, ensure_ascii=False, indent=2) + "\n").encode()


def settings_and_vocabulary(definition: Definition) -> tuple[dict[str, Any], dict[str, int]]:
    """Returns the file's contents without tokens and merges, and the vocabulary sorted by id."""
    missing = missing_bytes(definition.tokens)
    if definition.merges is not None and len(missing) > _MOST_MISSING:
        raise ValueError(
            f"{len(missing)} bytes of UTF-8 are not tokens: the vocabulary is not byte-level BPE, and "
            "only byte-level BPE is converted; `bpe_engine.hf.BPE` reads and writes others"
        )
    if missing:
        raise ValueError(
            f"the byte 0x{missing[0]:02x} is not a token, and a tokenizer.json of byte-level BPE needs "
            f"every byte of UTF-8; add the single byte to the base"
        )
    settings = definition.settings
    if settings is None:
        assert definition.pattern is not None
        settings = fresh_settings(
            definition.pattern, definition.special_tokens, definition.normalization
        )
    ignores = definition.whole_pieces and bool(definition.unreached)
    if definition.merges is not None:
        ignores = definition.whole_pieces
    if ignores or "ignore_merges" in settings["model"]:
        settings = {**settings, "model": {**settings["model"], "ignore_merges": ignores}}
    rows = {byte_level.text_of(token): number for token, number in definition.tokens.items()}
    for name, number in {**definition.others, **_specials_in_vocabulary(definition)}.items():
        if rows.setdefault(name, number) != number:
            raise ValueError(
                f"the special token {name!r} has the id {number}, and the token that is spelled "
                f"so in a tokenizer.json, {show(byte_level.try_bytes_of(name) or b'')}, the id {rows[name]}"
            )
    return settings, by_id(rows)


def _specials_in_vocabulary(definition: Definition) -> dict[str, int]:
    """Returns the special tokens that must be in the model's vocabulary: all special tokens, or
    none if adding them one by one assigns the same ids."""
    size = len(definition.tokens) + len(definition.others)
    highest = -1
    for name, number in sorted(definition.special_tokens.items(), key=lambda row: row[1]):
        token = byte_level.try_bytes_of(name)
        is_there = token is not None and definition.tokens.get(token) == number
        if not is_there and number != max(size, highest + 1):
            return definition.special_tokens
        highest = number
    return {}


def added_rows(special_tokens: Mapping[str, int]) -> list[dict[str, Any]]:
    """Returns the rows that add special tokens, in ascending order of ids."""
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    rows = sorted(special_tokens.items(), key=lambda row: row[1])
    return [{"id": id, "content": name, **flags, "special": True} for name, id in rows]


def fresh_settings(
    pattern: str, special_tokens: Mapping[str, int], normalization: str | None
) -> dict[str, Any]:
    """Returns the settings of a new file, without vocabulary and merges."""
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added_rows(special_tokens),
        "normalizer": {"type": "NFC"} if normalization == "NFC" else None,
        "pre_tokenizer": pre_tokenizer_of(pattern),
        "post_processor": {**_BYTE_LEVEL, "use_regex": False},
        "decoder": {
            **_BYTE_LEVEL,
            "add_prefix_space": True,
            "trim_offsets": True,
            "use_regex": True,
        },
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": "",
            "end_of_word_suffix": "",
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
        },
    }


def hole_note(definition: Definition) -> str | None:
    """Returns a note about unused ids; None if every id is used."""
    used = {*definition.tokens.values(), *definition.special_tokens.values()}
    used.update(definition.others.values())
    rows = max(used) + 1
    if len(used) == rows:
        return None
    holes = plural(rows - len(used), "id")
    return (
        f"{holes} below {rows:,} unused, so len(tokenizer) in transformers is "
        f"{len(used):,}, and an embedding table needs {rows:,} rows: do not resize it to "
        f"len(tokenizer)"
    )
