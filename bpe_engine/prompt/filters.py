"""The filters of the template language that build strings, so that they keep origins; and bounds
for those that could be asked for a lot. Every other filter is Jinja's own."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from jinja2 import pass_environment, pass_eval_context
from jinja2.filters import FILTERS, make_attrgetter
from jinja2.nodes import EvalContext
from jinja2.sandbox import MAX_RANGE
from jinja2.tests import TESTS
from markupsafe import Markup

from .escaped import escaped, marked_safe
from .formatting import percent
from .language import COMPARISONS, add, modulo
from .limits import (
    TemplateLimitError,
    charge,
    check_expanded,
    check_product,
    check_size,
    expanded,
    listed,
    sized,
    ticking,
)
from .origin import LINES, Traced, check_split, concat, runs_of, text_of, traced, trusted

__all__ = ["guarded_tests", "string_filters", "tojson"]

_QUICK = (str, list, dict, type(None))

# For filters whose time is more than linear in the text, or many times that of copying it, and
# which lose its origin anyway.
_SLOW = ("filesizeformat", "pprint", "striptags", "urlize", "wordwrap", "xmlattr")
_LONG = 1 << 16
_LINEAR = ("urlencode",)
_LONGER = 1 << 20
# Those that look at no more of what they are given than its first level, or are here by themselves.
_SHALLOW = frozenset(
    ["abs", "count", "d", "default", "first", "items", "last", "length", "map", "random"]
    + ["reject", "rejectattr", "select", "selectattr"]
)
_DIGITS = 4300
_WORD = re.compile(r"\w+")


def _as_traced(value: object) -> Traced:
    text = text_of(value)
    return text if type(text) is Traced else traced(text, runs_of(text))


def tojson(
    x: Any,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """JSON as transformers writes it, without HTML's escapes. All of it is untrusted."""
    if isinstance(indent, str):
        indent = _plain(indent)
    elif indent is not None:
        _at_most("indent", indent, 1000)
    if separators is not None:
        separators = (_plain(separators[0]), _plain(separators[1]))
    size, items, depth = expanded(x, {})
    width = len(indent) if isinstance(indent, str) else indent or 0
    check_size(size + items * depth * max(0, width))
    charge(size * (8 if indent is None else 128))
    text = json.dumps(
        x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )
    check_size(len(text))
    return _plain(text)


def _plain(text: str) -> str:
    return str.__str__(text)


@pass_eval_context
def _join(context: EvalContext, value: Any, d: str = "", attribute: Any = None) -> str:
    if context.autoescape:
        value = listed(value)
        check_expanded([value, d])
        return FILTERS["join"](context, value, d, attribute)  # type: ignore[no-any-return]
    if attribute is not None:
        value = map(make_attrgetter(context.environment, attribute), value)
    return _as_traced(d).join(map(text_of, value))


@pass_eval_context
def _replace(context: EvalContext, s: Any, old: Any, new: Any, count: int | None = None) -> str:
    if context.autoescape:
        check_expanded([s, old, new])
        return FILTERS["replace"](context, s, old, new, count)  # type: ignore[no-any-return]
    return _as_traced(s).replace(text_of(old), text_of(new), -1 if count is None else count)


def _indent(s: str, width: int | str = 4, first: bool = False, blank: bool = False) -> str:
    indention = width if isinstance(width, str) else " " * _at_most("width", width, 10_000)
    if not isinstance(s, str):
        return FILTERS["indent"](s, width, first, blank)
    if isinstance(s, Markup):
        check_split(s, LINES)
        check_size(len(s) + (1 + len(s.splitlines())) * len(indention))
        return FILTERS["indent"](s, width, first, blank)  # type: ignore[no-any-return]
    lines = (_as_traced(s) + trusted("\n")).splitlines()
    check_size(len(s) + len(lines) * len(indention))
    rest = [indention + line if line or blank else line for line in lines[1:]]
    return concat([indention if first else "", _as_traced("\n").join([lines[0], *rest])])


def _format(value: Any, *args: Any, **kwargs: Any) -> str:
    if args and kwargs:
        raise TypeError("can't handle positional and keyword arguments at the same time")
    if hasattr(value, "__html__"):
        return modulo(value, kwargs or args)  # type: ignore[no-any-return]
    return percent(text_of(value), kwargs or args)


def _title(s: Any) -> str:
    text = text_of(s)
    _at_most("the length of a title", len(text), _LONGER)
    result = FILTERS["title"](text)
    if type(text) is not Traced or len(result) != len(text):
        return result  # type: ignore[no-any-return]
    return traced(result, runs_of(text))


def _center(value: Any, width: int = 80) -> str:
    if isinstance(value, Markup):
        return escaped(value).center(width)
    return _as_traced(value).center(width)


