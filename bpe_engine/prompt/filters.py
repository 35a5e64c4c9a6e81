"""Filters and tests of the template language. Filters that build strings keep origins; other
filters are Jinja's own. All filters count their cost."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from jinja2 import pass_environment, pass_eval_context
from jinja2.filters import FILTERS, make_attrgetter
from jinja2.nodes import EvalContext
from jinja2.tests import TESTS
from markupsafe import Markup

from .escaped import escaped, marked_safe
from .formatting import percent
from .labels import found, opened
from .language import COMPARISONS, OPERATORS, add, counted
from .limits import ITEM, STRING, TemplateLimitError, size_of, use
from .taint import Traced, as_traced, by_character, concat, labeled, text_of, written_of

__all__ = ["counted_tests", "string_filters", "tojson"]

_DIGITS = 4300


def tojson(
    x: Any,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """Returns JSON as transformers formats it, without HTML escapes. The result is untrusted."""
    use(STRING + size_of(x))
    encoder = json.JSONEncoder(
        ensure_ascii=ensure_ascii,
        indent=str.__str__(indent) if isinstance(indent, str) else indent,
        separators=separators and (str.__str__(separators[0]), str.__str__(separators[1])),
        sort_keys=sort_keys,
    )
    if indent is None:
        return _composed(x, encoder)
    use(0 if isinstance(indent, str) else indent)
    return written_of(x, lambda value: "".join(map(counted, encoder.iterencode(value))))


def _composed(x: Any, encoder: json.JSONEncoder) -> str:
    """Returns the JSON of a value created by the template. Its parts keep their origin."""
    write = encoder.encode
    if type(x) not in (dict, list):
        return written_of(x, write)
    flags, plain = found(x)
    if flags:
        return labeled(write(plain), flags)
    x = opened(x)
    if not x:
        return write(x)
    comma, colon = encoder.item_separator, encoder.key_separator
    parts: list[str] = []
    if type(x) is list:
        for item in x:
            parts += (comma, _composed(item, encoder))
        return concat(["[", *parts[1:], "]"])
    for key in sorted(x) if encoder.sort_keys else x:
        if type(key) is Traced or type(key) is str:
            parts += (comma, written_of(key, write), colon)
        else:
            return write(x)  # JSON converts such keys to strings.
        parts.append(_composed(x[key], encoder))
    return concat(["{", *parts[1:], "}"])


@pass_eval_context
def _join(context: EvalContext, value: Any, d: str = "", attribute: Any = None) -> str:
    if context.autoescape:
        value = list(value)
        use(size_of(d) * len(value))
        return FILTERS["join"](context, value, d, attribute)  # type: ignore[no-any-return]
    if attribute is not None:
        value = map(make_attrgetter(context.environment, attribute), value)
    return as_traced(d).join(map(text_of, value))


@pass_eval_context
def _replace(context: EvalContext, s: Any, old: Any, new: Any, count: int | None = None) -> str:
    if context.autoescape:
        use(size_of(s) * size_of(new))
        return FILTERS["replace"](context, s, old, new, count)  # type: ignore[no-any-return]
    return as_traced(s).replace(text_of(old), text_of(new), -1 if count is None else count)


def _indent(s: str, width: int | str = 4, first: bool = False, blank: bool = False) -> str:
    if not isinstance(s, str):
        # Jinja would modify the list before failing.
        return FILTERS["indent"](list(s) if type(s) is list else s, width, first, blank)
    if not isinstance(width, str):
        use(width)
    indention = width if isinstance(width, str) else " " * width
    text = as_traced(s)
    lines = text.splitlines()
    last = str.__str__(text)[-1:]
    if not lines or (last != "\r" and last.splitlines() == [""]):
        # `str.splitlines` omits an empty last line.
        lines.append("")
    use(len(lines) * (1 + len(indention)))
    if isinstance(s, Markup):
        return FILTERS["indent"](s, width, first, blank)  # type: ignore[no-any-return]
    parts = [indention if first else "", lines[0]]
    for line in lines[1:]:
        parts += ("\n", indention, line) if line or blank else ("\n", line)
    return concat(parts)


def _format(value: Any, *args: Any, **kwargs: Any) -> str:
    if args and kwargs:
        raise TypeError("can't handle positional and keyword arguments at the same time")
    if hasattr(value, "__html__"):
        return OPERATORS["%"](value, kwargs or args)  # type: ignore[no-any-return]
    return percent(text_of(value), kwargs or args)


_titled = by_character(FILTERS["title"])


def _center(value: Any, width: int = 80) -> str:
    if isinstance(value, Markup):
        return escaped(value).center(width)
    return as_traced(value).center(width)


@pass_environment
def _attr(environment: Any, obj: Any, name: str) -> Any:
    if isinstance(obj, (str, int, float)):
        return environment.getattr(obj, name)
    return FILTERS["attr"](environment, obj, name)


@pass_environment
def _sum(environment: Any, iterable: Any, attribute: Any = None, start: Any = 0) -> Any:
    total = sum((), start)  # Raises Python's TypeError if `start` is a string.
    if attribute is not None:
        iterable = map(make_attrgetter(environment, attribute), iterable)
    for item in iterable:
        total = add((total, item))
    return total


def _int(value: Any, default: int = 0, base: int = 10) -> int:
    if isinstance(value, str) and len(value) > _DIGITS:
        raise TemplateLimitError(f"a number has {_DIGITS} digits at most in a template")
    return FILTERS["int"](value, default, base)  # type: ignore[no-any-return]


def _round(value: float, precision: int = 0, method: Any = "common") -> float:
    if isinstance(precision, int) and precision > 300:
        raise TemplateLimitError(f"a template may round to 300 digits at most, not {precision}")
    return FILTERS["round"](value, precision, method)  # type: ignore[no-any-return]


def _trim(value: Any, chars: str | None = None) -> str:
    text = value if isinstance(value, Markup) else text_of(value)
    use(len(text) if chars is None else len(text) * (1 + size_of(chars) // STRING))
    return text.strip(chars)


def _forceescape(value: Any) -> Markup:
    return escaped(text_of(value.__html__() if hasattr(value, "__html__") else value))


def _string(value: Any) -> str:
    return value if isinstance(value, str) else text_of(value)


# ---- Costs ----


def _deep(*values: Any) -> int:
    return sum(map(size_of, values))


def _slow(*values: Any) -> int:
    return 16 * _deep(*values)


def _quadratic(*values: Any) -> int:
    """Returns the cost of filters whose time or result may be quadratic."""
    return _deep(*values) ** 2 // 256


def _listing(value: Any = None, *others: Any) -> int:
    """Returns the cost of filters that create lists. The length is the length of a value,
    or a numeric argument."""
    size = STRING * len(value) if hasattr(value, "__len__") else 0
    return size + ITEM * max((other for other in others if isinstance(other, int)), default=0)


def _comparing(value: Any = None, *others: Any) -> int:
    return _deep(value, *others) + _listing(value)


def _lazy(value: Any = None, *others: Any) -> int:
    """Returns the cost of filters that read items lazily."""
    return _listing(value) + _deep(*others)


def _counting(items: Iterator[Any]) -> Iterator[Any]:
    for item in items:
        use(STRING)
        yield item


# Filters that run in constant time or count their own cost.
_QUICK = frozenset(["abs", "count", "d", "default", "length", "string", "tojson", "trim"])
_COSTS: dict[str, Callable[..., int]] = {
    **dict.fromkeys(["first", "last", "random"], lambda *values: 0),
    **dict.fromkeys(["map", "reject", "rejectattr", "select", "selectattr"], _lazy),
    **dict.fromkeys(["title", "urlencode", "wordcount"], _slow),
    **dict.fromkeys(["filesizeformat", "float", "pprint", "striptags"], _quadratic),
    **dict.fromkeys(["urlize", "wordwrap", "xmlattr"], _quadratic),
    **dict.fromkeys(["batch", "items", "list", "reverse", "slice"], _listing),
    **dict.fromkeys(["groupby", "max", "min", "sort", "unique"], _comparing),
}
# Wrappers that count the items of an iterator as they are read.
_ITERATING: dict[Any, Callable[[Iterator[Any]], Any]] = {_comparing: list, _lazy: _counting}


def _counted(name: str, native: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the filter or test of this name, wrapped to count its cost."""
    first = 1 if hasattr(native, "jinja_pass_arg") else 0
    cost: Callable[..., int] = _COSTS.get(name, _deep)
    iterating = _ITERATING.get(cost)

    def filtered(*args: Any, **kwargs: Any) -> Any:
        values = tuple(map(opened, args[first:]))
        if iterating is not None and isinstance(values[0], Iterator):
            values = (iterating(values[0]), *values[1:])
        use(STRING + cost(*values, *kwargs.values()))
        return native(*args[:first], *values, **kwargs)

    if first:
        vars(filtered)["jinja_pass_arg"] = vars(native)["jinja_pass_arg"]
    return filtered


