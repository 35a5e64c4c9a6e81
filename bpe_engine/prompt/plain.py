"""Converts a caller's template input to plain data, without running the caller's code."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from .._core import Labels, copy_plain
from ..common.values import listed, safe_repr
from .segments import Segment
from .taint import given

__all__ = ["Plain"]


class Plain:
    """Converts the caller's values to plain data, so that a template cannot call methods of
    objects."""

    def __init__(self, labels: Labels) -> None:
        #: Total number of characters in the caller's strings.
        self.characters: int = 0
        self._labels = labels
        self._numbers: dict[tuple[Any, ...], int] = {}

    def mappings(self, name: str, values: Iterable[Any]) -> list[dict[Any, Any]]:
        """Copies a sequence of mappings."""
        if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
            raise TypeError(f"{name} must be a list of dicts, not {type(values).__name__}")
        values = values if type(values) is list else listed(values)
        plain: list[dict[Any, Any]] = self.named(name, values)
        for index, value in enumerate(plain):
            if type(value) is dict:
                continue
            refused = values[index]
            hint = (
                "; transformers.utils.get_json_schema makes a schema of a function"
                if name == "tools" and callable(refused)
                else ""
            )
            raise TypeError(f"{name}[{index}] must be a dict, not {type(refused).__name__}{hint}")
        return plain

    def named(self, name: str, value: Any) -> Any:
        """Copies a value. Errors refer to it as `name`."""
        try:
            return self.data(value)
        except _NoText as error:
            raise TypeError(f"{_path(name, value, error.value)} {error}") from None

    def data(self, value: Any) -> Any:
        """Copies plain data. Other values become placeholders."""
        copy, characters = copy_plain(value, self.other)
        self.characters += characters
        return copy

    def other(self, value: Any) -> Any:
        if isinstance(value, Segment):
            return self._segment(value)
        for plain in (str, int, float):
            if isinstance(value, plain):
                return self.data(getattr(plain, f"__{plain.__name__}__", plain)(value))
        if isinstance(value, Mapping):
            return self.data(dict(value.items()))
        if isinstance(value, (list, tuple)):
            items = [self.data(item) for item in value]
            if not isinstance(value, tuple):
                return items
            return tuple(items) if items else _Empty()
        if type(value).__module__ == "numpy" and callable(getattr(value, "item", None)):
            if getattr(value, "ndim", None) == 0:
                return self.data(value.item())
        elif dataclasses.is_dataclass(value) and not isinstance(value, type):
            return {f.name: self.data(getattr(value, f.name)) for f in dataclasses.fields(value)}
        elif callable(getattr(value, "model_dump", None)):
            return self.data(value.model_dump())
        elif isinstance(value, (bytes, bytearray, memoryview)):
            kind = type(value).__name__
            raise _NoText(value, f'is {kind}; decode it first, as in text.decode("utf-8")')
        return type(type(value).__name__, (_Opaque,), {"__slots__": ()})()

    def _segment(self, segment: Segment) -> str:
        text, role, source = segment.text, segment.role, segment.source
        if segment.kind == "tokens":
            raise _NoText(segment, "is tokens([...]), but a chat template renders text")
        if segment.kind not in ("text", "special"):
            raise _NoText(segment, f"is a segment of the unknown kind {safe_repr(segment.kind)}")
        for what, item in zip(("text", "role", "source"), (text, role or "", source or "")):
            if not isinstance(item, str):
                kind = type(item).__name__
                raise _NoText(segment, f"is a segment whose {what} must be a str, not {kind}")
        self.characters += len(text)
        self._labels.has_segments = True
        is_special = segment.kind == "special"
        number = 0
        if is_special or role is not None or source is not None:
            key = (text if is_special else None, role, source)
            if key not in self._numbers:
                self._numbers[key] = self._labels.flags(segment)
            number = self._numbers[key]
        # Trust is per character, so a set of names would become trust in every name.
        is_trusted = is_special or segment.allowed_special is True
        return given(str.__str__(text), is_trusted, number)


class _Opaque:
    """Placeholder for an object such as an image. A template may test whether the image exists, and
    print the placeholder, but the placeholder is no string, and JSON cannot write it."""

    __slots__ = ()

    def __str__(self) -> str:
        return f"<{type(self).__name__}>"

    __repr__ = __str__


class _Empty(tuple[Any, ...]):
    """An empty tuple with a unique address: Python shares one `()`, and labels are keyed by
    address."""

    __slots__ = ()


# Error messages contain the type of the caller's value.
_Empty.__name__ = "tuple"


class _NoText(TypeError):
    """Raised for a value that a template cannot use."""

    def __init__(self, value: Any, message: str):
        super().__init__(message)
        self.value = value


def _path(name: str, value: Any, wanted: Any) -> str:
    """Returns the path to `wanted` in the value called `name`: ``messages[0]['content']``."""
    found: list[tuple[str, Any]] = [(name, value)]
    known = set()
    for path, inner in found:
        if inner is wanted:
            return path
        if isinstance(inner, Segment) or id(inner) in known:
            continue
        known.add(id(inner))
        if isinstance(inner, Mapping):
            if any(key is wanted for key in inner):
                return f"a key of {path}"
            found += [(f"{path}[{key!r}]", item) for key, item in inner.items()]
        elif isinstance(inner, (list, tuple)):
            found += [(f"{path}[{index}]", item) for index, item in enumerate(inner)]
    return f"something in {name}"
