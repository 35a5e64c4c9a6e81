"""Tokenizers to measure: encodings, and tokenizers of :mod:`bpe_engine.hf`."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from bpe_engine import Encoding, vocabulary
from bpe_engine.common.values import describe
from bpe_engine.hf import Tokenizer
from bpe_engine.read import byte_level
from bpe_engine.read.opening import open_tokenizer

from ..arguments import checked_path
from ..convert.definition import Definition
from ..convert.formats import load, locate_source
from ..convert.rank_file import UnknownPatternError
from ..convert.tokenizer_json import dump
from ..patterns import is_published

#: Spelling of byte tokens in models over characters.
_BYTE_TOKEN = re.compile(r"<0x([0-9A-F]{2})>")


class Subject:
    """A tokenizer to measure.

    Args:
        name: the name in reports.
        method: the tokenization method, such as "byte-level BPE".
        tokens: the bytes of each id, special tokens included.
    """

    #: Id of the unknown token, if any.
    unknown: int | None = None
    #: True if text can be cut after a word inside a line without changing the tokens.
    inside_lines = False

    def __init__(self, name: str, method: str, tokens: dict[int, bytes]) -> None:
        self.name = name
        self.method = method
        #: Size of the vocabulary.
        self.size: int = len(tokens)
        self._tokens = tokens

    def encode(self, texts: list[str]) -> list[list[int]]:
        """Returns the ids of each text."""
        raise NotImplementedError

    def count(self, texts: list[str]) -> tuple[list[int], Mapping[int, int]]:
        """Returns the number of tokens in each text, and how often all texts use each id."""
        times: Counter[int] = Counter()
        lengths = []
        for ids in self.encode(texts):
            lengths.append(len(ids))
            times.update(ids)
        return lengths, times

    def token(self, number: int) -> bytes:
        """Returns the bytes of an id's token."""
        return self._tokens.get(number, b"")

    def tokens(self) -> set[bytes]:
        """Returns the bytes of all tokens."""
        return {*self._tokens.values()}

    def cut(self, text: str) -> list[bytes]:
        """Returns the tokens of a text."""
        return [self.token(number) for number in self.encode([text])[0]]


class RankSubject(Subject):
    """An encoding of this package. Names of special tokens in texts are ordinary text."""

    def __init__(self, name: str, encoding: Encoding) -> None:
        tokens = {number: special.encode() for special, number in encoding.special_tokens.items()}
        tokens.update({number: token for token, number in encoding.mergeable_ranks.items()})
        super().__init__(name, "byte-level BPE", tokens)
        self.inside_lines: bool = is_published(encoding.pattern)
        self._encoding = encoding

    def encode(self, texts: list[str]) -> list[list[int]]:
        return self._encoding.encode_ordinary_batch(texts)

    def count(self, texts: list[str]) -> tuple[list[int], Mapping[int, int]]:
        return vocabulary.count_tokens(self._encoding, texts)


class FileSubject(Subject):
    """A ``tokenizer.json``. Added tokens are recognized in texts.

    Args:
        name: the name in reports.
        tokenizer: a tokenizer of :mod:`bpe_engine.hf`, or an object with the same methods.
        method: "byte-level BPE", or the type of the model.
        unknown: the token for unknown characters.
    """

    def __init__(self, name: str, tokenizer: Any, method: str, unknown: str | None = None) -> None:
        vocab: dict[str, int] = tokenizer.get_vocab(True)
        spelled = _of_bytes if method == "byte-level BPE" else _of_characters
        super().__init__(name, method, {id: spelled(token) for token, id in vocab.items()})
        self.unknown: int | None = None if unknown is None else vocab.get(unknown)
        tokenizer.no_truncation()
        tokenizer.no_padding()
        self._tokenizer = tokenizer

    def encode(self, texts: list[str]) -> list[list[int]]:
        found = self._tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        return [encoding.ids for encoding in found]


def _of_bytes(token: str) -> bytes:
    found = byte_level.try_bytes_of(token)
    return token.encode() if found is None else found


def _of_characters(token: str) -> bytes:
    byte = _BYTE_TOKEN.fullmatch(token)
    return bytes([int(byte[1], 16)]) if byte else token.replace("\u2581", " ").encode()


def subject_of(source: Subject | Encoding | str | os.PathLike[str]) -> Subject:
    """Returns the subject for an encoding, or for a name or path by :func:`load_subject`."""
    if isinstance(source, (str, os.PathLike)):
        return load_subject(os.fspath(source))
    if isinstance(source, Encoding):
        return RankSubject(source.name, source)
    if not isinstance(source, Subject):
        raise TypeError(
            "a tokenizer to compare is a name, a file, a folder, an encoding or what load_subject "
            f"returned, not {describe(source)}"
        )
    return source


def load_subject(path: str | os.PathLike[str]) -> Subject:
    """Returns the subject for a file, a folder or the name of an encoding.

    Args:
        path: a source for :func:`vocab_tools.convert_tokenizer`, or a ``tokenizer.json`` of
            WordPiece, WordLevel, Unigram, or BPE over characters.

    Raises:
        ValueError: the file is malformed, unsupported or of an unknown format.
        OSError: the file cannot be read.
    """
    source = locate_source(checked_path(path, "the name, the file or the folder of a tokenizer"))
    name = source.name
    if source.format in ("tiktoken", "gpt2", "gguf"):
        try:
            return _of_definition(name, load(source))
        except UnknownPatternError:
            convert = f"vocab-tools convert {source.path} tokenizer.json --pattern NAME"
            raise UnknownPatternError(source.path, f"add one: {convert}") from None
    opened = open_tokenizer(source.folder or source.path)
    if source.format in ("encoding", "tekken"):
        return RankSubject(name, opened)
    return of_tokenizer(name, opened.hf)


def _of_definition(name: str, definition: Definition) -> Subject:
    if definition.merges is not None:
        tokenizer = Tokenizer.from_str(dump(definition).decode())
        return FileSubject(name, tokenizer, "byte-level BPE")
    assert definition.pattern is not None
    encoding = vocabulary.make_encoding(
        name,
        definition.tokens,
        definition.pattern,
        definition.special_tokens,
        definition.normalization,
    )
    return RankSubject(name, encoding)


def of_tokenizer(name: str, tokenizer: Any) -> Subject:
    """Returns the subject for a tokenizer of :mod:`bpe_engine.hf`."""
    method = type(tokenizer.model).__name__
    step = tokenizer.pre_tokenizer
    if method == "BPE" and step is not None and b'"ByteLevel"' in step.__getstate__():
        return FileSubject(name, tokenizer, "byte-level BPE")
    unknown = getattr(tokenizer.model, "unk_token", None)
    if method in ("Unigram", "SentencePiece"):
        # Model objects of `tokenizers` have no `unk_id`, but the JSON has the field.
        number = getattr(tokenizer.model, "unk_id", None)
        if number is None:
            number = json.loads(tokenizer.to_str())["model"].get("unk_id")
        unknown = None if number is None else tokenizer.id_to_token(number)
    return FileSubject(name, tokenizer, method, unknown)