def counted_tests() -> dict[str, Callable[..., Any]]:
    """Returns the tests that compare, hash or read their arguments, by name."""
    names = {"==": "eq", "equalto": "eq", "!=": "ne", ">": "gt", "greaterthan": "gt", "ge": "gteq"}
    names |= {">=": "gteq", "<": "lt", "lessthan": "lt", "le": "lteq", "<=": "lteq"}
    names |= {name: name for name in ("eq", "ne", "gt", "lt", "in")}
    tests: dict[str, Any] = TESTS
    return {
        **{name: COMPARISONS[comparison] for name, comparison in names.items()},
        **{name: _counted(name, tests[name]) for name in ("filter", "lower", "test", "upper")},
    }


def string_filters() -> dict[str, Callable[..., Any]]:
    """Returns all filters by name."""
    filters: dict[str, Any] = {
        **FILTERS,
        "attr": _attr,
        "center": _center,
        "e": escaped,
        "escape": escaped,
        "forceescape": _forceescape,
        "format": _format,
        "indent": _indent,
        "int": _int,
        "join": _join,
        "replace": _replace,
        "round": _round,
        "safe": marked_safe,
        "string": _string,
        "sum": _sum,
        "title": lambda s: _titled(as_traced(s)),
        "tojson": tojson,
        "trim": _trim,
    }
    return {
        name: filter if name in _QUICK else _counted(name, filter)
        for name, filter in filters.items()
    }
