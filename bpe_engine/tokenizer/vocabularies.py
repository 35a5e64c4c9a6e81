"""Vocabularies of folders without a ``tokenizer.json``: rank files, and vocab.json with merges.txt."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .. import patterns
from ..builtin import BUILTIN, RANK_FILE_SHA256
from ..core import Encoding
from ..hf.components import AddedToken
from ..hf.tokenizer import Tokenizer as FileTokenizer
from ..load import load_encoding
from .encoding_backend import with_special_tokens
from .files import read_json
from .special import ROLES, content_of, plain_token

__all__ = ["of_merges", "of_ranks"]

# The pattern that transformers takes for every ``tokenizer.model`` in tiktoken's format.
_TIKTOKEN_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def of_ranks(
    path: Path, pattern: str | None, added: Mapping[int, AddedToken], extra: Any
) -> Encoding:
    """The encoding of a rank file.

    Its special tokens are those of the configuration, by their ids; what is missing between them is
    reserved, as in transformers. Then come extra tokens.

    Raises:
        ValueError: The file is no rank file, or its pattern is not known.
    """
    contents = path.read_bytes()
    if contents[:1] == b"\n" or b"\0" in contents[:100]:
        raise ValueError(
            f"{path} is a model of SentencePiece, which is not byte-level BPE; use a tokenizer.json "
            "where there is one"
        )
    digest = hashlib.sha256(contents).hexdigest()
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
    encoding._normalization = normalization
    return with_special_tokens(encoding, special)


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
) -> tuple[FileTokenizer]:
    """The tokenizer of vocab.json and merges.txt, by the class that the configuration names.
    Special tokens that the class sets by default are put into `settings`.

    Raises:
        ValueError: The class is not known, or a file is malformed.
    """
    name = str(config.get("tokenizer_class") or "GPT2Tokenizer").removesuffix("Fast")
    if name not in _CLASSES:
        raise ValueError(
            f"how {name} splits text is not known; a folder with vocab.json and merges.txt must be "
            f"of {', '.join(_CLASSES)}. Have transformers save a tokenizer.json of it"
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
    return (tokenizer,)


def _model(path: Path) -> dict[str, Any]:
    vocab = read_json(path / "vocab.json")
    lines = (path / "merges.txt").read_text(encoding="utf-8").split("\n")
    if lines and lines[0].startswith("#version"):
        lines = lines[1:]
    return {
        "type": "BPE",
        "dropout": None,
        "unk_token": None,
        "continuing_subword_prefix": "",
        "end_of_word_suffix": "",
        "fuse_unk": False,
        "byte_fallback": False,
        "ignore_merges": False,
        "vocab": vocab,
        "merges": [line for line in lines if line],
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

# Of each class, what it is made of, and its special tokens by default.
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
    """The post-processor of RoBERTa: ``<s> A </s></s> B </s>``."""
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
