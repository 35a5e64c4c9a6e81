"""Reads and writes the folders of pretrained tokenizers."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from .._tiktoken import CoreBPE
from ..core import Encoding
from ..hf.components import AddedToken
from ..hf.models import restore_scores
from ..hf.tokenizers import Tokenizer as FileTokenizer
from ..load import dump_tiktoken_bpe, load_encoding, load_tiktoken_bpe
from ..read.sources import NOT_OPENED, Source, recognize
from ..read.text_files import read_text
from . import classes
from .files import CONFIG, FLAGS, TOKENIZER, check_stale_files, settings_of, write_config
from .vocabularies import (
    BERT_OPTIONS,
    of_merges,
    of_pieces,
    of_ranks,
    of_words,
    put_typed,
    set_bert_normalizer,
)

__all__ = ["Loaded", "is_qwen", "load", "save"]

#: Key of this package in a configuration.
_OWN = "bpe_engine"
_RANKS = "tokenizer.tiktoken"
_QWEN = "QWenTokenizer"


class Loaded(NamedTuple):
    """The vocabulary and the configuration of a folder."""

    source: Encoding | FileTokenizer
    #: The arguments of `Tokenizer`.
    settings: dict[str, Any]
    #: Tokens to add. Decoded text always keeps tokens that are not special.
    added: list[AddedToken]
    #: The transformers class that reads the folder, or None.
    name: str | None = None


def is_qwen(path: Path, config: Mapping[str, Any]) -> bool:
    """Returns True for the folder of Qwen-7B, which `bpe_engine.qwen.QwenTokenizer` reads."""
    if (path / TOKENIZER).is_file():
        return False
    return config.get("tokenizer_class") == _QWEN if config else (path / "qwen.tiktoken").is_file()


def load(path: Path, config: Mapping[str, Any], arguments: Mapping[str, Any]) -> Loaded:
    """Reads a folder: see `Tokenizer.from_pretrained`.

    Args:
        path: The folder.
        config: The configuration of the folder.
        arguments: The caller's arguments, which override the files.

    Raises:
        IsADirectoryError: The folder has no vocabulary.
        ValueError: A file is malformed, or the folder's class has behavior beyond its files.
    """
    name = classes.class_name(path, config)
    classes.check_known(name, path)
    added = _added_tokens(config)
    settings = {**settings_of(path, config), **arguments}
    pattern = settings.pop("pattern", None)
    if _OWN in config and not (path / TOKENIZER).is_file():
        return Loaded(_own_encoding(path, config[_OWN]), settings, list(added.values()))
    source = recognize(path)
    if source.format in NOT_OPENED:
        raise ValueError(f"{source.path} {NOT_OPENED[source.format]}")
    if source.format in _OPTIONS:
        return _of_class(source, path, name, config, arguments, settings, added)
    if source.format == "tekken":
        return Loaded(load_encoding(source.path), settings, list(added.values()))
    extra = settings.get("extra_special_tokens")
    encoding = of_ranks(Path(source.path), pattern, added, extra)
    return Loaded(encoding, settings, list(added.values()))


# Extra arguments of the classes, by format.
_OPTIONS: dict[str, tuple[str, ...]] = {
    "tokenizer.json": (),
    "gpt2": ("add_prefix_space", "trim_offsets"),
    "sentencepiece": (),
    "wordpiece": BERT_OPTIONS,
}


def _of_class(
    source: Source,
    path: Path,
    name: str | None,
    config: Mapping[str, Any],
    arguments: Mapping[str, Any],
    settings: dict[str, Any],
    added: Mapping[int, AddedToken],
) -> Loaded:
    name = name or {"gpt2": "GPT2Tokenizer", "wordpiece": "BertTokenizer"}.get(source.format)
    options = BERT_OPTIONS if name in classes.BERT else _OPTIONS[source.format]
    given = {option: settings.pop(option) for option in options if option in settings}
    config = {**config, **given}
    settings = {**classes.defaults(name, config), **settings}
    if source.format == "gpt2":
        file = of_merges(path, str(name), config, added, settings)
    elif source.format == "sentencepiece":
        file = of_pieces(source.path, str(name), added, settings)
    elif source.format == "wordpiece":
        file = of_words(source.path, str(name), config, added, settings)
    else:
        file = FileTokenizer.from_file(source.path)
        if file.encode_special_tokens:
            # In a SentencePiece model written by `save`, special tokens in text are recognized, as
            # in transformers.
            file.encode_special_tokens = False
        file.add_tokens(list(added.values()))
        if name in classes.BUILDERS:
            restore_scores(file, read_text(source.path))
        if name in classes.BERT & classes.BUILDERS:
            set_bert_normalizer(file, config)
        if name == "RemBertTokenizer":
            # transformers' `save_pretrained` writes a different post-processor.
            put_typed(file, settings)
        # The file's post-processor adds tokens around a text, and the file sets the padding side.
        fixed = ["add_bos_token", "add_eos_token"]
        fixed += ["padding_side"] if file.padding and "padding_side" not in config else []
        for field in fixed:
            if field not in arguments:
                settings.pop(field, None)
    return Loaded(file, settings, [], name)


def _added_tokens(config: Mapping[str, Any]) -> dict[int, AddedToken]:
    tokens = {}
    for id, value in (config.get("added_tokens_decoder") or {}).items():
        flags = {name: bool(flag) for name, flag in value.items() if name in FLAGS}
        tokens[int(id)] = AddedToken(str(value["content"]), **flags)
    return dict(sorted(tokens.items()))


# ---- Folders of this package ----


def save(
    path: Path, source: Encoding | FileTokenizer, config: Mapping[str, Any], chat_template: Any
) -> tuple[str, ...]:
    """Writes a folder: see `Tokenizer.save_pretrained`."""
    path.mkdir(parents=True, exist_ok=True)
    check_stale_files(path, chat_template, isinstance(source, FileTokenizer))
    if isinstance(source, FileTokenizer):
        more: dict[str, Any] = {"tokenizer_class": "PreTrainedTokenizerFast"}
        vocabulary = path / TOKENIZER
        source.save(vocabulary)
    else:
        own = {
            "name": source.name,
            "pattern": source.pattern,
            "normalization": source.normalization,
            "special_tokens": dict(source.special_tokens),
        }
        more = {_OWN: own}
        vocabulary = path / _RANKS
        dump_tiktoken_bpe(source.mergeable_ranks, os.fspath(vocabulary))
    return (*write_config(path, {**more, **config}, chat_template), os.fspath(vocabulary))


def _own_encoding(path: Path, own: Mapping[str, Any]) -> Encoding:
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
