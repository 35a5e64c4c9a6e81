"""Fields of messages: the keys that contain the speaker's text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .segments import Segment

__all__ = ["BY_KEY", "FIELDS", "REASONING_KEYS", "field_of", "spoken", "value_of"]

#: Keys of the model's reasoning in messages.
REASONING_KEYS = ("reasoning_content", "thinking", "reasoning")
#: Fields that contain the text of a message's speaker.
FIELDS = ("content", "reasoning", "tool_calls")
#: Field by message key, where the names differ.
BY_KEY = {
    **dict.fromkeys(REASONING_KEYS, "reasoning"),
    **dict.fromkeys(("tool_calls", "function_call"), "tool_calls"),
}


def field_of(key: str) -> str:
    """Returns the field to which a message key belongs."""
    return BY_KEY.get(key, key)


def value_of(data: Any, key: str) -> Any:
    """Returns the value of a mapping's key or of another object's attribute, or None."""
    return data.get(key) if isinstance(data, (dict, Mapping)) else getattr(data, key, None)


def spoken(message: Mapping[str, Any]) -> Iterator[tuple[str, tuple[str | int, ...], str]]:
    """Yields the field, path and text of each string that a message's speaker wrote."""
    for key, value in message.items():
        field = field_of(key)
        if field in FIELDS:
            yield from _strings(value, field, (key,))


def _strings(
    value: Any, field: str, path: tuple[str | int, ...]
) -> Iterator[tuple[str, tuple[str | int, ...], str]]:
    if isinstance(value, Segment):
        value = value.text
    if isinstance(value, str):
        yield field, path, value
    elif isinstance(value, Mapping):
        # Type names are not the speaker's text.
        is_named = "arguments" not in path and "parameters" not in path
        for key, item in value.items():
            if not (is_named and key in ("id", "type")):
                yield from _strings(item, field, (*path, key))
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from _strings(item, field, (*path, index))
