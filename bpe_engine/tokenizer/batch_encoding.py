"""`BatchEncoding`: the result of calling a `Tokenizer`."""

from __future__ import annotations

import operator
from collections import UserDict
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from .._core import HfEncoding
from ..common.tensors import as_tensor, framework
from ..common.values import checked

__all__ = ["BatchEncoding", "CharSpan", "TokenSpan"]


class CharSpan(NamedTuple):
    """A span of characters in a text."""

    start: int
    end: int


class TokenSpan(NamedTuple):
    """A span of consecutive tokens."""

    start: int
    end: int


class BatchEncoding(UserDict[str, Any]):
    """The fields of a batch: a mapping whose keys are also attributes.

    Its methods map tokens to words and characters: `tokens`, `word_ids`, `sequence_ids`,
    `char_to_token` and so on. Their data is computed on first use.

    Args:
        data: The fields: ``input_ids``, ``attention_mask`` and so on.
        encoding: The row objects, or their factory.
        tensor_type: ``"np"``, ``"pt"`` or ``"tf"`` to convert the fields to tensors.
    """

    def __init__(
        self,
        data: dict[str, Any] | None = None,
        encoding: list[HfEncoding] | Callable[[], list[HfEncoding]] | None = None,
        tensor_type: str | None = None,
    ):
        # Replaces the base class's constructor, which takes longer than encoding a sentence.
        self.data: dict[str, Any] = dict(checked(data or {}))
        self._encodings = encoding
        self.convert_to_tensors(tensor_type)

    @classmethod
    def of(
        cls, data: dict[str, Any], encoding: Callable[[], list[HfEncoding]] | None
    ) -> BatchEncoding:
        """Makes a batch from fields, without copying them, and from a factory of row objects."""
        made = cls.__new__(cls)
        made.data = data
        made._encodings = encoding
        return made

    @classmethod
    def fromkeys(  # type: ignore[override]
        cls, iterable: Iterable[str], value: Any = None
    ) -> BatchEncoding:
        """Makes a batch whose fields all have the same value."""
        return cls(dict.fromkeys(checked(iterable), value))

    def update(self, *args: Any, **fields: Any) -> None:
        """Sets fields, as ``dict.update`` does."""
        super().update(*map(checked, args), **fields)

    def __getitem__(self, item: Any) -> Any:
        """Returns a field by name, a row object by index, or a slice of every field."""
        if isinstance(item, str):
            return self.data[item]
        if isinstance(item, slice):
            return {name: values[item] for name, values in self.data.items()}
        return self._rows()[item]

    def __getattr__(self, name: str) -> Any:
        # `data` is missing while an instance is being unpickled.
        if not name.startswith("__") and name in self.__dict__.get("data", ()):
            return self.data[name]
        raise AttributeError(f"a BatchEncoding has no field and no attribute {name!r}")

    def __getstate__(self) -> dict[str, Any]:
        return {"data": self.data, "encodings": self.encodings}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.data = state["data"]
        self._encodings = state["encodings"]

    @property
    def encodings(self) -> list[HfEncoding] | None:
        """The rows as objects with the methods of ``tokenizers.Encoding``; None for ids without
        text."""
        if callable(self._encodings):
            self._encodings = self._encodings()
        return self._encodings

    @property
    def is_fast(self) -> bool:
        """True if tokens have offsets."""
        return self._encodings is not None

    @property
    def n_sequences(self) -> int | None:
        """The number of texts per row: 1, or 2 for pairs. None for ids without text."""
        encodings = self.encodings
        return encodings[0].n_sequences if encodings else None

    def _rows(self) -> list[HfEncoding]:
        encodings = self.encodings
        if encodings is None:
            raise ValueError(
                "these ids came without text, so the positions of tokens are unknown; call the "
                "tokenizer with the text"
            )
        return encodings

    def _row(self, first: int, second: int | None) -> tuple[HfEncoding, int]:
        """Resolves one or two numbers to a row and a position in the row."""
        row, position = (0, first) if second is None else (first, second)
        encoding, position = self._rows()[row], operator.index(position)
        return encoding, position + len(encoding) if position < 0 else position

    def tokens(self, batch_index: int = 0) -> list[str]:
        """Returns the tokens of a row."""
        return self._rows()[batch_index].tokens

    def sequence_ids(self, batch_index: int = 0) -> list[int | None]:
        """Returns the index of each token's text in a row, 0 or 1; None for added tokens."""
        return self._rows()[batch_index].sequence_ids

    def word_ids(self, batch_index: int = 0) -> list[int | None]:
        """Returns the index of each token's word in a row; None for added tokens."""
        return self._rows()[batch_index].word_ids

    def token_to_sequence(self, first: int, second: int | None = None) -> int | None:
        """Returns the index of a token's sequence. Takes the row (default 0) and the token."""
        encoding, token = self._row(first, second)
        return encoding.token_to_sequence(token)

    def token_to_word(self, first: int, second: int | None = None) -> int | None:
        """Returns the index of a token's word. Takes the arguments of `token_to_sequence`."""
        encoding, token = self._row(first, second)
        return encoding.token_to_word(token)

    def token_to_chars(self, first: int, second: int | None = None) -> CharSpan | None:
        """Returns the character span of a token. Takes the arguments of `token_to_sequence`."""
        encoding, token = self._row(first, second)
        span = encoding.token_to_chars(token)
        return None if span is None else CharSpan(*span)

    def word_to_tokens(
        self, first: int, second: int | None = None, sequence_index: int = 0
    ) -> TokenSpan | None:
        """Returns the token span of a word. Takes the row (default 0) and the word."""
        row, word = (0, first) if second is None else (first, second)
        span = self._rows()[row].word_to_tokens(word, sequence_index)
        return None if span is None else TokenSpan(*span)

    def word_to_chars(
        self, first: int, second: int | None = None, sequence_index: int = 0
    ) -> CharSpan | None:
        """Returns the character span of a word. Takes the arguments of `word_to_tokens`."""
        row, word = (0, first) if second is None else (first, second)
        span = self._rows()[row].word_to_chars(word, sequence_index)
        return None if span is None else CharSpan(*span)

    def char_to_token(
        self, first: int, second: int | None = None, sequence_index: int = 0
    ) -> int | None:
        """Returns the index of the token that contains a character. Takes the row (default 0) and
        the character."""
        row, character = (0, first) if second is None else (first, second)
        return self._rows()[row].char_to_token(character, sequence_index)

    def char_to_word(
        self, first: int, second: int | None = None, sequence_index: int = 0
    ) -> int | None:
        """Returns the index of a character's word. Takes the arguments of `char_to_token`."""
        row, character = (0, first) if second is None else (first, second)
        return self._rows()[row].char_to_word(character, sequence_index)

    def convert_to_tensors(self, tensor_type: str | None = None) -> BatchEncoding:
        """Converts the fields to tensors: ``"np"``, ``"pt"`` or ``"tf"``. Returns the batch itself.

        Raises:
            ImportError: The package of the tensors is missing.
            ValueError: Rows have different lengths, which ``"pt"`` and ``"tf"`` do not support.
        """
        if tensor_type is not None:
            module = framework(tensor_type)
            for name, value in self.data.items():
                self.data[name] = as_tensor(module, name, value)
        return self

    def to(self, device: Any, *, non_blocking: bool = False) -> BatchEncoding:
        """Moves torch tensors to a device. Returns the batch itself."""
        for name, value in self.data.items():
            if hasattr(value, "to"):
                self.data[name] = value.to(device, non_blocking=non_blocking)
        return self
