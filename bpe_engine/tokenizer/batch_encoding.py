"""`BatchEncoding`: what a call of a `Tokenizer` returns."""

from __future__ import annotations

from collections import UserDict
from collections.abc import Callable
from typing import Any, NamedTuple

from .._core import HfEncoding
from .tensors import as_tensor, framework

__all__ = ["BatchEncoding", "CharSpan", "TokenSpan"]


class CharSpan(NamedTuple):
    """Characters of a text."""

    start: int
    end: int


class TokenSpan(NamedTuple):
    """Tokens of a row."""

    start: int
    end: int


class BatchEncoding(UserDict[str, Any]):
    """A mapping with the fields of a batch, which are attributes as well.

    Beside the fields, it knows where tokens come from: `tokens`, `word_ids`, `sequence_ids`,
    `char_to_token` and so on. What they need is made when one of them is first called.

    Args:
        data: The fields: ``input_ids``, ``attention_mask`` and so on.
        encoding: The rows as objects, or what makes them.
        tensor_type: ``"np"``, ``"pt"`` or ``"tf"``: the fields become tensors.
    """

    def __init__(
        self,
        data: dict[str, Any] | None = None,
        encoding: list[HfEncoding] | Callable[[], list[HfEncoding]] | None = None,
        tensor_type: str | None = None,
    ):
        super().__init__(data or {})
        self._encodings = encoding
        self.convert_to_tensors(tensor_type)

    def __getitem__(self, item: Any) -> Any:
        """A field by its name; a row as an object by its number; rows of all fields by a slice."""
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
        self.data, self._encodings = state["data"], state["encodings"]

    @property
    def encodings(self) -> list[HfEncoding] | None:
        """The rows as objects with the methods of ``tokenizers.Encoding``. None if the ids came
        without text."""
        if callable(self._encodings):
            self._encodings = self._encodings()
        return self._encodings

    @property
    def is_fast(self) -> bool:
        """Whether it is known where tokens come from."""
        return self._encodings is not None

    @property
    def n_sequences(self) -> int | None:
        """How many texts each row has: 1, or 2 for pairs. None if that is not known."""
        encodings = self.encodings
        return encodings[0].n_sequences if encodings else None

    def _rows(self) -> list[HfEncoding]:
        encodings = self.encodings
        if encodings is None:
            raise ValueError(
                "these ids came without text, so it is not known where tokens stand in it; call "
                "the tokenizer with the text"
            )
        return encodings

    def _row(self, first: int, second: int | None) -> tuple[HfEncoding, int]:
        """The row and the position that one or two numbers mean."""
        row, position = (0, first) if second is None else (first, second)
        encoding = self._rows()[row]
        return encoding, position + len(encoding) if position < 0 else position

    def tokens(self, batch_index: int = 0) -> list[str]:
        """The tokens of a row."""
        return self._rows()[batch_index].tokens

    def sequence_ids(self, batch_index: int = 0) -> list[int | None]:
        """For each token of a row the text that it is of: 0, 1, or None for added tokens."""
        return self._rows()[batch_index].sequence_ids

    def word_ids(self, batch_index: int = 0) -> list[int | None]:
        """For each token of a row the number of its word; None for added tokens."""
        return self._rows()[batch_index].word_ids

    def token_to_sequence(self, first: int, second: int | None = None) -> int | None:
        """The text that a token is of. The arguments are the row (0 if left out) and the token."""
        encoding, token = self._row(first, second)
        return encoding.token_to_sequence(token)

    def token_to_word(self, first: int, second: int | None = None) -> int | None:
        """The word that a token is of. The arguments are those of `token_to_sequence`."""
        encoding, token = self._row(first, second)
        return encoding.token_to_word(token)

    def token_to_chars(self, first: int, second: int | None = None) -> CharSpan | None:
        """The characters of a token. The arguments are those of `token_to_sequence`."""
        encoding, token = self._row(first, second)
        span = encoding.token_to_chars(token)
        return None if span is None else CharSpan(*span)

    def word_to_tokens(
        self, first: int, second: int | None = None, sequence_index: int = 0
    ) -> TokenSpan | None:
        """The tokens of a word. The arguments are the row (0 if left out) and the word."""
        row, word = (0, first) if second is None else (first, second)
        span = self._rows()[row].word_to_tokens(word, sequence_index)
        return None if span is None else TokenSpan(*span)

    def word_to_chars(
        self, first: int, second: int | None = None, sequence_index: int = 0
    ) -> CharSpan | None:
        """The characters of a word. The arguments are those of `word_to_tokens`."""
        row, word = (0, first) if second is None else (first, second)
        span = self._rows()[row].word_to_chars(word, sequence_index)
        return None if span is None else CharSpan(*span)

    def char_to_token(
        self, first: int, second: int | None = None, sequence_index: int = 0
    ) -> int | None:
        """The token that holds a character. The arguments are the row (0 if left out) and the
        character."""
        row, character = (0, first) if second is None else (first, second)
        return self._rows()[row].char_to_token(character, sequence_index)

    def char_to_word(
        self, first: int, second: int | None = None, sequence_index: int = 0
    ) -> int | None:
        """The word that holds a character. The arguments are those of `char_to_token`."""
        row, character = (0, first) if second is None else (first, second)
        return self._rows()[row].char_to_word(character, sequence_index)

    def convert_to_tensors(self, tensor_type: str | None = None) -> BatchEncoding:
        """Turns the fields into tensors: ``"np"``, ``"pt"`` or ``"tf"``. Returns itself.

        Raises:
            ImportError: The package of the tensors is missing.
            ValueError: Rows are of different lengths, which ``"pt"`` and ``"tf"`` cannot have.
        """
        if tensor_type is not None:
            module = framework(tensor_type)
            for name, value in self.data.items():
                self.data[name] = as_tensor(module, name, value)
        return self

    def to(self, device: Any, *, non_blocking: bool = False) -> BatchEncoding:
        """Moves torch tensors to a device. Returns itself."""
        for name, value in self.data.items():
            if hasattr(value, "to"):
                self.data[name] = value.to(device, non_blocking=non_blocking)
        return self
