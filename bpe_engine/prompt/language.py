"""Operators and callables of the template language."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import reduce
from typing import Any

from jinja2 import nodes
from jinja2.exceptions import SecurityError, TemplateError
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.utils import Namespace

from .formatting import check_filled, percent
from .labels import opened
from .limits import ITEM, TemplateLimitError, guard, size_of, use
from .taint import Traced, concat, generated, text_of

__all__ = [
    "COMPARISONS",
    "OPERATORS",
    "GenerationBlocks",
    "TemplateDict",
    "TemplateNamespace",
    "add",
    "counted",
    "guarded",
    "join",
    "output",
    "raise_exception",
    "strftime_now",
]

# Arithmetic with larger numbers is slow, and no template needs them.
_INT_BITS = 4096
_FORMAT = 1000
# Comparison with these types is cheap, regardless of the other operand.
_SCALARS = frozenset([int, float, bool, type(None)])


# ---- Sizes ----


def guarded(value: Any) -> Any:
    """Counts `value` before printing, comparing or hashing it, and returns it."""
    guard(value)
    return value


def counted(value: Any) -> Any:
    """Counts `value`, the result of an operation, and returns it."""
    if isinstance(value, str):
        use(len(value))
    elif isinstance(value, (list, tuple)):
        use(ITEM * len(value))
    return value


# ---- Operators ----


def add(values: tuple[Any, ...]) -> Any:
    """Implements ``a + b + c``."""
    for value in values:
        kind = type(value)
        if kind is not str and kind is not Traced:
            return reduce(lambda left, right: counted(left + right), map(opened, values))
    return concat(values)


def output(values: tuple[Any, ...]) -> str:
    """Returns the text of ``a + b + c`` if not all operands are strings."""
    return text_of(add(values))


def join(values: tuple[Any, ...]) -> str:
    """Implements ``a ~ b``."""
    return concat(map(text_of, values))


def _multiply(left: Any, right: Any) -> Any:
    left, right = opened(left), opened(right)
    if isinstance(left, int) and isinstance(right, int):
        _check_bits(left.bit_length() + right.bit_length())
    for some, times in ((left, right), (right, left)):
        if isinstance(times, int) and isinstance(some, (str, list, tuple)):
            item = 1 if isinstance(some, str) else ITEM
            use(item * len(some) * max(0, times))
    return left * right


def _modulo(left: Any, right: Any) -> Any:
    right = opened(right)
    if type(left) in (str, Traced):
        return percent(left, right)
    if isinstance(left, str):
        check_filled(left, "%", right)
    return left % right


def _subtract(left: Any, right: Any) -> Any:
    if type(left) not in _SCALARS:
        # Key and item views of dicts support subtraction.
        use(size_of(left) + size_of(right))
    return left - right


def _power(left: Any, right: Any) -> Any:
    if isinstance(left, int) and isinstance(right, int):
        _check_bits(left.bit_length() * abs(right))
    return left**right


def _check_bits(bits: int) -> None:
    if bits > _INT_BITS:
        raise TemplateLimitError(
            f"the template computes a number of some {bits} bits; {_INT_BITS} is the limit"
        )


#: Operators that Jinja's sandbox calls, by symbol.
OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "*": _multiply,
    "%": _modulo,
    "-": _subtract,
    "**": _power,
}


def _contains(left: Any, right: Any) -> bool:
    if type(right) is dict:
        if type(left) is not str:
            guard(left)
    elif isinstance(right, Iterator):
        equal = COMPARISONS["eq"]
        return any(item is left or equal(item, left) for item in right)
    else:
        use(len(right) if isinstance(right, str) else size_of(left) + size_of(right))
    return left in right


def _comparison(compare: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def checked(left: Any, right: Any) -> Any:
        if type(left) not in _SCALARS and type(right) not in _SCALARS:
            # Both operands are traversed in parallel, up to the end of the smaller operand.
            use(min(size_of(left), size_of(right)))
        return compare(left, right)

    return checked


#: Comparisons by the names of Jinja's operators and tests.
COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "eq": _comparison(operator.eq),
    "ne": _comparison(operator.ne),
    "gt": _comparison(operator.gt),
    "gteq": _comparison(operator.ge),
    "lt": _comparison(operator.lt),
    "lteq": _comparison(operator.le),
    "in": _contains,
    "notin": lambda left, right: not _contains(left, right),
}


# ---- What templates can call ----


def raise_exception(message: str) -> None:
    """Rejects the conversation. Templates call this function."""
    raise TemplateError(message)


def strftime_now(format: str) -> str:
    """Returns the current time, which is untrusted because the template does not contain it."""
    if len(format) > _FORMAT:
        raise TemplateLimitError(f"a format of a date has {_FORMAT} characters at most")
    return datetime.now().strftime(str.__str__(format))


class TemplateDict:
    """Implements ``dict(...)``, without the attributes of the class."""

    def __call__(self, *args: Any, **kwargs: Any) -> dict[Any, Any]:
        return dict(*args, **kwargs)

    def fromkeys(self, *args: Any, **kwargs: Any) -> dict[Any, Any]:
        """Implements ``dict.fromkeys``."""
        return dict.fromkeys(*args, **kwargs)


class TemplateNamespace(Namespace):
    """Implements ``namespace(...)``, without names that begin with an underscore."""

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
    """Implements ``{% generation %}``: the text inside belongs to the assistant."""

    tags: set[str] = {"generation"}

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        call = self.call_method("_generated", [])
        return nodes.CallBlock(call, [], [], body).set_lineno(line)

    def _generated(self, caller: Callable[[], str]) -> str:
        return generated(caller())
