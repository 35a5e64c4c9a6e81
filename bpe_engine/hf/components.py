"""Added tokens of a tokenizer, and tokens that a model gives."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

from .._core import hf_content_hash
from .component import Component, component_json, component_of_tokenizers

__all__ = [
    "AddedToken",
    "Component",
    "Token",
    "component_json",
    "component_of_tokenizers",
]


@dataclass
class AddedToken:
    """A token that is added to the model's.

    Args:
        content: The text to find.
        single_word: Found only between characters that are not part of words.
        lstrip: Whitespace before it belongs to it.
        rstrip: Whitespace after it belongs to it.
        normalized: Its normalized form is looked for in the normalized text. By default that is
            so unless the token is special.
        special: Decoding can leave it out.
    """

    content: str = ""
    single_word: bool = False
    lstrip: bool = False
    rstrip: bool = False
    normalized: bool | None = None
    special: bool = False

    # Read by `isinstance`: where `tokenizers` is imported, it is true with its class as well.
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
