"""`Tokenizer`: the object that users of `tokenizers` know."""

from __future__ import annotations

import os
from typing import Any

from .._core import HfTokenizer
from .components import BPE, AddedToken, Component, component_json

__all__ = ["Tokenizer"]


class Tokenizer(HfTokenizer):
    """A tokenizer out of a ``tokenizer.json``, with the methods of `tokenizers.Tokenizer`.

    Any number of threads may use one at once, and change it meanwhile: a call sees it as it was
    when the call began.

    Args:
        json: The contents of a ``tokenizer.json``, as text or as bytes.

    Raises:
        UnsupportedTokenizer: The file asks for what cannot be done exactly; the message names it
            with its JSON path.
        ValueError: The file is malformed.
    """

    @classmethod
    def from_str(cls, json: str) -> Tokenizer:
        """Out of the contents of a file. Raises as the class does."""
        return cls(json)

    @classmethod
    def from_buffer(cls, buffer: bytes) -> Tokenizer:
        """Out of the contents of a file, as bytes. Raises as the class does."""
        return cls(bytes(buffer))

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Tokenizer:
        """Out of a ``tokenizer.json``.

        Raises:
            OSError: The file cannot be read.
            ValueError: As the class does.
        """
        with open(path, "rb") as file:
            return cls(file.read())

    @classmethod
    def from_pretrained(cls, identifier: str | os.PathLike[str]) -> Tokenizer:
        """Out of the ``tokenizer.json`` of a folder on this machine.

        Raises:
            OSError: There is no such folder, or no such file in it. Nothing is downloaded.
            ValueError: As the class does.
        """
        path = os.path.join(identifier, "tokenizer.json")
        if not os.path.isdir(identifier):
            raise FileNotFoundError(
                f"{os.fspath(identifier)!r} is no folder on this machine; download the tokenizer "
                "first, as with huggingface_hub.snapshot_download"
            )
        return cls.from_file(path)

    def save(self, path: str | os.PathLike[str], pretty: bool = True) -> None:
        """Writes a ``tokenizer.json`` that `tokenizers` reads as this tokenizer.

        Args:
            path: The file.
            pretty: With line breaks.
        """
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.to_str(pretty))

    def get_added_tokens_decoder(self) -> dict[int, Any]:
        """The added tokens by id."""
        return {id: AddedToken(*flags) for id, flags in self._added_tokens()}

    def _get(self, kind: str) -> Component | None:
        spec = self._component(kind)
        return None if spec is None else Component(kind, spec)

    @property
    def normalizer(self) -> Component | None:
        """What is done with a text first."""
        return self._get("normalizer")

    @normalizer.setter
    def normalizer(self, value: Any) -> None:
        self._set_component("normalizer", component_json(value, "normalizer"))

    @property
    def pre_tokenizer(self) -> Component | None:
        """What cuts a text into pieces."""
        return self._get("pre_tokenizer")

    @pre_tokenizer.setter
    def pre_tokenizer(self, value: Any) -> None:
        self._set_component("pre_tokenizer", component_json(value, "pre_tokenizer"))

    @property
    def post_processor(self) -> Component | None:
        """What adds special tokens."""
        return self._get("post_processor")

    @post_processor.setter
    def post_processor(self, value: Any) -> None:
        self._set_component("post_processor", component_json(value, "post_processor"))

    @property
    def decoder(self) -> Component | None:
        """What makes text of tokens."""
        return self._get("decoder")

    @decoder.setter
    def decoder(self, value: Any) -> None:
        self._set_component("decoder", component_json(value, "decoder"))

    @property
    def model(self) -> BPE:
        """The vocabulary and its merges."""
        return BPE(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (type(self), self.to_str(), self.encode_special_tokens)

    def __copy__(self) -> Tokenizer:
        return type(self)(self)

    def __deepcopy__(self, memo: object) -> Tokenizer:
        return type(self)(self)

    def __repr__(self) -> str:
        return f"Tokenizer(BPE, {self.get_vocab_size()} tokens)"


def _restore(cls: type[Tokenizer], json: str, encode_special_tokens: bool) -> Tokenizer:
    tokenizer = cls(json)
    if encode_special_tokens:
        tokenizer.encode_special_tokens = True
    return tokenizer
