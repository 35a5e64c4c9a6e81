"""The base of the classes for normalizers, pre-tokenizers, post-processors and decoders."""

from __future__ import annotations

import json
import sys
import weakref
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Generic, Protocol, TypeVar, overload

from .._core import hf_component

__all__ = [
    "Component",
    "Field",
    "Regex",
    "behavior_field",
    "character_field",
    "component_json",
    "component_of_tokenizers",
    "flag_field",
    "length_field",
    "optional_flag_field",
    "pattern_field",
    "prepend_scheme_field",
    "text_field",
]

T = TypeVar("T")
C = TypeVar("C", bound="Component")


class _Owner(Protocol):
    def _part_changed(self, part: Component) -> None: ...


class Field(Generic[T]):
    """An attribute of a component that is a field of its JSON.

    Args:
        check: Returns the JSON of a value, or raises.
        show: Returns the value of the JSON.
        name: The name in the JSON, if it is another one.
    """

    def __init__(
        self,
        check: Callable[[T], Any],
        show: Callable[[Any], T] = lambda value: value,
        name: str = "",
    ):
        self.check: Callable[[T], Any] = check
        self.show: Callable[[Any], T] = show
        self.name: str = name

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = self.name or name

    @overload
    def __get__(self, part: None, owner: type) -> Field[T]: ...
    @overload
    def __get__(self, part: Component, owner: type) -> T: ...
    def __get__(self, part: Component | None, owner: type) -> Field[T] | T:
        return self if part is None else self.show(part._fields[self.name])

    def __set__(self, part: Component, value: T) -> None:
        old, part._fields[self.name] = part._fields[self.name], self.check(value)
        try:
            part._tell_owners()
        except BaseException:
            part._fields[self.name] = old
            raise


def _instance(*types: type) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        if type(value) not in types and not (bool not in types and isinstance(value, types)):
            names = " or ".join(each.__name__ for each in types)
            raise TypeError(f"expected {names}, not {type(value).__name__}")
        return value

    return check


def flag_field(name: str = "") -> Field[bool]:
    """A field that is True or False."""
    return Field(_instance(bool), name=name)


def optional_flag_field() -> Field[bool | None]:
    """A field that is True, False or None."""
    return Field(_instance(bool, type(None)))


def text_field() -> Field[str]:
    """A field of text."""
    return Field(_instance(str))


def length_field() -> Field[int]:
    """A field of a number from 0 on."""

    def check(value: int) -> int:
        if _instance(int)(value) < 0:
            raise OverflowError(f"expected a number from 0 on, not {value}")
        return value

    return Field(check)


def character_field() -> Field[str]:
    """A field of one character."""

    def check(value: str) -> str:
        if len(_instance(str)(value)) != 1:
            raise ValueError(f"expected a string of length 1, not {value!r}")
        return value

    return Field(check)


def behavior_field() -> Field[str]:
    """A field for what becomes of the matches of a pattern: ``"removed"``, ``"isolated"``,
    ``"merged_with_previous"``, ``"merged_with_next"`` or ``"contiguous"``."""
    names = {
        "removed": "Removed",
        "isolated": "Isolated",
        "merged_with_previous": "MergedWithPrevious",
        "merged_with_next": "MergedWithNext",
        "contiguous": "Contiguous",
    }
    # As they show it.
    return Field(lambda value: _one_of(value, names), str.lower)


def prepend_scheme_field() -> Field[str]:
    """A field for the texts that get a mark before them: ``"first"``, ``"never"`` or ``"always"``."""
    names = {name: name for name in ("first", "never", "always")}
    return Field(lambda value: _one_of(value, names))


def _one_of(value: str, names: dict[str, str]) -> str:
    if _instance(str)(value) not in names:
        raise ValueError(f"{value!r} is an unknown variant, should be one of {list(names)}")
    return names[value]


class Regex:
    """A regular expression, in Oniguruma's syntax.

    Args:
        pattern: The expression.

    >>> Regex("[0-9]+").pattern
    '[0-9]+'
    """

    def __init__(self, pattern: str):
        self.pattern: str = _instance(str)(pattern)


def pattern_field() -> Field[Any]:
    """A field for a text or a regular expression to search for, which can be neither read nor set, as
    in `tokenizers`."""

    def check(value: Any) -> dict[str, str]:
        if isinstance(value, str):
            return {"String": value}
        if isinstance(value, Regex):
            return {"Regex": value.pattern}
        if type(value).__name__ == "Regex":
            # Theirs shows its pattern only as a part of others.
            import tokenizers

            state: bytes = tokenizers.normalizers.Replace(value, "").__getstate__()
            found: dict[str, str] = json.loads(state)["pattern"]
            return found
        raise TypeError(f"expected str or Regex, not {type(value).__name__}")

    return _Hidden(check)