@pass_environment
def _attr(environment: Any, obj: Any, name: str) -> Any:
    check_expanded(name)
    if isinstance(obj, (str, bytes, int, float)):
        return environment.getattr(obj, name)
    return FILTERS["attr"](environment, obj, name)


@pass_environment
def _sum(environment: Any, iterable: Any, attribute: Any = None, start: Any = 0) -> Any:
    total = sum((), start)  # The TypeError for strings.
    if attribute is not None:
        iterable = map(make_attrgetter(environment, attribute), iterable)
    for item in ticking(iterable):
        total = add((total, item))
    return total


def _int(value: Any, default: int = 0, base: int = 10) -> int:
    if isinstance(value, str) and len(value) > _DIGITS:
        raise TemplateLimitError(f"a number has {_DIGITS} digits at most in a template")
    return FILTERS["int"](value, default, base)  # type: ignore[no-any-return]


def _list(value: Any) -> list[Any]:
    return sized(listed(value))  # type: ignore[no-any-return]


def _trim(value: Any, chars: str | None = None) -> str:
    text = value if isinstance(value, Markup) else text_of(value)
    charge(len(text))
    check_product(len(text), len(chars or ""))
    return text.strip(chars)


def _forceescape(value: Any) -> Markup:
    return escaped(text_of(value.__html__() if hasattr(value, "__html__") else value))


def _wordcount(s: Any) -> int:
    return sum(1 for _ in ticking(_WORD.finditer(text_of(s))))


def _reverse(value: Any) -> Any:
    charge(len(value) if isinstance(value, str) else 0)
    if isinstance(value, Iterator):
        value = listed(value)
    return FILTERS["reverse"](value)


def _string(value: Any) -> str:
    return value if isinstance(value, str) else text_of(value)


def _at_most(name: str, value: Any, limit: int) -> Any:
    if not isinstance(value, int) or value <= limit:
        return value
    raise TemplateLimitError(f"{name} is {value} in the template, but may be {limit} at most")


def _guarded(
    native: Any, limit: int | None = None, characters: int | None = None
) -> Callable[..., Any]:
    """The filter or test with bounds: for what is in containers that it is given, and for its
    result; for numbers and texts, too, where `limit` and `characters` say so."""
    first = 1 if hasattr(native, "jinja_pass_arg") else 0

    def guarded(*args: Any, **kwargs: Any) -> Any:
        given = args[first:]
        if given and not isinstance(given[0], _QUICK) and isinstance(given[0], Iterator):
            given = (listed(given[0]), *given[1:])
        for value in (*given, *kwargs.values()):
            if isinstance(value, str):
                charge(16 * len(value))
                size = len(value)
            else:
                check_expanded(value)
                size = 0 if characters is None else expanded(value, {})[0]
            if limit is not None and isinstance(value, int):
                _at_most("a number", value, limit)
            if characters is not None and size > characters:
                raise TemplateLimitError(
                    f"the filter {native.__name__} is given {size} characters in the template, "
                    f"but takes {characters} at most"
                )
        return sized(native(*args[:first], *given, **kwargs))

    if first:
        guarded.jinja_pass_arg = native.jinja_pass_arg  # type: ignore[attr-defined]
    return guarded


def guarded_tests() -> dict[str, Callable[..., Any]]:
    """The tests that compare, hash or read what they are given, by name."""
    names = {"==": "eq", "equalto": "eq", "!=": "ne", ">": "gt", "greaterthan": "gt", "ge": "gteq"}
    names |= {">=": "gteq", "<": "lt", "lessthan": "lt", "le": "lteq", "<=": "lteq"}
    names |= {name: name for name in ("eq", "ne", "gt", "lt", "in")}
    return {
        **{name: COMPARISONS[comparison] for name, comparison in names.items()},
        **{name: _guarded(TESTS[name]) for name in ("filter", "lower", "test", "upper")},
    }


def string_filters() -> dict[str, Callable[..., Any]]:
    """What stands in place of Jinja's filters, by name."""
    return {
        **{name: _guarded(native) for name, native in FILTERS.items() if name not in _SHALLOW},
        **{name: _guarded(FILTERS[name], _LONG, _LONG) for name in _SLOW},
        **{name: _guarded(FILTERS[name], _LONGER, _LONGER) for name in _LINEAR},
        "attr": _attr,
        "batch": _guarded(FILTERS["batch"], MAX_RANGE),
        "center": _center,
        "e": escaped,
        "escape": escaped,
        "forceescape": _forceescape,
        "format": _format,
        "indent": _indent,
        "int": _int,
        "join": _join,
        "list": _list,
        "replace": _replace,
        "reverse": _reverse,
        "round": _guarded(FILTERS["round"], 300),
        "safe": marked_safe,
        "slice": _guarded(FILTERS["slice"], MAX_RANGE),
        "string": _string,
        "sum": _sum,
        "title": _title,
        "tojson": tojson,
        "trim": _trim,
        "wordcount": _wordcount,
    }
