"""Attributes of components: each is an argument of a constructor and a field of the JSON."""

from __future__ import annotations

import base64
import inspect
import json
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from ..common.values import safe_repr

__all__ = [
    "Field",
    "Regex",
    "behavior",
    "character",
    "charsmap",
    "field",
    "flag",
    "length",
    "optional_flag",
    "parts",
    "pattern",
    "prepend_scheme",
    "text",
    "token",
]


class _Part(Protocol):
    _fields: dict[str, Any]

    def _tell_owners(self) -> None: ...
    def _forget(self) -> None: ...


class Field:
    """An attribute of a component.

    Args:
        check: Returns the JSON of a value, or raises.
        show: Converts the JSON back to the value.
        default: The default of the argument; without a default, the argument is required.
        of_none: The value that None stands for.
        init: Whether the constructor takes the attribute.
        alias: The argument's name, if different from the attribute's.
        name: The name in the JSON, if different from the attribute's.
        is_hidden: True if the attribute can be neither read nor set, as in `tokenizers`.
    """

    def __init__(
        self,
        check: Callable[[Any], Any],
        show: Callable[[Any], Any] = lambda value: value,
        *,
        default: Any = inspect.Parameter.empty,
        of_none: Any = None,
        init: bool = True,
        alias: str = "",
        name: str = "",
        is_hidden: bool = False,
    ):
        self.check: Callable[[Any], Any] = check
        self.show: Callable[[Any], Any] = show
        self.default: Any = default
        self.of_none: Any = of_none
        self.init: bool = init
        self.alias: str = alias
        self.name: str = name
        self.is_hidden: bool = is_hidden

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = self.name or name.lstrip("_")
        self.alias = self.alias or name

    def __get__(self, part: _Part | None, owner: type) -> Any:
        if part is None:
            return self
        if self.is_hidden:
            raise AttributeError(f"Cannot get {self.name}")
        return self.show(part._fields[self.name])

    def __set__(self, part: _Part, value: Any) -> None:
        if self.is_hidden:
            raise AttributeError(f"Cannot set {self.name}, make another component instead")
        old, part._fields[self.name] = part._fields[self.name], self.check(value)
        try:
            part._tell_owners()
        except BaseException:
            part._fields[self.name] = old
            part._forget()
            raise

    def parameter(self, annotation: Any) -> inspect.Parameter:
        """Returns the parameter of the constructor."""
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        return inspect.Parameter(self.alias, kind, default=self.default, annotation=annotation)

    def made(self, value: Any) -> Any:
        """Checks an argument, and returns it as JSON."""
        is_default = value is None and self.of_none is not None
        return self.check(self.of_none if is_default else value)


class Regex:
    """A regular expression, in Oniguruma's syntax.

    Args:
        pattern: The expression.

    >>> Regex("[0-9]+").pattern
    '[0-9]+'
    """

    def __init__(self, pattern: str):
        self.pattern: str = _instance(str)(pattern)


def field(check: Callable[[Any], Any], **options: Any) -> Any:
    """An attribute of any other kind; takes the arguments of `Field`."""
    return Field(check, **options)


def _instance(*types: type) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        if type(value) not in types and not (bool not in types and isinstance(value, types)):
            names = " or ".join(each.__name__ for each in types)
            raise TypeError(f"expected {names}, not {type(value).__name__}")
        return value

    return check


def flag(**options: Any) -> Any:
    """An attribute that is True or False."""
    return Field(_instance(bool), **options)


def optional_flag(**options: Any) -> Any:
    """An attribute that is True, False or None."""
    return Field(_instance(bool, type(None)), **options)


def text(**options: Any) -> Any:
    """An attribute for text."""
    return Field(_instance(str), **options)


def length(**options: Any) -> Any:
    """An attribute for a non-negative integer."""

    def check(value: int) -> int:
        if _instance(int)(value) < 0:
            raise OverflowError(f"expected a number from 0 on, not {value}")
        return value

    return Field(check, **options)


def character(**options: Any) -> Any:
    """An attribute for one character."""

    def check(value: str) -> str:
        if len(_instance(str)(value)) != 1:
            raise ValueError(f"expected a string of length 1, not {safe_repr(value)}")
        return value

    return Field(check, **options)


def behavior(**options: Any) -> Any:
    """An attribute for the treatment of matches. `tokenizers` shows the words without ``_``."""
    names = ["removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"]

    def check(value: str) -> str:
        return "".join(map(str.capitalize, _one_of(value, names).split("_")))

    return Field(check, str.lower, **options)


def prepend_scheme(**options: Any) -> Any:
    """An attribute that says which texts get a mark in front."""
    return Field(lambda value: _one_of(value, ["first", "never", "always"]), **options)


def _one_of(value: str, names: list[str]) -> str:
    if _instance(str)(value) not in names:
        raise ValueError(f"{safe_repr(value)} is an unknown variant, should be one of {names}")
    return value


def pattern(**options: Any) -> Any:
    """An attribute for a text or regular expression to search for."""

    def check(value: Any) -> dict[str, str]:
        if isinstance(value, str):
            return {"String": value}
        if isinstance(value, Regex):
            return {"Regex": value.pattern}
        if type(value).__name__ == "Regex":
            # The pattern of a `tokenizers.Regex` is readable only through another component.
            import tokenizers

            state: bytes = tokenizers.normalizers.Replace(value, "").__getstate__()
            found: dict[str, str] = json.loads(state)["pattern"]
            return found
        raise TypeError(f"expected str or Regex, not {type(value).__name__}")

    return Field(check, is_hidden=True, **options)


def charsmap(**options: Any) -> Any:
    """An attribute for the normalization rules of a SentencePiece model."""

    def check(rules: Iterable[int]) -> str:
        if isinstance(rules, (str, int)):
            raise TypeError(f"expected bytes, not {type(rules).__name__}")
        return base64.b64encode(bytes(rules)).decode()

    return Field(check, is_hidden=True, **options)


def token(**options: Any) -> Any:
    """An attribute for a token and its id."""

    def check(value: tuple[str, int]) -> list[Any]:
        if not isinstance(value, tuple) or list(map(type, value)) != [str, int]:
            raise TypeError(f"expected a tuple of a token and its id, not {safe_repr(value)}")
        return list(value)

    return Field(check, tuple, **options)


def parts(**options: Any) -> Any:
    """An attribute for the parts of a ``Sequence``."""
    return Field(lambda value: value, is_hidden=True, **options)
