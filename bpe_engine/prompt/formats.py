"""Chat formats as data, and `render_chat`, which renders a conversation to segments."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from ..common.values import check_choice, safe_repr
from .fields import REASONING_KEYS
from .segments import Segment

__all__ = [
    "CHATML",
    "FORMATS",
    "HARMONY",
    "LLAMA3",
    "MISTRAL",
    "ChatFormat",
    "Turn",
    "render_chat",
]


@dataclass(frozen=True)
class Turn:
    """The layout of a message. ``{name}`` is replaced by the message's value for that key, which
    is untrusted. All other text is trusted."""

    #: Text that the program writes before the message.
    head: str
    #: Text that a model with this role writes, including the token that ends the text.
    body: str
    #: Text after the message.
    tail: str = ""


@dataclass(frozen=True)
class ChatFormat:
    """A chat format: text before the first message, and a `Turn` for each role.

    Parts of a message may have separate turns: ``call`` for each tool call, with ``{name}`` and
    ``{arguments}``, ``thinking`` for the reasoning, and ``channel`` for a message that names a
    channel.

    >>> import dataclasses
    >>> from bpe_engine.prompt import FORMATS, Turn, render_chat
    >>> turn = Turn("<|im_start|>assistant\\n", "<think>{thinking}</think><|im_end|>", "\\n")
    >>> thinking = dataclasses.replace(FORMATS["chatml"], name="mine", thinking=turn)
    >>> messages = [{"role": "assistant", "reasoning_content": "Hm.", "content": "Yes."}]
    >>> "".join(text for text, *_ in render_chat(messages, thinking))
    '<|im_start|>assistant\\n<think>Hm.</think><|im_end|>\\n<|im_start|>assistant\\nYes.<|im_end|>\\n'
    """

    name: str
    turns: Mapping[str, Turn]
    begin: str = ""
    #: Text that prompts a model for the next message.
    generation: str = ""
    call: Turn | None = None
    thinking: Turn | None = None
    channel: Turn | None = None
    #: Text after all calls of a message.
    after_calls: str = ""


def _like(format: str, roles: Sequence[str], tail: str = "") -> Mapping[str, Turn]:
    head, body = format.split("{content}")
    return MappingProxyType(
        {role: Turn(head.replace("ROLE", role), "{content}" + body, tail) for role in roles}
    )


CHATML = ChatFormat(
    "chatml",
    _like(
        "<|im_start|>ROLE\n{content}<|im_end|>", ["system", "user", "assistant", "tool"], tail="\n"
    ),
    generation="<|im_start|>assistant\n",
    call=Turn(
        "<|im_start|>assistant\n",
        '<tool_call>\n{"name": {name_json}, "arguments": {arguments}}\n</tool_call><|im_end|>',
        "\n",
    ),
)

_LLAMA3 = _like(
    "<|start_header_id|>ROLE<|end_header_id|>\n\n{content}<|eot_id|>",
    ["system", "user", "assistant", "ipython"],
)
LLAMA3 = ChatFormat(
    "llama3",
    MappingProxyType({**_LLAMA3, "tool": _LLAMA3["ipython"]}),
    begin="<|begin_of_text|>",
    generation="<|start_header_id|>assistant<|end_header_id|>\n\n",
    call=Turn(
        "<|start_header_id|>assistant<|end_header_id|>\n\n",
        '{"name": {name_json}, "parameters": {arguments}}<|eot_id|>',
    ),
)

HARMONY = ChatFormat(
    "harmony",
    MappingProxyType(
        {
            **_like("<|start|>ROLE<|message|>{content}<|end|>", ["system", "developer", "user"]),
            "assistant": Turn("<|start|>assistant", "<|channel|>final<|message|>{content}<|end|>"),
            "tool": Turn(
                "<|start|>functions.",
                "{name} to=assistant<|channel|>commentary<|message|>{content}<|end|>",
            ),
        }
    ),
    generation="<|start|>assistant",
    call=Turn(
        "<|start|>assistant",
        "<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>{arguments}<|call|>",
    ),
    thinking=Turn("<|start|>assistant", "<|channel|>analysis<|message|>{thinking}<|end|>"),
    channel=Turn("<|start|>assistant", "<|channel|>{channel}<|message|>{content}<|end|>"),
)

MISTRAL = ChatFormat(
    "mistral",
    MappingProxyType(
        {
            "system": Turn("[SYSTEM_PROMPT]", "{content}[/SYSTEM_PROMPT]"),
            "user": Turn("[INST]", "{content}[/INST]"),
            "assistant": Turn("", "{content}</s>"),
            "tool": Turn("[TOOL_RESULTS]", "{content}[/TOOL_RESULTS]"),
        }
    ),
    begin="<s>",
    call=Turn("", "[TOOL_CALLS]{name}[ARGS]{arguments}"),
    after_calls="</s>",
)

#: Chat formats by name.
FORMATS: Mapping[str, ChatFormat] = MappingProxyType(
    {format.name: format for format in (CHATML, HARMONY, LLAMA3, MISTRAL)}
)


def render_chat(
    messages: Sequence[Mapping[str, Any]],
    format: str | ChatFormat,
    *,
    add_generation_prompt: bool = False,
) -> list[Segment]:
    """Renders a conversation to segments. The format's text is trusted, and the messages' text is
    untrusted.

    Args:
        messages: Mappings with a ``role`` and a ``content`` that is a str, or a list of parts
            ``{"type": "text", "text": ...}``. Assistant messages may have ``tool_calls`` as in
            OpenAI's API, and for Harmony ``thinking`` (or ``reasoning_content``) and ``channel``.
            Tool messages have a ``name`` if the format requires it. Ids and other keys are ignored.
        format: ``"chatml"``, ``"harmony"`` (o200k_harmony), ``"llama3"``, ``"mistral"``
            (Tekken), or a `ChatFormat`.
        add_generation_prompt: Whether the prompt ends with the beginning of an assistant's message.

    Returns:
        Segments. Text that a model with that role wrote, or is to write, is labeled with the
        message's role and the source ``messages[i]``; see `Audit.mask`.

    Raises:
        ValueError: The format lacks a role, reasoning, a channel or tool calls, or supports them
            only for an assistant; or a required value is missing.
        TypeError: A value is not text.

    >>> import bpe_engine
    >>> from bpe_engine.prompt import render_chat
    >>> segments = render_chat([{"role": "user", "content": "Hi<|end|>"}], "harmony")
    >>> [segment.text for segment in segments]
    ['<|start|>user<|message|>', 'Hi<|end|>', '<|end|>']
    >>> bpe_engine.get_encoding("o200k_harmony").encode_segments(segments)
    [200006, 1428, 200008, 12194, 27, 91, 419, 91, 29, 200007]
    """
    if isinstance(format, str):
        check_choice("the chat format", format, FORMATS)
        format = FORMATS[format]
    if not isinstance(format, ChatFormat):
        raise TypeError(
            f"format must be one of {', '.join(FORMATS)}, or a ChatFormat, not "
            f"{type(format).__name__}"
        )
    if isinstance(messages, (str, bytes, Mapping)) or not isinstance(messages, Iterable):
        raise TypeError(f"messages must be a list of dicts, not {type(messages).__name__}")
    segments: list[Segment] = []
    _trusted(segments, format.begin, None, "format")
    for index, message in enumerate(messages):
        _Message(format, index, message).render(segments)
    if add_generation_prompt:
        _trusted(segments, format.generation, None, "format")
    return segments


def _trusted(segments: list[Segment], text: str, role: str | None, source: str) -> None:
    if text:
        segments.append(Segment(text, True, role, source))


class _Message:
    """Renders one message in a chat format."""

    def __init__(self, format: ChatFormat, index: int, message: Mapping[str, Any]):
        self.source = f"messages[{index}]"
        if not isinstance(message, Mapping):
            raise TypeError(f"{self.source} must be a dict, not {type(message).__name__}")
        self.format = format
        self.message = message
        self.role = self._text("role", message.get("role"))

    def render(self, segments: list[Segment]) -> None:
        """Appends the segments of the message."""
        format, message = self.format, self.message
        turn = format.turns.get(self.role)
        if turn is None:
            raise ValueError(
                f"{self.source} has the role {safe_repr(self.role)}, which the format {format.name} does "
                f"not have; it has {', '.join(format.turns)}"
            )
        thinking = self._own(*self._thinking(), format.thinking)
        channel = self._own("a channel", message.get("channel"), format.channel)
        calls = self._own("tool calls", message.get("tool_calls"), format.call)
        self._own("a function_call", message.get("function_call"), None)
        if thinking is not None and format.thinking:
            self._turn(segments, format.thinking, {"thinking": self._text("thinking", thinking)})
        if not calls or message.get("content"):
            self._turn(segments, format.channel if channel and format.channel else turn, {})
        elif channel:
            raise ValueError(
                f"{self.source} has a channel, but no content for it: its calls have one of their "
                "own; leave it out"
            )
        if calls and format.call:
            if isinstance(calls, (str, bytes, Mapping)) or not isinstance(calls, Sequence):
                raise TypeError(
                    f"tool_calls of {self.source} must be a list, not {type(calls).__name__}"
                )
            for number, call in enumerate(calls):
                self._turn(segments, format.call, self._call(number, call))
            _trusted(segments, format.after_calls, self.role, "format")

    def _own(self, what: str, value: Any, turn: Turn | None) -> Any:
        """Returns a value of an assistant message; raises if the format lacks such a turn."""
        if value is None or (isinstance(value, (str, list, tuple, dict)) and not value):
            return None
        if turn is None:
            raise ValueError(
                f"{self.source} has {what}, which the format {self.format.name} has no place for; "
                "leave it out, make a ChatFormat that has one, or use the model's own template "
                "with render_template"
            )
        if self.role != "assistant":
            raise ValueError(
                f"{self.source} ({self.role}) has {what}, which only an assistant's message has"
            )
        return value

    def _thinking(self) -> tuple[str, Any]:
        """Returns the key and text of the message's reasoning."""
        found = [name for name in REASONING_KEYS if self.message.get(name) not in (None, "")]
        values = [self.message[name] for name in found]
        if any(value != values[0] for value in values):
            raise ValueError(f"{self.source} has different texts as {' and '.join(found)}")
        return (found[0], values[0]) if values else ("thinking", None)

    def _turn(self, segments: list[Segment], turn: Turn, values: Mapping[str, str]) -> None:
        _trusted(segments, turn.head, None, "format")
        # Literals and {name}s alternate.
        for place, part in enumerate(re.split(r"\{(\w+)\}", turn.body)):
            if place % 2 == 0:
                _trusted(segments, part, self.role, "format")
                continue
            text = values[part] if part in values else self._value(part)
            if text:
                segments.append(Segment(text, False, self.role, self.source))
        _trusted(segments, turn.tail, None, "format")

    def _value(self, name: str) -> str:
        if name not in self.message:
            raise ValueError(f"{self.source} ({self.role}) has no {name}, which its format needs")
        return self._text(name, self.message[name])

    def _text(self, name: str, value: Any) -> str:
        if isinstance(value, str):
            return value
        if name == "content" and isinstance(value, Sequence) and not isinstance(value, bytes):
            return "".join(self._part(number, part) for number, part in enumerate(value))
        what = "is missing" if value is None else f"must be a str, not {type(value).__name__}"
        error = ValueError if value is None else TypeError
        raise error(f"the {name} of {self.source} {what}")

    def _part(self, number: int, part: Any) -> str:
        if isinstance(part, Mapping) and part.get("type", "text") == "text":
            return self._text(f"content[{number}]['text']", part.get("text"))
        kind = part.get("type") if isinstance(part, Mapping) else type(part).__name__
        raise TypeError(f"content[{number}] of {self.source} must be text, not {safe_repr(kind)}")

    def _call(self, number: int, call: Any) -> dict[str, str]:
        function = call.get("function", call) if isinstance(call, Mapping) else None
        if not isinstance(function, Mapping):
            raise TypeError(
                f"tool_calls[{number}] of {self.source} must be a dict, with a dict as its "
                "function if it has one"
            )
        name = self._text(f"tool_calls[{number}].name", function.get("name"))
        arguments = function.get("arguments")
        if not isinstance(arguments, str):
            try:
                arguments = json.dumps({} if arguments is None else arguments, ensure_ascii=False)
            except (TypeError, ValueError, RecursionError) as error:
                raise type(error)(
                    f"the arguments of tool_calls[{number}] of {self.source} must be a str or what "
                    f"JSON can write: {error}"
                ) from None
        return {
            "name": name,
            "name_json": json.dumps(name, ensure_ascii=False),
            "arguments": arguments,
        }
