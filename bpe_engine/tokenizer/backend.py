"""What finds the ids of a `Tokenizer`: a tokenizer file, or an `Encoding` by itself.

Both give tokens as byte-level vocabularies write them, and leave truncation, the tokens that are
added around a text, and padding to the same native code.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from .. import byte_level
from .._core import EncodedRows
from ..hf.components import AddedToken
from ..prompt.segments import Segment

__all__ = ["Backend", "Defaults", "Layout", "Names", "Token", "template_of", "token_bytes"]

Token = str | bytes
Names = str | Collection[str]


@dataclass(frozen=True)
class Layout:
    """How rows are cut and filled up, as `encode_rows` takes it."""

    truncation: tuple[int, int, str, str] | None = None
    padding: tuple[int | None, str, int | None, int, int, str] | None = None
    overflow: bool = False
    num_threads: int | None = None


@dataclass(frozen=True)
class Defaults:
    """What a tokenizer file says of padding and truncation."""

    pad_token: str | None = None
    padding_side: str = "right"
    truncation_side: str = "right"


class Backend(ABC):
    """Finds ids and tokens."""

    #: Whether the token of an id may be written otherwise in a text, as one that takes white space
    #: along.
    tokens_come_from_text = False

    def defaults(self) -> Defaults:
        """What holds where nothing else was asked for."""
        return Defaults()

    @property
    @abstractmethod
    def source(self) -> Any:
        """The object that the backend stands on."""

    @abstractmethod
    def rows(
        self,
        inputs: Sequence[Any],
        layout: Layout,
        *,
        is_pretokenized: bool,
        add_special_tokens: bool,
        detailed: bool,
        allowed_special: Names,
        disallowed_special: Names,
    ) -> EncodedRows:
        """The rows of texts, pairs of texts, or lists of words."""

    @abstractmethod
    def decode(self, ids: Sequence[int], skip_special_tokens: bool, errors: str) -> str:
        """The text of ids."""

    @abstractmethod
    def to_string(self, tokens: Sequence[Any], errors: str) -> str:
        """The text of tokens."""

    @abstractmethod
    def token_to_id(self, token: Any) -> int | None:
        """The id of a token; None if there is none."""

    @abstractmethod
    def id_to_token(self, id: int) -> Token | None:
        """The token of an id; None if there is none."""

    @abstractmethod
    def vocab(self) -> dict[Any, int]:
        """Tokens and ids, added ones among them."""

    @abstractmethod
    def size(self, with_added_tokens: bool) -> int:
        """How many tokens there are."""

    @abstractmethod
    def added_tokens(self) -> dict[int, AddedToken]:
        """The tokens beside those of the model, by id."""

    @abstractmethod
    def add_tokens(self, tokens: Sequence[AddedToken]) -> int:
        """Adds tokens; returns how many are new."""

    @abstractmethod
    def check_token(self, token: AddedToken) -> None:
        """Raises ValueError if the token asks for what cannot be done."""

    @abstractmethod
    def num_added(self, is_pair: bool) -> int:
        """How many tokens are added to a text or a pair."""

    @abstractmethod
    def set_template(self, bos: tuple[str, int] | None, eos: tuple[str, int] | None) -> None:
        """Has these tokens added before and behind every text."""

    @abstractmethod
    def encode_segments(
        self, segments: Sequence[Segment], with_mask: bool
    ) -> tuple[list[int], list[int]]:
        """The ids of a prompt, and if asked for 1 for each that comes from the assistant."""

    @abstractmethod
    def copied(self) -> Backend:
        """Another one, which can be changed by itself."""


def template_of(bos: tuple[str, int] | None, eos: tuple[str, int] | None) -> str:
    """The JSON of a post-processor that adds these tokens to every text."""

    def around(sequence: str, type_id: int) -> list[dict[str, Any]]:
        pieces: list[dict[str, Any]] = [{"Sequence": {"id": sequence, "type_id": type_id}}]
        if bos:
            pieces.insert(0, {"SpecialToken": {"id": bos[0], "type_id": type_id}})
        if eos:
            pieces.append({"SpecialToken": {"id": eos[0], "type_id": type_id}})
        return pieces

    tokens = {
        name: {"id": name, "ids": [id], "tokens": [name]} for name, id in filter(None, (bos, eos))
    }
    return json.dumps(
        {
            "type": "TemplateProcessing",
            "single": around("A", 0),
            "pair": around("A", 0) + around("B", 1),
            "special_tokens": tokens,
        }
    )


def token_bytes(token: Any) -> bytes:
    """The bytes that a token stands for; of one that is not byte-level, its text."""
    if isinstance(token, bytes):
        return token
    if not isinstance(token, str):
        raise TypeError(f"a token is a str or bytes, not {type(token).__name__}")
    try:
        return byte_level.bytes_of(token)
    except KeyError:
        return token.encode()
