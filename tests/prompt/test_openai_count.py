"""Counts of requests to OpenAI's chat API equal those of the rule in its cookbook."""

from __future__ import annotations

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


# The numbers are those of the cookbook's own functions, run on these messages and tools.
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
    """Returns a tool whose only property has other entries."""
    schema = {"type": "string", "description": "A word", **changes}
    schema = {key: value for key, value in schema.items() if value is not None}
    return [{"function": {**NOW["function"], "parameters": {"properties": {"word": schema}}}}]


def test_a_text_is_one_message() -> None:
    assert count_chat_tokens("hi", "gpt-4o") == count_chat_tokens(
        [{"role": "user", "content": "hi"}], "gpt-4o"
    )


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


def test_odd_requests_have_a_number_or_a_named_error() -> None:
    chat = [{"role": "user", "content": "hi"}]
    for parameters in (True, "x", 5, [1]):
        tools = [{"type": "function", "function": {"name": "f", "parameters": parameters}}]
        count = count_chat_tokens(chat, "gpt-4o", tools=tools)
        where = "tools[0]['function']['parameters']: is not a schema of properties"
        assert count > 0 and where in count.estimates
    reply = {"role": "assistant", "content": "x", "refusal": None, "annotations": []}
    assert count_chat_tokens([reply], "gpt-4o", tools=None).exact
    circle: dict[str, Any] = {}
    circle["properties"] = {"a": circle}
    tools = [{"type": "function", "function": {"name": "f", "parameters": circle}}]
    with pytest.raises(ValueError, match="nested too deeply, or hold themselves"):
        count_chat_tokens(chat, "gpt-4o", tools=tools)
    with pytest.raises(TypeError, match="give a list of messages"):
        count_chat_tokens(chat[0], "gpt-4o")  # type: ignore[arg-type]
    with pytest.raises(KeyError, match="for an estimate, name a model"):
        count_chat_tokens(chat, "openai/gpt-4o")
