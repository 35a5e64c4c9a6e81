"""Tests token counts of OpenAI chat requests against the rule in OpenAI's cookbook."""

from __future__ import annotations

import base64
import json
import struct
from collections import UserDict
from types import MappingProxyType
from typing import Any

import pytest

import bpe_engine
from bpe_engine.prompt import count_chat_tokens

CHAT = [
    {"role": "system", "content": "You book trains."},
    {"role": "user", "name": "Ada", "content": "Two seats to Bristol, please. 🚆"},
    {"role": "assistant", "content": "First or second class?"},
]
BOOK: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "book",
        "description": "Books seats on a train.",
        "parameters": {
            "type": "object",
            "properties": {
                "to": {"type": "string", "description": "The station, as it is signed."},
                "seats": {"type": "integer", "description": "How many"},
                "class": {
                    "type": "string",
                    "description": "The class.",
                    "enum": ["first", "second"],
                },
            },
        },
    },
}
NOW: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "now",
        "description": "Tells the time",
        "parameters": {"type": "object", "properties": {}},
    },
}


# The cookbook's functions return these counts for the messages and tools.
@pytest.mark.parametrize(
    "model, plain, with_both, with_now",
    [
        ("gpt-4", 36, 117, 63),
        ("gpt-3.5-turbo", 36, 117, 63),
        ("gpt-4o", 35, 110, 59),
        ("gpt-4o-mini", 35, 110, 59),
    ],
)
def test_counts_of_the_cookbook(model: str, plain: int, with_both: int, with_now: int) -> None:
    for tools, expected in (([], plain), ([BOOK, NOW], with_both), ([NOW], with_now)):
        count = count_chat_tokens(CHAT, model, tools)
        assert count == expected and count.exact and not count.estimates


@pytest.mark.parametrize("model", ["gpt-4.1", "gpt-5", "o3-mini", "gpt-oss-120b"])
def test_other_models_are_estimated_by_the_same_rule(model: str) -> None:
    count = count_chat_tokens(CHAT, model, [BOOK])
    assert count == count_chat_tokens(CHAT, "gpt-4o", [BOOK])
    assert not count.exact and count.estimates[0].startswith("the model")


def test_models_that_do_not_chat_are_refused() -> None:
    for model in ("davinci", "Qwen/Qwen3-8B"):
        with pytest.raises(ValueError, match="not a chat model"):
            count_chat_tokens(CHAT, model)
    with pytest.raises(TypeError, match=r"messages\[0\] must be a mapping"):
        count_chat_tokens(["hi"], "gpt-4o")  # type: ignore[list-item]


def changed(**changes: Any) -> list[dict[str, Any]]:
    """Returns a tool whose only property has the given entries; None removes an entry."""
    schema = {"type": "string", "description": "A word", **changes}
    schema = {key: value for key, value in schema.items() if value is not None}
    return [{"function": {**NOW["function"], "parameters": {"properties": {"word": schema}}}}]


def test_a_text_is_one_message() -> None:
    chat = [{"role": "user", "content": "hi"}]
    assert count_chat_tokens("hi", "gpt-4o") == count_chat_tokens(chat, "gpt-4o")


CALL = {"id": "call_1", "type": "function", "function": {"name": "now", "arguments": "{}"}}
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}


@pytest.mark.parametrize(
    "messages, tools, place",
    [
        ([{"role": "user", "content": [{"type": "text", "text": "hi"}]}], [], "['content']"),
        ([{"role": "user", "content": [IMAGE]}], [], "image_url counts 0"),
        ([{"role": "assistant", "content": None, "tool_calls": [CALL]}], [], "['tool_calls']"),
        ([{"type": "function_call_output", "output": {"a": [1, None]}}], [], "['output']"),
        (CHAT, changed(description=None), "has no description"),
        (CHAT, changed(type=["string", "null"]), "['string', 'null']"),
        (CHAT, changed(type="array", items={"type": "string"}), "['items']"),
        (CHAT, changed(type="object", properties={"a": {"type": "string"}}), "['properties']"),
        (CHAT, [{"type": "custom", "name": "shell"}], "has no description"),
        (CHAT, [{"type": "web_search"}], "tools[0]"),
    ],
)
def test_everything_else_is_an_estimate(messages: Any, tools: Any, place: str) -> None:
    count = count_chat_tokens(messages, "gpt-4o", tools)
    assert count > 0 and not count.exact
    assert any(place in estimate for estimate in count.estimates), count.estimates


def test_parts_and_calls_are_counted_by_their_text() -> None:
    enc = bpe_engine.get_encoding("o200k_base")
    text = "Two seats to Bristol, please."
    whole = count_chat_tokens([{"role": "user", "content": text}], "gpt-4o")
    parts = [{"type": "text", "text": text}]
    assert count_chat_tokens([{"role": "user", "content": parts}], "gpt-4o") == whole
    call = {"role": "assistant", "content": None, "tool_calls": [CALL]}
    expected = 6 + enc.count("assistant") + enc.count("now") + enc.count("{}")
    assert count_chat_tokens([call], "gpt-4o") == expected


