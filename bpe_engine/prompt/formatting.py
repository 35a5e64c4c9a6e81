"""Implements ``%`` and ``format`` in templates. Inserted values keep their origin."""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Sequence
from typing import Any

from .limits import size_of, use
from .taint import PIECES, Span, Traced, as_traced, concat, parts_of, text_of

__all__ = ["check_filled", "check_format", "formatted", "percent"]

# %%, or a value's name, layout and type. The last alternative matches any other directive.
_DIRECTIVE = re.compile(
    r"%(?:(%)|(?:\((\w+)\))?([-+ #0]*\d*(?:\.\d+)?)([diouxXeEfFgGcrsa])|[^%]*?[a-zA-Z%])"
)


def percent(text: str, values: Any) -> str:
    """Implements ``text % values`` without escaping. Text that replaces %s keeps its origin."""
    check_filled(text, "%", values)
    text = as_traced(text)
    whole = str.__mod__(text, values)
    if str.count(text, "%") > PIECES:
        return whole
    rest = list(values) if isinstance(values, tuple) else [values]
    found = list(_DIRECTIVE.finditer(text))
    inserted: list[str] = []
    for directive in found:
        if directive[1]:
            inserted.append(text[directive.end() - 1 : directive.end()])
        elif directive[4] and (directive[2] or rest):
            value = values[directive[2]] if directive[2] else rest.pop(0)
            layout = directive[3] + directive[4]
            inserted.append(text_of(value) if layout == "s" else f"%{layout}" % (value,))
        else:
            return whole
    return _filled(text, [directive.span() for directive in found], inserted, whole)


def _filled(format: Traced, spans: list[Span], values: list[str], whole: str) -> str:
    """Returns the format with each span replaced by its value, if the result equals `whole`."""
    ends, starts = [0, *(end for _, end in spans)], [*(start for start, _ in spans), len(format)]
    literals = parts_of(format, zip(ends, starts))
    result = concat([each for pair in zip(literals, [*values, ""]) for each in pair])
    return result if result == whole else whole


def formatted(text: str, args: Sequence[Any], kwargs: Any, native: Callable[[], str]) -> str:
    """Implements ``text.format(*args, **kwargs)``; `native` formats without origins."""
    check_format(text, (*args, *kwargs.values()) if isinstance(kwargs, dict) else (kwargs,))
    whole = native()
    text = as_traced(text)
    spans: list[Span] = []
    inserted: list[str] = []
    at = next_argument = 0
    if str.count(text, "{") > PIECES:
        return whole
    for literal, name, spec, conversion in string.Formatter().parse(str.__str__(text)):
        if "{" in literal or "}" in literal:
            return whole
        at += len(literal)
        if name is None:
            continue
        if not (name == "" or name.isdigit() or name.isidentifier()):
            return whole
        if name == "":
            value, next_argument = args[next_argument], next_argument + 1
        else:
            value = args[int(name)] if name.isdigit() else kwargs[name]
        end = str.index(text, "}", at) + 1
        spans.append((at, end))
        if spec or conversion:
            inserted.append(str.__str__(text)[at:end].replace(f"{{{name}", "{", 1).format(value))
        else:
            inserted.append(text_of(value))
        at = end
    return _filled(text, spans, inserted, whole)


_NUMBER = re.compile(r"\d+")
# A width of *, which consumes a value and cannot follow a name in brackets.
_STAR = re.compile(r"%[^a-zA-Z%(]*\*")


def check_filled(format: str, sign: str, values: Any) -> None:
    """Counts the maximum output of a format whose directives begin with `sign`. Each directive may
    insert the longest value, padded to a width or precision."""
    count = str.count(format, sign)
    if count == 0:
        return
    size = size_of(values)
    if not (isinstance(values, tuple) and sign == "%"):
        # A format can use each value any number of times.
        items = (*values.values(), None) if isinstance(values, dict) else values
        items = items if isinstance(items, tuple) else (items,)
        size += count * max(map(size_of, items), default=0)
    size += sum(int(number[0][:12]) for number in _NUMBER.finditer(format))
    use(len(format) + size)
    if sign == "%" and _STAR.search(format):
        raise ValueError("a format with a width or precision of * is not allowed in a template")


def check_format(format: str, values: tuple[Any, ...]) -> None:
    """Counts the maximum output of ``format.format(*values)``."""
    check_filled(format, "{", values)
    parsed = string.Formatter().parse(str.__str__(format))
    if any("{" in (spec or "") for _, _, spec, _ in parsed):
        raise ValueError("a format whose width is a value is not allowed in a template")
