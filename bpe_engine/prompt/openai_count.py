"""Counts the tokens of a request to OpenAI's chat API, by the rule that OpenAI has published.

The rule is in "How to count tokens with tiktoken" of OpenAI's cookbook. It is written for gpt-3.5-turbo,
gpt-4 and gpt-4o, whose templates are not published; OpenAI calls its results estimates.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..core import Encoding
from ..model import encoding_for_model

__all__ = ["count_chat_tokens"]

#: Tokens around each message, with a name, and before the reply.
_MESSAGE, _NAME, _REPLY = 3, 1, 3

#: Tokens around each function, by encoding; after all; around properties; around their values.
_FUNCTION = {"cl100k_base": 10, "o200k_base": 7}
_FUNCTIONS, _PROPERTIES, _PROPERTY, _ENUM, _VALUE = 12, 3, 3, -3, 3

#: Beginnings of the models that the rule is for, and of those among them that it is not for.
_MODELS = ("gpt-3.5-turbo", "gpt-4", "chatgpt-4o-", "ft:gpt-3.5-turbo", "ft:gpt-4")
_OTHERS = ("gpt-3.5-turbo-0301", "gpt-4.", "ft:gpt-4.")


def count_chat_tokens(
    messages: Iterable[Mapping[str, Any]],
    model: str,
    tools: Sequence[Mapping[str, Any]] = (),
) -> int:
    """Counts the tokens of messages and tools as OpenAI's chat API does, by its published rule.

    Args:
        messages: As in a request. All fields must be strings, such as ``role``, ``content`` and
            ``name``.
        model: The name of a model of the families gpt-3.5-turbo, gpt-4 and gpt-4o.
        tools: Functions, as in a request. Properties have a ``type``, a ``description`` and perhaps
            an ``enum`` of strings.

    Returns:
        The number of tokens of the prompt, the beginning of the reply included.

    Raises:
        ValueError: OpenAI has published no rule for the model, for a field of a message, or for a
            part of a function; the error names it.
        KeyError: No encoding is known for the model.

    >>> from bpe_engine.prompt import count_chat_tokens
    >>> chat = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "1 + 1?"}]
    >>> count_chat_tokens(chat, "gpt-4o")
    19
    """
    encoding = encoding_for_model(model)
    if not model.startswith(_MODELS) or model.startswith(_OTHERS):
        raise ValueError(
            f"no rule is published for {model!r}, only for gpt-3.5-turbo, gpt-4 and gpt-4o; where the "
            "model's template is public, count the segments of render_chat or render_template"
        )
    total = _REPLY
    for place, message in enumerate(messages):
        total += _MESSAGE + (_NAME if "name" in message else 0)
        for field, value in message.items():
            if not isinstance(value, str):
                kind = "None" if value is None else f"a {type(value).__name__}"
                raise ValueError(
                    f"messages[{place}][{field!r}] is {kind}, and the published rule counts strings "
                    "only: neither calls of tools nor parts of a content have a published count"
                )
            total += encoding.count(value)
    for place, tool in enumerate(tools):
        total += _count_function(tool, f"tools[{place}]", encoding)
    return total + (_FUNCTIONS if tools else 0)


def _count_function(tool: Mapping[str, Any], where: str, encoding: Encoding) -> int:
    function = _part(tool, "function", where, Mapping)
    where += "['function']"
    name, description = (_part(function, key, where, str) for key in ("name", "description"))
    total = _FUNCTION[encoding.name] + encoding.count(f"{name}:{_without_dot(description)}")
    parameters = function.get("parameters") or {"properties": {}}
    where += "['parameters']"
    properties = _part(parameters, "properties", where, Mapping)
    for name, schema in properties.items():
        place = f"{where}['properties'][{name!r}]"
        if unknown := sorted(set(schema) - {"type", "description", "enum"}):
            raise ValueError(f"{place} has {unknown[0]!r}, which the published rule does not count")
        kind, description = (_part(schema, key, place, str) for key in ("type", "description"))
        total += _PROPERTY + encoding.count(f"{name}:{kind}:{_without_dot(description)}")
        if "enum" in schema:
            total += _ENUM + sum(_VALUE + encoding.count(value) for value in schema["enum"])
    return total + (_PROPERTIES if properties else 0)


def _part(whole: Mapping[str, Any], key: str, where: str, kind: type) -> Any:
    if not isinstance(whole.get(key), kind):
        raise ValueError(f"{where} lacks {key!r}, which the published rule counts")
    return whole[key]


def _without_dot(text: str) -> str:
    return text[:-1] if text.endswith(".") else text
