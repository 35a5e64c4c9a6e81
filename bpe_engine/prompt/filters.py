"""The filters of the template language that build strings, so that they keep origins; and bounds
for those that could be asked for a lot. Every other filter is Jinja's own."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from jinja2 import pass_environment, pass_eval_context
from jinja2.filters import FILTERS, make_attrgetter
from jinja2.nodes import EvalContext
from jinja2.sandbox import MAX_RANGE
from markupsafe import Markup

from .limits import TemplateLimitError, check_size
from .origin import Traced, concat, percent, runs_of, text_of, traced, trusted

__all__ = ["string_filters", "tojson"]

# For filters whose time is more than linear in the text, and which lose its origin anyway.
_SLOW = ("striptags", "urlize", "wordwrap", "xmlattr", "pprint", "filesizeformat")
_SLOW_CHARACTERS = 1 << 16


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
        return FILTERS["join"](context, value, d, attribute)  # type: ignore[no-any-return]
    if attribute is not None:
        value = map(make_attrgetter(context.environment, attribute), value)
    return _as_traced(d).join(map(text_of, value))


@pass_eval_context
def _replace(context: EvalContext, s: Any, old: Any, new: Any, count: int | None = None) -> str:
    if context.autoescape:
        return FILTERS["replace"](context, s, old, new, count)  # type: ignore[no-any-return]
    return _as_traced(s).replace(text_of(old), text_of(new), -1 if count is None else count)


def _indent(s: str, width: int | str = 4, first: bool = False, blank: bool = False) -> str:
    if isinstance(s, Markup):
        return FILTERS["indent"](s, width, first, blank)  # type: ignore[no-any-return]
    indention = width if isinstance(width, str) else " " * _at_most("width", width, 10_000)
    lines = (_as_traced(s) + trusted("\n")).splitlines()
    check_size(len(s) + len(lines) * len(indention))
    rest = [indention + line if line or blank else line for line in lines[1:]]
    return concat([indention if first else "", _as_traced("\n").join([lines[0], *rest])])


def _format(value: Any, *args: Any, **kwargs: Any) -> str:
    if args and kwargs:
        raise TypeError("can't handle positional and keyword arguments at the same time")
    if hasattr(value, "__html__"):
        return value % (kwargs or args)  # type: ignore[no-any-return]
    return percent(text_of(value), kwargs or args)


def _title(s: Any) -> str:
    text = text_of(s)
    result = FILTERS["title"](text)
    if type(text) is not Traced or len(result) != len(text):
        return result  # type: ignore[no-any-return]
    return traced(result, runs_of(text))


def _center(value: Any, width: int = 80) -> str:
    return _as_traced(value).center(width)


@pass_environment
def _attr(environment: Any, obj: Any, name: str) -> Any:
    if isinstance(obj, (str, bytes, int, float)):
        return environment.getattr(obj, name)
    return FILTERS["attr"](environment, obj, name)


def _at_most(name: str, value: Any, limit: int) -> Any:
    if not isinstance(value, int) or value <= limit:
        return value
    raise TemplateLimitError(f"{name} is {value} in the template, but may be {limit} at most")


def _bounded(name: str, argument: str, limit: int) -> Callable[..., Any]:
    """The filter with a bound for its first argument."""
    native = FILTERS[name]
    first = 1 if hasattr(native, "jinja_pass_arg") else 0

    def bounded(*args: Any, **kwargs: Any) -> Any:
        for number in (*args[first + 1 : first + 2], kwargs.get(argument)):
            _at_most(argument, number, limit)
        return native(*args, **kwargs)

    return _passed_as(native, bounded)


def _passed_as(native: Callable[..., Any], filter: Callable[..., Any]) -> Callable[..., Any]:
    """The filter, which is given the environment if `native` is."""
    if hasattr(native, "jinja_pass_arg"):
        filter.jinja_pass_arg = native.jinja_pass_arg  # type: ignore[attr-defined]
    return filter


def _for_short_texts(name: str) -> Callable[..., Any]:
    """The filter with a bound for its text."""
    native = FILTERS[name]
    first = 1 if hasattr(native, "jinja_pass_arg") else 0

    def bounded(*args: Any, **kwargs: Any) -> Any:
        text = args[first]
        if isinstance(text, str) and len(text) > _SLOW_CHARACTERS:
            raise TemplateLimitError(
                f"the filter {name} is given a text of {len(text)} characters in the template, "
                f"but takes {_SLOW_CHARACTERS} at most"
            )
        for number in args[first + 1 :]:
            _at_most("a number", number, _SLOW_CHARACTERS)
        return native(*args, **kwargs)

    return _passed_as(native, bounded)


def string_filters() -> dict[str, Callable[..., Any]]:
    """What stands in place of Jinja's filters, by name."""
    return {
        "attr": _attr,
        "batch": _bounded("batch", "linecount", MAX_RANGE),
        "center": _center,
        "format": _format,
        "indent": _indent,
        "join": _join,
        "replace": _replace,
        "round": _bounded("round", "precision", 300),
        "slice": _bounded("slice", "slices", MAX_RANGE),
        "title": _title,
        "tojson": tojson,
        **{name: _for_short_texts(name) for name in _SLOW},
    }
