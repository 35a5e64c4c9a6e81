"""Reads vocabularies without a ``tokenizer.json``: rank files, models of SentencePiece, and vocab.json
with merges.txt."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .. import patterns
from ..builtin import BUILTIN, RANK_FILE_SHA256
from ..core import Encoding
from ..gpt2_files import read_merges, read_vocab
from ..hf.components import AddedToken
from ..hf.tokenizers import Tokenizer as FileTokenizer
from ..load import load_encoding
from .special import ROLES, content_of, plain_token

__all__ = ["of_merges", "of_pieces", "of_ranks"]

# The pattern of transformers for every ``tokenizer.model`` in tiktoken's format.
_TIKTOKEN_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def of_ranks(
    path: Path, pattern: str | None, added: Mapping[int, AddedToken], extra: Any
) -> Encoding:
    """Reads the encoding of a rank file.

    Ids between the special tokens of the configuration are reserved, as in transformers. Extra
    tokens come after them.

    Raises:
        ValueError: The file is not a rank file, or its pattern is not known.
    """
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    published = next((name for name, sha in RANK_FILE_SHA256.items() if sha == digest), None)
    normalization = None
    if pattern is None and published is not None:
        known = next(known for known in BUILTIN.values() if known.vocabulary == published)
        pattern, normalization = known.name, known.normalization
    elif pattern is None and path.name == "tokenizer.model":
        pattern = _TIKTOKEN_PATTERN
    elif pattern is None:
        raise ValueError(
            f"the pattern of {path} is not known; pass pattern=, the name of an encoding with the "
            "same pattern, or a regular expression"
        )
    special = _special_tokens(load_encoding(path, pattern, {}).n_vocab, added, extra)
    return load_encoding(path, pattern, special, normalization=normalization)


def _special_tokens(first: int, added: Mapping[int, AddedToken], extra: Any) -> dict[str, int]:
    """Returns the special tokens, whose ids begin with `first`."""
    names = {id: token.content for id, token in added.items() if id >= first}
    last = max(names, default=first - 1)
    if last - first > 1_000_000:
        raise ValueError(f"the id {last} of an added token is far beyond the {first} ranks")
    special = {names.get(id, f"<|reserved_token_{id}|>"): id for id in range(first, last + 1)}
    for token in map(content_of, extra or ()):
        special.setdefault(token, first + len(special))
    return special


#: The classes of transformers that put tokens around a text by themselves: whether bos and eos.
_AROUND = {
    "CodeLlamaTokenizer": (True, False),
    "GemmaTokenizer": (True, False),
    "LlamaTokenizer": (True, False),
    "T5Tokenizer": (False, True),
}
#: The usual names of roles in a model of SentencePiece.
_PIECES = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}


def of_pieces(
    path: Path,
    config: Mapping[str, Any],
    added: Mapping[int, AddedToken],
    settings: dict[str, Any],
) -> FileTokenizer:
    """Reads a model of SentencePiece, for the class that the configuration names.

    Special tokens in a text are found, as transformers does. Roles that the configuration leaves out
    are the pieces with their usual names.

    Args:
        path: The file.
        config: The configuration of its folder.
        added: Its added tokens by id.
        settings: The arguments of `Tokenizer`, to which those that the class determines are added.

    Raises:
        ValueError: The file is malformed.
    """
    tokenizer = FileTokenizer.from_sentencepiece(path)
    tokenizer.add_tokens(list(added.values()))
    tokenizer.encode_special_tokens = False
    for role, name in _PIECES.items():
        if tokenizer.token_to_id(name) is not None and role not in config:
            settings.setdefault(role, name)
    kind = str(config.get("tokenizer_class") or "").removesuffix("Fast")
    bos, eos = _AROUND.get(kind, (False, False))
    settings.setdefault("add_bos_token", bos)
    settings.setdefault("add_eos_token", eos)
    return tokenizer


def of_merges(
    path: Path,
    config: Mapping[str, Any],
    added: Mapping[int, AddedToken],
    settings: dict[str, Any],
) -> FileTokenizer:
    """Reads vocab.json and merges.txt, for the class that the configuration names.

    Args:
        path: The folder.
        config: Its configuration.
        added: Its added tokens by id.
        settings: The arguments of `Tokenizer`. The default special tokens of the class are put
            into it.

    Raises:
        ValueError: The class is not known, or a file is malformed.
    """
    name = str(config.get("tokenizer_class") or "GPT2Tokenizer").removesuffix("Fast")
    if name not in _CLASSES:
        raise ValueError(
            f"the pattern of {name} is unknown; a folder with vocab.json and merges.txt must be of "
            f"the class {', '.join(_CLASSES)}. Let transformers save a tokenizer.json instead"
        )
    for role, token in _CLASSES[name].items():
        settings.setdefault(role, token)
    level = {
        "type": "ByteLevel",
        "add_prefix_space": bool(config.get("add_prefix_space", False)),
        "trim_offsets": True,
        "use_regex": name != "Qwen2Tokenizer",
    }
    vocab, merges = read_vocab(path / "vocab.json"), read_merges(path / "merges.txt")
    file: dict[str, Any] = {
        "pre_tokenizer": level,
        "decoder": level,
        "model": {"type": "BPE", "vocab": vocab, "merges": merges},
    }
    if name == "Qwen2Tokenizer":
        file["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [_QWEN_SPLIT, level]}
        file["normalizer"] = {"type": "NFC"}
    tokenizer = FileTokenizer(json.dumps(file))
    tokenizer.add_tokens(list(added.values()))
    if name == "RobertaTokenizer":
        _add_roberta(tokenizer, config, settings)
    return tokenizer


_QWEN_SPLIT = {
    "type": "Split",
    "pattern": {"Regex": patterns.QWEN},
    "behavior": "Isolated",
    "invert": False,
}
_END = "<|endoftext|>"

# The default special tokens of each class.
_CLASSES: dict[str, dict[str, str]] = {
    "GPT2Tokenizer": {"unk_token": _END, "bos_token": _END, "eos_token": _END},
    "RobertaTokenizer": {
        "bos_token": "<s>",
        "eos_token": "</s>",
        "sep_token": "</s>",
        "cls_token": "<s>",
        "unk_token": "<unk>",
        "pad_token": "<pad>",
        "mask_token": "<mask>",
    },
    "Qwen2Tokenizer": {"unk_token": _END, "eos_token": _END, "pad_token": _END},
}


def _add_roberta(
    tokenizer: FileTokenizer, config: Mapping[str, Any], settings: Mapping[str, Any]
) -> None:
    """Adds the post-processor of RoBERTa: ``<s> A </s></s> B </s>``."""
    from ..hf.component import Component

    names = {role: content_of(settings[role]) for role in ROLES if settings.get(role) is not None}
    tokenizer.add_tokens([plain_token(settings[role], True) for role in names])
    tokenizer.post_processor = Component(
        "post_processor",
        json.dumps(
            {
                "type": "RobertaProcessing",
                "sep": [names["sep_token"], tokenizer.token_to_id(names["sep_token"])],
                "cls": [names["cls_token"], tokenizer.token_to_id(names["cls_token"])],
                "trim_offsets": bool(config.get("trim_offsets", True)),
                "add_prefix_space": bool(config.get("add_prefix_space", False)),
            }
        ),
    )
