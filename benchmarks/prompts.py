"""Compares the time of segments and conversations with that of encoding the text.

    python -m benchmarks.prompts

Everything runs in one process on one CPU, the sides of a row in turn. A figure is the median of the
ratios of CPU time, after the ids of both sides were compared.
"""

from __future__ import annotations

import itertools
import os
import sys
from typing import Any

import bpe_engine
from bpe_engine.prompt import render_chat

from .harness.sides import Row, arguments, begin_table, print_rows

WORDS = (
    "The committee met again in the spring, and this time nobody was surprised that it's the "
    "budget, not the plan, which took the whole afternoon. 'We could,' said the chair, 'begin with "
    "2024 and see how far we get.' def total(rows): return sum(row.price * 1.19 for row in rows)\n"
).split(" ")
CHATML = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\\n' + m['content'] + '<|im_end|>' "
    "+ '\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)


def messages(count: int, length: int, last: int = 0) -> list[dict[str, str]]:
    """Makes ``count`` messages of ``length`` words each; ``last`` varies the last one."""

    def words(offset: int) -> str:
        return " ".join(WORDS[(7 * word + offset) % len(WORDS)] for word in range(length))

    chat = [
        {"role": ("user", "assistant")[i % 2], "content": words(31 * i + last * (i == count - 1))}
        for i in range(count)
    ]
    return [{"role": "system", "content": "You are helpful."}, *chat]


def segments(enc: bpe_engine.Encoding) -> Row:
    """20 messages as segments, beside ``encode`` of the text that they are."""
    chat = render_chat(messages(20, 60), "chatml")
    text = "".join(segment.text for segment in chat)
    assert enc.encode_segments(chat) == enc.encode(text, allowed_special="all")
    return (
        "20 messages as segments / encode of the text",
        lambda: enc.encode_segments(chat),
        lambda: enc.encode(text, allowed_special="all"),
    )


def conversation(enc: bpe_engine.Encoding) -> list[Row]:
    """Turn 20 of some 30,000 tokens, whose last message is new."""
    length = 30_000 * 4 // 20 // 5
    chats = [render_chat(messages(20, length, last * 13), "chatml") for last in range(2)]
    before, text = ("".join(segment.text for segment in chat) for chat in chats)
    head = os.path.commonprefix([before, text])
    head = head[: head.rindex("<|im_start|>")]
    new = text[len(head) :]
    state = enc.conversation(allowed_special="all")
    state.update(before)
    ids = enc.encode(text, allowed_special="all")
    assert state.update(text).kept > len(ids) * 0.9 and state.ids == ids

    turns = itertools.cycle([before, text])

    def turn() -> Any:
        return state.update(next(turns))

    title = f"turn 20 of {len(ids):,} tokens"

    def whole() -> Any:
        return enc.encode(text, allowed_special="all")

    return [
        (
            f"{title} / encode of the new message, and comparing the rest",
            turn,
            lambda: (enc.encode(new, allowed_special="all"), text.startswith(head)),
        ),
        (f"encode of the whole / {title}", whole, turn),
    ]


def main() -> None:
    parser = arguments(__doc__, rounds=21)
    parser.add_argument("--encoding", default="qwen3", help="one with the tokens of ChatML")
    options = parser.parse_args()
    enc = bpe_engine.get_encoding(options.encoding)
    if "<|im_start|>" not in enc.special_tokens_set:
        sys.exit(f"{enc.name} has no <|im_start|>; take qwen, qwen2.5 or qwen3")
    begin_table()
    print_rows(options.rounds, [segments(enc), *conversation(enc)])


if __name__ == "__main__":
    main()
