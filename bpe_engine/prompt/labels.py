"""`Labels`: the origins of what a caller gives to a template, by message, role and field."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _core
from .fields import BY_KEY
from .origin import Scalar, Traced
from .segments import Origin

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
    """The origins of the values that a caller gives to a template."""

    def __init__(self, has_tags: bool):
        #: Marks text with numbers, and knows the origin of each number.
        self.marks: _core.Labels = _core.Labels(Traced, Origin, _SCALARS, BY_KEY)
        #: The origins of text of the template: outside of messages, then around each message.
        self.turns: list[Origin] = [Origin(None, None, "template", (), has_tags)]
        #: The place in `turns` of each message, by id.
        self.messages: dict[int, int] = {}
        self._has_tags = has_tags

    def note_messages(self, messages: list[dict[Any, Any]]) -> None:
        """Notes the messages as the template sees them. The caller keeps the list."""
        self.messages = {id(message): place for place, message in enumerate(messages, 1)}
        turns = range(len(messages))
        self.turns += [Origin(turn, None, "template", (), self._has_tags) for turn in turns]


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
