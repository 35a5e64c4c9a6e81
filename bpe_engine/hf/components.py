"""Classes for the model of a tokenizer and its tokens, with the names that `tokenizers` uses."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any

from .._core import HfTokenizer
from ..gpt2_files import read_merges, read_vocab
from .component import Component, component_json, component_of_tokenizers

__all__ = [
    "BPE",
    "AddedToken",
    "Component",
    "Token",
    "component_json",
    "component_of_tokenizers",
]


@dataclass
class AddedToken:
    """A token beside those of the model.

    Args:
        content: What is looked for.
        single_word: Found only where no other word character stands beside it.
        lstrip: Whitespace before it belongs to it.
        rstrip: Whitespace after it belongs to it.
        normalized: Its normalized form is looked for in the normalized text. By default that is
            so unless the token is special.
        special: Decoding can leave it out.
    """

    content: str
    single_word: bool = False
    lstrip: bool = False
    rstrip: bool = False
    normalized: bool | None = None
    special: bool = False

    def __getattribute__(self, name: str) -> Any:
        value = object.__getattribute__(self, name)
        if name == "normalized" and value is None:
            return not self.special
        return value

    def __str__(self) -> str:
        return self.content

    def __hash__(self) -> int:
        return hash(self.content)


@dataclass(frozen=True)
class Token:
    """A token of a model, with its place in the text.

    Args:
        id: The id.
        value: The token.
        offsets: The bytes of the text that it stands for.
    """

    id: int
    value: str
    offsets: tuple[int, int]

    def as_tuple(self) -> tuple[int, str, tuple[int, int]]:
        """The three of them."""
        return self.id, self.value, self.offsets


_MODEL_FIELDS = (
    "dropout",
    "unk_token",
    "continuing_subword_prefix",
    "end_of_word_suffix",
    "fuse_unk",
    "byte_fallback",
    "ignore_merges",
)


class BPE:
    """The model of a tokenizer: its vocabulary and merges.

    Setting ``unk_token``, ``fuse_unk``, ``byte_fallback`` or ``ignore_merges`` changes the tokenizer.
    So does ``dropout``, ``continuing_subword_prefix`` or ``end_of_word_suffix``, but a value that
    cannot be done exactly raises `UnsupportedTokenizer`.

    >>> from bpe_engine import hf
    >>> tokenizer = hf.Tokenizer('{"model": {"type": "BPE", "vocab": {"a": 0, "?": 1}, "merges": []}}')
    >>> tokenizer.model.unk_token = "?"
    >>> tokenizer.encode("ab").tokens
    ['a', '?']
    >>> tokenizer.model.dropout = 0.1  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    bpe_engine._core.UnsupportedTokenizer: model.dropout: a dropout of 0.1 is not supported; ...
    """

    _tokenizer: HfTokenizer

    def __init__(self, tokenizer: HfTokenizer):
        object.__setattr__(self, "_tokenizer", tokenizer)

    @staticmethod
    def read_file(
        vocab: str | os.PathLike[str], merges: str | os.PathLike[str]
    ) -> tuple[dict[str, int], list[tuple[str, str]]]:
        """Reads the tokens and the merges of a ``vocab.json`` and a ``merges.txt``.

        Raises:
            OSError: A file cannot be read.
            ValueError: A file is malformed.
        """
        return read_vocab(vocab), read_merges(merges)

    @classmethod
    def from_file(
        cls, vocab: str | os.PathLike[str], merges: str | os.PathLike[str], **options: Any
    ) -> BPE:
        """Reads a ``vocab.json`` and a ``merges.txt``.

        Args:
            vocab, merges: The files.
            options: The other fields of the model, such as ``unk_token`` and ``ignore_merges``.

        Raises:
            OSError: A file cannot be read.
            ValueError: A file is malformed, or an option cannot be done exactly.
        """
        # The size of their cache.
        options.pop("cache_capacity", None)
        model = {
            "type": "BPE",
            **options,
            "vocab": read_vocab(vocab),
            "merges": read_merges(merges),
        }
        level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
        return cls(HfTokenizer(json.dumps({"pre_tokenizer": level, "model": model})))

    def save(self, folder: str | os.PathLike[str], prefix: str | None = None) -> list[str]:
        """Writes ``vocab.json`` and ``merges.txt`` into a folder, and replaces files of these names.

        Args:
            folder: A folder that exists.
            prefix: What the names begin with, before a hyphen.

        Returns:
            The paths of the two files.

        Raises:
            OSError: The folder does not exist, or a file cannot be written.
        """
        model = json.loads(self._tokenizer.to_str())["model"]
        vocab = json.dumps(model["vocab"], ensure_ascii=False, separators=(",", ":"))
        merges = [f"{left} {right}\n" for left, right in model["merges"]]
        start = "" if prefix is None else f"{prefix}-"
        contents = {"vocab.json": vocab, "merges.txt": "".join(["#version: 0.2\n", *merges])}
        paths = []
        for name, content in contents.items():
            paths.append(os.path.join(folder, start + name))
            with open(paths[-1], "w", encoding="utf-8", newline="") as file:
                file.write(content)
        return paths

    def tokenize(self, sequence: str) -> list[Token]:
        """The tokens of a piece whose characters stand for bytes."""
        return [Token(*token) for token in self._tokenizer._tokenize(sequence)]

    def token_to_id(self, token: str) -> int | None:
        """The id of a token of the model."""
        return self._tokenizer._model_token_to_id(token)

    def id_to_token(self, id: int) -> str | None:
        """The token of the model with this id."""
        return self._tokenizer._model_id_to_token(id)

    def __getattr__(self, name: str) -> Any:
        if name in _MODEL_FIELDS:
            return json.loads(self._tokenizer.to_str())["model"][name]
        raise AttributeError(f"a BPE model has no attribute {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in _MODEL_FIELDS:
            raise AttributeError(f"a BPE model has no attribute {name!r} that can be set")
        self._tokenizer._set_component(f"model.{name}", json.dumps(value))