class _Hidden(Field[Any]):
    def __get__(self, part: Component | None, owner: type) -> Any:
        if part is None:
            return self
        raise AttributeError("Cannot get pattern")

    def __set__(self, part: Component, value: Any) -> None:
        raise AttributeError("Cannot set pattern, make another component instead")


#: For each kind, the module of `tokenizers`, the name of its base class, and the field of a
#: ``Sequence`` that has its parts.
_KINDS = {
    "normalizer": ("tokenizers.normalizers", "Normalizer", "normalizers"),
    "pre_tokenizer": ("tokenizers.pre_tokenizers", "PreTokenizer", "pretokenizers"),
    "post_processor": ("tokenizers.processors", "PostProcessor", "processors"),
    "decoder": ("tokenizers.decoders", "Decoder", "decoders"),
}


class Component:
    """A normalizer, pre-tokenizer, post-processor or decoder.

    Each has a class of its own in `bpe_engine.hf.normalizers`, `bpe_engine.hf.pre_tokenizers`,
    `bpe_engine.hf.processors` or `bpe_engine.hf.decoders`, with the constructor and the attributes
    that the class of this name has in `tokenizers`. Where that package is imported, ``isinstance``
    with its class is true as well, but its own methods take no such object: `to_tokenizers` makes one
    that they take. A ``Sequence`` has a length, and its parts are components.

    Setting an attribute changes the tokenizers that the component is set in, also as a part of a
    ``Sequence``.

    Args:
        kind: ``"normalizer"``, ``"pre_tokenizer"``, ``"post_processor"`` or ``"decoder"``.
        spec: The JSON, as text.

    Raises:
        UnsupportedTokenizer: The JSON has a type that is not known.
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

    __slots__ = ("__weakref__", "_fields", "_owners", "_parts")
    _kind: ClassVar[str] = ""
    _classes: ClassVar[dict[tuple[str, str], type[Component]]] = {}
    #: The values of the JSON; a sequence has parts instead.
    _fields: dict[str, Any]
    _parts: list[Component]
    _owners: list[weakref.ref[_Owner]]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        Component._classes[cls._kind, cls.__name__] = cls

    def __new__(cls, kind: str, spec: str) -> Any:
        return Component._of_json(kind, json.loads(hf_component(kind, spec)))

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
        self._fields, self._parts, self._owners = fields, [], []
        return self

    @classmethod
    def _made(cls: type[C], /, **values: Any) -> C:
        """Makes a component of values for its attributes."""
        fields: list[Field[Any]] = [vars(cls)[name] for name in values]
        return cls._with(
            {each.name: each.check(values[name]) for name, each in zip(values, fields)}
        )

    @classmethod
    def _with_parts(cls: type[C], parts: Iterable[Any]) -> C:
        self = cls._with({})
        self._parts = [self._owned(part) for part in parts]
        return self

    def _owned(self, part: Any) -> Component:
        """A part of this sequence, which it will be told of changes of."""
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
        for ref in self._owners:
            if (owner := ref()) is not None:
                owner._part_changed(self)

    def _part_changed(self, part: Component) -> None:
        if any(each is part for each in self._parts):
            self._tell_owners()

    # Read by `isinstance`. The name is that of a plain attribute to the type checker.
    @property  # type: ignore[misc]
    def __class__(self) -> type:
        own = type(self)
        module = sys.modules.get(_KINDS[self._kind][0])
        found: type = getattr(module, own.__name__, own)
        return found

    @property
    def type(self) -> str:
        """The type, as in the file."""
        return type(self).__name__

    @property
    def _json(self) -> dict[str, Any]:
        if self.type == "Sequence":
            parts = [part._json for part in self._parts]
            return {"type": "Sequence", _KINDS[self._kind][2]: parts}
        return {"type": self.type, **self._fields}

    @property
    def _spec(self) -> str:
        return json.dumps(self._json, separators=(",", ":"), ensure_ascii=False)

    def to_tokenizers(self) -> Any:
        """Returns the same component as an object of `tokenizers`, which must be installed.

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
        # Of what does not change.
        return hash((self._kind, self.type))

    def __repr__(self) -> str:
        return _repr("", self._json)


def _repr(name: str, value: Any) -> str:
    """Writes the value of a field of a component as `tokenizers` does."""
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
    # One of several kinds, as in {"Regex": "a+"} and {"Sequence": {"id": "A", "type_id": 0}}.
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
        is_of_kind = any(base.__name__ == _KINDS[kind][1] for base in type(value).__mro__)
    if not is_of_kind or not isinstance(state, bytes):
        raise TypeError(f"expected a {kind} or None, not {type(value).__name__}")
    return state.decode()
