"""Recognizes file formats, and calls the reader and the writer of each."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import bpe_engine
from bpe_engine.model import unknown_encoding
from bpe_engine.sidecar import beside

from ..patterns import find_pattern
from ..text import few
from . import gguf_file, gpt2_files, rank_file, tekken, tokenizer_json
from .definition import Definition

#: ``encoding`` is one that is known by name, and has no file.
Format = Literal["tiktoken", "tokenizer.json", "gpt2", "tekken", "gguf", "encoding"]

#: Formats that can be written.
WRITABLE: tuple[Format, ...] = ("tiktoken", "tokenizer.json", "gpt2", "tekken")

#: Files that are looked for in a folder, in this order.
_IN_FOLDERS = ("tokenizer.json", "tekken.json", "vocab.json", "encoder.json")


@dataclass(frozen=True)
class Location:
    """A file, or two that belong together, and its format."""

    path: str
    format: Format

    @property
    def files(self) -> list[str]:
        """The files that are read or written, with sidecar files."""
        if self.format == "encoding":
            return []
        if self.format == "gpt2":
            found = gpt2_files.pair(self.path)
            assert found is not None
            return [*map(str, found), str(beside(found[0]))]
        return [self.path, *([str(beside(self.path))] if self.format == "tiktoken" else [])]


def locate_source(path: str, format: Format | None = None) -> Location:
    """Locates a source: a file, a folder with one, or the name of an encoding.

    Raises:
        FileNotFoundError: neither a file nor an encoding has this name.
        ValueError: it is of no known format.
    """
    if not Path(path).exists():
        if path in bpe_engine.list_encoding_names():
            return Location(path, "encoding")
        raise FileNotFoundError(2, f"no such file, and {unknown_encoding(path)}", path)
    if Path(path).is_dir():
        path = _in_folder(Path(path))
    if not Path(path).is_file():
        raise ValueError(f"{path} is a pipe or a device, and is read more than once; give a file")
    found = format or _format_by_name(path)
    if found in ("tokenizer.json", "tekken", None):
        found = format or _format_by_contents(path)
    location = Location(path, found or "tiktoken")
    for file in location.files[: 2 if location.format == "gpt2" else 1]:
        if not Path(file).exists():
            raise FileNotFoundError(2, f"no such file; it belongs to {path}", file)
    return location


def _in_folder(folder: Path) -> str:
    for name in _IN_FOLDERS:
        if (folder / name).exists():
            return str(folder / name)
    found = sorted([*folder.glob("*.tiktoken"), *folder.glob("*.gguf")])
    if len(found) == 1:
        return str(found[0])
    names = few([path.name for path in found]) or "none of the known files"
    raise ValueError(f"{folder} is a folder with {names}; give the path of one file")


def locate_target(path: str, format: Format | None = None) -> Location:
    """Returns the files to write.

    Raises ValueError when the name does not determine a format that can be written.
    """
    if Path(path).is_dir() or path.endswith("/"):
        raise ValueError(
            f"{path} is a folder; give a file in it, such as {Path(path, 'tokenizer.json')}"
        )
    found = format or _format_by_name(path)
    if found not in WRITABLE:
        raise ValueError(
            f"{path} has no ending of a format that can be written: use .tiktoken, tokenizer.json, "
            f"vocab.json (merges.txt comes beside it) or tekken.json, or name one with --to"
        )
    if found == "gpt2" and gpt2_files.pair(path) is None:
        raise ValueError(f"{path}: GPT-2's files end in vocab.json and merges.txt")
    return Location(path, found)


def _format_by_name(path: str) -> Format | None:
    name = Path(path).name.lower()
    if name.endswith((".tiktoken", ".tiktoken.gz")):
        return "tiktoken"
    if name.endswith(".gguf"):
        return "gguf"
    if gpt2_files.pair(name):
        return "gpt2"
    if re.search(r"tekken[^/]*\.json$", name):
        return "tekken"
    return "tokenizer.json" if name.endswith(".json") else None


def _format_by_contents(path: str) -> Format:
    """Returns the format of a file by its contents."""
    with open(path, "rb") as file:
        start = file.read(1 << 16)
    if start.startswith(b"GGUF"):
        return "gguf"
    if not start.lstrip().startswith(b"{"):
        return "tiktoken"
    if b'"token_bytes"' in start:
        return "tekken"
    try:
        contents = json.loads(Path(path).read_bytes())
    except ValueError as error:
        raise ValueError(f"{path}: the JSON is broken: {error}") from error
    if "model" in contents:
        return "tokenizer.json"
    if contents and all(type(number) is int for number in contents.values()):
        raise ValueError(f"{path} holds tokens and ids; name it vocab.json, beside its merges.txt")
    raise ValueError(f"{path} is JSON, but no tokenizer.json, tekken.json or vocab.json")


def load(
    location: Location,
    pattern: str | None = None,
    special_tokens: Mapping[str, int] | None = None,
) -> Definition:
    """Reads the definition from the files.

    Args:
        location: from :func:`locate_source`.
        pattern: the name of an encoding, or a regular expression, for files without a pattern.
        special_tokens: names and ids, for files without them.

    Raises:
        ValueError: a file is malformed or not supported, or brings what was given.
        ImportError: a package is not installed that the format needs.
        OSError: a file cannot be read.
    """
    path, format = location.path, location.format
    if format in ("tokenizer.json", "encoding") and (pattern is not None or special_tokens):
        raise ValueError(f"{path} brings its own pattern and special tokens; leave the options out")
    if format == "tekken" and pattern is not None:
        raise ValueError(f"{path} brings its own pattern; leave the option out")
    if format == "encoding":
        return rank_file.from_encoding(bpe_engine.get_encoding(path))
    if format == "tokenizer.json":
        try:
            return tokenizer_json.parse(Path(path).read_text(encoding="utf-8"))
        except UnicodeDecodeError as error:
            raise ValueError(f"{path} is not UTF-8 (byte {error.start})") from error
        except ValueError as error:
            raise type(error)(f"{path}: {error}") from error
    if format == "tekken":
        return tekken.load(path, dict(special_tokens) if special_tokens else None)
    if format == "tiktoken":
        return rank_file.load(path, pattern, special_tokens)
    regex = None if pattern is None else find_pattern(pattern).pat_str
    if pattern is not None and special_tokens is None:
        special_tokens = find_pattern(pattern).special_tokens or None
    load_it = gguf_file.load if format == "gguf" else gpt2_files.load
    return load_it(path, regex, special_tokens)


def dump(definition: Definition, location: Location) -> dict[str, bytes]:
    """Returns the files of a definition, by path.

    Raises ValueError where the format cannot hold it.
    """
    path, format = location.path, location.format
    if format == "tokenizer.json":
        return {path: tokenizer_json.dump(definition)}
    if format == "tekken":
        return {path: tekken.dump(definition)}
    if format == "gpt2":
        return gpt2_files.dump(definition, path)
    return rank_file.dump(definition, path)
