"""Recognizes tokenizers: the name of an encoding, a file, or a folder with files.

`bpe_engine.read.opening` opens them. A new kind of file needs a row in `KINDS`, and a function in
that module.
"""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from ..common.system import has_folder, is_uri
from ..model import unknown_encoding
from ..registry import list_encoding_names
from . import gpt2_files
from .sidecar import beside

__all__ = [
    "CONFIG",
    "NOT_OPENED",
    "NOT_RANKS",
    "RENUMBERED",
    "Format",
    "Source",
    "existing_folder",
    "format_of_name",
    "in_folder",
    "not_found",
    "recognize",
]

#: Formats: ``encoding`` is a name without a file. ``gguf`` is recognized for error messages.
Format = Literal[
    "encoding", "tiktoken", "tokenizer.json", "tekken", "gpt2", "gguf", "sentencepiece", "wordpiece"
]

#: Configuration file in the folder of a pretrained tokenizer.
CONFIG = "tokenizer_config.json"

#: For each kind of file: names in lower case, and names searched in a folder. The first present
#: file counts.
KINDS: tuple[tuple[Format, str, tuple[str, ...]], ...] = (
    ("tokenizer.json", r"(?!.*(tekken|vocab\.|encoder\.)).*\.json", ("tokenizer.json",)),
    ("tekken", r".*tekken.*\.json", ("tekken.json",)),
    ("tiktoken", r".*\.tiktoken(\.gz)?", ("*.tiktoken", "*.tiktoken.gz")),
    ("sentencepiece", r".*\.model(\.v\d+\w*)?", ("tokenizer.model", "tokenizer.model.v*")),
    (
        "gpt2",
        r".*(vocab\.json|merges\.txt|encoder\.json|vocab\.bpe)",
        ("vocab.json", "encoder.json"),
    ),
    ("gguf", r".*\.gguf", ("*.gguf",)),
    ("wordpiece", r".*vocab\.txt", ("vocab.txt",)),
)

#: Names of SentencePiece models whose ids a transformers class changes.
RENUMBERED = (
    "source.spm",
    "spiece.model",
    "sentencepiece.bpe.model",
    "sentencepiece.model",
    "spm.model",
)

#: File names shared by many tokenizers.
_PLAIN_NAMES = {name for _, _, names in KINDS for name in names}

#: File names that determine the format.
_SURE_NAMES = _PLAIN_NAMES - {"tokenizer.model"}

#: Why a format cannot be opened, and the remedy.
NOT_OPENED: dict[Format, str] = {
    "gguf": "is a GGUF file; `vocab-tools convert` makes a tokenizer.json of its byte-level BPE or "
    "SentencePiece model",
}

#: Why a format has no ranks, for readers that need ranks.
NOT_RANKS: dict[Format, str] = {
    **NOT_OPENED,
    "sentencepiece": "is a model of SentencePiece, which has no ranks; bpe_engine.open_tokenizer reads it",
    "wordpiece": "is a word list of WordPiece, which has no ranks; bpe_engine.open_tokenizer reads it",
}


class Source(NamedTuple):
    """A recognized tokenizer: a file, a pair of files, or the name of an encoding."""

    path: str
    format: Format
    #: The folder, if the caller gave a folder instead of the file.
    folder: str | None = None

    @property
    def files(self) -> list[str]:
        """The files, including sidecar files."""
        if self.format == "encoding":
            return []
        pair = gpt2_files.pair(self.path) if self.format == "gpt2" else None
        files = [self.path] if pair is None else [*map(str, pair)]
        has_sidecar = self.format in ("tiktoken", "gpt2")
        return [*files, *([str(beside(files[0]))] if has_sidecar else [])]

    @property
    def name(self) -> str:
        """The name of the file, or of its folder if many tokenizers share the file name.

        >>> Source("a/qwen.tiktoken", "tiktoken").name
        'qwen'
        >>> Source("models/qwen2.5/tokenizer.json", "tokenizer.json").name
        'qwen2.5'
        """
        file = Path(self.path)
        if self.format == "encoding":
            return self.path
        if file.name in _PLAIN_NAMES and (folder := file.resolve().parent.name):
            return folder
        return file.name.removesuffix(".gz").rpartition(".")[0] or file.name


def recognize(path: str | os.PathLike[str], format: Format | None = None) -> Source:
    """Recognizes a tokenizer. A file or folder takes precedence over an encoding of the same name.

    Args:
        path: The name of an encoding; a file; a folder with such a file; or the address of a file.
        format: The format, if neither the name nor the contents determine it.

    Raises:
        FileNotFoundError: Neither a file nor an encoding has this name; similar names are in the
            message.
        IsADirectoryError: A folder has no tokenizer.
        ValueError: The format is not known; or a folder has several files of one kind, or only a
            model whose ids a transformers class changes.
        OSError: The file cannot be read.

    >>> recognize("gpt2")
    Source(path='gpt2', format='encoding', folder=None)
    """
    path = os.fspath(path)
    if is_uri(path):
        return Source(path, format or format_of_name(path) or "tiktoken")
    if not os.path.exists(path):
        if path in list_encoding_names():
            return Source(path, "encoding")
        raise not_found(path)
    return _only_one(path) if os.path.isdir(path) else _of_file(path, format)


