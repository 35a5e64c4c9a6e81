"""Reads the tokenizer in a GGUF file of llama.cpp, with the package gguf."""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bpe_engine import patterns
from bpe_engine.hf import Tokenizer
from bpe_engine.read import byte_level

from ..text import plural
from .definition import Definition, Merge
from .pre_tokenizer import DEEPSEEK_IN_ONE, DIGITS_IN_ONE
from .tokenizer_json import definition_of, fresh_settings

#: Llama 3's pattern, as its tokenizer.json has it.
_LLAMA3 = patterns.QWEN.replace(r"|\p{N}|", r"|\p{N}{1,3}|", 1)

#: Letters take their combining marks along.
_QWEN35 = patterns.QWEN.replace(r"\p{L}+", r"[\p{L}\p{M}]+", 1).replace(
    r"[^\s\p{L}\p{N}]", r"[^\s\p{L}\p{M}\p{N}]", 1
)

#: Tekken's pattern: o200k_base's without contractions, and one digit at a time.
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

#: Pre-tokenizers under which a piece that is a token becomes that token, whatever the merges say.
WHOLE_PIECES = {"llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "lfm2", "tekken"}

#: Values of ``tokenizer.ggml.token_type``.
_NORMAL, _UNKNOWN, _CONTROL, _USER_DEFINED, _UNUSED, _BYTE = range(1, 7)


def load(
    path: str | Path,
    pattern: str | None = None,
    special_tokens: Mapping[str, int] | None = None,
) -> Definition:
    """Reads the tokens, merges and special tokens of a GGUF file.

    Raises:
        ImportError: the package gguf is not installed.
        ValueError: the file has no byte-level BPE, or names a pre-tokenizer that is not known.
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
    kinds = fields.get("tokenizer.ggml.token_type") or [_NORMAL] * len(texts)
    if len(kinds) != len(texts):
        raise ValueError(f"{path}: {len(texts)} tokens, but {len(kinds)} types of tokens")
    found = {_CONTROL: True, _USER_DEFINED: False}
    special = {text: number for number, text in enumerate(texts) if kinds[number] in found}
    unused = [number for number in range(len(texts)) if kinds[number] in (_UNKNOWN, _UNUSED)]
    if special_tokens is not None:
        special = dict(special_tokens)
    left_out = {*unused, *special.values()}
    rows = {text: number for number, text in enumerate(texts) if number not in left_out}
    settings = fresh_settings(pattern, special, None)
    for token in settings["added_tokens"]:
        token["special"] = kinds[token["id"]] != _USER_DEFINED
    settings["model"]["ignore_merges"] = pre in WHOLE_PIECES
    merges = [_merge(merge, path) for merge in fields["tokenizer.ggml.merges"]]
    definition = definition_of(rows, merges, settings)
    notes = ["GGUF has no normalizer: text is taken as it is"]
    if unused:
        notes.append(f"{plural(len(unused), 'id')} of tokens that are not used are left out")
    return dataclasses.replace(definition, pattern=pattern, inexpressible=[], notes=notes)


#: By ``tokenizer.ggml.model`` of a SentencePiece model: the number of the algorithm.
_ALGORITHMS = {"t5": 1, "llama": 2}


def is_pieces(path: str | Path) -> bool:
    """True for a GGUF file of a SentencePiece model. Raises as :func:`load` does."""
    return _fields(path).get("tokenizer.ggml.model") in _ALGORITHMS


def load_pieces(path: str | Path) -> Tokenizer:
    """Reads the SentencePiece model of a GGUF file.

    llama.cpp merges by scores, or searches the best path, as SentencePiece does, and has neither
    the normalizer's name nor the trainer's options.

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
    kinds = fields.get("tokenizer.ggml.token_type") or [_NORMAL] * len(texts)
    if not len(texts) == len(scores) == len(kinds):
        counts = f"{len(texts)} tokens, {len(scores)} scores and {len(kinds)} types of tokens"
        raise ValueError(f"{path}: {counts}")
    contents = b"".join(_pieces(texts, scores, kinds))
    contents += _field(2, _number(3, model) + _number(35, int(_BYTE in kinds)))
    charsmap = bytes(fields.get("tokenizer.ggml.precompiled_charsmap") or ())
    contents += _field(
        3,
        _field(2, charsmap)
        + _number(3, fields.get("tokenizer.ggml.add_space_prefix", True))
        + _number(4, fields.get("tokenizer.ggml.remove_extra_whitespaces", False))
        + _number(5, True),
    )
    try:
        return Tokenizer.from_sentencepiece(contents)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _pieces(texts: list[str], scores: list[float], kinds: list[int]) -> Iterator[bytes]:
    for text, score, kind in zip(texts, scores, kinds):
        yield _field(
            1, _field(1, text.encode()) + b"\x15" + struct.pack("<f", score) + _number(3, kind)
        )


def _field(number: int, value: bytes) -> bytes:
    """Returns bytes or a message as a field of protobuf."""
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _number(number: int, value: int) -> bytes:
    """Returns a whole number as a field of protobuf."""
    return _varint(number << 3) + _varint(int(value))


def _varint(value: int) -> bytes:
    found = []
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


def roles(path: str | Path) -> tuple[dict[str, int], tuple[list[int], list[int]]]:
    """Returns the ids of special tokens by their roles, and those that llama.cpp adds before and after
    a text by the fields of the file."""
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
    """Returns the fields of the tokenizer, as plain values."""
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
