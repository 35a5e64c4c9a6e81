"""Notes on unused fields of a row that belong to its conversation."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any, NamedTuple

from ..texts.fields import field_path, joined_path
from .plan import NOT_VARIABLES, Options

__all__ = ["unused_fields"]


#: Keys by which data formats exclude assistant messages from training.
_WEIGHTS = ("weight", "loss", "loss_weight", "train", "trainable")


class _Names(NamedTuple):
    variables: frozenset[str]
    #: Keys of objects that the template reads, and texts in the template.
    keys: frozenset[str]
    #: Strings that the template compares values with, such as roles.
    compared: frozenset[str]


def unused_fields(options: Options, messages: Any, others: dict[str, Any]) -> Iterator[str]:
    """Yields a note for each field that the template does not get and that

    - describes functions, in the row or in a message,
    - has the name of a variable or a role of the template, or is a system prompt,
    - is an object with the name of a variable among its keys, or
    - is a list of objects other than messages,

    for weights of 0 under a key other than `Options.weight_key`, and for variables that the
    template does not read.
    """
    names = _names(options.template or "")
    given = [*options.template_fields, *options.template_variables]
    yield from (
        f"the template has no variable {name!r}" for name in given if name not in names.variables
    )
    used = [name for name in (options.tools, options.id_field) if name is not None]
    used = [options.field, *used, *options.template_fields.values()]
    for name, value in others.items():
        is_used = any(field == name or field.startswith(f"{name}.") for field in used)
        if not is_used and (reason := _reason(options, name, value, others, names)):
            yield f"the field {name!r} is not rendered; {reason}"
    for message in messages if isinstance(messages, (list, tuple)) else ():
        for key, value in message.items() if isinstance(message, Mapping) else ():
            if key in names.keys:
                continue
            if _describes_functions(value):
                yield (
                    f"{key!r} of a message is not rendered; give tools in a field of the row, and name "
                    "the field with --tools"
                )
            is_zero = isinstance(value, (int, float)) and not value
            if is_zero and key in _WEIGHTS and message.get("role") == "assistant":
                if key != options.weight_key:
                    yield (
                        f"{key!r} of a message is {value!r} and not used; --weight-key {key} omits the "
                        "message from the mask"
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
    """Returns the advice on how to render a field; None for a field outside the conversation."""
    if value in (None, "", [], {}):
        return None
    path = field_path(name)
    if path[-1] in names.variables - NOT_VARIABLES - options.template_variables.keys():
        return f"--template-field {path[-1]}={name} gives it to the template"
    parsed = _parsed(value)
    if _describes_functions(parsed):
        if "tools" not in names.variables:
            return "the template reads no tools"
        if options.tools in others:
            return f"the tools of the row are in {options.tools!r}"
        return f"--tools {name} gives it to the template"
    if isinstance(parsed, dict):
        inner = sorted((parsed.keys() & names.variables) - NOT_VARIABLES)
        if not inner:
            return None
        if parsed is not value:
            return (
                f"the text is JSON with the variable {inner[0]!r} of the template; give an object"
            )
        field = joined_path([*path, inner[0]])
        return f"--template-field {inner[0]}={field} gives {inner[0]!r} to the template"
    role = path[-1].removesuffix("_prompt").removesuffix("_message")
    if isinstance(value, str) and (role == "system" or role in names.compared):
        return f"write the text as a message with the role {role!r}"
    if isinstance(value, list) and all(isinstance(it, dict) and "role" not in it for it in value):
        return f"the template has no variable {path[-1]!r}"
    return None


def _parsed(value: Any) -> Any:
    """Parses text that is a JSON object or list; returns other values unchanged."""
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        with suppress(ValueError, RecursionError):
            return json.loads(value)
    return value


def _describes_functions(value: Any) -> bool:
    """Returns True for function descriptions, as objects or as a JSON string."""
    value = _parsed(value)
    tools = value if isinstance(value, list) else [value]
    return bool(tools) and all(map(_is_tool, tools))


def _is_tool(tool: Any) -> bool:
    function = tool.get("function", tool) if isinstance(tool, dict) else None
    # An object with arguments is a call.
    if not isinstance(function, dict) or "name" not in function or "arguments" in function:
        return False
    return "function" in tool or not function.keys().isdisjoint({"parameters", "input_schema"})
