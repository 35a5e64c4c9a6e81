"""Reads the tokenizer in a GGUF file of llama.cpp with the gguf package."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bpe_engine import patterns
from bpe_engine.hf import Tokenizer
from bpe_engine.read import byte_level

from ..text import plural
from .definition import Definition, Merge
from .pre_tokenizer import DEEPSEEK_IN_ONE, DIGITS_IN_ONE
from .sentencepiece_model import (
    BYTE,
    CONTROL,
    NORMAL,
    UNKNOWN,
    UNUSED,
    USER_DEFINED,
    message,
    number,
    real,
    text,
)
from .tokenizer_json import definition_of, fresh_settings

#: Llama 3's pattern, in the spelling of its tokenizer.json.
_LLAMA3 = patterns.QWEN.replace(r"|\p{N}|", r"|\p{N}{1,3}|", 1)

#: Qwen's pattern with combining marks treated as letters.
_QWEN35 = patterns.QWEN.replace(r"\p{L}+", r"[\p{L}\p{M}]+", 1).replace(
    r"[^\s\p{L}\p{N}]", r"[^\s\p{L}\p{M}\p{N}]", 1
)

#: Tekken's pattern: o200k_base's pattern without contractions, and with single digits.
_TEKKEN = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)

#: Patterns by the value of ``tokenizer.ggml.pre``, as in llama.cpp.
PATTERNS = {
    **dict.fromkeys(("gpt-2", "phi-2", "mpt", "olmo", "jina-v2-code", "trillion"), patterns.R50K),
    **dict.fromkeys(("llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "lfm2"), _LLAMA3),
    **dict.fromkeys(("dbrx", "smaug-bpe", "chatglm-bpe"), _LLAMA3),
    **dict.fromkeys(("qwen2", "stablelm2", "deepseek-r1-qwen", "megrez"), patterns.QWEN),
    "qwen35": _QWEN35,
    **dict.fromkeys(("gpt-4o", "llama4"), patterns.O200K),
    "tekken": _TEKKEN,
    **dict.fromkeys(("deepseek-v3", "hunyuan-dense"), DEEPSEEK_IN_ONE),
    **dict.fromkeys(("starcoder", "refact", "command-r", "smollm", "codeshell"), DIGITS_IN_ONE),
}

#: Pre-tokenizers under which a piece that is a token becomes that token without merging.
WHOLE_PIECES = {"llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "lfm2", "tekken"}


def load(
    path: str | Path,
    pattern: str | None = None,
    special_tokens: Mapping[str, int] | None = None,
) -> Definition:
    """Reads the tokens, merges and special tokens of a GGUF file.

    Raises:
        ImportError: the package gguf is not installed.
        ValueError: the file has no byte-level BPE, or an unknown pre-tokenizer.
        OSError: the file cannot be read.
    """
    fields = _fields(path)
    kind = fields.get("tokenizer.ggml.model")
    if kind != "gpt2":
        raise ValueError(
            f"{path}: tokenizer.ggml.model is {kind!r}; byte-level BPE ('gpt2') and models of "
            "SentencePiece ('llama', 't5') are converted; take the tokenizer.json of the model that "
            "the file was made from"
        )
    pre = fields.get("tokenizer.ggml.pre")
    if pattern is None and pre not in PATTERNS:
        known = ", ".join(sorted(PATTERNS))
        raise ValueError(
            f"{path}: tokenizer.ggml.pre is {pre!r}, and how that cuts text is not known (known: "
            f"{known}); give --pattern or --pattern-regex"
        )
    pattern = pattern or PATTERNS[str(pre)]
    texts = fields["tokenizer.ggml.tokens"]
    kinds = fields.get("tokenizer.ggml.token_type") or [NORMAL] * len(texts)
    if len(kinds) != len(texts):
        raise ValueError(f"{path}: {len(texts)} tokens, but {len(kinds)} types of tokens")
    found = {CONTROL: True, USER_DEFINED: False}
    special = {name: id for id, name in enumerate(texts) if kinds[id] in found}
    unused = [id for id in range(len(texts)) if kinds[id] in (UNKNOWN, UNUSED)]
    if special_tokens is not None:
        special = dict(special_tokens)
    left_out = {*unused, *special.values()}
    rows = {name: id for id, name in enumerate(texts) if id not in left_out}
    settings = fresh_settings(pattern, special, None)
    for token in settings["added_tokens"]:
        token["special"] = kinds[token["id"]] != USER_DEFINED
    settings["model"]["ignore_merges"] = pre in WHOLE_PIECES
    merges = [_merge(merge, path) for merge in fields["tokenizer.ggml.merges"]]
    definition = definition_of(rows, merges, settings)
    notes = ["GGUF has no normalizer: text is used unchanged"]
    if unused:
        notes.append(f"{plural(len(unused), 'id')} of unused tokens are omitted")
    return dataclasses.replace(definition, pattern=pattern, inexpressible=[], notes=notes)


#: SentencePiece's algorithm number by the value of ``tokenizer.ggml.model``.
_ALGORITHMS = {"t5": 1, "llama": 2}


def is_pieces(path: str | Path) -> bool:
    """Returns True for a GGUF file of a SentencePiece model. Raises as :func:`load` does."""
    return _fields(path).get("tokenizer.ggml.model") in _ALGORITHMS


def load_pieces(path: str | Path) -> Tokenizer:
    """Reads the SentencePiece model of a GGUF file.

    llama.cpp merges by scores or searches for the best path, as SentencePiece does; the file lacks
    the name of the normalizer and the options of the trainer.

    Raises ValueError if the file is malformed.
    """
    fields = _fields(path)
    model = _ALGORITHMS[fields["tokenizer.ggml.model"]]
    texts = fields["tokenizer.ggml.tokens"]
    scores = fields.get("tokenizer.ggml.scores")
    if not scores:
        raise ValueError(
            f"{path} has no tokenizer.ggml.scores, so nothing orders the merges of its SentencePiece "
            f"model; convert the tokenizer.json or tokenizer.model of the same model"
        )
    kinds = fields.get("tokenizer.ggml.token_type") or [NORMAL] * len(texts)
    if not len(texts) == len(scores) == len(kinds):
        counts = f"{len(texts)} tokens, {len(scores)} scores and {len(kinds)} types of tokens"
        raise ValueError(f"{path}: {counts}")
    contents = b"".join(
        message(1, text(1, piece), real(2, score), number(3, kind))
        for piece, score, kind in zip(texts, scores, kinds)
    )
    contents += message(2, number(3, model), number(35, BYTE in kinds))
    contents += message(
        3,
        message(2, bytes(fields.get("tokenizer.ggml.precompiled_charsmap") or ())),
        number(3, fields.get("tokenizer.ggml.add_space_prefix", True)),
        number(4, fields.get("tokenizer.ggml.remove_extra_whitespaces", False)),
        number(5, True),
    )
    try:
        return Tokenizer.from_sentencepiece(contents)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def roles(path: str | Path) -> tuple[dict[str, int], tuple[list[int], list[int]]]:
    """Returns the ids of special tokens by role, and the ids that llama.cpp adds around a text
    according to the fields of the file."""
    fields = _fields(path)
    names = {"bos": "bos", "eos": "eos", "pad": "padding", "unk": "unknown"}
    found = {
        f"{role}_token": int(fields[f"tokenizer.ggml.{name}_token_id"])
        for role, name in names.items()
        if f"tokenizer.ggml.{name}_token_id" in fields
    }
    before, after = (
        [found[f"{role}_token"]]
        if fields.get(f"tokenizer.ggml.add_{role}_token") and f"{role}_token" in found
        else []
        for role in ("bos", "eos")
    )
    return found, (before, after)


def _merge(merge: str, path: str | Path) -> Merge:
    parts = [byte_level.try_bytes_of(part) for part in merge.split(" ")]
    if len(parts) != 2 or not parts[0] or not parts[1]:
        raise ValueError(f"{path}: tokenizer.ggml.merges has {merge!r}, which is not two tokens")
    return parts[0], parts[1]


def _fields(path: str | Path) -> dict[str, Any]:
    """Returns the tokenizer's fields as plain values."""
    try:
        from gguf import GGUFReader
    except ImportError as error:
        raise ImportError(
            "reading GGUF needs the package gguf; install it with pip install 'bpe-engine[vocab-tools]'"
        ) from error
    with open(path, "rb") as file:
        if file.read(4) != b"GGUF":
            raise ValueError(f"{path} is not a GGUF file")
    try:
        reader = GGUFReader(path)
        fields = reader.fields.items()
        return {name: field.contents() for name, field in fields if name.startswith("tokenizer.")}
    except (ValueError, IndexError, KeyError) as error:
        raise ValueError(f"{path} is a damaged GGUF file: {error}") from error
