"""`Labels`: the origins of what a caller gives to a template, by message, role and field."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .fields import REASONING_KEYS, field_of
from .origin import GIVEN, MOST_LABELS, TRUSTED, Scalar, Traced, flagged, runs_of, unplaced
from .segments import Origin, Segment

__all__ = ["Labels", "label_tests"]


class _Int(Scalar, int):
    """A number in the arguments of a call."""


class _Float(Scalar, float):
    """A number in the arguments of a call."""


class _Bool(Scalar, int):
    """True or False in the arguments of a call."""

    def __repr__(self) -> str:
        return "True" if self else "False"

    __str__ = __repr__


class _None(Scalar):
    """None in the arguments of a call."""

    def __repr__(self) -> str:
        return "None"

    def __bool__(self) -> bool:
        return False

    def __eq__(self, other: object) -> bool:
        return other is None or type(other) is _None

    def __hash__(self) -> int:
        return hash(None)


_SCALARS: dict[type, Callable[[Any], Any]] = {
    int: _Int,
    float: _Float,
    bool: _Bool,
    type(None): lambda value: _None(),
}
# Errors name the types of the caller's values.
for _kind, _own in ((int, _Int), (float, _Float), (bool, _Bool), (type(None), _None)):
    _own.__name__ = _kind.__name__


class Labels:
    """Numbers the values that the caller gave, and marks their text with the numbers."""

    def __init__(self, has_tags: bool):
        #: The caller's segment and the origin of each number - 1.
        self.given: list[tuple[Segment | None, Origin | None]] = []
        #: The origins of text of the template: outside of messages, then around each message.
        self.turns: list[Origin] = [Origin(None, None, "template", (), has_tags)]
        #: The flags of lists and dicts, and the same data as it is written as JSON, by id.
        self.known: dict[int, tuple[int, Any]] = {}
        #: The place in `turns` of each message, by id.
        self.messages: dict[int, int] = {}
        self._has_tags = has_tags
        # A map that keeps ids alive.
        self._kept: list[Any] = []

    def flags(self, segment: Segment | None, origin: Origin | None) -> int:
        """Returns the flags of text with this origin."""
        if len(self.given) >= MOST_LABELS:
            return 0
        self.given.append((segment, origin))
        return GIVEN * len(self.given)

    def label_messages(self, messages: list[dict[Any, Any]]) -> None:
        """Labels the text of messages, which are the template's own copies."""
        for index, message in enumerate(messages):
            role = message.get("role")
            role = str.__str__(role) if isinstance(role, str) else None
            for key, value in list(message.items()):
                if isinstance(value, (str, list, dict, tuple)):
                    name = str.__str__(key) if isinstance(key, str) else str(key)
                    field = field_of(name)
                    message[key] = self._labeled(value, Origin(index, role, field, (name,)))
            self.turns.append(Origin(index, None, "template", (), self._has_tags))

    def note_messages(self, messages: list[dict[Any, Any]]) -> None:
        """Notes the messages as the template sees them."""
        self.messages = {id(message): place for place, message in enumerate(messages, 1)}
        self._kept.append(messages)

    def label_data(self, name: str, values: list[Any]) -> None:
        """Labels tools or documents."""
        for index, value in enumerate(values):
            values[index] = self._labeled(value, Origin(None, None, name, (index,)))

    def _labeled(self, value: Any, origin: Origin) -> Any:
        if isinstance(value, str):
            return self._text(value, origin)
        if type(value) in _SCALARS and origin.field == "tool_calls":
            scalar = _SCALARS[type(value)](value)
            scalar.text_flags, scalar.plain = self._rewritten(origin), value
            return scalar
        if not isinstance(value, (dict, list, tuple)):
            return value
        labeled: Any
        if isinstance(value, dict):
            has_own_keys = "arguments" in origin.path or "parameters" in origin.path
            labeled = {}
            for key, item in value.items():
                inner = _below(origin, key if isinstance(key, (str, int)) else str(key))
                if has_own_keys and type(key) is str and origin.field == "tool_calls":
                    key = self._text(key, _below(inner, "key"), is_key=True)
                labeled[key] = self._labeled(item, inner)
        else:
            labeled = [self._labeled(item, _below(origin, i)) for i, item in enumerate(value)]
            if isinstance(value, tuple):
                labeled = tuple(labeled)
        self.known[id(labeled)] = self._rewritten(origin), value
        self._kept.append(labeled)
        return labeled

    def _rewritten(self, origin: Origin) -> int:
        """Returns the flags of text that stands for a whole value or key."""
        return unplaced(((1, self.flags(None, origin)),))[0][1]

    def _text(self, value: str, origin: Origin, is_key: bool = False) -> Traced:
        runs = runs_of(value)
        if len(runs) != 1 or runs[0][1] == 0:
            return flagged(value, self._rewritten(origin) if is_key else self.flags(None, origin))
        # A segment of the caller.
        flags = runs[0][1]
        segment = self.given[flags // GIVEN - 1][0] if flags >= GIVEN else None
        is_plain = segment is None or segment[2:5] == (None, None, "text")
        if origin.field == "role" and is_plain and flags & TRUSTED:
            # The template may build a control token from it, which no border may cut.
            return flagged(value, TRUSTED)
        return flagged(value, flags % GIVEN + self.flags(segment, origin))


def _below(origin: Origin, key: str | int) -> Origin:
    path = (*origin.path, str.__str__(key) if isinstance(key, str) else key)
    is_reasoning = origin.field == "content" and key in REASONING_KEYS
    return origin._replace(path=path, field="reasoning" if is_reasoning else origin.field)


def label_tests() -> dict[str, Callable[..., bool]]:
    """Returns the tests of the template language that compare identities, for labeled values."""

    def plain(value: Any) -> Any:
        return value.plain if isinstance(value, Scalar) else value

    return {
        "boolean": lambda value: type(plain(value)) is bool,
        "true": lambda value: plain(value) is True,
        "false": lambda value: plain(value) is False,
        "none": lambda value: plain(value) is None,
        "integer": lambda value: isinstance(value, int) and type(plain(value)) is not bool,
        "sameas": lambda value, other: plain(value) is plain(other),
    }
