"""A server's renderings are those of the template, and conversations are found by their content."""

from __future__ import annotations

import contextlib
import copy
import faulthandler
import json
import os
import pickle
import sys
import threading
from typing import Any

import pytest
from jinja2 import TemplateError
from seeds import seeded

from bpe_engine.prompt import ChatTemplate, trusted
from bpe_engine.serving import TemplateCache
from bpe_engine.serving.chat import render_request
from bpe_engine.serving.template_cache import _marks

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
    for _ in range(2):
        cache.render(SOURCE, messages)
    assert (cache.turns, cache.reused_turns) == (41, 0)
    messages[-1]["content"] = "other"
    assert cache.render(SOURCE, messages) == template.render(messages)
    assert cache.reused_turns == 40
    # Another one leaves it as it is.
    other = conversation("b", 40)
    assert cache.render(SOURCE, other) == template.render(other)
    assert cache.reused_turns == 40
    cache.render(SOURCE, messages)
    assert cache.reused_turns == 40 + 41


def test_branches_live_side_by_side() -> None:
    """Conversations that share nearly all do not take the place of each other."""
    cache, template = TemplateCache(), ChatTemplate(SOURCE)
    shared = conversation("shared", 90)
    chats = [[*shared, *conversation(name, 9)] for name in "abc"]
    for chat in chats[:1] * 2 + chats[1:]:
        assert cache.render(SOURCE, chat) == template.render(chat)
    # The others went on from the first one.
    assert cache.reused_turns == 2 * (len(shared) + 1)
    assert repr(cache) == "<TemplateCache of 3 conversations>"
    reused = cache.reused_turns
    for chat in chats * 2:
        chat += conversation("next", 1)
        assert cache.render(SOURCE, chat) == template.render(chat)
    # All but the one that was the last.
    assert cache.reused_turns - reused == 3 * (100 + 102)
    assert repr(cache) == "<TemplateCache of 3 conversations>"


def test_a_branch_of_what_came_once_is_recorded() -> None:
    cache = TemplateCache()
    shared = conversation("shared", 90)
    for name in "ab":
        cache.render(SOURCE, [*shared, *conversation(name, 9)])
    assert (cache.turns, cache.reused_turns) == (101, 0)
    assert repr(cache) == "<TemplateCache of 2 conversations>"


def test_memory_is_bounded() -> None:
    cache = TemplateCache(max_bytes=200_000)
    for number in range(50):
        for _ in range(2):
            cache.render(SOURCE, conversation(str(number), 5))
    assert repr(cache) != "<TemplateCache of 0 conversations>"
    assert cache._memory == all_memory(cache) <= 200_000
    cache.clear()
    assert repr(cache) == "<TemplateCache of 0 conversations>"
    assert cache._memory == len(cache._shared) == 0


def all_memory(cache: TemplateCache) -> int:
    """The bytes of all conversations, and once of what they share."""
    idle = cache._idle.values()
    shared = {it for known in idle for it in known.shared}
    return sum(known.memory for known in idle) + sum(it.memory for it in shared)


def test_memory_of_branches_is_bounded() -> None:
    """Also of what one of them had before it was too large or failed, which the others keep."""
    most, source = 8 << 20, SOURCE + "{{ raise_exception('no') if messages[-1].fails }}"
    cache = TemplateCache(max_bytes=most)
    for number in range(30):
        shared = conversation(f"{number}", 40)
        for _ in range(2):
            cache.render(source, shared)
        cache.render(source, shared[:30] + conversation("branch", 3))
        for size in (100_000, 2_000_000):
            cache.render(source, [*shared, {"role": "user", "content": "x" * size}])
        for _ in range(3):
            failing = {"role": "user", "content": "x" * 100_000, "fails": True}
            with pytest.raises(TemplateError):
                cache.render(source, [*shared[:32], failing])
        assert cache._memory == all_memory(cache) <= most
    assert len(cache._shared) > 2


class Interrupted(BaseException):
    """As KeyboardInterrupt."""


@pytest.mark.parametrize("name", ["_taken", "_put_back", "_drop", "_count"])
def test_an_interrupt_in_the_cache_itself(name: str) -> None:
    """At any line of it: later requests are answered, and memory is counted again."""
    template, messages = ChatTemplate(SOURCE), conversation("a", 20)
    code = getattr(TemplateCache, name).__code__
    for line in {line for *_, line in code.co_lines() if line} - {code.co_firstlineno}:
        cache = TemplateCache(max_bytes=100_000)
        for other in "abcd" * 2:
            cache.render(SOURCE, conversation(other, 20))

        def trace(frame: Any, event: str, _: Any) -> Any:
            if frame.f_code is code and event == "line" and frame.f_lineno == line:  # noqa: B023
                raise Interrupted
            return trace if frame.f_code is code or event == "call" else None

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            with contextlib.suppress(Interrupted):
                cache.render(SOURCE, messages)
        finally:
            sys.settrace(before)
        for _ in range(3):
            for other in "abcd":
                assert cache.render(SOURCE, conversation(other, 20)) == template.render(
                    conversation(other, 20)
                )
            assert cache._memory == all_memory(cache) <= 100_000


