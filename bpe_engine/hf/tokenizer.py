"""`Tokenizer`: the object that users of `tokenizers` know."""

from __future__ import annotations

import json
import os
from typing import Any, Iterable

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
        return cls(bytes(memoryview(buffer)))

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Tokenizer:
        """Out of a ``tokenizer.json``.

        Raises:
            OSError: The file cannot be read.
            ValueError: As the class does.
        """
        with open(path, "rb") as file:
            contents = file.read()
        try:
            return cls(contents)
        except ValueError:
            if b'"token_bytes"' not in contents or b'"default_vocab_size"' not in contents:
                raise
        raise ValueError(
            f"{os.fspath(path)!r} is a tekken.json; bpe_engine.load_encoding reads it, and "
            "vocab-tools convert makes a tokenizer.json of it"
        )

    @classmethod
    def from_files(
        cls,
        vocab: str | os.PathLike[str],
        merges: str | os.PathLike[str],
        *,
        add_prefix_space: bool = False,
        special_tokens: Iterable[str | AddedToken] = (),
    ) -> Tokenizer:
        """Out of the two files of GPT-2, as `tokenizers.ByteLevelBPETokenizer` and transformers
        read them: text is split by GPT-2's pattern, and nothing is added to it.

        Args:
            vocab: The ``vocab.json``, which maps tokens to ids.
            merges: The ``merges.txt``: a line for each pair, two tokens with a space between them.
            add_prefix_space: Whether text begins with a space, even if it does not.
            special_tokens: Names that are looked for before anything else. The files list none.

        Raises:
            OSError: A file cannot be read.
            ValueError: A file is malformed, or the class cannot do what it asks for.

        >>> tokenizer = Tokenizer.from_files("vocab.json", "merges.txt")  # doctest: +SKIP
        """
        with open(vocab, encoding="utf-8") as file:
            tokens = json.load(file)
        if not isinstance(tokens, dict):
            raise ValueError(f"{os.fspath(vocab)!r} must map tokens to ids")
        with open(merges, encoding="utf-8", newline="\n") as file:
            lines = [line.rstrip("\r\n") for line in file]
        level = {"type": "ByteLevel", "trim_offsets": True, "add_prefix_space": add_prefix_space}
        contents = {
            "version": "1.0",
            "pre_tokenizer": level,
            "decoder": level,
            "model": {
                "type": "BPE",
                "vocab": tokens,
                "merges": [line for line in lines if line and not line.startswith("#version")],
            },
        }
        tokenizer = cls(json.dumps(contents))
        tokenizer.add_special_tokens(list(special_tokens))
        return tokenizer

    @classmethod
    def from_pretrained(cls, identifier: str | os.PathLike[str]) -> Tokenizer:
        """Out of the ``tokenizer.json`` of a folder on this machine, or, where it has none, of its
        ``vocab.json`` and ``merges.txt``.

        Raises:
            OSError: There is no such folder, or no such file in it. Nothing is downloaded.
            ValueError: As the class does.
        """
        folder = os.fspath(identifier)
        if not os.path.isdir(folder):
            raise FileNotFoundError(
                f"{folder!r} is no folder on this machine; download the tokenizer "
                "first, as with huggingface_hub.snapshot_download"
            )
        path, vocab, merges = (
            os.path.join(folder, name) for name in ("tokenizer.json", "vocab.json", "merges.txt")
        )
        if not os.path.exists(path) and os.path.exists(vocab) and os.path.exists(merges):
            return cls.from_files(vocab, merges)
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
