"""Calls of transformers tokenizers, and what each engine answers."""

from __future__ import annotations

from typing import Any, Callable

from ..peers.tokenizer_engines import transformers_tokenizer

__all__ = ["CALLS", "answers", "table"]

TEXT = "Hello, world! Der Fluß ist 12345 m lang 日本語 👩‍👩‍👧"
CALLS: dict[str, Callable[[Any], Any]] = {
    "ids": lambda t: t(TEXT)["input_ids"],
    "batch, padded": lambda t: dict(t([TEXT, "short"], padding=True)),
    "offsets": lambda t: list(map(tuple, t(TEXT, return_offsets_mapping=True)["offset_mapping"])),
    "pairs": lambda t: dict(t(TEXT, "second", return_token_type_ids=True)),
    "split words": lambda t: t(TEXT.split(), is_split_into_words=True)["input_ids"],
    "word_ids": lambda t: t(TEXT).word_ids(),
    "tokens()": lambda t: t(TEXT).tokens(),
    "char_to_token": lambda t: [t(TEXT).char_to_token(i) for i in range(len(TEXT))],
    "overflow": lambda t: t(
        TEXT, truncation=True, max_length=6, stride=1, return_overflowing_tokens=True
    )["input_ids"],
    "special tokens mask": lambda t: t(TEXT, return_special_tokens_mask=True)[
        "special_tokens_mask"
    ],
    "assistant masks": lambda t: dict(
        t.apply_chat_template(
            [{"role": "user", "content": "a"}, {"role": "assistant", "content": TEXT}],
            chat_template="{% for m in messages %}{% if m.role == 'assistant' %}{% generation %}"
            "{{ m.content }}{% endgeneration %}{% else %}{{ m.content }}{% endif %}{% endfor %}",
            return_dict=True,
            return_assistant_tokens_mask=True,
        )
    ),
    "decode": lambda t: t.decode(t(TEXT)["input_ids"]),
    "is a PreTrainedTokenizerBase": lambda t: (
        __import__("transformers").PreTrainedTokenizerBase in type(t).__mro__
    ),
}


def answers(engine: str, path: str) -> dict[str, str]:
    """What each call returns in a transformers tokenizer with this engine, as text."""
    tokenizer = transformers_tokenizer(engine, path)
    found = {}
    for name, call in CALLS.items():
        try:
            found[name] = repr(call(tokenizer))
        except BaseException as error:
            found[name] = f"raises {type(error).__name__}"
    return found


def table(found: dict[str, dict[str, str]]) -> str:
    """The answers of the engines beside those of `tokenizers`."""
    shown = [engine for engine in found if engine != "tokenizers"]
    lines = ["| call | " + " | ".join(shown) + " |", "|---|" + "---|" * len(shown)]
    for name in CALLS:
        cells = []
        for engine in shown:
            value = found[engine][name]
            if value == found["tokenizers"][name]:
                cells.append("right")
            else:
                cells.append(value if value.startswith("raises") else "**wrong**")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)
