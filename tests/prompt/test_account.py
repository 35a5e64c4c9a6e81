"""Tests that parts sum to the prompt's ids, and that `compare` finds the first difference."""

from __future__ import annotations

import copy
import json
import random
import types
from pathlib import Path
from typing import Any
from unittest import mock

import chats
import pytest
from seeds import seeded

import bpe_engine
from bpe_engine import cli
from bpe_engine.prompt import account as account_of
from bpe_engine.prompt import (
    account_prompt,
    count_chat_tokens,
    fit,
    render_chat,
    render_template,
    special,
    tokens,
    untrusted,
)
from bpe_engine.prompt.account import follow

jinja2 = pytest.importorskip("jinja2")

TEMPLATES = chats.templates()
TOKENS = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"}
OWN: dict[str, Any] = {name: special(text) for name, text in TOKENS.items()}
QWEN = bpe_engine.get_encoding("qwen3")
PARTS = ["hello ", "it is", "é", "\n", "a,b", " ", "{x}", "5", "👩", "\n\n", "<x>"]


def words(choose: random.Random) -> str:
    return "".join(choose.choices(PARTS, k=choose.randrange(9)))


def conversation(choose: random.Random) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Returns random messages with reasoning, calls and results, and the tools they call."""
    tools = copy.deepcopy(chats.TOOLS * choose.randrange(3))
    for number, tool in enumerate(tools):
        tool["function"] |= {"name": f"tool_{number}", "description": words(choose)}
    messages: list[dict[str, Any]] = [{"role": "system", "content": "be " + words(choose)}]
    for _ in range(choose.randrange(1, 5)):
        messages.append({"role": "user", "content": "asks " + words(choose)})
        while tools and choose.random() < 0.4:
            messages += [
                chats.call({"city": words(choose)}),
                {**chats.RESULT, "content": words(choose)},
            ]
        answer = {"role": "assistant", "content": "says " + words(choose)}
        thought = {"reasoning_content": "thinks " + words(choose)}
        messages.append(answer | (thought if choose.random() < 0.4 else {}))
    return messages[choose.randrange(2) :], tools


@pytest.mark.parametrize("name", TEMPLATES)
def test_parts_sum_to_the_ids_of_the_prompt(name: str) -> None:
    choose, template = seeded("account", name), TEMPLATES[name]
    encoding = chats.encoding_of(template, 20_000)
    for _ in range(20):
        messages, tools = conversation(choose)
        more: Any = {"tools": tools or None, "add_generation_prompt": choose.random() < 0.5}
        try:
            text = chats.rendered(template, messages, **TOKENS, **more)
            segments = render_template(template, messages, **OWN, **more)
        except Exception:
            continue  # The template rejects the conversation.
        account = account_prompt(messages, encoding, template=template, **OWN, **more)
        assert account.ids == encoding.encode_segments(segments)
        assert account.ids == encoding.encode(text, allowed_special="all")
        assert account.total == len(account.ids) == sum(part.tokens for part in account.parts)
        for part in account:
            assert not part.parts or part.tokens == sum(it.tokens for it in part.parts)
        of_segments = account_prompt(segments, encoding)
        assert [part.tokens for part in of_segments] == [part.tokens for part in account]


class Given(types.SimpleNamespace):
    """A message or a tool, as an object of a client package."""

    def model_dump(self) -> dict[str, Any]:
        return vars(self)


def test_objects_and_names_of_groups() -> None:
    template = "{% for t in tools or [] %}{{ t|tojson }}{% endfor %}" + TEMPLATES["chatml"]
    tools: list[Any] = [{"name": "system"}, Given(name="developer", description="Long.")]
    messages = [Given(**chats.SYSTEM), Given(**chats.USER), chats.ANSWER, Given(**chats.USER)]
    account = account_prompt(messages, QWEN, template=template, tools=tools)
    found = {part.name: [it.name for it in part.parts] for part in account.parts}
    assert found["tools"] == ["tools[0]", "tools[1]"]
    assert {name.split(".")[0] for name in found["system"]} == {"messages[0]"}
    assert found["messages"] == ["messages[1]", "messages[2]", "messages[3]"]
    assert len(fit(messages, account.total - 1, template, QWEN, tools).dropped) == 2


def test_a_token_belongs_to_the_part_with_its_first_byte() -> None:
    account = account_prompt([untrusted("hel", source="a"), untrusted("lo you", source="b")], QWEN)
    assert [part[:4] for part in account] == [("a", 1, "", 1), ("b", 1, "", 0)]
    assert str(account).endswith("counted where they begin: 1")
    given = account_prompt([("", False), tokens([0, 1], source="c"), ("hi", False)], QWEN)
    assert [(part.name, part.tokens) for part in given] == [("text", 1), ("c", 2)]
    chat = account_prompt(render_chat([chats.SYSTEM, chats.USER], "chatml"), QWEN)
    assert [part.name for part in chat.parts] == ["system", "messages"]


def test_parts_of_a_closed_model() -> None:
    for messages, more in chats.CONVERSATIONS.values():
        tools = more.get("tools")
        account = account_prompt(messages, model="gpt-4o", tools=tools)
        count = count_chat_tokens(messages, "gpt-4o", tools)
        assert account.total == count == sum(part.tokens for part in account.parts)
        assert account.estimates == count.estimates and account.ids is None
        assert account.compare(account).kept == count
    old, new = (account_prompt([], model="gpt-4o", tools=[{"name": name}]) for name in "ab")
    assert (side := new.compare(old).first[1]) and side.text == '{"name": "b"}'


def test_the_first_difference_and_blocks() -> None:
    choose = seeded("first difference")
    for _ in range(60):
        template = TEMPLATES[choose.choice(["chatml", "headers", "forgets"])]
        messages, tools = conversation(choose)
        later = copy.deepcopy(messages + [chats.USER] * choose.randrange(2))
        if choose.random() < 0.7:
            choose.choice(later)["content"] += words(choose) * choose.choice([1, 300])
        before, after = (
            account_prompt(chat, QWEN, template=template, tools=tools) for chat in (messages, later)
        )
        old, new = before.ids or [], after.ids or []
        pairs = zip([*old, None], [*new, None])
        kept = next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(old), len(new)))
        found = after.compare(before)
        assert found.kept == kept
        assert [side and QWEN.encode(side.text, allowed_special="all") for side in found.first] == [
            ids[kept : kept + 1] or None for ids in (old, new)
        ] or any("\ufffd" in side.text for side in found.first if side)
        for block in (16, 64):
            # vLLM looks up the full blocks of all tokens except the last token.
            stored = {tuple(old[:end]) for end in range(block, len(old) + 1, block)}
            ends = [end for end in range(block, len(new), block) if tuple(new[:end]) in stored]
            assert found.cached(block) == max(ends, default=0)
    for count, cached in ((1023, 0), (1024, 1024), (1151, 1024), (1152, 1152), (2000, 1920)):
        some = account_prompt([tokens([5] * count)], QWEN)
        assert some.compare(some).cached_by_openai == cached


def edited(
    system: str = "It is 2026-01-31.", user: str = "Why?", thought: str = "Hm.", **given: Any
) -> Any:
    answer = {"role": "assistant", "content": "So.", "reasoning_content": thought}
    chat = [{"role": "system", "content": system}, {"role": "user", "content": user}, answer]
    cut, more = given.get("cut", 0), given.get("more", [])
    return {"prompt": [*chat, *more][cut:], "tools": given.get("tools", [])}


NEXT = [{"role": "user", "content": "And then?"}]
A, B = ({"type": "function", "function": {"name": name}} for name in "ab")
LONG = {"type": "function", "function": {"name": "a", "description": "Long"}}
TURNED = {"function": {"name": "a"}, "type": "function"}
TO_JSON = "{{ messages|tojson }}{{ tools|tojson }}"
ONE, OTHER = '{"a":1,"b":2}', '{"b":2,"a":1}'


@pytest.mark.parametrize(
    "before, after, expected",
    [
        ({}, {}, []),
        ({}, {"system": "It is 2026-02-01."}, [("date", "messages[0].content")]),
        ({}, {"user": "Why? "}, [("whitespace", "messages[1].content")]),
        ({"user": "10.0.12.1"}, {"user": "10.0.13.1"}, [("edited", "messages[1].content")]),
        ({"user": ONE}, {"user": OTHER}, [("key order", "messages[1].content")]),
        ({"tools": [A, B]}, {"tools": [B, A]}, [("moved", "tools[0]")]),
        ({"tools": [A]}, {"tools": [TURNED]}, [("key order", "tools[0]")]),
        ({"tools": [A]}, {"tools": [LONG]}, [("edited", "tools[0]")]),
        ({"tools": [A]}, {"tools": [A, B]}, [("added", "tools[1]")]),
        ({"cut": 0}, {"cut": 1}, [("removed", "messages[0]")]),
        ({"cut": 1}, {"cut": 0}, [("added", "messages[0]")]),
        ({"thought": ""}, {"thought": "", "more": NEXT}, [("grown", "messages[3]")]),
        ({}, {"more": NEXT}, [("reasoning", "messages[2].reasoning"), ("grown", "messages[3]")]),
        ({}, {"thought": ""}, [("removed", "messages[2].reasoning")]),
    ],
)  # fmt: skip
def test_changes(before: Any, after: Any, expected: list[tuple[str, str]]) -> None:
    tools = "{% for tool in tools or [] %}{{ tool | tojson }}{% endfor %}"
    old, new = (
        account_prompt(**edited(**it), tokenizer=QWEN, template=tools + TEMPLATES["forgets"])
        for it in (before, after)
    )
    found = new.compare(old)
    assert [change[:2] for change in found.changes] == expected
    assert all(change.advice in str(found) for change in found.changes)
    origins = [side and side["origin"] for side in found.to_dict()["first"].values()]
    assert origins == [side and str(side.origin) for side in found.first]
    (*_, step) = follow([old, new])
    assert step.change == next((it for it in found.changes if it.kind != "grown"), None)


def test_a_template_that_writes_other_text() -> None:
    for template, content, change in (
        ("{{ day }}{{ messages[0].content }}", "It is.", ("date", "template")),
        ("{{ messages[0].content[:day[0]|int] }}", "It is.", ("template", "messages[0].content")),
        ("{{ messages[0].content|tojson }}", [A], ("key order", "messages[0].content")),
        ("{{ messages[0].content[day[0]|int:] }}", "Hm, so.", ("reasoning", "messages[0].content")),
    ):
        old, new = (
            account_prompt([{"role": "assistant", "content": it}], QWEN, template=template, day=day)
            for it, day in ((content, "1 May"), ([TURNED] if content == [A] else content, "2 May"))
        )
        assert [change[:2] for change in new.compare(old).changes] == [change]
    source: Any = {"template": TEMPLATES["chatml"] + "{{ tools|tojson }}", "tokenizer": QWEN}
    old, new = (account_prompt(**edited(it, tools=[{"name": it}]), **source) for it in ("A", "\nB"))
    assert new.compare(old).changes[0].part == "messages[0].content"  # After the template's "\n".


#: Renders a list of content parts as text, which chat templates seldom do.
AS_TEXT = "{% for message in messages %}{{ message.content | string }}{% endfor %}"


def test_fit_keeps_whole_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    choose, template = seeded("fit"), TEMPLATES["chatml"]
    for _ in range(40):
        messages, _ = conversation(choose)
        full = account_prompt(messages, QWEN, template=template).total
        fitted = fit(messages, full, template, QWEN)
        assert (fitted.messages, fitted.dropped, fitted.total) == (messages, [], full)
        for limit in range(full - 1, 0, -7):
            try:
                fitted = fit(messages, limit, template, QWEN)
            except ValueError as error:
                assert "the last turn needs" in str(error)
                break
            account = account_prompt(fitted.messages, QWEN, template=template)
            assert account.total == fitted.total <= limit
            rest = [m for m in fitted.messages if m["role"] != "system"]
            assert rest[0]["role"] == "user"
            assert fitted.dropped + rest == [m for m in messages if m["role"] != "system"]
    made = mock.Mock(wraps=account_prompt)
    monkeypatch.setattr(account_of, "account_prompt", made)
    many = [*messages[:1], *(chats.USER | {"content": f"{n} " * n} for n in range(200))]
    assert len(fit(many, 5000, template, QWEN).messages) < 30 and made.call_count <= 9
    late = [chats.USER, chats.call({}), chats.USER, chats.RESULT, chats.ANSWER]
    with pytest.raises(ValueError, match=r"shorten messages\[\d\]"):
        fit(late, 40, model="gpt-4o")
    used = {"type": "tool_use", "id": "c", "name": "f", "input": {}}
    for call, result in (
        (
            {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": "4"},
        ),
        (
            {"role": "assistant", "content": [used]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c"}]},
        ),
    ):
        chat = [chats.USER, call, chats.USER, result, chats.USER]
        source = {"model": "gpt-4o"} if "type" in call else {"tokenizer": QWEN, "template": AS_TEXT}
        full = account_prompt(chat, **source).total
        assert fit(chat, full - 1, **source).messages == chat[4:]


@pytest.mark.parametrize("calls", [5, [5], [None], ["a"], {"id": 1}, [{"id": [1]}]])
def test_fit_of_damaged_calls(calls: Any) -> None:
    chat = [chats.USER, {**chats.ANSWER, "tool_calls": calls}, chats.RESULT, chats.USER]
    for source in ({"model": "gpt-4o"}, {"tokenizer": QWEN, "template": TEMPLATES["chatml"]}):
        full = account_prompt(chat, **source).total
        assert fit(chat, full, **source).messages == chat
        assert fit(chat, full - 1, **source).messages == chat[3:]


def test_messages_with_few_texts_are_compared() -> None:
    choose = seeded("few texts")
    texts = [{"role": "user", "content": text} for text in "abc"]
    source: Any = {"template": TEMPLATES["chatml"], "tokenizer": QWEN, "max_seconds": 1e6}
    pair = (choose.choices(texts, k=size) for size in (9_000, 10_000))
    before, after = (account_prompt(chat, **source) for chat in pair)
    kinds = [change.kind for change in after.compare(before).changes]
    added = kinds.count("added") + kinds.count("grown")
    assert added == 1000 + kinds.count("removed") and kinds.count("moved") > 5000


def test_arguments_that_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TypeError, match="tools must be a list, not int"):
        account_prompt([chats.USER], model="gpt-4o", tools=5)  # type: ignore[arg-type]
    odd: list[Any] = [{"role": "user", "content": [{("a",): 1}]}]
    more: dict[str, Any]
    for more in ({"model": "gpt-4o"}, {"tokenizer": QWEN, "template": TO_JSON}):
        for name, chat, tools in (("messages", odd, []), ("tools", [chats.USER], odd)):
            with pytest.raises(TypeError, match=rf"{name}\[0\]: keys must be str.*its data JSON"):
                account_prompt(chat, tools=tools, **more)
    with pytest.raises(TypeError, match=r"segments\[0\] must be a tuple"):
        account_prompt([("a",)], QWEN)
    empty = account_prompt([chats.USER], QWEN, template="")
    assert (empty.total, empty.parts) == (0, ())
    old, new = (account_prompt([chats.USER], model=name) for name in ("gpt-4", "gpt-4o"))
    o200k = bpe_engine.get_encoding("o200k_base")
    for account in (empty, old, account_prompt([chats.USER], o200k, template="")):
        with pytest.raises(ValueError, match="the prompts are of two models"):
            account.compare(new)
    monkeypatch.setattr("bpe_engine.prompt.limits.clock", iter(range(1 << 30)).__next__)
    more = {"template": "{% for m in messages %}{{ m.content|upper }}{% endfor %}"}
    with pytest.raises(Exception, match="takes longer than 5 seconds"):
        account_prompt([chats.USER] * 2000, QWEN, **more, max_seconds=5)
    assert account_prompt([chats.USER] * 2000, QWEN, **more, max_seconds=1e6).total > 2000


def test_the_command(capfdbinary: pytest.CaptureFixture[bytes], tmp_path: Path) -> None:
    template, one, log = (tmp_path / name for name in ("t.jinja", "one.json", "log.jsonl"))
    source = ("--tokenizer", "qwen3", "--template", str(template))

    def run(*arguments: object) -> tuple[Any, str, str]:
        with pytest.raises(SystemExit) as exit:
            cli.main(("account", *map(str, arguments)))
        captured = capfdbinary.readouterr()
        return exit.value.code, captured.out.decode(), captured.err.decode()

    def read(*arguments: object) -> Any:
        return json.loads(run(*arguments, "--json")[1])

    template.write_text(TEMPLATES["chatml"])
    requests: list[Any] = []
    for day in (1, 1, 2):
        system = {"role": "system", "content": f"It is 2026-01-0{day}."}
        more = [chats.ANSWER, chats.USER] * len(requests)
        requests.append({"messages": [system, chats.USER, *more]})
    one.write_text(json.dumps(requests[0]))
    text = "".join(json.dumps({"body": it}) + "\n" for it in requests)
    log.write_text(text)
    account = account_prompt(requests[0]["messages"], QWEN, template=TEMPLATES["chatml"])
    assert read(one, *source) == account.to_dict()
    _, out, _ = run(one, "--before", one, "-m", "gpt-4o", "--price-in", 1000)
    assert "prompt  " in out and "kept 37 of 37 tokens" in out and "cost: 0.037;" in out
    status, out, _ = run(log, *source)
    assert status == 0 and out.splitlines()[3].endswith("date: messages[0].content")
    assert "most tokens: user (messages)" in out
    data = read(log, *source)
    assert [bool(it["change"]) for it in data["requests"]] == [False, False, True]
    assert data["tokens"] == sum(part["tokens"] for part in data["parts"])
    cost, whole = ((data["tokens"] - cached) * 2 / 1e6 for cached in (data["cached"], 0))
    for contents in (json.dumps(requests).encode("utf-8-sig"), text.encode("utf-16")):
        log.write_bytes(contents)
        found = read(log, *source, "--price-in", 2, "--price-cached", 0)
        assert found == {**data, "cost": cost, "cost_without_cache": whole}
    given: Any = {"documents": [{"title": "A", "text": "wet"}], "add_generation_prompt": False}
    request = {"messages": [chats.USER], "functions": chats.TOOLS, **given}
    one.write_text(json.dumps({**request, "chat_template_kwargs": {"end": "The end."}}))
    template.write_text(whole_template := TEMPLATES["tools"] + "{{ documents }}{{ end }}")
    given |= {"template": whole_template, "tools": chats.TOOLS, "end": "The end."}
    assert read(one, *source) == account_prompt([chats.USER], QWEN, **given).to_dict()
    template.write_text("{{ bos_token }}" + TEMPLATES["chatml"])
    _, out, err = run(log, *source)
    assert "most tokens" in out and err.count("bos_token") == 1
    template.write_text(TEMPLATES["chatml"])
    (zero := tmp_path / "zero.jinja").write_text("{{ 1 / 0 }}")
    user = '[{"role": "user"}]'
    for text, arguments, message in [
        ('[{"messages": [1]}]', source, "item 1: give a list of messages"),
        ('{"messages": [{}], "tools": {"a": 1}}', source, "tools must be a list, not dict"),
        ('{"messages": [{}], "chat_template_kwargs": {"tools": []}}', source, "max_seconds"),
        ('[{"role": "tool", "tool_calls": 5, "content": 1}]', source, "can only concatenate str"),
        (user, (*source[:3], zero), f"{one}: the template: division by zero"),
        (user, (*source, "--price-in", "inf"), "is not in the range"),
        (user, (*source, "--price-in", "nan"), "nan is not a price"),
        (user, ("-m", "claude"), "'claude' is not a chat model of OpenAI"),
        (user, ("-m", "gpt-4o", "--template", template), "--template needs --tokenizer"),
        ('{"messages": [{"role": "user"}]}\n{', source, "line 2 is not JSON"),
        ("", source, "has no request"),
        (user, (), "give --tokenizer, or --model"),
        (user, ("--tokenizer", "qwen3"), "qwen3 has no chat template; give --template"),
        ('[{"role": "user", "content": [{}, {}]}]', source, "the content of messages[0] is"),
        (f'[{{"content": {"[" * 900 + "]" * 900}}}]', source, "the content of messages[0] is"),
        ('[{"role": "\xff"}]', source, "is not utf-8, as JSON must be: byte 11"),
    ]:
        one.write_text(text, encoding="latin-1")
        status, out, err = run(one, *arguments)
        assert (status, out) in ((1, ""), (2, "")) and message in err
