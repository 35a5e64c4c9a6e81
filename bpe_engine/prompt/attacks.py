"""Techniques for forging control tokens, and the fields to try them in, for `audit_template`."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import product
from typing import Any, NamedTuple

from .samples import ANSWER, ASKS_THOUGHT, CALL, MORE, RESULT, SYSTEM, THOUGHT, TOOL, USER

__all__ = [
    "COMPLETED",
    "CONVERSATIONS",
    "SPLIT",
    "TRICKS",
    "Place",
    "Trick",
    "places",
    "replaced",
    "simplified",
]

#: Full-width forms of ASCII characters, which NFKC maps back.
_FULL_WIDTH = {code: code + 0xFEE0 for code in range(0x21, 0x7F)}
#: Letters to which NFKC maps other characters. NFC already maps the Kelvin sign to K.
_LETTERS = str.maketrans({"s": "\u017f", "K": "\u212a"})
#: Invisible characters that normalizers drop.
_INVISIBLE = ("\u200b", "\u200d", "\u00ad", "\ufeff", "\u2060", "\x00")


class Trick(NamedTuple):
    """A technique for writing a control token."""

    name: str
    #: Description for reports.
    what: str
    #: Returns the texts for a token name. `SPLIT` and `COMPLETED` require the prompt.
    spellings: Callable[[str], Iterable[str]] = lambda name: ()


def _halves(name: str) -> tuple[str, str]:
    middle = len(name) // 2
    return name[:middle], name[middle:]


def _forms(name: str) -> Iterator[str]:
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        yield unicodedata.normalize(form, name)
    yield name.translate(_LETTERS)
    yield name.replace("\u2581", " ")
    yield name.replace(" ", "\u2581")


def _escaped(name: str) -> Iterator[str]:
    yield "".join(f"\\u{ord(one):04x}" if one in "<>|[]" else one for one in name)
    yield "".join(f"&#{ord(one)};" if one in "<>|[]" else one for one in name)
    yield name.replace("<", "&lt;").replace(">", "&gt;")


SPLIT = Trick("split", "parts of the name in fields, parts of content or messages that meet")
COMPLETED = Trick("completed", "a part of the name that begins or ends in text next to the field")

#: All tricks.
TRICKS: tuple[Trick, ...] = (
    Trick("literal", "the name as it is", lambda name: (name,)),
    Trick(
        "between spaces",
        "the name between spaces and line ends, which some added tokens take in",
        lambda name: (f" {name} ", f"\n{name}\n"),
    ),
    Trick(
        "nested",
        "the name inside itself, which a template that removes one of the two joins",
        lambda name: (name.join(_halves(name)),),
    ),
    Trick(
        "other case",
        "upper and lower case, which some normalizers change",
        lambda name: (name.upper(), name.lower(), name.title()),
    ),
    Trick(
        "full width",
        "full-width characters, which NFKC makes ASCII",
        lambda name: (name.translate(_FULL_WIDTH),),
    ),
    Trick("other forms", "forms and characters that normalize to the name", _forms),
    Trick(
        "invisible",
        "an invisible character in the middle, which some normalizers drop",
        lambda name: (sign.join(_halves(name)) for sign in _INVISIBLE),
    ),
    Trick(
        "expression",
        "an expression of Jinja that makes the name, if text is rendered as a template",
        lambda name: ("{{{{ {!r} ~ {!r} }}}}".format(*_halves(name)),),
    ),
    Trick("escaped", "escapes of JSON and of HTML, which a template may undo", _escaped),
    SPLIT,
    COMPLETED,
)

_CALLED = {**ASKS_THOUGHT, "content": "Pear asks."}
_TOOL = {
    **TOOL,
    "function": {
        **TOOL["function"],
        "parameters": {
            "type": "object",
            "properties": {
                "word": {"type": "string", "description": "Which word", "enum": ["sea", "lake"]}
            },
            "required": ["word"],
        },
        "remark": "Heron notes.",
    },
}


def _parts(*texts: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": text} for text in texts]


def _with_text(arguments: Any) -> dict[str, Any]:
    function = {"name": "look_up", "arguments": arguments}
    return {**_CALLED, "tool_calls": [{**CALL, "function": function}]}


#: Caller input: messages, and other variables by name.
CONVERSATIONS: tuple[Mapping[str, Any], ...] = (
    {"messages": [SYSTEM, USER, THOUGHT, MORE]},
    {"messages": [SYSTEM, USER, _CALLED, RESULT, ANSWER, MORE], "tools": [_TOOL]},
    {"messages": [SYSTEM, USER, _with_text('{"word": "sea"}'), RESULT], "tools": [_TOOL]},
    {"messages": [SYSTEM, USER], "tools": [_TOOL["function"]]},
    {
        "messages": [
            {"role": "system", "content": _parts("Zephyr rules.", "Willow rules.")},
            {"role": "user", "content": _parts("Quince asks.", "Medlar asks.")},
            _CALLED,
            {**RESULT, "content": _parts("Salt water.", "Sweet water.")},
        ],
        "tools": [_TOOL],
    },
    {
        "messages": [
            {**USER, "name": "Robin"},
            {**ANSWER, "name": "Linnet"},
            {"role": "developer", "content": "Otter rules."},
            MORE,
        ]
    },
    {"messages": [USER, ANSWER, USER]},
    {
        "messages": [USER],
        "documents": [{"title": "Lagoons", "text": "It is wet.", "remark": "Heron notes."}],
    },
)

_Messages = list[dict[str, Any]]


def _without_system(messages: _Messages) -> _Messages:
    return [message for message in messages if message["role"] not in ("system", "developer")]


def _without_reasoning(messages: _Messages) -> _Messages:
    return [
        {key: value for key, value in message.items() if key != "reasoning_content"}
        for message in messages
    ]


def _silent_calls(messages: _Messages) -> _Messages:
    return [
        {**message, "content": ""} if "tool_calls" in message else message for message in messages
    ]


def simplified(messages: _Messages) -> Iterator[_Messages]:
    """Yields a conversation, then simpler variants for templates that reject the original."""
    changes = (_without_system, _without_reasoning, _silent_calls)
    for chosen in product((False, True), repeat=len(changes)):
        made = messages
        for change, is_chosen in zip(changes, chosen):
            made = change(made) if is_chosen else made
        yield made


#: Dicts whose keys come from the caller. Nonstandard keys also come from the caller.
_FREE_KEYS, _FREE = ("arguments", "properties"), "remark"


class Place(NamedTuple):
    """The position of a caller-supplied string."""

    #: Display name of the field.
    field: str
    path: tuple[str | int, ...]
    #: Whether the string is the last key of the path.
    is_key: bool
    value: str


def places(given: Mapping[str, Any]) -> Iterator[Place]:
    """Yields the positions of the strings in the caller's input."""
    for name, value in given.items():
        if name == "messages":
            for index, message in enumerate(value):
                yield from _strings(message, (name, index), f" of {message['role']}")
        else:
            yield from _strings(value, (name,), "")


def _strings(value: Any, path: tuple[str | int, ...], whose: str) -> Iterator[Place]:
    names = [part for part in path if isinstance(part, str)][1 if whose else 0 :]
    if isinstance(value, str):
        yield Place(".".join(names) + whose, path, False, value)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _strings(item, (*path, index), whose)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if key == _FREE or path[-1] in _FREE_KEYS:
                yield Place(f"a key of {'.'.join(names)}{whose}", (*path, key), True, key)
            yield from _strings(item, (*path, key), whose)


def replaced(value: Any, place: Place, text: str) -> Any:
    """Returns the caller's input with the string at a position replaced."""
    return _replaced(value, place.path, place.is_key, text)


def _replaced(value: Any, path: tuple[str | int, ...], is_key: bool, text: str) -> Any:
    if not path:
        return text
    part, rest = path[0], path[1:]
    if isinstance(value, list):
        return [
            _replaced(item, rest, is_key, text) if index == part else item
            for index, item in enumerate(value)
        ]
    if is_key and not rest:
        return {text if key == part else key: item for key, item in value.items()}
    return {
        key: _replaced(item, rest, is_key, text) if key == part else item
        for key, item in value.items()
    }
