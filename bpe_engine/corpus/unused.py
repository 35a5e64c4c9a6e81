"""Notes on fields of a row that belong to its conversation, and that the chat template does not get."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from ..texts.fields import field_path, joined_path
from .plan import NOT_VARIABLES, Options

__all__ = ["unused_fields"]


class _Names(NamedTuple):
    variables: frozenset[str]
    #: Keys that the template reads of objects, and texts.
    keys: frozenset[str]
    #: Texts that the template compares with, such as roles.
    compared: frozenset[str]


def unused_fields(options: Options, messages: Any, others: dict[str, Any]) -> Iterator[str]:
    """Yields a note for each field that the template does not get and that

    - describes functions, in the row or in a message,
    - has the name of a variable or a role of the template,
    - is an object with the name of a variable among its keys, or
    - is a list of objects other than messages.
    """
    names = _names(options.template or "")
    used = [name for name in (options.tools, options.id_field) if name is not None]
    used = [options.field, *used, *options.template_fields.values()]
    for name, value in others.items():
        is_used = any(field == name or field.startswith(f"{name}.") for field in used)
        if not is_used and (reason := _reason(options, name, value, others, names)):
            yield f"the field {name!r} is not rendered; {reason}"
    for message in messages if isinstance(messages, (list, tuple)) else ():
        for key, value in message.items() if isinstance(message, Mapping) else ():
            if key not in names.keys and _describes_functions(value):
                yield (
                    f"{key!r} of a message is not rendered; give tools in a field of the row, and name "
                    "the field with --tools"
                )


@lru_cache(8)
def _names(template: str) -> _Names:
    from jinja2 import nodes

    from ..prompt import ChatTemplate

    known = ChatTemplate(template)
    tree = known.parsed()
    compared = [
        text.value
        for operand in tree.find_all(nodes.Operand)
        for text in (operand.expr, *operand.expr.find_all(nodes.Const))
        if isinstance(text, nodes.Const)
    ]
    keys = [text.value for text in tree.find_all(nodes.Const)]
    keys += [part.attr for part in tree.find_all(nodes.Getattr)]
    return _Names(
        known.variables,
        *(frozenset(text for text in texts if isinstance(text, str)) for texts in (keys, compared)),
    )


def _reason(
    options: Options, name: str, value: Any, others: dict[str, Any], names: _Names
) -> str | None:
    """Returns the way to render a field; None outside conversations."""
    if value in (None, "", [], {}):
        return None
    path = field_path(name)
    if path[-1] in names.variables - NOT_VARIABLES - options.template_variables.keys():
        return f"--template-field {path[-1]}={name} gives it to the template"
    if _describes_functions(value):
        if "tools" not in names.variables:
            return "the template reads no tools"
        if options.tools in others:
            return f"the tools of the row are in {options.tools!r}"
        return f"--tools {name} gives it to the template"
    if isinstance(value, dict):
        inner = sorted((value.keys() & names.variables) - NOT_VARIABLES)
        field = joined_path([*path, *inner[:1]])
        return (
            f"--template-field {inner[0]}={field} gives {inner[0]!r} to the template"
            if inner
            else None
        )
    if isinstance(value, str) and path[-1] in names.compared:
        return f"write the text as a message with the role {path[-1]!r}"
    if isinstance(value, list) and all(isinstance(it, dict) and "role" not in it for it in value):
        return f"the template has no variable {path[-1]!r}"
    return None


def _describes_functions(value: Any) -> bool:
    """True for function descriptions, as objects or as a JSON string."""
    if isinstance(value, str):
        if value.lstrip()[:1] not in ("[", "{"):
            return False
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return False
    tools = value if isinstance(value, list) else [value]
    return bool(tools) and all(map(_is_tool, tools))


def _is_tool(tool: Any) -> bool:
    function = tool.get("function", tool) if isinstance(tool, dict) else None
    # A call has arguments.
    if not isinstance(function, dict) or "name" not in function or "arguments" in function:
        return False
    return "function" in tool or not function.keys().isdisjoint({"parameters", "input_schema"})
