"""Recognizes file formats, and calls the reader or writer of a format."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import bpe_engine
from bpe_engine.common.system import SEPARATORS
from bpe_engine.common.values import with_text
from bpe_engine.read.gpt2_files import pair
from bpe_engine.read.sources import NOT_RANKS, Format, Source, format_of_name, recognize
from bpe_engine.read.text_files import read_text

from ..patterns import find_pattern
from . import gguf_file, gpt2_files, rank_file, tekken, tokenizer_json
from .definition import Definition

#: Formats that can be written.
WRITABLE: tuple[Format, ...] = ("tiktoken", "tokenizer.json", "gpt2", "tekken", "sentencepiece")


def locate_source(path: str | os.PathLike[str], format: Format | None = None) -> Source:
    """Locates a source: a file, a folder with a file, or the name of an encoding.

    Raises:
        FileNotFoundError: neither a file nor an encoding has this name.
        ValueError: the format is unknown, or the source can be read only once.
    """
    source = recognize(os.fspath(path), format)
    if source.format != "encoding" and not Path(source.path).is_file():
        raise ValueError(f"{path} is a pipe or a device, and is read more than once; give a file")
    return source


def locate_target(path: str | os.PathLike[str], format: Format | None = None) -> Source:
    """Returns the location of the files to write.

    Raises ValueError if the name does not determine a writable format.
    """
    path = os.fspath(path)
    if Path(path).is_dir() or path.endswith(SEPARATORS):
        raise ValueError(
            f"{path} is a folder; give a file in it, such as {Path(path, 'tokenizer.json')}"
        )
    found = format or format_of_name(path)
    if found not in WRITABLE:
        raise ValueError(
            f"{path} has no ending of a format that can be written: use .tiktoken, tokenizer.json, "
            f"vocab.json (with merges.txt), tekken.json or .model, or name one with --to"
        )
    if found == "gpt2" and pair(path) is None:
        raise ValueError(f"{path}: GPT-2's files end in vocab.json and merges.txt")
    return Source(path, found)


def load(
    location: Source,
    pattern: str | None = None,
    special_tokens: Mapping[str, int] | None = None,
) -> Definition:
    """Reads the definition from the files.

    Args:
        location: the result of :func:`locate_source`.
        pattern: for files without a pattern, a regular expression, or the name of an encoding, of
            which only the pattern is used.
        special_tokens: for files without special tokens, names and ids.

    Raises:
        ValueError: a file is malformed or not supported, or defines a value that is also given.
        ImportError: the format needs a package that is not installed.
        OSError: a file cannot be read.
    """
    path, format, _ = location
    if format in ("tokenizer.json", "encoding") and (pattern is not None or special_tokens):
        raise ValueError(f"{path} defines a pattern and special tokens; leave the options out")
    if format == "tekken" and pattern is not None:
        raise ValueError(f"{path} defines a pattern; leave the option out")
    if format == "encoding":
        return rank_file.from_encoding(bpe_engine.get_encoding(path))
    if format == "tokenizer.json":
        text = read_text(path)
        try:
            return tokenizer_json.parse(text)
        except ValueError as error:
            raise with_text(error, f"{path}: {error}") from error
    if format in ("sentencepiece", "wordpiece"):
        raise ValueError(f"{path} {NOT_RANKS[format]}")
    if format == "tekken":
        return tekken.load(path, dict(special_tokens) if special_tokens else None)
    if format == "tiktoken":
        return rank_file.load(path, pattern, special_tokens)
    regex = None if pattern is None else find_pattern(pattern).pat_str
    load_it = gguf_file.load if format == "gguf" else gpt2_files.load
    return load_it(path, regex, special_tokens)


def dump(definition: Definition, location: Source) -> dict[str, bytes]:
    """Returns the contents of a definition's files, by path.

    Raises ValueError if the format cannot represent the definition.
    """
    path, format, _ = location
    if format == "tokenizer.json":
        return {path: tokenizer_json.dump(definition)}
    if format == "tekken":
        return {path: tekken.dump(definition)}
    if format == "gpt2":
        return gpt2_files.dump(definition, path)
    return rank_file.dump(definition, path)
