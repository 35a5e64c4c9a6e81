"""Decodes ids that arrive one by one, with a tokenizer from a file."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Set
from typing import Any, Iterable, Sequence

from ..common.values import listed, safe_repr

__all__ = ["DecodeStream"]

_BROKEN = "\ufffd"


def _checked(ids: Iterable[Any]) -> list[int]:
    """Checks the ids before the stream changes, and returns them as a list."""
    if isinstance(ids, (str, Set, Mapping)):
        raise TypeError(f"expected a list of ids, not a {type(ids).__name__}")
    checked = [operator.index(id) for id in listed(ids)]
    for id in checked:
        if not 0 <= id < 2**32:
            raise OverflowError(f"the token id {id} is out of range: ids are 0 to {2**32 - 1}")
    return checked


def _of_step(given: Any) -> list[int]:
    try:
        try:
            return _checked([operator.index(given)])
        except TypeError:
            return _checked(given)
    except (TypeError, OverflowError) as error:
        raise TypeError(f"expected an id or a list of ids, not {safe_repr(given):.80}") from error


class DecodeStream:
    """Decodes ids as they arrive, step by step like the `tokenizers` class of the same name.

    Args:
        ids: Ids before the stream, whose text is not returned.
        skip_special_tokens: Drop special tokens.
    """

    def __init__(self, ids: Sequence[int] | None = None, skip_special_tokens: bool = False):
        self._ids = _checked(ids) if ids is not None else []
        self._skip = skip_special_tokens
        # Text already returned; covers the first `_prefix_length` ids.
        self._prefix = ""
        self._prefix_length = 0

    def step(self, tokenizer: Any, id: int | Sequence[int]) -> str | None:
        """Consumes the next id or ids.

        Args:
            tokenizer: The tokenizer of the ids.
            id: One or more ids. Unknown ids yield no text.

        Returns:
            The new final text, or None.

        Raises:
            TypeError: The argument is not an id.
            Exception: The new id changes text already returned.
        """
        ids = _of_step(id)
        # Also accepts transformers tokenizers.
        tokenizer = getattr(tokenizer, "_tokenizer", tokenizer)
        if not self._prefix and self._ids:
            prefix = tokenizer.decode(self._ids, self._skip)
            if not prefix.endswith(_BROKEN):
                self._prefix, self._prefix_length = prefix, len(self._ids)
        self._ids += ids
        text = tokenizer.decode(self._ids, self._skip)
        if len(text.encode()) <= len(self._prefix.encode()) or text.endswith(_BROKEN):
            return None
        if not text.startswith(self._prefix):
            raise Exception(
                "Invalid prefix encountered while decoding stream. Token ID: "
                f"{self._ids[-1]}, Expected prefix: '{self._prefix}', Actual string: '{text}'"
            )
        new: str = text[len(self._prefix) :]
        length = len(self._ids) - self._prefix_length
        self._ids = self._ids[self._prefix_length :]
        self._prefix = tokenizer.decode(self._ids, self._skip)
        self._prefix_length = length
        return new

    def __copy__(self) -> DecodeStream:
        copy = DecodeStream(self._ids, self._skip)
        copy._prefix, copy._prefix_length = self._prefix, self._prefix_length
        return copy

    def __deepcopy__(self, memo: object) -> DecodeStream:
        return self.__copy__()
