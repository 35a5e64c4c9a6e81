"""The components of a tokenizer, as objects."""

from __future__ import annotations

import json
from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Sequence

from .._core import (
    HfEncoding,
    hf_added_tokens,
    hf_decode,
    hf_normalize,
    hf_pre_tokenize,
    hf_process,
)

if TYPE_CHECKING:
    from .tokenizer import Tokenizer

__all__ = ["BPE", "AddedToken", "Component", "Token", "component_json"]


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
    """What a model makes of a part of a text.

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


#: The field of a ``Sequence`` that has its parts.
_PARTS = {
    "normalizer": "normalizers",
    "pre_tokenizer": "pretokenizers",
    "post_processor": "processors",
    "decoder": "decoders",
}


#: What the class of `tokenizers` that they derive from is called.
_CLASSES = {
    "normalizer": "Normalizer",
    "pre_tokenizer": "PreTokenizer",
    "post_processor": "PostProcessor",
    "decoder": "Decoder",
}


class Component:
    """A normalizer, pre-tokenizer, post-processor or decoder, as its JSON says.

    A ``Sequence`` has a length, and its parts are components by their places. To change one of a
    tokenizer, set the tokenizer's attribute to another component, to the component of the package
    `tokenizers`, or to None.

    Args:
        kind: ``"normalizer"``, ``"pre_tokenizer"``, ``"post_processor"`` or ``"decoder"``.
        spec: The JSON, as text.

    >>> lower = Component("normalizer", '{"type":"Lowercase"}')
    >>> lower.normalize_str("Hello")
    'hello'
    >>> both = Component("normalizer", '{"type":"Sequence","normalizers":[{"type":"NFC"}]}')
    >>> len(both), both[0].type
    (1, 'NFC')
    """

    def __init__(self, kind: str, spec: str):
        self._kind = kind
        self._spec = spec

    @property
    def type(self) -> str:
        """Its type, as in the file."""
        return str(json.loads(self._spec)["type"])

    def normalize_str(self, sequence: str) -> str:
        """The text that a normalizer makes of a text."""
        self._expect("normalizer")
        return hf_normalize(self._spec, sequence)

    def pre_tokenize_str(self, sequence: str) -> list[tuple[str, tuple[int, int]]]:
        """The pieces that a pre-tokenizer makes of a text, with their places in it."""
        self._expect("pre_tokenizer")
        return hf_pre_tokenize(self._spec, sequence)

    def decode(self, tokens: Sequence[str]) -> str:
        """The text that a decoder makes of tokens."""
        self._expect("decoder")
        if isinstance(tokens, (str, Set, Mapping)):
            raise TypeError(f"expected a list of tokens, not a {type(tokens).__name__}")
        return hf_decode(self._spec, list(tokens))

    def process(
        self,
        encoding: HfEncoding,
        pair: HfEncoding | None = None,
        add_special_tokens: bool = True,
    ) -> HfEncoding:
        """What a post-processor makes of the encoding of one sequence, or of two."""
        self._expect("post_processor")
        return hf_process(self._spec, encoding, pair, add_special_tokens)

    def num_special_tokens_to_add(self, is_pair: bool) -> int:
        """How many tokens a post-processor adds to one sequence, or to two."""
        self._expect("post_processor")
        return hf_added_tokens(self._spec, is_pair)

    def _expect(self, kind: str) -> None:
        if self._kind != kind:
            raise AttributeError(f"a {self._kind} is no {kind}")

    def _parts(self, what: str) -> list[Any]:
        fields = json.loads(self._spec)
        if fields["type"] != "Sequence":
            raise TypeError(f"a {fields['type']} {what}")
        return list(fields[_PARTS[self._kind]])

    def __len__(self) -> int:
        return len(self._parts("has no len()"))

    def __getitem__(self, index: int) -> Component:
        part = self._parts("is not subscriptable")[index]
        return Component(self._kind, json.dumps(part, separators=(",", ":"), ensure_ascii=False))

    def __bool__(self) -> bool:
        return True

    def __getattr__(self, name: str) -> Any:
        # The fields of the JSON, as in `add_prefix_space`.
        if name.startswith("_"):
            raise AttributeError(name)
        fields = json.loads(self._spec)
        if name in fields:
            return fields[name]
        raise AttributeError(f"a {fields['type']} has no attribute {name!r}")

    def __getstate__(self) -> bytes:
        return self._spec.encode()

    def __setstate__(self, state: bytes) -> None:
        self._spec = state.decode()

    def __reduce__(self) -> tuple[Any, ...]:
        return Component, (self._kind, self._spec)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Component):
            return NotImplemented
        return (self._kind, self._spec) == (other._kind, other._spec)

    def __hash__(self) -> int:
        return hash((self._kind, self._spec))

    def __repr__(self) -> str:
        return f"{self.type}({self._spec})"


def component_json(value: Any, kind: str) -> str | None:
    """The JSON of a component of this package or of `tokenizers`."""
    if value is None:
        return None
    state = getattr(value, "__getstate__", None)
    state = state() if state is not None else None
    if isinstance(value, Component):
        is_of_kind = value._kind == kind
    else:
        # Of the classes of `tokenizers`, which may not be installed.
        is_of_kind = any(base.__name__ == _CLASSES[kind] for base in type(value).__mro__)
    if not is_of_kind or not isinstance(state, bytes):
        raise TypeError(f"expected a {kind} or None, not {type(value).__name__}")
    return state.decode()


class BPE:
    """The model of a tokenizer: its vocabulary and merges."""

    def __init__(self, tokenizer: Tokenizer):
        self._tokenizer = tokenizer

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
        fields = ("dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix")
        if name in (*fields, "fuse_unk", "byte_fallback", "ignore_merges"):
            return json.loads(self._tokenizer.to_str())["model"][name]
        raise AttributeError(f"a BPE model has no attribute {name!r}")
