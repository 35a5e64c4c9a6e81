"""Added tokens of a tokenizer, and tokens of a model."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

from .._core import hf_content_hash
from .component import Component, component_json, component_of_tokenizers

__all__ = ["AddedToken", "Component", "Token", "component_json", "component_of_tokenizers"]


@dataclass
class AddedToken:
    """A token added to the model's tokens.

    Args:
        content: The text to find.
        single_word: Match only whole words, not parts of a word.
        lstrip: The token includes whitespace before it.
        rstrip: The token includes whitespace after it.
        normalized: Search the normalized text for the normalized form. By default True unless the
            token is special.
        special: Decoding can skip the token.
    """

    content: str = ""
    single_word: bool = False
    lstrip: bool = False
    rstrip: bool = False
    normalized: bool | None = None
    special: bool = False

    # Lets `isinstance` also accept the class of `tokenizers`, if imported.
    @property  # type: ignore[misc]
    def __class__(self) -> type:
        found: type = getattr(sys.modules.get("tokenizers"), "AddedToken", type(self))
        return found

    def __getattribute__(self, name: str) -> Any:
        value = object.__getattribute__(self, name)
        if name == "normalized" and value is None:
            return not self.special
        return value

    def __str__(self) -> str:
        return self.content

    def __repr__(self) -> str:
        names = ("rstrip", "lstrip", "single_word", "normalized", "special")
        flags = ", ".join(f"{name}={getattr(self, name)}" for name in names)
        return f'AddedToken("{self.content}", {flags})'

    def __hash__(self) -> int:
        return hf_content_hash(self.content)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(vars(self).values())


@dataclass(frozen=True)
class Token:
    """A token of a model with its span in the text.

    Args:
        id: The id.
        value: The token.
        offsets: The byte span in the text.
    """

    id: int
    value: str
    offsets: tuple[int, int]

    def as_tuple(self) -> tuple[int, str, tuple[int, int]]:
        """Returns id, value and offsets."""
        return self.id, self.value, self.offsets