def test_compiled_templates_count_as_memory() -> None:
    """Each request may have another one."""
    cache = TemplateCache(max_bytes=2 << 20)
    for number in range(20):
        source = "{# " + f"{number:09d}" * 2000 + " #}" + SOURCE
        for _ in range(2):
            cache.render(source, conversation("a", 5))
    assert cache._memory == all_memory(cache) <= 2 << 20
    assert 1 <= len(cache._idle) <= 3


def test_templates_are_told_apart_where_marks_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    cache, other = TemplateCache(), SOURCE + "other"
    monkeypatch.setattr(
        "bpe_engine.serving.template_cache._marks", lambda _, messages: [*range(len(messages))]
    )
    for count in range(10, 14):
        for source in (SOURCE, other, SOURCE):
            messages = conversation("a", count)
            assert cache.render(source, messages) == ChatTemplate(source).render(messages)
    assert cache.reused_turns > 0


def test_memory_of_many_small_parts_is_bounded() -> None:
    cache = TemplateCache(max_bytes=16 << 20)
    for number in range(4):
        messages = [{"content": [{} for _ in range(50_000)]}, {"content": str(number)}]
        for _ in range(2):
            cache.render("{% for m in messages %}{{ m.content|length }}{% endfor %}", messages)
    # One takes some 8 MB.
    assert repr(cache) == "<TemplateCache of 1 conversations>"


def test_a_conversation_is_found_at_a_small_cost() -> None:
    """Many that share their beginning; that which goes on is found, whatever came later."""
    cache, template = TemplateCache(), ChatTemplate(SOURCE)
    shared = conversation("few-shot example", 100)
    chats = [shared + conversation(f"client {number}", 40) for number in range(100)]
    for chat in chats * 2:
        cache.render(SOURCE, chat)
    reused = cache.reused_turns
    longer = chats[40] + conversation("more", 3)
    assert cache.render(SOURCE, longer) == template.render(longer)
    # All but the one that was the last.
    assert cache.reused_turns - reused == len(chats[40]) - 1
    marks = _marks(SOURCE, shared + conversation("new", 40))
    looked_up: list[int] = []

    class Places(dict[Any, Any]):
        def get(self, key: Any, default: Any = None) -> Any:
            looked_up.append(key)
            return super().get(key, default)

    cache._places = Places(cache._places)
    cache._taken(SOURCE, marks)
    assert len(looked_up) <= len(marks)


def test_marks_of_beginnings() -> None:
    contents: list[Any] = [
        "a",
        "b",
        1,
        1.0,
        True,
        None,
        ["a"],
        {"a": 1},
        "a" * 5000,
        "a" * 5001,
        "b" + "a" * 4999,
    ]
    marks = [_marks(SOURCE, [{"content": content}, {"content": "x"}]) for content in contents]
    assert len({mark for each in marks for mark in each}) == 2 * len(contents)
    assert _marks(SOURCE, [{"content": "".join(["a"] * 5000)}]) == marks[8][:1]
    assert _marks(SOURCE, json.loads('[{"content": {"a": 1}}]')) == marks[7][:1]
    assert len(_marks(SOURCE, [{"content": trusted("a")}, {"content": object()}, 5])) == 3
    assert _marks(SOURCE, iter([])) == []


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
    for count in (29, 30, 31):
        messages = conversation("a", count)
        options: dict[str, Any] = {"variables": {}}
        expected = render_request(SOURCE, messages, {}, **options)
        assert render_request(SOURCE, messages, {}, cache=cache, **options) == expected
    assert cache.reused_turns == 30
    assert expected[0] == trusted("<|system|>")._replace(
        source="template", origin=expected[0].origin
    )


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_fork_while_another_thread_renders() -> None:
    cache, session = TemplateCache(), ChatTemplate(SOURCE).session()
    messages = [{"role": "user", "content": f"Number {number}"} for number in range(9)]
    expected = [segment.text for segment in session.render(messages)]
    with cache._lock, session._lock:
        child = os.fork()
        if not child:
            same = False
            try:
                faulthandler.dump_traceback_later(60, exit=True)
                for size in (8, 9, 9, 9):
                    part = messages[:size]
                    both = cache.render(SOURCE, part), session.render(part)
                    same = all([it.text for it in each] == expected for each in both)
            finally:
                os._exit(0 if same else 1)
        assert os.waitpid(child, 0)[1] == 0


def test_conversations_whose_content_is_in_parts_are_told_apart() -> None:
    cache = TemplateCache()
    for count in (9, 10, 11):
        for name in "abc":
            parts = [
                {**message, "content": [{"type": "text", "text": message["content"]}]}
                for message in conversation(name, count)
            ]
            expected = render_request(SOURCE, parts, {}, variables={})
            assert render_request(SOURCE, parts, {}, cache=cache, variables={}) == expected
    assert cache.reused_turns == 3 * 10
