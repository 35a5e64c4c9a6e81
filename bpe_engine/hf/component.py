"""The base class of normalizers, pre-tokenizers, post-processors and decoders."""

from __future__ import annotations

import inspect
import json
import sys
import weakref
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

from .._core import HfComponent, UnsupportedTokenizer, hf_component
from . import fields
from .fields import Field

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_: Any) -> Callable[[Any], Any]:
        return lambda decorated: decorated


__all__ = ["Component", "component_json", "component_of_tokenizers"]

C = TypeVar("C", bound="Component")


class _Owner(Protocol):
    def _part_changed(self, part: Component) -> None: ...


#: For each kind: the module of `tokenizers`, the base class, and the field of a ``Sequence`` that
#: lists the parts.
_KINDS = {
    "normalizer": ("tokenizers.normalizers", "Normalizer", "normalizers"),
    "pre_tokenizer": ("tokenizers.pre_tokenizers", "PreTokenizer", "pretokenizers"),
    "post_processor": ("tokenizers.processors", "PostProcessor", "processors"),
    "decoder": ("tokenizers.decoders", "Decoder", "decoders"),
}


@dataclass_transform(
    field_specifiers=(
        fields.behavior,
        fields.character,
        fields.charsmap,
        fields.field,
        fields.flag,
        fields.length,
        fields.optional_flag,
        fields.parts,
        fields.pattern,
        fields.prepend_scheme,
        fields.text,
        fields.token,
    )
)
class Component:
    """A normalizer, pre-tokenizer, post-processor or decoder.

    The classes are in `bpe_engine.hf.normalizers`, `bpe_engine.hf.pre_tokenizers`,
    `bpe_engine.hf.processors` or `bpe_engine.hf.decoders`, with the constructor and the attributes
    of the class of the same name in `tokenizers`. If that package is imported, ``isinstance`` with
    its class is true as well, but methods of `tokenizers` need the result of `to_tokenizers`. A
    ``Sequence`` has a length, and its parts are components.

    Setting an attribute changes the tokenizers that use the component, even as a part of a
    ``Sequence``.

    Args:
        kind: ``"normalizer"``, ``"pre_tokenizer"``, ``"post_processor"`` or ``"decoder"``.
        spec: The JSON, as text.

    Raises:
        UnsupportedTokenizer: The JSON has an unknown type.
        ValueError: The JSON is malformed.

    >>> lower = Component("normalizer", '{"type":"Lowercase"}')
    >>> lower
    Lowercase()
    >>> lower.normalize_str("Hello")
    'hello'
    >>> both = Component("normalizer", '{"type":"Sequence","normalizers":[{"type":"NFC"}]}')
    >>> len(both), both[0].type
    (1, 'NFC')
    """

    _kind: ClassVar[str] = ""
    _classes: ClassVar[dict[tuple[str, str], type[Component]]] = {}
    #: Attributes by argument name.
    _attributes: ClassVar[dict[str, Field]] = {}
    #: True if the constructor accepts and ignores unknown arguments.
    _takes_others: ClassVar[bool] = False
    __signature__: ClassVar[inspect.Signature]
    #: Values of the JSON; a sequence has parts instead.
    _fields: dict[str, Any]
    _parts: list[Component]
    _owners: list[weakref.ref[_Owner]]
    #: The JSON as text and the runnable form, once used; each change replaces the dict.
    _kept: dict[str, Any]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "_kind" in vars(cls):
            return
        Component._classes[cls._kind, cls.__name__] = cls
        kind = inspect.Parameter.VAR_KEYWORD
        listed = []
        cls._attributes = {}
        for name, each in list(vars(cls).items()):
            if isinstance(each, Field):
                cls._attributes[each.alias] = each
                listed += [each.parameter(cls.__annotations__[name])] if each.init else []
        listed += [inspect.Parameter("others", kind)] if cls._takes_others else []
        cls.__signature__ = inspect.Signature(listed)

    def __new__(cls, *values: Any, **named: Any) -> Any:
        signature: inspect.Signature | None = getattr(cls, "__signature__", None)
        if signature is None:
            kind, spec = values
            return Component._of_json(kind, json.loads(hf_component(kind, spec)))
        if cls.__name__ == "SentencePiece":
            raise UnsupportedTokenizer(f"{cls._kind}: Tokenizer.from_sentencepiece makes this one")
        bound = signature.bind(*values, **named)
        bound.apply_defaults()
        given = bound.arguments
        made = {
            each.name: each.made(given[name] if each.init else each.default)
            for name, each in cls._attributes.items()
        }
        if cls.__name__ == "Sequence":
            return cls._with_parts(*made.values())
        self = cls._with(made)
        self._check()
        return self

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in Component.__annotations__ and not hasattr(type(self), name):
            raise AttributeError(f"a {self.type} has no attribute {name!r}")
        object.__setattr__(self, name, value)

    def _check(self) -> None:
        """Raises ValueError for contradictory values; subclasses override this."""

    @staticmethod
    def _of_json(kind: str, spec: dict[str, Any]) -> Component:
        name = spec.pop("type")
        found: type[Component] = Component._classes[kind, name]
        made = found._with({} if name == "Sequence" else spec)
        if name == "Sequence":
            parts = spec[_KINDS[kind][2]]
            made._parts = [made._owned(Component._of_json(kind, part)) for part in parts]
        return made

    @classmethod
    def _with(cls: type[C], fields: dict[str, Any]) -> C:
        self = object.__new__(cls)
        self._fields, self._parts, self._owners, self._kept = fields, [], [], {}
        return self

    @classmethod
    def _with_parts(cls: type[C], parts: Iterable[Any]) -> C:
        self = cls._with({})
        self._parts = [self._owned(part) for part in parts]
        return self

    def _owned(self, part: Any) -> Component:
        """Returns a part as a component whose changes notify this sequence."""
        if isinstance(part, Component):
            owned = part
        else:
            owned = Component(self._kind, component_json(part, self._kind) or "null")
        if owned._kind != self._kind:
            raise TypeError(f"expected a {self._kind}, not a {owned._kind}")
        owned._add_owner(self)
        return owned

    def _add_owner(self, owner: _Owner) -> None:
        others = [ref for ref in self._owners if ref() is not None and ref() is not owner]
        self._owners = [*others, weakref.ref(owner)]

    def _tell_owners(self) -> None:
        self._kept = {}
        for ref in self._owners:
            if (owner := ref()) is not None:
                owner._part_changed(self)

    def _forget(self) -> None:
        """Drops what was kept of the component and of those that contain it, after an undone change."""
        self._kept = {}
        for ref in self._owners:
            if isinstance(owner := ref(), Component):
                owner._forget()

    def _part_changed(self, part: Component) -> None:
        if any(each is part for each in self._parts):
            self._tell_owners()

    # `isinstance` reads this; type checkers see a plain attribute.
    @property  # type: ignore[misc]
    def __class__(self) -> type:
        own = type(self)
        module = sys.modules.get(_KINDS[self._kind][0])
        found: type = getattr(module, own.__name__, own)
        return found

    @property
    def type(self) -> str:
        """The name of the type in a file."""
        return type(self).__name__

    @property
    def _json(self) -> dict[str, Any]:
        if self.type == "Sequence":
            parts = [part._json for part in self._parts]
            return {"type": "Sequence", _KINDS[self._kind][2]: parts}
        return {"type": self.type, **self._fields}

    @property
    def _spec(self) -> str:
        if "spec" not in (kept := self._kept):
            kept["spec"] = json.dumps(self._json, separators=(",", ":"), ensure_ascii=False)
        return kept["spec"]  # type: ignore[no-any-return]

    @property
    def _ready(self) -> HfComponent:
        if "ready" not in (kept := self._kept):
            kept["ready"] = HfComponent(self._kind, self._spec)
        return kept["ready"]  # type: ignore[no-any-return]

    def to_tokenizers(self) -> Any:
        """Returns the component as a `tokenizers` object; that package must be installed.

        Raises:
            ImportError: That package is not installed.

        >>> Component("normalizer", '{"type":"NFC"}').to_tokenizers()
        NFC()
        """
        return component_of_tokenizers(self._kind, self._spec)

    def _expect_parts(self, problem: str) -> list[Component]:
        if self.type != "Sequence":
            raise TypeError(f"a {self.type} {problem}")
        return self._parts

    def __len__(self) -> int:
        return len(self._expect_parts("has no len()"))

    def __getitem__(self, index: int) -> Any:
        return self._expect_parts("is not subscriptable")[index]

    def __setitem__(self, index: int, part: Any) -> None:
        parts = self._expect_parts("has no parts to set")
        old, parts[index] = parts[index], self._owned(part)
        try:
            self._tell_owners()
        except BaseException:
            parts[index] = old
            self._forget()
            raise

    def __bool__(self) -> bool:
        return True

    def __getstate__(self) -> bytes:
        return self._spec.encode()

    def __reduce__(self) -> tuple[Any, ...]:
        return Component, (self._kind, self._spec)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Component):
            return NotImplemented
        return (self._kind, self._spec) == (other._kind, other._spec)

    def __hash__(self) -> int:
        # Hashes only the kind and type, which never change.
        return hash((self._kind, self.type))

    def __repr__(self) -> str:
        return _repr("", self._json)


