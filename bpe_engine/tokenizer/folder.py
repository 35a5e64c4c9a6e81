"""Folders of pretrained tokenizers: what is in them, and how they are written."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..hf.components import AddedToken
from ..hf.tokenizer import Tokenizer as FileTokenizer
from ..load import dump_tiktoken_bpe
from .file_backend import FileBackend
from .files import (
    CONFIG,
    FLAGS,
    TOKENIZER,
    check_stale_files,
    located,
    read_config,
    settings_of,
    write_config,
)
from .vocabularies import of_merges, of_ranks

if TYPE_CHECKING:
    from .tokenizer import Tokenizer

__all__ = ["load", "save"]

#: The key under which a configuration says what only this package knows.
_OWN = "bpe_engine"
_RANKS = "tokenizer.tiktoken"


def load(
    cls: type[Tokenizer], folder: str | os.PathLike[str], arguments: dict[str, Any]
) -> Tokenizer:
    """See `Tokenizer.from_pretrained`."""
    path, arguments = located(folder, arguments)
    config = read_config(path)
    if _is_qwen(path, config):
        from ..qwen.tokenizer import QwenTokenizer

        return QwenTokenizer.from_pretrained(path, **arguments)
    added = _added_tokens(config)
    settings = {**settings_of(path, config), "name_or_path": os.fspath(folder), **arguments}
    pattern = settings.pop("pattern", None)
    if (path / TOKENIZER).is_file():
        # What is added to a text is the post-processor's business.
        for name in ("add_bos_token", "add_eos_token"):
            if name not in arguments:
                settings.pop(name, None)
        backend = FileBackend(_tokenizer_file(path / TOKENIZER))
        backend.add_tokens(list(added.values()))
        return cls(backend.tokenizer, **settings)
    if _OWN in config:
        return _with_flags(cls(_own_encoding(path, config[_OWN]), **settings), added)
    if ranks := _rank_file(path):
        encoding = of_ranks(ranks, pattern, added, settings.get("extra_special_tokens"))
        return _with_flags(cls(encoding, **settings), added)
    if (path / "vocab.json").is_file() and (path / "merges.txt").is_file():
        return cls(*of_merges(path, config, added, settings), **settings)
    raise FileNotFoundError(
        f"{path} has no tokenizer.json, no *.tiktoken or tokenizer.model, and no vocab.json with "
        f"merges.txt; it has {', '.join(sorted(entry.name for entry in path.iterdir())) or 'nothing'}"
    )


def _with_flags(tokenizer: Tokenizer, added: Mapping[int, AddedToken]) -> Tokenizer:
    """The same; added tokens that are not special stay in decoded text."""
    for token in added.values():
        tokenizer._backend.check_token(token)
    ordinary = [token for token in added.values() if not token.special]
    if ordinary:
        tokenizer._backend.add_tokens(ordinary)
    return tokenizer


def _added_tokens(config: Mapping[str, Any]) -> dict[int, AddedToken]:
    """The added tokens of a configuration, by ascending id."""
    tokens = {}
    for id, value in (config.get("added_tokens_decoder") or {}).items():
        flags = {name: bool(flag) for name, flag in value.items() if name in FLAGS}
        tokens[int(id)] = AddedToken(str(value["content"]), **flags)
    return dict(sorted(tokens.items()))


def _tokenizer_file(path: Path) -> FileTokenizer:
    try:
        return FileTokenizer.from_file(path)
    except ValueError as error:
        raise type(error)(f"{path}: {error}") from None


def _rank_file(path: Path) -> Path | None:
    """The only rank file of a folder."""
    files = sorted(path.glob("*.tiktoken"))
    if len(files) > 1:
        raise ValueError(
            f"{path} has several rank files, {', '.join(file.name for file in files)}; read the "
            "right one with bpe_engine.load_encoding, and make a Tokenizer of it"
        )
    model = path / "tokenizer.model"
    return files[0] if files else model if model.is_file() else None


def _is_qwen(path: Path, config: Mapping[str, Any]) -> bool:
    if (path / TOKENIZER).is_file():
        return False
    return config.get("tokenizer_class") == "QWenTokenizer" or (
        not config and (path / "qwen.tiktoken").is_file()
    )


# ---- Folders of this package ----


def save(tokenizer: Tokenizer, folder: str | os.PathLike[str]) -> tuple[str, ...]:
    """See `Tokenizer.save_pretrained`."""
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    more: dict[str, Any] = {}
    backend = tokenizer._backend
    check_stale_files(tokenizer, path, isinstance(backend, FileBackend))
    if isinstance(backend, FileBackend):
        more["tokenizer_class"] = "PreTrainedTokenizerFast"
        vocabulary = path / TOKENIZER
        backend.tokenizer.save(vocabulary)
    else:
        encoding = backend.source
        more[_OWN] = {
            "name": encoding.name,
            "pattern": encoding._pat_str,
            "normalization": encoding._normalization,
            "special_tokens": encoding._special_tokens,
        }
        vocabulary = path / _RANKS
        dump_tiktoken_bpe(encoding._mergeable_ranks, os.fspath(vocabulary))
    return (*write_config(tokenizer, path, more), os.fspath(vocabulary))


def _own_encoding(path: Path, own: Mapping[str, Any]) -> Any:
    """The encoding of a folder that `save` wrote."""
    from .._core import CoreBPE
    from ..core import Encoding
    from ..load import load_tiktoken_bpe

    try:
        name, pattern, special = own["name"], own["pattern"], dict(own["special_tokens"])
        normalization = own["normalization"]
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path / CONFIG}: {_OWN!r} is not complete: {error!r}") from None
    ranks = load_tiktoken_bpe(os.fspath(path / _RANKS))
    core = CoreBPE(ranks, special, pattern, normalization)
    return Encoding._from_core(
        name, core, pat_str=pattern, special_tokens=special, normalization=normalization
    )