@pytest.mark.parametrize("model", ["gpt-4o", "gpt-4", "gpt-5"])
def test_objects_count_like_the_json_that_the_api_gets(model: str) -> None:
    note = "A long remark about the weather that runs on."
    arguments = {"city": "Porto", "days": ["Monday", "Tuesday"], "type": "x", "note": note}
    result = {"temp": 21, "unit": "C", "name": {"type": 1}}

    def count(arguments: Any, result: Any) -> int:
        function = {"name": "forecast", "arguments": arguments}
        call = {"id": "c1", "type": "function", "function": function}
        return count_chat_tokens(
            [
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "content": result, "tool_call_id": "c1"},
                {"type": "function_call_output", "output": result},
                {"role": "assistant", "function_call": function},
            ],
            model,
        )

    wanted = count(json.dumps(arguments), json.dumps(result))
    assert count(arguments, result) == wanted
    assert count(MappingProxyType(arguments), UserDict(result)) == wanted
    for listed in ([1, "a"], [{"a": 1}], [[1]], ["a", 2]):
        assert count(listed, listed) == count(json.dumps(listed), json.dumps(listed))
    call = {"name": "forecast", "arguments": json.dumps(arguments)}
    chat = [{"role": "assistant", "tool_calls": [{"type": "function", "function": call}]}]
    assert model != "gpt-4o" or count_chat_tokens(chat, model) > 30


def test_pictures_count_by_their_tiles() -> None:
    def tokens(model: str, data: bytes = b"", **more: Any) -> tuple[int, list[str]]:
        url = "data:image/png;base64," + base64.b64encode(data).decode()
        picture = {"type": "image_url", "image_url": {"url": url, **more}}
        count = count_chat_tokens([{"role": "user", "content": [picture]}], model)
        none = count_chat_tokens([{"role": "user", "content": []}], model)
        return count - none, count.estimates

    def png(width: int, height: int) -> bytes:
        return b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">2I", width, height)

    assert tokens("gpt-4o", detail="low")[0] == 85
    # The published table of base tokens and tile tokens for an image.
    for model, base, tile in (
        ("gpt-4o-2024-08-06", 85, 170),
        ("chatgpt-4o-latest", 85, 170),
        ("gpt-4.1", 85, 170),
        ("gpt-4o-mini-2024-07-18", 2833, 5667),
        ("gpt-5", 70, 140),
        ("gpt-5-chat-latest", 70, 140),
        ("o1", 75, 150),
        ("o3-2025-04-16", 75, 150),
    ):
        assert tokens(model, detail="low")[0] == base
        assert tokens(model, png(128, 64))[0] == base + tile
    # The published examples: 1024 x 1024 has four tiles, 2048 x 4096 six.
    assert tokens("gpt-4o", png(1024, 1024), detail="high")[0] == 765
    assert tokens("gpt-4o", png(2048, 4096))[0] == 1105
    assert tokens("gpt-4o", png(100, 100))[0] == 255
    jpeg = b"\xff\xd8\xff\xe0\0\4ab\xff\xc0\0\x11\x08\4\0\4\0" + bytes(12)
    assert tokens("gpt-4o", jpeg)[0] == 765
    assert tokens("gpt-4o", b"GIF89a\0\4\0\4")[0] == 765
    unpriced = ("gpt-5-mini", "gpt-5.1", "gpt-5-pro", "gpt-4.1-mini", "gpt-4-turbo", "o4-mini")
    cases = [("gpt-4o", b"RIFF"), ("gpt-4o", png(0, 9)), *((name, png(9, 9)) for name in unpriced)]
    for model, data in cases:
        count, estimates = tokens(model, data)
        assert count == 0 and any("image_url counts 0" in each for each in estimates)


def test_odd_requests_have_a_number_or_a_named_error() -> None:
    chat = [{"role": "user", "content": "hi"}]
    for parameters in (True, "x", 5, [1]):
        tools = [{"type": "function", "function": {"name": "f", "parameters": parameters}}]
        count = count_chat_tokens(chat, "gpt-4o", tools=tools)
        where = "tools[0]['function']['parameters']: is not a schema of properties"
        assert count > 0 and where in count.estimates
    reply = {"role": "assistant", "content": "x", "refusal": None, "annotations": []}
    assert count_chat_tokens([reply], "gpt-4o", tools=None).exact
    assert count_chat_tokens([{"content": pytest.importorskip("numpy").arange(3)}], "gpt-4o") > 3
    circle: dict[str, Any] = {}
    circle["properties"] = {"a": circle}
    tools = [{"type": "function", "function": {"name": "f", "parameters": circle}}]
    with pytest.raises(ValueError, match="nested too deeply, or hold themselves"):
        count_chat_tokens(chat, "gpt-4o", tools=tools)
    with pytest.raises(TypeError, match="give a list of messages"):
        count_chat_tokens(chat[0], "gpt-4o")  # type: ignore[arg-type]
    with pytest.raises(KeyError, match="count_segments.*For an estimate, name a model"):
        count_chat_tokens(chat, "openai/gpt-4o")