def _repr(name: str, value: Any) -> str:
    if isinstance(value, str):
        is_bare = name in ("behavior", "prepend_scheme", "Sequence.id")
        return value if is_bare else f'"{value}"'
    if isinstance(value, list):
        items = ", ".join(_repr(name, item) for item in value)
        return f"({items})" if name in ("sep", "cls") else f"[{items}]"
    if not isinstance(value, dict):
        return repr(value)
    if name == "special_tokens":
        items = ", ".join(f'"{key}":SpecialToken({_shown(value[key])})' for key in value)
        return f"{{{items}}}"
    if "type" in value:
        return f"{value['type']}({_shown(value)})"
    # A tagged value, such as {"Regex": "a+"} or {"Sequence": {"id": "A", "type_id": 0}}.
    [(kind, inner)] = value.items()
    return f"{kind}({_shown(inner, kind) if isinstance(inner, dict) else _repr('', inner)})"


def _shown(fields: dict[str, Any], kind: str = "") -> str:
    shown = [
        f"{name}={_repr('Sequence.id' if (kind, name) == ('Sequence', 'id') else name, value)}"
        for name, value in fields.items()
        if name != "type"
    ]
    return ", ".join(shown)


def component_of_tokenizers(kind: str, spec: str) -> Any:
    """Builds the `tokenizers` component, which requires that package."""
    import tokenizers

    model = '{"type":"BPE","vocab":{},"merges":[]}'
    contents = f'{{"version":"1.0","added_tokens":[],"{kind}":{spec},"model":{model}}}'
    return getattr(tokenizers.Tokenizer.from_str(contents), kind)


def component_json(value: Any, kind: str) -> str | None:
    """Returns the JSON of a component, from this package or from `tokenizers`."""
    if value is None:
        return None
    state = getattr(value, "__getstate__", None)
    state = state() if state is not None else None
    if isinstance(value, Component):
        is_of_kind = value._kind == kind
    else:
        # Compares class names, because `tokenizers` may not be installed.
        is_of_kind = any(base.__name__ == _KINDS[kind][1] for base in type(value).__mro__)
    if not is_of_kind or not isinstance(state, bytes):
        raise TypeError(f"expected a {kind} or None, not {type(value).__name__}")
    return state.decode()
