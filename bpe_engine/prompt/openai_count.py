"""Counts the tokens of requests to OpenAI's chat API, exactly where OpenAI has published a rule.

The rule is in "How to count tokens with tiktoken" of OpenAI's cookbook. It covers gpt-3.5-turbo,
gpt-4 and gpt-4o with strings and functions with flat parameters. All other content counts as text
with the same surrounding tokens, and is listed as an estimate.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..common.values import checked, for_json, safe_repr
from ..core import Encoding
from ..model import encoding_for_model
from .fields import field_of, value_of
from .pictures import picture_tokens
from .segments import Origin

__all__ = ["ChatTokens", "count_chat_tokens"]

#: Extra tokens around each message, for a name, and before the reply.
_MESSAGE, _NAME, _REPLY = 3, 1, 3

#: Tokens around each function, by encoding; after all functions; around properties; around property
#: values.
_FUNCTION = {"cl100k_base": 10, "o200k_base": 7, "o200k_harmony": 7}
_FUNCTIONS, _PROPERTIES, _PROPERTY, _ENUM, _VALUE = 12, 3, 3, -3, 3

#: Name prefixes of models covered by the rule, and of models excepted from it.
_MODELS = ("gpt-3.5-turbo", "gpt-4", "chatgpt-4o-", "ft:gpt-3.5-turbo", "ft:gpt-4")
_OTHERS = ("gpt-3.5-turbo-0301", "gpt-4.", "ft:gpt-4.")

#: Content parts whose token count depends on more than text.
_NOT_TEXT = ("image", "audio", "file")
#: Fields that the API takes as strings. An object from the caller becomes JSON.
_STRINGS = frozenset(["arguments", "content", "input", "output"])
#: Keys of the API's own objects in a message. Any other object counts as its JSON.
_KEYS = _STRINGS | frozenset("custom detail format function id name refusal text type".split())


def _is_object(field: Any, value: Any) -> bool:
    """Returns True for an object or list in a string field of the API, which is sent as JSON.

    Contents and results may be lists of parts, each with a type.
    """
    if field not in _STRINGS or isinstance(value, str):
        return False
    if not isinstance(value, (list, tuple)):
        return isinstance(value, Mapping)
    if field in ("arguments", "input"):
        return True
    return not all(
        isinstance(part, str) or isinstance(part, Mapping) and "type" in part for part in value
    )


class ChatTokens(int):
    """A token count that lists its estimated parts.

    >>> from bpe_engine.prompt import count_chat_tokens
    >>> count = count_chat_tokens([{"role": "user", "content": "1 + 1?"}], "gpt-5")
    >>> count + 1, count.exact, count.estimates
    (13, False, ['the model: OpenAI has published no rule for gpt-5'])
    """

    #: Parts not covered by the published rule, each with the reason.
    estimates: list[str]

    def __new__(cls, count: int, estimates: Iterable[str] = ()) -> ChatTokens:
        made = super().__new__(cls, count)
        made.estimates = list(estimates)
        return made

    @property
    def exact(self) -> bool:
        """Whether the published rule covers the whole request."""
        return not self.estimates


def count_chat_tokens(
    messages: str | Iterable[Mapping[str, Any]],
    model: str,
    tools: Sequence[Mapping[str, Any]] | None = (),
) -> ChatTokens:
    """Counts the tokens of messages and tools as in OpenAI's chat API.

    Args:
        messages: Messages of a request, or input items of a response, with content parts, tool
            calls and tool results; or the text of one message.
        model: Name of an OpenAI chat model. Dated and fine-tuned variants are found by name prefix.
        tools: Tools of the request. Parameters may be any JSON schema.

    Returns:
        Number of tokens of the prompt, including the beginning of the reply. The number is
        ``exact`` for gpt-3.5-turbo, gpt-4 and gpt-4o, messages of strings and functions with flat,
        described parameters: OpenAI has published a rule for these. All other content is listed in
        ``estimates``. Pictures count by the published tile prices if the model has one, and
        `detail` is "low" or the picture is a PNG, GIF or JPEG in a data URL. Other pictures, audio
        and files count 0.

    Raises:
        TypeError: The messages are a single mapping, or a message is not a mapping.
        ValueError: The model is not an OpenAI chat model; or a value is nested too deeply or
            contains itself.
        KeyError: No encoding is known for the model.

    >>> from bpe_engine.prompt import count_chat_tokens
    >>> chat = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "1 + 1?"}]
    >>> count = count_chat_tokens(chat, "gpt-4o")
    >>> count, count.exact
    (19, True)
    """
    parts, estimates = counted_parts(messages, model, tools)
    return ChatTokens(sum(count for _, count in parts), estimates)


def counted_parts(
    messages: str | Iterable[Mapping[str, Any]],
    model: str,
    tools: Iterable[Any] | None,
) -> tuple[list[tuple[Origin, int]], list[str]]:
    """Returns the parts of a request, each with its number of tokens; and the estimates.

    The field "template" counts the tokens around a message, or around the request.
    """
    if isinstance(messages, str):
        messages = [{"role": "user", "content": messages}]
    if isinstance(messages, Mapping):
        raise TypeError("the messages are one mapping; give a list of messages")
    counter = _Counter(_encoding(model), model)
    parts: list[tuple[Origin, int]] = []
    try:
        for at, tool in enumerate(checked(tools or ())):
            count = counter.function(tool, f"tools[{at}]")
            parts.append((Origin(None, None, "tools", (at,)), count))
        for at, message in enumerate(messages):
            role = value_of(message, "role")
            parts.append((Origin(at, role, "template"), _MESSAGE))
            for key, count in counter.fields(message, f"messages[{at}]"):
                if count:
                    parts.append((Origin(at, role, field_of(str(key)), (key,)), count))
    except RecursionError:
        raise ValueError(
            "the messages or tools are nested too deeply, or hold themselves"
        ) from None
    parts.append((Origin(None, None, "template"), _REPLY + (_FUNCTIONS if tools else 0)))
    return parts, counter.estimates


_OTHER_MODELS = (
    "count_chat_tokens counts for OpenAI's models. For another one, open its folder and count what its "
    "template renders: t = bpe_engine.Tokenizer.from_pretrained(folder); prompt.count_segments(t, "
    "prompt.render_template(t.chat_template, messages, tools=tools, tokenizer=t)). For an estimate, "
    "name a model of OpenAI, such as 'gpt-4o' (o200k_base) or 'gpt-4' (cl100k_base)"
)


def _encoding(model: str) -> Encoding:
    try:
        return encoding_for_model(model)
    except KeyError:
        raise KeyError(
            f"no encoding is known for the model {safe_repr(model)}: {_OTHER_MODELS}"
        ) from None


class _Counter:
    """Counts the parts of one request, and records the estimates."""

    def __init__(self, encoding: Encoding, model: str):
        if encoding.name not in _FUNCTION:
            raise ValueError(f"{safe_repr(model)} is not a chat model of OpenAI: {_OTHER_MODELS}")
        self._encoding = encoding
        self._model = model
        self.estimates: list[str] = []
        if not model.startswith(_MODELS) or model.startswith(_OTHERS):
            self._guess("the model", f"OpenAI has published no rule for {model}")

    def _guess(self, where: str, reason: str) -> None:
        self.estimates.append(f"{where}: {reason}")

    def fields(self, message: Any, where: str) -> Iterator[tuple[Any, int]]:
        """Yields each key of a message, or of a response's input item, with its number of
        tokens."""
        if not isinstance(message, Mapping):
            raise TypeError(
                f"{where} must be a mapping such as {{'role': 'user', 'content': 'Hi'}}, not "
                f"{type(message).__name__}"
            )
        for field, value in message.items():
            count = _NAME if field == "name" else 0
            if value is not None and not (isinstance(value, (list, dict)) and not value):
                place = f"{where}[{field!r}]"
                if not isinstance(value, str) or field not in ("role", "name", "content"):
                    self._guess(place, "counted by its text")
                is_json = _is_object(field, value)
                count += self._json(value) if is_json else self._text(value, place)
            yield field, count

    def _json(self, value: Any) -> int:
        """Returns the number of tokens in a value's JSON, which the API receives as a string."""
        if not isinstance(value, str):
            value = json.dumps(value, ensure_ascii=False, default=for_json)
        return self._encoding.count(value)

    def _text(self, value: Any, where: str) -> int:
        """Returns the number of tokens in a value's strings, such as content parts and tool
        calls."""
        if isinstance(value, Mapping):
            kind = str(value.get("type", ""))
            if any(name in kind for name in _NOT_TEXT):
                tokens = picture_tokens(value, self._model)
                self._guess(
                    where,
                    f"{kind} counts 0"
                    if tokens is None
                    else f"{kind} counts {tokens}, by its tiles",
                )
                return tokens or 0
            if not value.keys() <= _KEYS:
                return self._json(value)
            own = [(key, part) for key, part in value.items() if key not in ("type", "id")]
            return sum(
                self._json(part) if _is_object(key, part) else self._text(part, f"{where}[{key!r}]")
                for key, part in own
            )
        if isinstance(value, (list, tuple)):
            return sum(self._text(part, f"{where}[{at}]") for at, part in enumerate(value))
        return self._json(value)

    def function(self, tool: Any, where: str) -> int:
        """Returns a tool's number of tokens."""
        function = tool.get("function", tool) if isinstance(tool, Mapping) else tool
        if not isinstance(function, Mapping) or "name" not in function:
            self._guess(where, "counted by its text")
            return _FUNCTION[self._encoding.name] + self._text(tool, where)
        where += "['function']" if "function" in tool else ""
        total = _FUNCTION[self._encoding.name] + self._line(function, "name", where)
        parameters, where = function.get("parameters") or {}, f"{where}['parameters']"
        if not isinstance(parameters, Mapping):
            self._guess(where, "is not a schema of properties")
            return total + self._text(parameters, where)
        return total + self._properties(parameters.get("properties"), where)

    def _line(self, part: Mapping[str, Any], *keys: str) -> int:
        """Returns the number of tokens in a line of names and a description, laid out as the last
        of `keys` requires."""
        *names, where = keys
        if not isinstance(part.get("description"), str):
            self._guess(where, "has no description")
        description = str(part.get("description") or "")
        texts = [str(part.get(name, "")) for name in names]
        return self._encoding.count(":".join([*texts, description.removesuffix(".")]))

    def _properties(self, properties: Any, where: str) -> int:
        if not isinstance(properties, Mapping) or not properties:
            return 0
        return _PROPERTIES + sum(
            self._property(name, schema, f"{where}['properties'][{name!r}]")
            for name, schema in properties.items()
        )

    def _property(self, name: str, schema: Any, where: str) -> int:
        if not isinstance(schema, Mapping):
            self._guess(where, "is not a schema")
            return self._text(schema, where)
        kind = schema.get("type", "")
        if not isinstance(kind, str) or not kind:
            self._guess(where, f"has the type {safe_repr(kind)}")
            kind = " | ".join(map(str, kind)) if isinstance(kind, (list, tuple)) else ""
        line = {"name": name, "type": kind, "description": schema.get("description")}
        total = _PROPERTY + self._line(line, "name", "type", where)
        values = schema.get("enum")
        if isinstance(values, (list, tuple)):
            total += _ENUM + sum(_VALUE + self._encoding.count(str(value)) for value in values)
        for key in sorted(set(schema) - {"type", "description", "enum"}):
            self._guess(f"{where}[{key!r}]", "counted by its text")
            total += (
                self._properties(schema[key], where)
                if key == "properties"
                else self._text(schema[key], where)
            )
        return total