def _of_file(path: str, format: Format | None = None, folder: str | None = None) -> Source:
    found = format or format_of_name(path)
    is_sure = found not in ("tokenizer.json", "tekken", "sentencepiece", None)
    if format is None and not (is_sure or os.path.basename(path) in _SURE_NAMES):
        found = _format_of_contents(path, found)
    source = Source(path, found or "tiktoken", folder)
    for file in source.files[:2] if source.format == "gpt2" else ():
        if not os.path.exists(file):
            reason = f"{os.strerror(errno.ENOENT)}; it belongs to {path}"
            raise FileNotFoundError(errno.ENOENT, reason, file)
    return source


def existing_folder(folder: str | os.PathLike[str]) -> Path:
    """Returns the path of a folder. Raises FileNotFoundError if it does not exist, and
    NotADirectoryError for a file."""
    path = Path(folder)
    if path.is_file():
        raise NotADirectoryError(
            f"{str(path)!r} is a file; give its folder, or open the file with "
            "bpe_engine.open_tokenizer or bpe_engine.hf.Tokenizer.from_file"
        )
    if not path.is_dir():
        raise FileNotFoundError(
            f"{str(path)!r} is not a folder on this machine; download the tokenizer first, as with "
            "huggingface_hub.snapshot_download"
        )
    return path


def not_found(path: str) -> FileNotFoundError:
    """Returns the error for a name that neither a file nor an encoding has."""
    reason = os.strerror(errno.ENOENT)
    if not has_folder(path) and format_of_name(path) is None:
        reason += f", and {unknown_encoding(path)}"
    elif re.fullmatch(r"[\w.-]+/[\w.-]+", path) and not os.path.isdir(os.path.dirname(path)):
        reason += "; nothing is downloaded, so give the folder that has the model on this machine"
    return FileNotFoundError(errno.ENOENT, reason, path)


def in_folder(folder: str | os.PathLike[str]) -> list[Source]:
    """Returns every tokenizer file in a folder by precedence."""
    return [source for group in _groups(os.fspath(folder)) for source in group]


def _groups(folder: str) -> Iterator[list[Source]]:
    """Yields the files of a folder by precedence, grouped by kind."""
    for format, _, names in KINDS:
        for name in names:
            files = [str(file) for file in sorted(Path(folder).glob(name)) if file.is_file()]
            if format == "gpt2":
                files = [
                    file for file in files if all(map(os.path.isfile, gpt2_files.pair(file) or ()))
                ]
            if files:
                yield [_of_file(file, folder=folder) for file in files]


def _only_one(folder: str) -> Source:
    group = next(_groups(folder), [])
    if len(group) == 1:
        return group[0]
    for name in RENUMBERED:
        if not group and os.path.isfile(path := os.path.join(folder, name)):
            raise ValueError(
                f"{path} is a SentencePiece model that a class of transformers renumbers; let "
                "transformers save a tokenizer.json: "
                "AutoTokenizer.from_pretrained(folder).save_pretrained(folder)"
            )
    if not group:
        wanted = ", ".join(name for _, _, names in KINDS for name in names)
        present = ", ".join(sorted(os.listdir(folder))[:8]) or "nothing"
        reason = f"a folder without a tokenizer ({wanted}); it has {present}"
        raise IsADirectoryError(errno.EISDIR, reason, folder)
    names = ", ".join(os.path.basename(source.path) for source in group)
    raise ValueError(f"{folder} is a folder with {names}; give the path of one file")


def format_of_name(path: str) -> Format | None:
    """Returns the format implied by a file name, or None.

    >>> format_of_name("a/gpt2-merges.txt"), format_of_name("tekken_240911.json")
    ('gpt2', 'tekken')
    """
    name = os.path.basename(path).lower()
    return next((format for format, names, _ in KINDS if re.fullmatch(names, name)), None)


def _format_of_contents(path: str, named: Format | None) -> Format:
    """Returns the format of a file: by the name for a pipe or a device, which can be read only
    once, else by the contents."""
    if not os.path.isfile(path):
        return named or "tiktoken"
    with open(path, "rb") as file:
        start = file.read(1 << 16)
        if start.startswith(b"GGUF"):
            return "gguf"
        if re.match(rb"\[\w+\]\s", start):
            return "wordpiece"
        if not start.lstrip().startswith(b"{"):
            is_model = named == "sentencepiece" and (start[:1] == b"\n" or b"\0" in start[:100])
            return "sentencepiece" if is_model else "tiktoken"
        contents = start + file.read()
    if b'"token_bytes"' in start:
        return "tekken"
    # In a vocab.json, "model" may be a token.
    if re.search(rb'"model"\s*:\s*\{', contents):
        return "tokenizer.json"
    raise ValueError(f"{path} {_other_json(contents)}")


def _other_json(contents: bytes) -> str:
    """Explains why a JSON file is not a tokenizer."""
    try:
        found = json.loads(contents)
    except (ValueError, RecursionError) as error:
        return f"is not a tokenizer file: the JSON is broken: {error}"
    if found and all(type(number) is int for number in found.values()):
        return "holds tokens and ids; name the file vocab.json, next to merges.txt"
    return "is JSON, but no tokenizer.json, tekken.json or vocab.json"
