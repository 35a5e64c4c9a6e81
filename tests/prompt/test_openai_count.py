"""Counts of requests to OpenAI's chat API equal those of the rule in its cookbook."""

from __future__ import annotations

from typing import Any

import pytest

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
    assert count_chat_tokens(CHAT, model) == plain
    assert count_chat_tokens(CHAT, model, [BOOK, NOW]) == with_both
    assert count_chat_tokens(CHAT, model, [NOW]) == with_now


@pytest.mark.parametrize("model", ["gpt-4.1", "gpt-5", "o3", "gpt-3.5-turbo-0301", "davinci"])
def test_models_without_a_rule(model: str) -> None:
    with pytest.raises(ValueError, match="no rule is published"):
        count_chat_tokens(CHAT, model)


def changed(**changes: Any) -> list[dict[str, Any]]:
    """Returns a tool whose only property has other entries."""
    schema = {"type": "string", "description": "A word", **changes}
    schema = {key: value for key, value in schema.items() if value is not None}
    return [{"function": {**NOW["function"], "parameters": {"properties": {"word": schema}}}}]


def test_parts_without_a_rule_are_named() -> None:
    with pytest.raises(ValueError, match=r"messages\[1\]\['content'\] is a list"):
        count_chat_tokens([*CHAT[:1], {"role": "user", "content": []}], "gpt-4o")
    with pytest.raises(ValueError, match=r"is None.*calls of tools"):
        count_chat_tokens([{"role": "assistant", "content": None}], "gpt-4o")
    with pytest.raises(ValueError, match=r"\['word'\] has 'items'"):
        count_chat_tokens(CHAT, "gpt-4o", changed(items={}))
    with pytest.raises(ValueError, match=r"\['word'\] lacks 'description'"):
        count_chat_tokens(CHAT, "gpt-4o", changed(description=None))
    with pytest.raises(ValueError, match=r"tools\[0\] lacks 'function'"):
        count_chat_tokens(CHAT, "gpt-4o", [{"name": "now"}])
