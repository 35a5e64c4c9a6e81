"""Reads vocabularies without a ``tokenizer.json``: rank files, and vocab.json with merges.txt."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .. import patterns
from .._core import CoreBPE
from ..builtin import BUILTIN, RANK_FILE_SHA256
from ..core import Encoding
from ..gpt2_files import read_merges, read_vocab
from ..hf.components import AddedToken
from ..hf.tokenizers import Tokenizer as FileTokenizer
from ..load import load_encoding
from .special import ROLES, content_of, plain_token

__all__ = ["of_merges", "of_ranks"]

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
    published = {sha: name for name, sha in RANK_FILE_SHA256.items()}.get(digest)
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
    encoding = load_encoding(path, pattern)
    special = _special_tokens(encoding, added, extra)
    if normalization is None:
        return load_encoding(path, pattern, special)
    pattern = encoding.pattern
    core = CoreBPE(dict(encoding.mergeable_ranks), special, pattern, normalization)
    return Encoding._from_core(
        f"{encoding.name}+",
        core,
        pat_str=pattern,
        special_tokens=special,
        normalization=normalization,
    )


def _special_tokens(
    encoding: Encoding, added: Mapping[int, AddedToken], extra: Any
) -> dict[str, int]:
    first = encoding.n_vocab
    names = {id: token.content for id, token in added.items() if id >= first}
    last = max(names, default=first - 1)
    if last - first > 1_000_000:
        raise ValueError(f"the id {last} of an added token is far beyond the {first} ranks")
    special = {names.get(id, f"<|reserved_token_{id}|>"): id for id in range(first, last + 1)}
    for token in map(content_of, extra or ()):
        special.setdefault(token, first + len(special))
    return special


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
    parts, defaults = _CLASSES[name]
    for role, token in defaults.items():
        settings.setdefault(role, token)
    file: dict[str, Any] = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": None,
        "post_processor": None,
        "decoder": _byte_level(False),
        **parts(bool(config.get("add_prefix_space", False))),
        "model": _model(path),
    }
    tokenizer = FileTokenizer(json.dumps(file))
    tokenizer.add_tokens(list(added.values()))
    if name == "RobertaTokenizer":
        _add_roberta(tokenizer, config, settings)
    return tokenizer


def _model(path: Path) -> dict[str, Any]:
    return {
        "type": "BPE",
        "dropout": None,
        "unk_token": None,
        "continuing_subword_prefix": "",
        "end_of_word_suffix": "",
        "fuse_unk": False,
        "byte_fallback": False,
        "ignore_merges": False,
        "vocab": read_vocab(path / "vocab.json"),
        "merges": read_merges(path / "merges.txt"),
    }


def _byte_level(add_prefix_space: bool, use_regex: bool = True) -> dict[str, Any]:
    return {
        "type": "ByteLevel",
        "add_prefix_space": add_prefix_space,
        "trim_offsets": True,
        "use_regex": use_regex,
    }


def _gpt2(add_prefix_space: bool) -> dict[str, Any]:
    return {"pre_tokenizer": _byte_level(add_prefix_space)}


def _qwen2(add_prefix_space: bool) -> dict[str, Any]:
    split = {
        "type": "Split",
        "pattern": {"Regex": patterns.QWEN},
        "behavior": "Isolated",
        "invert": False,
    }
    steps = [split, _byte_level(add_prefix_space, use_regex=False)]
    return {
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": steps},
    }


_END = "<|endoftext|>"

# For each class, its components and default special tokens.
_CLASSES: dict[str, tuple[Any, dict[str, str]]] = {
    "GPT2Tokenizer": (_gpt2, {"unk_token": _END, "bos_token": _END, "eos_token": _END}),
    "RobertaTokenizer": (
        _gpt2,
        {
            "bos_token": "<s>",
            "eos_token": "</s>",
            "sep_token": "</s>",
            "cls_token": "<s>",
            "unk_token": "<unk>",
            "pad_token": "<pad>",
            "mask_token": "<mask>",
        },
    ),
    "Qwen2Tokenizer": (_qwen2, {"unk_token": _END, "eos_token": _END, "pad_token": _END}),
}


def _add_roberta(
    tokenizer: FileTokenizer, config: Mapping[str, Any], settings: Mapping[str, Any]
) -> None:
    """Adds the post-processor of RoBERTa: ``<s> A </s></s> B </s>``."""
    from ..hf.components import Component

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
