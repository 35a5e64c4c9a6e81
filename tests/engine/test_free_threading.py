"""Tests objects that threads use while other threads change them, with and without the GIL."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import threading
from collections.abc import Callable
from typing import Any

import pytest

import bpe_engine
from bpe_engine.prompt import render_template

TEXTS = ["", "hello world", "日本語 text, 12345 " * 40, "é" * 300, "<|endoftext|> a" * 20]
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}"
    "{% for c in m.calls or [] %}{{ c | tojson }}{% endfor %}<|im_end|>\n{% endfor %}"
)


def run(*works: Callable[[int], None], rounds: int = 200) -> None:
    """Runs each function on a new thread; raises the first exception."""
    start, errors = threading.Barrier(len(works)), []

    def begin(work: Callable[[int], None]) -> None:
        start.wait()
        try:
            for number in range(rounds):
                work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=begin, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


@pytest.mark.skipif(
    not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="this Python has the GIL"
)
def test_the_module_does_not_ask_for_the_gil() -> None:
    code = "import bpe_engine, vocab_tools, sys; bpe_engine.get_encoding('gpt2').encode('a'); print(sys._is_gil_enabled())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_lists_that_another_thread_changes() -> None:
    encoding = bpe_engine.get_encoding("gpt2")
    known = encoding.encode("some words and more " * 20)
    ids, texts = list(known), ["some words"] * 50

    def change(number: int) -> None:
        ids[:] = known[: number % len(known)]
        ids.extend([50_000 + number % 200] * (number % 7))
        texts[:] = ["other"] * (number % 60)

    def read(_: int) -> None:
        assert set(encoding.decode(ids)) <= set(
            encoding.decode(known + list(range(50_000, 50_200)))
        )
        assert isinstance(encoding.decode_bytes(ids), bytes)
        assert all(row in ([11246, 2456], [847]) for row in encoding.encode_batch(texts))

    run(change, read, read, rounds=500)


def test_conversations_that_another_thread_changes() -> None:
    call: dict[str, Any] = {"name": "f", "arguments": {"a": [1, 2]}}
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "question", "calls": [call]} for _ in range(20)
    ]

    def change(number: int) -> None:
        messages[number % 20]["content"] = f"other {number}"
        call["arguments"] = {f"key {place}": [place] * (number % 5) for place in range(number % 9)}
        messages[number % 20]["calls"] = [call] * (number % 4)
        messages[5:] = [dict(message) for message in messages[5:]]

    def render(_: int) -> None:
        segments = render_template(TEMPLATE, messages)
        assert "".join(segment.text for segment in segments).count("<|im_start|>user") == 20

    run(change, render, render)


def test_one_stream_pool_on_many_threads() -> None:
    encoding = bpe_engine.get_encoding("o200k_base")
    pool, expected = bpe_engine.StreamPool(encoding), "日本語 and words " * 5
    ids = encoding.encode(expected)

    def work(_: int) -> None:
        slot = pool.open()
        texts = [pool.step([slot], [id])[0][0] for id in ids]
        assert "".join(texts) + pool.close(slot) == expected

    run(work, work, work, rounds=60)
    assert len(pool) == 0
