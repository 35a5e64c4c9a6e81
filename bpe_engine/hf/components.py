"""Classes for the components of a tokenizer, with the names that `tokenizers` uses."""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Any, Sequence

from .._core import (
    HfEncoding,
    hf_added_tokens,
    hf_decode,
    hf_normalize,
    hf_pre_tokenize,
    hf_process,
)

__all__ = [
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


#: The field of a ``Sequence`` that has its parts.
_PARTS = {
    "normalizer": "normalizers",
    "pre_tokenizer": "pretokenizers",
    "post_processor": "processors",
    "decoder": "decoders",
}

#: The base classes in `tokenizers`, and their modules.
_BASES = {
    "normalizer": ("Normalizer", "tokenizers.normalizers"),
    "pre_tokenizer": ("PreTokenizer", "tokenizers.pre_tokenizers"),
    "post_processor": ("PostProcessor", "tokenizers.processors"),
    "decoder": ("Decoder", "tokenizers.decoders"),
}


@functools.cache
def _class_named(name: str) -> type[Component]:
    """A subclass with the name of a class of `tokenizers`: programs compare these names."""
    members = {"__module__": __name__, "__doc__": Component.__doc__, "__slots__": ()}
    return type(name, (Component,), members)


class Component:
    """A normalizer, pre-tokenizer, post-processor or decoder, described by its JSON.

    Its class has the name of the type, as in `tokenizers`: ``NFC``, ``ByteLevel``, ``Sequence``.
    Where that package is imported, ``isinstance`` with its class of this name is true as well, but
    its own methods take no such object. A ``Sequence`` has a length, and its parts are components.

    A component cannot be changed. To change one of a tokenizer, set the tokenizer's attribute to
    another component, to a component of the package `tokenizers`, or to None.

    Args:
        kind: ``"normalizer"``, ``"pre_tokenizer"``, ``"post_processor"`` or ``"decoder"``.
        spec: The JSON, as text.

    >>> lower = Component("normalizer", '{"type":"Lowercase"}')
    >>> lower
    Lowercase()
    >>> lower.normalize_str("Hello")
    'hello'
    >>> both = Component("normalizer", '{"type":"Sequence","normalizers":[{"type":"NFC"}]}')
    >>> len(both), both[0].type
    (1, 'NFC')
    """

    __slots__ = ("_kind", "_spec")
    _kind: str
    _spec: str

    def __new__(cls, kind: str, spec: str) -> Component:
        self = object.__new__(_class_named(str(json.loads(spec)["type"])))
        object.__setattr__(self, "_kind", kind)
        object.__setattr__(self, "_spec", spec)
        return self

    # Read by `isinstance`. The name is that of a plain attribute to the type checker.
    @property  # type: ignore[misc]
    def __class__(self) -> type:
        own = type(self)
        module = sys.modules.get(_BASES[self._kind][1])
        found: type = getattr(module, own.__name__, own)
        return found

    @property
    def type(self) -> str:
        """The type, as in the file."""
        return type(self).__name__

    def normalize_str(self, sequence: str) -> str:
        """Normalizes a text."""
        self._expect("normalizer")
        return hf_normalize(self._spec, sequence)

    def normalize(self, normalized: Any) -> None:
        """Normalizes a `tokenizers.NormalizedString` in place."""
        self._expect("normalizer")
        component_of_tokenizers(self._kind, self._spec).normalize(normalized)

    def pre_tokenize(self, pretok: Any) -> None:
        """Cuts a `tokenizers.PreTokenizedString` into pieces, in place."""
        self._expect("pre_tokenizer")
        component_of_tokenizers(self._kind, self._spec).pre_tokenize(pretok)

    def pre_tokenize_str(self, sequence: str) -> list[tuple[str, tuple[int, int]]]:
        """Cuts a text into pieces, with their places in it."""
        self._expect("pre_tokenizer")
        return hf_pre_tokenize(self._spec, sequence)

    def decode(self, tokens: Sequence[str]) -> str:
        """Decodes tokens to text."""
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
        """Post-processes the encoding of one sequence, or of two."""
        self._expect("post_processor")
        return hf_process(self._spec, encoding, pair, add_special_tokens)

    def num_special_tokens_to_add(self, is_pair: bool) -> int:
        """Returns how many tokens a post-processor adds to one sequence, or to two."""
        self._expect("post_processor")
        return hf_added_tokens(self._spec, is_pair)

    def _expect(self, kind: str) -> None:
        if self._kind != kind:
            raise AttributeError(f"expected a {kind}, not a {self._kind}")

    def _parts(self, problem: str) -> list[Any]:
        if self.type != "Sequence":
            raise TypeError(f"a {self.type} {problem}")
        return list(json.loads(self._spec)[_PARTS[self._kind]])

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
        raise AttributeError(f"a {self.type} has no attribute {name!r}")

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(
            f"a {self.type} cannot be changed; set the tokenizer's {self._kind} to another one"
        )

    def __getstate__(self) -> bytes:
        return self._spec.encode()

    def __reduce__(self) -> tuple[Any, ...]:
        return Component, (self._kind, self._spec)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Component):
            return NotImplemented
        return (self._kind, self._spec) == (other._kind, other._spec)

    def __hash__(self) -> int:
        return hash((self._kind, self._spec))

    def __repr__(self) -> str:
        return _repr("", json.loads(self._spec))


def _repr(name: str, value: Any) -> str:
    """Writes the value of a field of a component as `tokenizers` does."""
    if isinstance(value, str):
        return value if name in ("behavior", "Sequence.id") else f'"{value}"'
    if isinstance(value, list):
        items = ", ".join(_repr(name, item) for item in value)
        return f"({items})" if name in ("sep", "cls") else f"[{items}]"
    if not isinstance(value, dict):
        return repr(value)
    if name == "special_tokens":
        items = ", ".join(f'"{key}":SpecialToken({_fields(value[key])})' for key in value)
        return f"{{{items}}}"
    if "type" in value:
        return f"{value['type']}({_fields(value)})"
    # One of several kinds, as in {"Regex": "a+"} and {"Sequence": {"id": "A", "type_id": 0}}.
    [(kind, inner)] = value.items()
    return f"{kind}({_fields(inner, kind) if isinstance(inner, dict) else _repr('', inner)})"


def _fields(fields: dict[str, Any], kind: str = "") -> str:
    shown = [
        f"{name}={_repr('Sequence.id' if (kind, name) == ('Sequence', 'id') else name, value)}"
        for name, value in fields.items()
        if name != "type"
    ]
    return ", ".join(shown)


def component_of_tokenizers(kind: str, spec: str) -> Any:
    """Makes the component of `tokenizers`, which must be installed."""
    import tokenizers

    model = '{"type":"BPE","vocab":{},"merges":[]}'
    contents = f'{{"version":"1.0","added_tokens":[],"{kind}":{spec},"model":{model}}}'
    return getattr(tokenizers.Tokenizer.from_str(contents), kind)


def component_json(value: Any, kind: str) -> str | None:
    """The JSON of a component of this package or of `tokenizers`."""
    if value is None:
        return None
    state = getattr(value, "__getstate__", None)
    state = state() if state is not None else None
    if isinstance(value, Component):
        is_of_kind = value._kind == kind
    else:
        # The classes of `tokenizers`, which may not be installed.
        is_of_kind = any(base.__name__ == _BASES[kind][0] for base in type(value).__mro__)
    if not is_of_kind or not isinstance(state, bytes):
        raise TypeError(f"expected a {kind} or None, not {type(value).__name__}")
    return state.decode()
