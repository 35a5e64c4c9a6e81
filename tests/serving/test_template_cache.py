"""A server's renderings are those of the template, and conversations are found by their content."""

from __future__ import annotations

import copy
import pickle
import threading
from typing import Any

from seeds import seeded

from bpe_engine.prompt import ChatTemplate, trusted
from bpe_engine.serving import TemplateCache
from bpe_engine.serving.chat import render_request

SOURCE = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{{ '.' if loop.last }}{% endfor %}"


def conversation(name: str, count: int) -> list[dict[str, Any]]:
    system = {"role": "system", "content": "You help."}
    return [system, *({"role": "user", "content": f"{name} {i}"} for i in range(count))]


def test_conversations_of_many_clients() -> None:
    rng = seeded("template cache")
    cache, template = TemplateCache(), ChatTemplate(SOURCE)
    counts = dict.fromkeys("abcdefgh", 0)
    for _ in range(200):
        name = rng.choice(list(counts))
        counts[name] += rng.randrange(1, 4)
        messages = conversation(name, counts[name])
        assert cache.render(SOURCE, messages) == template.render(messages)
    assert cache.reused_turns > 0.7 * cache.turns


def test_an_edited_end_is_the_same_conversation() -> None:
    cache, template = TemplateCache(), ChatTemplate(SOURCE)
    messages = conversation("a", 40)
    cache.render(SOURCE, messages)
    messages[-1]["content"] = "other"
    assert cache.render(SOURCE, messages) == template.render(messages)
    assert cache.reused_turns == 40
    # Another one leaves it as it is.
    other = conversation("b", 40)
    assert cache.render(SOURCE, other) == template.render(other)
    assert cache.reused_turns == 40
    cache.render(SOURCE, messages)
    assert cache.reused_turns == 40 + 41


def test_memory_is_bounded() -> None:
    cache = TemplateCache(max_bytes=200_000)
    for number in range(50):
        cache.render(SOURCE, conversation(str(number), 5))
    assert repr(cache) != "<TemplateCache of 0 conversations>"
    assert sum(session.memory for _, session in cache._idle) <= 200_000
    cache.clear()
    assert repr(cache) == "<TemplateCache of 0 conversations>"


def test_threads_and_copies() -> None:
    cache, template = TemplateCache(), ChatTemplate(SOURCE)
    assert copy.deepcopy(cache) is copy.copy(cache) is cache
    assert pickle.loads(pickle.dumps(cache)).turns == 0
    wrong = []

    def work(name: str) -> None:
        for count in range(40):
            messages = conversation(name, count)
            if cache.render(SOURCE, messages) != template.render(messages):
                wrong.append((name, count))

    threads = [threading.Thread(target=work, args=(name,)) for name in "aabb"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_requests_of_clients_use_it() -> None:
    cache = TemplateCache()
    for count in (30, 31):
        messages = conversation("a", count)
        options: dict[str, Any] = {"variables": {}}
        expected = render_request(SOURCE, messages, {}, **options)
        assert render_request(SOURCE, messages, {}, cache=cache, **options) == expected
    assert cache.reused_turns == 30
    assert expected[0] == trusted("<|system|>")._replace(
        source="template", origin=expected[0].origin
    )
