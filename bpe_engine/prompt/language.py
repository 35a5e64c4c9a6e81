"""The operators of the template language, and what templates can call."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

from jinja2 import nodes
from jinja2.exceptions import SecurityError, TemplateError
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.utils import Namespace

from .formatting import check_filled, percent
from .limits import (
    SMALL,
    TemplateLimitError,
    charge,
    check_compared,
    check_expanded,
    check_size,
    expanded,
    listed,
    sized,
    ticking,
)
from .origin import Traced, concat, generated, text_of

__all__ = [
    "GenerationBlocks",
    "TemplateDict",
    "TemplateNamespace",
    "COMPARISONS",
    "add",
    "bounded",
    "compared",
    "contains",
    "join",
    "key",
    "modulo",
    "multiply",
    "output",
    "power",
    "raise_exception",
    "strftime_now",
    "subtract",
]

# Longer ones take long to compute with; no template needs them.
_INT_BITS = 4096
_SEQUENCES = frozenset([list, tuple])
_FORMAT = 1000


def add(values: tuple[Any, ...]) -> Any:
    """``a + b + c``"""
    for value in values:
        kind = type(value)
        if kind is not str and kind is not Traced:
            return _sum(values)
    return concat(values)


def output(values: tuple[Any, ...]) -> str:
    """``a + b + c`` as it is output, where one of them is no string."""
    return text_of(add(values))


def _sum(values: tuple[Any, ...]) -> Any:
    result = values[0]
    for value in values[1:]:
        result = result + value
        sized(result)
    return result


def multiply(left: Any, right: Any) -> Any:
    """``left * right``"""
    if isinstance(left, int) and isinstance(right, int):
        _check_bits(left.bit_length() + right.bit_length())
    for some, times in ((left, right), (right, left)):
        if isinstance(times, int):
            if isinstance(some, (list, tuple)):
                check_size(8 * len(some) * max(0, times))
            elif isinstance(some, (str, bytes)):
                check_size(len(some) * max(0, times))
    return left * right


def modulo(left: Any, right: Any) -> Any:
    """``left % right``"""
    if type(left) in (str, Traced):
        return percent(left, right)
    if isinstance(left, bytes):
        raise SecurityError("formatting bytes is not allowed in a template")
    if isinstance(left, str):
        check_filled(left, "%", right)
    return left % right


def subtract(left: Any, right: Any) -> Any:
    """``left - right``, which may be the keys or items of dicts."""
    check_expanded(left)
    check_expanded(right)
    return left - right


def bounded(value: Any) -> Any:
    """A value that is about to be printed by Jinja itself."""
    check_expanded(value)
    return value


# ---- Comparisons ----


def compared(value: Any) -> Any:
    """A side of a comparison of more than two."""
    if isinstance(value, Iterator):
        value = listed(value)
    charge(expanded(value, {})[0])
    return value


def contains(left: Any, right: Any) -> bool:
    """``left in right``"""
    kind = type(right)
    if kind is dict:
        return (key(left) if type(left) is tuple else left) in right
    if kind is str or kind is Traced:
        if len(right) > SMALL:
            charge(len(right))
        return left in right
    if isinstance(left, str) and kind in _SEQUENCES and len(left) * len(right) <= SMALL:
        return left in right
    if isinstance(right, Iterator):
        equal = COMPARISONS["eq"]
        return any(item is left or equal(item, left) for item in ticking(right))
    size = expanded(left, {})[0]
    cost = size * (1 + len(right)) if hasattr(right, "__len__") else size
    charge(cost if cost <= SMALL else min(cost, size + expanded(right, {})[0]))
    return left in right


def _comparison(compare: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def checked(left: Any, right: Any) -> Any:
        check_compared(left, right)
        return compare(left, right)

    return checked


#: By the names of Jinja's operators and tests.
COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "eq": _comparison(operator.eq),
    "ne": _comparison(operator.ne),
    "gt": _comparison(operator.gt),
    "gteq": _comparison(operator.ge),
    "lt": _comparison(operator.lt),
    "lteq": _comparison(operator.le),
    "in": contains,
    "notin": lambda left, right: not contains(left, right),
}


# ---- Keys and numbers ----


def key(value: Any) -> Any:
    """A key of a dict. To hash a tuple walks over all that is in it, and to say that there is no
    such key prints it."""
    if type(value) is not Traced:
        check_expanded(value)
    return value


def power(left: Any, right: Any) -> Any:
    """``left ** right``"""
    if isinstance(left, int) and isinstance(right, int):
        _check_bits(left.bit_length() * abs(right))
    return left**right


def _check_bits(bits: int) -> None:
    if bits > _INT_BITS:
        raise TemplateLimitError(
            f"the template computes a number of some {bits} bits; {_INT_BITS} is the limit"
        )


def join(values: tuple[Any, ...]) -> str:
    """``a ~ b``"""
    return concat(map(text_of, values))


# ---- What templates can call ----


def raise_exception(message: str) -> None:
    """For templates that refuse a conversation."""
    check_expanded(message)
    raise TemplateError(message)


def strftime_now(format: str) -> str:
    """The time of the day, which is nothing that the template says."""
    if len(format) > _FORMAT:
        raise TemplateLimitError(f"a format of a date has {_FORMAT} characters at most")
    return datetime.now().strftime(str.__str__(format))


class TemplateDict:
    """``dict(...)``, without the attributes of the class."""

    def __call__(self, *args: Any, **kwargs: Any) -> dict[Any, Any]:
        return dict(*args, **kwargs)

    def fromkeys(self, *args: Any, **kwargs: Any) -> dict[Any, Any]:
        """``dict.fromkeys``"""
        return dict.fromkeys(*args, **kwargs)


class TemplateNamespace(Namespace):
    """``namespace(...)``, without names that begin with an underscore."""

    def __init__(*args: Any, **kwargs: Any) -> None:
        self, *rest = args
        attributes = dict(*rest, **kwargs)
        for name in attributes:
            _check_name(name)
        Namespace.__init__(self, attributes)

    def __setitem__(self, name: str, value: Any) -> None:
        _check_name(name)
        super().__setitem__(name, value)


def _check_name(name: object) -> None:
    if isinstance(name, str) and name.startswith("_"):
        raise SecurityError(
            f"a template may not store {name!r} in a namespace: names there must not begin with "
            "an underscore"
        )


class GenerationBlocks(Extension):
    """``{% generation %}``: the text inside is what the assistant said."""

    tags = {"generation"}

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        call = self.call_method("_generated", [])
        return nodes.CallBlock(call, [], [], body).set_lineno(line)

    def _generated(self, caller: Callable[[], str]) -> str:
        return generated(caller())
