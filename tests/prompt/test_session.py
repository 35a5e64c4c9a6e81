"""A session renders exactly what the template renders, whatever becomes of the conversation."""

from __future__ import annotations

import copy
import gc
import json
import random
import sys
import threading
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import chats
import pytest
from seeds import seeded

from bpe_engine.prompt import ChatTemplate, special, trusted, untrusted
from bpe_engine.prompt.session import TemplateSession

BODY = "<|im_start|>{{ m.role }}{{ m.content }}<|im_end|>"
#: Each reads or writes something else outside of the turn.
TEMPLATES: dict[str, str] = {
    **chats.TEMPLATES,
    "neighbors": "{% for m in messages %}{% if loop.previtem and loop.previtem.role != m.role %}-{% endif %}"
    + BODY
    + "{% if not loop.last and loop.nextitem.role != 'tool' %}+{% elif loop.last %}.{% endif %}{% endfor %}",
    "by place": "{% for m in messages %}{% if loop.first or messages[loop.index0 - 1].role != 'tool' %}-{% endif %}"
    + BODY
    + "{% if loop.last or messages[loop.index0 + 1].role != 'tool' %}+{% endif %}{% endfor %}",
    "prints a neighbor": "{% for m in messages %}{{ loop.previtem.content }}|{{ messages[0].content }}"
    + BODY
    + "{{ loop.nextitem.content if not loop.last }}{% endfor %}",
    "reads a place": "{% for m in messages %}{% set p = messages[loop.index0 - 1] %}{{ p.content }}"
    "{{ loop.index }}{{ loop.length if loop.first }}{{ loop.revindex0 }}" + BODY + "{% endfor %}",
    "last question": "{% set ns = namespace(open=true, last=messages|length - 1) %}"
    "{% for m in messages[::-1] %}{% set i = (messages|length - 1) - loop.index0 %}"
    "{% if ns.open and m.role == 'user' %}{% set ns.open = false %}{% set ns.last = i %}{% endif %}{% endfor %}"
    "{{ ns.last }}{% for m in messages %}{% if loop.index0 > ns.last %}!{% endif %}"
    + BODY
    + "{% endfor %}",
    "only writes": "{% set ns = namespace(a=1, b='x') %}{% for m in messages %}"
    "{% if m.role == 'user' %}{% set ns.a = loop.index0 %}{% elif m.role == 'tool' %}{% set ns.b = m.content %}"
    "{% endif %}{% endfor %}{{ ns.a }}{{ ns.b }}{{ ns.c }}",
    "missing": "{% set ns = namespace() %}{% for m in messages %}{{ ns.a }}{% if m.role == 'user' %}"
    "{% set ns.a = m.content|trim %}{% endif %}{% endfor %}{{ ns.a }}",
    "state": "{% set ns = namespace(text='', n=0, all=[], d={}) %}{% for m in messages %}"
    "{% set ns.n = ns.n + 1 %}{% if ns.n % 3 == 0 %}{{ ns.text }}{% endif %}"
    "{% set ns.text = m.content ~ ns.n %}{% if m.role == 'tool' %}{% set ns.all = ns.all + [m.name] %}"
    "{% set ns.d = {'last': m, 'n': ns.n} %}{% endif %}"
    + BODY
    + "{{ ns.d.last.content }}{% endfor %}"
    "{{ ns.all|join(',') }}{{ ns.text }}",
    "iterators": "{% set ns = namespace(it=[]) %}{% for m in messages %}{% if m.role == 'user' %}"
    "{% set ns.it = [m.content, m.role, 'a', 'b']|map('upper') %}{% endif %}"
    "{% for x in ns.it %}{{ x }}{% if loop.index > 1 %}{% break %}{% endif %}{% endfor %}{% endfor %}",
    "breaks": "{% set ns = namespace(n=0, w=0) %}{% for m in messages %}{% set ns.w = loop.index %}"
    "{% if m.role == 'system' and not loop.first %}{% break %}{% endif %}"
    "{% if m.content == '' %}{% continue %}{% endif %}{% set ns.n = ns.n + 1 %}"
    + BODY
    + "{% endfor %}"
    "{{ ns.n }}{{ ns.w }}",
    "macros": "{% set ns = namespace(n=0) %}{% macro count(m) %}{% set ns.n = ns.n + 1 %}{{ ns.n }}{{ wrap(m) }}"
    "{% endmacro %}{% macro wrap(m, end='.') %}({{ m.content }}{{ end }}{{ extra }}){{ caller() if caller }}{% endmacro %}"
    "{% for m in messages %}{% if m.role == 'user' %}{{ count(m) }}{% else %}{{ wrap(m, '!') }}"
    "{% call wrap(m) %}{{ m.role }}{{ ns.n }}{% endcall %}{% endif %}{% endfor %}{{ ns.n }}",
    "outer": "{% set first = messages[0].content %}{% set rest = messages[1:] %}{% for m in rest %}"
    "{{ first }}{{ tools|length if tools }}{{ extra }}{% if loop.first %}{{ tools|tojson }}{% endif %}"
    "{% if add_generation_prompt and loop.last %}>{% endif %}" + BODY + "{% endfor %}{{ first }}",
    "unset": "{% for m in messages %}{% if m.role == 'user' %}{% set extra = m.content %}{% endif %}"
    "{{ extra }}{{ other|default('none') }}" + BODY + "{% endfor %}",
    "twice": "{% for m in messages + messages %}"
    + BODY
    + "{% endfor %}{% for m in messages %}{{ m.content }}"
    "{% endfor %}{% for m in messages|list %}{{ m.content }}{% endfor %}",
    "same again": "{% set all = [messages[0], messages[0]] if extra else messages %}{% for m in all %}{{ m.content }}"
    "{% endfor %}{% for m in messages|rejectattr('role', 'equalto', 'tool')|list %}{{ m.content }}{% endfor %}",
    "merges": "{{ messages[0].content[:3] }}{% for m in messages %}{{ m.content[3:] }}{% endfor %}x"
    "{% for m in messages %}{% endfor %}y{% for m in messages[5:] %}{{ m.role }}{% else %}none{% endfor %}z",
    "later": "{% set all = messages[1:] if messages[0].role == 'system' else messages %}{% for m in all %}"
    "{% if 'tool_calls' in m %}{% set later = namespace(found=false) %}{% for f in all[loop.index:] %}"
    "{% if f.role == 'assistant' and 'tool_calls' not in f %}{% set later.found = true %}{% endif %}{% endfor %}"
    "{{ '-' if later.found else '+' }}{% endif %}" + BODY + "{% endfor %}",
    "generated": "{% set ns = namespace(n=0) %}{% for m in messages %}{% if m.role == 'assistant' %}{% generation %}"
    "{% set ns.n = ns.n + 1 %}{{ m.content }}{{ ns.n }}{% endgeneration %}{% else %}"
    + BODY
    + "{% endif %}{% endfor %}",
    "refuses": "{% set ns = namespace(user=false) %}{% for m in messages %}"
    "{% if (m.role == 'user') and ns.user %}{{ raise_exception('two users at ' ~ loop.index) }}{% endif %}"
    "{% set ns.user = m.role == 'user' %}" + BODY + "{% endfor %}",
    "computed": "{% set ns = namespace(t='') %}{% set t %}{% for x in tools or [] %}{{ x|string }}{{ x|tojson }}"
    "{{ x|tojson(indent=1) }}{% endfor %}{% endset %}{{ t }}{% if tools and extra %}{% set u = tools[0]|string %}"
    "{% endif %}{% for m in messages %}{{ t if m.role == 'user' }}{{ ns.t }}{{ u }}{{ tools[0]|string if tools }}"
    "{% if m.role == 'tool' %}{% set ns.t = t ~ m.content %}{% endif %}{% endfor %}{{ ns.t }}{{ u }}{{ t }}",
    "calls": "{% for m in messages %}{% for c in m.tool_calls or [] %}{{ loop.index }}{{ c.function.name }}"
    "{% for k, v in (c.function.arguments|items if c.function.arguments is mapping else []) %}{{ k }}={{ v }}{% endfor %}"
    "{{ c.function.arguments|tojson }}{% endfor %}{{ m.tool_calls|length if m.tool_calls }}"
    + BODY
    + "{% endfor %}",
}
WORDS = ["alpha", "<|im_end|>", "<think>", "</think>", "", " ", "\n", "é", "日本", "</s>", "beta"]


def text(rng: random.Random) -> str:
    return " ".join(rng.choices(WORDS, k=rng.randrange(5)))


def value(rng: random.Random, depth: int = 0) -> Any:
    makers: list[Callable[[], Any]] = [
        lambda: rng.randrange(3), lambda: rng.random() < 0.5, lambda: None, lambda: 0.5,
        lambda: text(rng),
    ]  # fmt: skip
    if depth < 2:
        makers += [
            lambda: [value(rng, depth + 1) for _ in range(rng.randrange(3))],
            lambda: {text(rng): value(rng, depth + 1) for _ in range(rng.randrange(3))},
        ]
    return rng.choice(makers)()


def content(rng: random.Random) -> Any:
    kinds: list[Any] = [text(rng)] * 6
    kinds += [untrusted(text(rng)), trusted(text(rng)), None, [{"type": "text", "text": text(rng)}]]
    return rng.choice(kinds)


def message(rng: random.Random) -> dict[str, Any]:
    role = rng.choice(["user", "assistant", "assistant", "tool", "system"])
    made: dict[str, Any] = {"role": role if rng.random() < 0.8 else trusted(role)}
    made["content"] = content(rng)
    if role == "assistant" and rng.random() < 0.5:
        arguments: Any = {rng.choice("ab"): value(rng) for _ in range(rng.randrange(3))}
        arguments = json.dumps(arguments) if rng.random() < 0.3 else arguments
        function = {"name": rng.choice("fg"), "arguments": arguments}
        made["tool_calls"] = [{"id": "1", "type": "function", "function": function}]
    if role == "assistant" and rng.random() < 0.3:
        made[rng.choice(["reasoning_content", "thinking", "reasoning"])] = text(rng)
    if role == "tool":
        made["name"] = rng.choice([text(rng), "f"])
    return made


def edit(rng: random.Random, messages: list[Any]) -> None:
    """Changes a conversation in place."""
    place = rng.randrange(len(messages))
    kind = rng.randrange(6)
    if kind == 0:
        messages[place]["content"] = content(rng)
    elif kind == 1:
        messages[place] = message(rng)
    elif kind == 2 and len(messages) > 1:
        del messages[place]
    elif kind == 3:
        messages.insert(place, message(rng))
    elif kind == 4:
        del messages[max(1, place) :]
    elif messages[place].get("tool_calls"):
        messages[place]["tool_calls"][0]["function"]["arguments"] = value(rng)


def outcome(render: Callable[[], Any]) -> Any:
    try:
        return render()
    except Exception as error:
        return type(error), str(error)


def check(rng: random.Random, source: str, steps: int) -> tuple[int, int]:
    """Compares a session and its branches with the template; returns their turns, and those that were
    not run."""
    template = ChatTemplate(source)
    session = template.session()
    # Each rendering is recorded, whether that pays or not.
    session.rests = False
    messages, saved, sessions = [message(rng)], [], [session]
    more: dict[str, Any] = {}
    for _ in range(steps):
        kind = rng.random()
        if kind < 0.6:
            messages += [message(rng) for _ in range(rng.randrange(1, 3))]
        elif kind < 0.75:
            edit(rng, messages)
        elif kind < 0.82:
            sessions.append(session.fork())
            saved.append((copy.deepcopy(messages), sessions[-1]))
        elif kind < 0.9 and saved:
            given, branch = rng.choice(saved)
            messages, session = copy.deepcopy(given), rng.choice([session, branch])
        elif kind < 0.93:
            messages = [*messages, messages[0]]
        if rng.random() < 0.2:
            others: list[dict[str, Any]] = [
                {}, {"tools": copy.deepcopy(chats.TOOLS)}, {"extra": text(rng)}, {"extra": value(rng)},
                {"documents": [{"title": "a", "text": text(rng)}]}, {"other": 1, "extra": untrusted("x")},
                {"bos_token": special("<s>")},
            ]  # fmt: skip
            more = rng.choice(others)
        options = {**more, "add_generation_prompt": rng.random() < 0.7}
        expected = outcome(lambda: template.render(messages, **options))
        assert outcome(lambda: session.render(messages, **options)) == expected
    return sum(it.turns for it in sessions), sum(it.reused_turns for it in sessions)


@pytest.mark.parametrize("name", TEMPLATES)
def test_random_conversations(name: str) -> None:
    for case in range(6):
        check(seeded("session", name, case), TEMPLATES[name], 25)


STATEMENTS = [
    "{{ m.content }}", "{{ m.role }}", "<|im_end|>", "{{ ns.a }}", "{{ ns.b }}", "{{ x }}", "{{ y }}",
    "{% set ns.a = m.content %}", "{% set ns.a = ns.a ~ m.role %}", "{% set ns.b = loop.index0 %}",
    "{% set x = m.content %}", "{% set y = ns.a %}", "{{ extra }}", "{{ loop.index }}",
    "{% set ns.b = messages[loop.index0 - 1].content %}", "{{ messages[-1].role }}", "{{ messages|length }}",
    "{{ f(m) }}", "{% set ns.c = f(m) %}", "{{ ns.c }}", "{% if m.role == 'tool' %}{% continue %}{% endif %}",
    "{% set ns.d = loop.previtem %}", "{{ ns.d.content }}", "{% set ns.c = [ns.b, m] %}",
    "{% if ns.b == 2 %}{% break %}{% endif %}", "{% set ns.c = messages[1:]|map(attribute='role')|join %}",
    "{% for c in m.content|string %}{{ c }}{% if loop.last %}{% set ns.a = c %}{% endif %}{% endfor %}",
    "{% for n in messages %}{{ n.role if loop.first }}{% endfor %}", "{{ loop.nextitem.role }}",
    "<|im_", "end|>",
]  # fmt: skip
TESTS = [
    "loop.first", "loop.last", "loop.index0 > ns.b", "ns.a", "m.role == 'user'", "extra is defined",
    "loop.nextitem and loop.nextitem.role == 'user'", "loop.previtem is defined", "messages[0].role == 'system'",
    "messages[loop.index].role != 'tool'", "loop.index == messages|length - 1", "m == messages[-1]",
    "loop.length > 4", "x", "not y", "ns.c == none", "m.content == ns.a", "'tool_calls' in loop.previtem",
    "messages[loop.index0 - 1].content is string", "tools", "loop.revindex < 3", "messages[ns.b].role == m.role",
]  # fmt: skip


FLAGS = [
    "{% set g.f = true %}", "{% set g.f = n.role %}", "{% set g.n = g.n + 1 %}", "{% set ns.b = loop.index %}",
    "{% set g.f = true %}{% break %}", "{{ n.role }}",
]  # fmt: skip
LISTS = [
    *["messages[loop.index:]"] * 12, "messages[:loop.index]", "messages[loop.index:]|reverse",
    "messages[::-1]", "messages[loop.index0:]", "[m]", "m.tool_calls or []", "[messages[-1]]",
]  # fmt: skip
ALIASES = [
    "{% set a = ns %}{{ a.a }}", "{{ [ns][0].b }}", "{% set ns.c = namespace(n=ns) %}{{ ns.c.n.a }}", "{{ g.a }}",
    "{{ h(ns) }}", "{{ [f][0](m) }}", "{{ k.f(m) }}", "{{ h(caller=f) }}", "{% set a = f %}{{ a(m) }}",
]  # fmt: skip


def inner_loop(rng: random.Random) -> str:
    """A loop inside of a turn, with flags."""
    test = rng.choice(["n.role == 'user'", "n.role != 'tool'", "n.content", "'tool_calls' in n"])
    body = f"{{% if {test} %}}{rng.choice(FLAGS)}{{% endif %}}"
    source = "{% set g = namespace(f=false, n=0) %}<|im_" if rng.random() < 0.7 else "<|im_"
    source += f"{{% for n in {rng.choice(LISTS)} %}}{body}{{% endfor %}}end|>"
    return source + rng.choice(["", "{{ g.f }}", "{% if g.f %}+{% endif %}", "{{ g.n }}"])


def template(rng: random.Random, is_odd: bool = False) -> str:
    """A template whose loops read and write what they like."""
    has_aliases = is_odd and rng.random() < 0.3

    def body(depth: int) -> str:
        parts = []
        for _ in range(rng.randrange(1, 4)):
            part = rng.choice(STATEMENTS)
            if is_odd and rng.random() < 0.3:
                part = rng.choice(ALIASES) if has_aliases else inner_loop(rng)
            if depth and rng.random() < 0.4:
                test = " and ".join(rng.choices(TESTS, k=rng.randrange(1, 3)))
                part = f"{{% if {test} %}}{body(depth - 1)}{{% else %}}{body(0)}{{% endif %}}"
            parts.append(part)
        return "".join(parts)

    source = "{% set ns = namespace(a='a', b=-1, c=none, d=none) %}"
    source += "{% macro f(m) %}" + rng.choice(
        ["{{ m.role }}", "{% set ns.a = 'f' %}", "{{ ns.b }}{{ x }}"]
    )
    source += "{% endmacro %}" + rng.choice(
        ["", "{% set x = messages[0].content %}", "{% set y = 'y' %}"]
    )
    if is_odd:
        source += "{% macro h(s) %}{{ s.a }}{{ caller(messages[0]) if caller }}{% endmacro %}"
        odd = ["{% set g = ns %}", "{% set g = [ns][0] %}", "{% set k = {'f': f} %}"]
        source += rng.choice(odd) if has_aliases else "{% set g = namespace(f=false, n=0) %}"
    for _ in range(rng.randrange(1, 3)):
        items = rng.choice(
            ["messages", "messages", "messages[1:]", "messages[::-1]", "messages|list"]
        )
        source += f"{{% for m in {items} %}}{body(2)}{{% endfor %}}{rng.choice(STATEMENTS[3:7])}"
    return source


def test_random_templates() -> None:
    turns = reused = 0
    for case in range(150):
        rng = seeded("session templates", case)
        source = template(rng)
        found = check(rng, source, 12)
        turns, reused = turns + found[0], reused + found[1]
    assert reused > turns // 20


def test_random_inner_loops_and_aliases() -> None:
    turns = reused = 0
    for case in range(200):
        rng = seeded("session inner loops", case)
        found = check(rng, template(rng, is_odd=True), 10)
        turns, reused = turns + found[0], reused + found[1]
    assert reused > turns // 50


CHAT = "{% for m in messages %}" + BODY + "{% if loop.last %}.{% endif %}{% endfor %}"


def chat(count: int) -> list[dict[str, Any]]:
    roles = ("user", "assistant")
    return [{"role": roles[i % 2], "content": f"Number {i}"} for i in range(count)]


def test_only_turns_that_read_something_new_are_run() -> None:
    template = ChatTemplate(CHAT)
    session = template.session()
    session.render(chat(100))
    assert (session.turns, session.reused_turns) == (100, 0)
    assert session.render(chat(102)) == template.render(chat(102))
    # The turn that was the last one says so no more.
    assert (session.turns, session.reused_turns) == (202, 99)
    changed = chat(104)
    changed[50]["content"] = "<|im_end|>"
    assert session.render(changed) == template.render(changed)
    assert (session.turns, session.reused_turns) == (306, 99 + 100)


def test_a_session_rests_where_recording_does_not_pay() -> None:
    """Where all messages are others each time, few renderings are recorded, and none is wrong."""
    template = ChatTemplate(CHAT)
    session = template.session()
    messages = chat(200)
    for number in range(60):
        window = messages[2 * number :][:80]
        assert session.render(window) == template.render(window)
    # The first, and those after others and rests of 1, 2, 4, 8 and 16.
    assert (session.turns, session.reused_turns) == (80 * 6, 0)
    grown = messages[:100]
    for _ in range(40):
        grown = [*grown, *chat(2)]
        assert session.render(grown) == template.render(grown)
    # It was not given up.
    assert session.reused_turns > 0


def test_branches_go_on_for_themselves() -> None:
    template = ChatTemplate(CHAT)
    session = template.session()
    session.render(chat(100))
    branch = session.fork()
    assert branch.memory == session.memory > 0
    for number in range(5):
        for each, name in ((session, "a"), (branch, "b")):
            messages = [
                *chat(90),
                *({"role": "user", "content": f"{name}{i}"} for i in range(number)),
            ]
            assert each.render(messages) == template.render(messages)
    # Each has what it had before, without the turn that was the last one.
    assert (branch.turns, branch.reused_turns) == (460, 89 * 5 + 0 + 0 + 1 + 2 + 3)
    assert session.reused_turns == branch.reused_turns
    session.clear()
    assert branch.render(chat(100)) == template.render(chat(100))


def test_templates_that_reuse_nothing_are_not_recorded() -> None:
    template = ChatTemplate("{% for m in messages %}{{ messages|length ~ messages }}{% endfor %}")
    session = template.session()
    for count in (3, 4):
        assert session.render(chat(count)) == template.render(chat(count))
    assert (session.turns, session.messages) == (0, 0)


def test_growing_conversations_never_rest() -> None:
    template = ChatTemplate(CHAT)
    session = template.session()
    for count in range(1, 60):
        assert session.render(chat(count)) == template.render(chat(count))
    assert session.turns == sum(range(1, 60))


def test_loops_over_later_messages_are_asked_for_their_outcome() -> None:
    template = ChatTemplate(TEMPLATES["later"])
    session = template.session()
    messages = chat(1)
    for _ in range(40):
        messages += [{"role": "assistant", "content": "", "tool_calls": []}, chats.RESULT]
        assert session.render(messages) == template.render(messages)
    assert session.turns - session.reused_turns == 81
    messages.append(chats.ANSWER)
    assert session.render(messages) == template.render(messages)
    # It is another outcome for all of them.
    assert session.turns - session.reused_turns == 81 + 82


def test_loops_that_write_nothing_separate_no_text() -> None:
    template = ChatTemplate(
        "{% for m in messages %}<|im_{% set f = namespace(v=false) %}{% for k in messages[loop.index:] %}"
        "{% if k.role == 'user' %}{% set f.v = true %}{% endif %}{% endfor %}end|>{% endfor %}"
    )
    session = template.session()
    assert template.whole_loops == []
    for count in range(1, 4):
        messages = [{"role": "tool"}] * count
        segments = session.render(messages)
        assert segments == template.render(messages)
        assert [segment.text for segment in segments] == ["<|im_end|>"] * count
    assert session.reused_turns == 1 + 2


def test_keys_that_are_methods_of_dicts_are_defined() -> None:
    template = ChatTemplate(
        "{% for m in messages %}{% if m[x] is defined %}D{% else %}U{% endif %}{% endfor %}"
    )
    session = template.session()
    for key in ("foo", "items", "foo", "role", "keys"):
        assert session.render(chat(2), x=key) == template.render(chat(2), x=key)


@pytest.mark.parametrize(
    "literal",
    [
        "v[0]", "v[1]", "v[2]", "count(v[1])", "column(v[1], 'role')", "look(look(v[1], (i + 1)), 'role')",
        "look((items[i - 1] if i else MISSING), 'role')", "it's \"\\U\n é日", "",
    ],
)  # fmt: skip
def test_literals_are_compared_as_they_are(literal: str) -> None:
    template = ChatTemplate(
        f"{{% for m in messages %}}{{% if loop.index0 >= low and mode == {literal!r} %}}A{{% endif %}}{{% endfor %}}"
    )
    session = template.session()
    for mode in ("x", "x", literal, literal, "x"):
        expected = template.render(chat(2), low=0, mode=mode)
        assert session.render(chat(2), low=0, mode=mode) == expected
    assert session.reused_turns


@pytest.mark.parametrize(
    "number", ["low * low", "low * 1" + "0" * 1300, "*".join(["low"] * 100), "(-low) * low"]
)
def test_huge_numbers_are_refused_as_by_the_template(number: str) -> None:
    template = ChatTemplate(
        f"{{% for m in messages %}}{{% if low and loop.index0 < {number} %}}A{{% else %}}B{{% endif %}}{{% endfor %}}"
    )
    session = template.session()
    for low in (0, -1, 1, 2, 2, 2**63, 2**4000, -(2**4000), True, 2**65):
        expected = outcome(lambda: template.render(chat(2), low=low))
        assert outcome(lambda: session.render(chat(2), low=low)) == expected


class Odd(dict[str, Any]):
    """A message that is equal to any other."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


class OddText(str):
    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 1


def test_messages_are_compared_by_their_content() -> None:
    template = ChatTemplate(CHAT)
    session = template.session()
    messages: list[Any] = [Odd(role="user", content="a"), {"role": OddText("user"), "content": "b"}]
    messages += [{"role": "user", "content": True}, {"role": "user", "content": OddText("c")}]
    for content in (
        1,
        1.0,
        True,
        "1",
        0.0,
        -0.0,
        None,
        ["x"],
        ("x",),
        {"a": 1, "b": 2},
        {"b": 2, "a": 1},
    ):
        for message in messages:
            message["content"] = content
            assert session.render(messages) == template.render(messages)
            messages[0] = Odd(messages[0])
            assert session.render(messages) == template.render(messages)


def test_data_that_changes_deep_inside_is_compared() -> None:
    """In place, after it was the same; new objects often have the addresses of those that went."""
    rng = seeded("deep changes")
    template = ChatTemplate(
        "{% for m in messages %}{{ m.content|tojson }}{{ tools|tojson }}{% endfor %}"
    )
    session = template.session()
    session.rests = False

    def made(depth: int) -> Any:
        kind = rng.randrange(5 if depth < 4 else 2)
        if kind < 2:
            return rng.choice([f"{rng.random():.1f}", rng.randrange(10_000), rng.random(), None])
        if kind == 2:
            return {rng.choice("abc"): made(depth + 1) for _ in range(rng.randrange(3))}
        return [made(depth + 1) for _ in range(rng.randrange(4))]

    def change(data: Any) -> None:
        keys = list(data) if isinstance(data, dict) else range(len(data))
        if not keys:
            return
        key = rng.choice(list(keys))
        if isinstance(data[key], (dict, list)) and data[key] and rng.random() < 0.8:
            change(data[key])
        elif rng.random() < 0.2:
            del data[key]
        else:
            data[key] = made(2)

    messages = [{"role": "user", "content": [made(0), made(0), made(0)]} for _ in range(6)]
    tools = [{"a": [made(0)]}]
    for _ in range(1500):
        kind = rng.random()
        if kind < 0.5:
            change(rng.choice(messages)["content"])
        elif kind < 0.6:
            change(tools[0]["a"])
        elif kind < 0.7:
            rng.choice(messages)["content"] = [made(0), made(0)]
        expected = template.render(messages, tools=tools)
        assert session.render(messages, tools=tools) == expected


def test_hostile_messages_are_refused_as_by_the_template() -> None:
    template = ChatTemplate(CHAT + "{{ messages|tojson|length if extra }}")
    session = template.session()
    loop: list[Any] = []
    loop.append(loop)
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    session.render(chat(5))
    for content in (loop, deep, b"bytes", object(), float("nan"), [{}] * 1000, "\ud800"):
        messages = [*chat(5), {"role": "user", "content": content}]
        for data in (messages, messages, chat(5)):
            expected = outcome(lambda: template.render(data, extra=content))
            assert outcome(lambda: session.render(data, extra=content)) == expected
    for wrong in (None, "text", {"role": "user"}, [1], 5, iter(chat(3))):
        expected = outcome(lambda: template.render(copy.copy(wrong)))  # type: ignore[arg-type]
        assert outcome(lambda: session.render(wrong)) == expected  # type: ignore[arg-type]


def test_limits_are_those_of_rendering_it_whole() -> None:
    template = ChatTemplate(
        "{% for m in messages %}{{ m.content * 50 }}{% endfor %}", max_characters=20_000
    )
    session = template.session()
    for count in range(1, 60):
        expected = outcome(lambda: template.render(chat(count)))
        assert outcome(lambda: session.render(chat(count))) == expected
    assert isinstance(expected, tuple)


def test_a_session_keeps_no_more_than_it_may() -> None:
    session = ChatTemplate(CHAT).session(max_bytes=100_000)
    session.render(chat(10))
    assert session.messages == 10
    session.render(chat(100))
    assert session.messages == session.memory == 0
    session.render(chat(5))
    session.clear()
    assert session.messages == 0


@pytest.mark.parametrize(
    ("source", "content"),
    [
        ("{% for m in messages %}{{ m.content|length }}{% endfor %}", "[{}]"),
        ("{% for m in messages %}{{ m.content|length }}{% endfor %}", "[[[]]]"),
        ("{% for m in messages %}{{ m.content|length }}{% endfor %}", "[1.5]"),
        ("{% for m in messages %}{% for c in m.content %}{{ c[0] }}{% endfor %}{% endfor %}", '[["a"]]'),
        ("{% for m in messages %}{{ extra|length }}{% endfor %}", "[{}]"),
        ("{% set ns = namespace(l=[]) %}{% for m in messages %}{% set ns.l = ns.l + [m.content] %}{% endfor %}", None),
        ("{% for m in messages %}{% for c in m.content %}{{ c }}-{% endfor %}{% endfor %}", "text"),
        ("{% for m in messages %}{{ m.content|length }}{% endfor %}", "numbers"),
    ],
)  # fmt: skip
def test_memory_is_that_of_all_parts(source: str, content: str | None) -> None:
    def messages() -> list[dict[str, Any]]:
        if content == "text":
            return [{"content": "abc" * 40} for _ in range(300)]
        if content == "numbers":
            return [{"content": [10**4000 + number for number in range(5000)]}]
        if content is None:
            return [{"content": f"{number}"} for number in range(900)]
        return [{"content": json.loads(content) * 20_000} for _ in range(1)]

    session = ChatTemplate(source).session()
    tracemalloc.start()
    try:
        extra = json.loads("[" + ",".join(["{}"] * 20_000) + "]")
        segments = session.render(messages(), extra=extra)
        del segments, extra
        gc.collect()
        used = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert session.memory > 0.7 * used
    small = ChatTemplate(source).session(max_bytes=session.memory // 2)
    small.render(messages(), extra=[])
    small.render(messages(), extra=[{}] * 20_000)
    assert small.memory == small.messages == 0


def test_memory_is_that_of_wide_characters() -> None:
    """Also of texts that others replaced."""
    session = ChatTemplate(CHAT).session()
    tracemalloc.start()
    try:
        for number in range(5):
            last = {"role": "user", "content": "🦀" * 100_000 + str(number)}
            session.render([*chat(10), last])
        del last
        gc.collect()
        assert session.memory > 0.7 * tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


def test_labels_do_not_grow_without_end() -> None:
    template = ChatTemplate(
        "{% for m in messages %}{{ messages|tojson|length }}{{ m|tojson }}{% endfor %}"
    )
    session = template.session()
    for number in range(300):
        messages = [{"role": "user", "content": {"a": [number] * 300}} for _ in range(2)]
        assert session.render(messages) == template.render(messages)
    assert session._labels.count < 200_000


def test_threads_share_a_session() -> None:
    template = ChatTemplate(CHAT)
    session = template.session()
    wrong = []

    def work(offset: int) -> None:
        for count in range(1, 40):
            if session.render(chat(count + offset)) != template.render(chat(count + offset)):
                wrong.append(count)

    threads = [threading.Thread(target=work, args=(offset,)) for offset in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("{% for m in messages %}\n{{ messages|length }}\n{% endfor %}", None),
        ("{% for m in messages %}\n{{ messages|tojson }}\n{% endfor %}", "line 2: the turns depend on all of messages"),
        ("{% for m in messages %}\n{{ loop.cycle(1, 2) }}{% endfor %}", "line 2: loop.cycle is called"),
        ("{% set ns = namespace() %}{% for m in messages %}{{ ns }}{% endfor %}", "line 1: the namespace ns is handed over"),
        ("{% for m in messages %}{{ strftime_now('%Y') }}{% endfor %}", "line 1: strftime_now is called"),
        ("{% for m in messages %}a{% else %}b{% endfor %}", "line 1: the loop has an else"),
        ("{% for m in messages %}{{ [1, 2]|random }}{% endfor %}", "line 1: the filter random may do anything"),
        ("{% set ns = namespace() %}\n{% set a = [ns] %}{% for m in messages %}{{ ns.a }}{% endfor %}", "line 2: the namespace ns is handed over"),
        ("{% set ns = namespace() %}\n{{ ns }}{% for m in messages %}{% set ns.a = 1 %}{% endfor %}", "line 2: the namespace ns is handed over"),
        ("{% set ns = namespace() %}\n{{ ns.a }}{{ ns is defined }}{% for m in messages %}{% set ns.a = 1 %}{% endfor %}", None),
        ("{% for m in messages %}\n{{ [strftime_now][0]('%f') }}{% endfor %}", "line 2: strftime_now is handed over"),
        ("{% set d = {'f': strftime_now} %}{% for m in messages %}{{ d.f('%f') }}{% endfor %}", "line 1: strftime_now is handed over"),
        ("{% if strftime_now is defined %}{% set d = strftime_now('%f') %}{% endif %}{% for m in messages %}{{ d }}{% endfor %}", None),
        ("{% macro f() %}{% endmacro %}{% set d = {'f': f} %}{% for m in messages %}{{ d.f() }}{% endfor %}", "line 1: f is handed over"),
        ("{% macro f(g) %}{{ g() }}{% endmacro %}{% for m in messages %}{{ f(range) }}{% endfor %}", "line 1: g is called"),
        ("{{ messages|length }}", "no loop over messages is outermost"),
    ],
)  # fmt: skip
def test_the_line_that_prevents_it_is_named(source: str, reason: str | None) -> None:
    assert ChatTemplate(source).whole_loops == ([] if reason is None else [reason])


def test_what_was_edited_does_not_stay_in_memory() -> None:
    template = ChatTemplate("{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}")
    session = template.session(max_bytes=16 << 20)
    shared = [{"role": "user", "content": f"message {number}"} for number in range(20)]
    labels = []
    for number in range(200):
        messages = [*shared, {"role": "user", "content": f"{number:09d}" * 6000}]
        assert session.render(messages) == template.render(messages)
        assert session.memory < 8 << 20
        labels += [session._labels] if session._labels not in labels else []
    # What replaced messages had went with their labels.
    assert 5 < len(labels) < 50


def test_what_branches_had_does_not_stay_in_memory() -> None:
    template = ChatTemplate("{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}")
    session = template.session(max_bytes=16 << 20)
    shared = [{"role": "user", "content": f"message {number}"} for number in range(20)]
    session.render(shared)
    labels = session._labels
    for number in range(200):
        branch = session.fork()
        messages = [*shared, {"role": "user", "content": f"{number:09d}" * 6000}]
        assert branch.render(messages) == template.render(messages)
        assert session.render(shared) == template.render(shared)
    assert session._labels is not labels
    assert session._plain.labeled < 16 << 20


class Interrupted(BaseException):
    """As KeyboardInterrupt, or a timeout of gevent."""


class Interrupting(Mapping[str, Any]):
    """A mapping whose first reader is interrupted."""

    def __init__(self) -> None:
        self.is_read = False

    def __getitem__(self, key: str) -> Any:
        raise KeyError(key)

    def __len__(self) -> int:
        return 0

    def __iter__(self) -> Iterator[str]:
        if not self.is_read:
            self.is_read = True
            raise Interrupted
        return iter(())


@pytest.mark.parametrize("is_branch", [False, True])
def test_an_interrupt_while_messages_are_taken(is_branch: bool) -> None:
    """Those before it were new already; the next rendering has them with their origins."""
    template = ChatTemplate(CHAT)
    session = template.session()
    session.render(chat(6))
    branch = session.fork()
    messages: list[dict[str, Any]] = [*chat(6), {"role": "user", "content": "new"}]
    messages[1]["content"] = "edited"
    messages[3]["more"] = Interrupting()
    with pytest.raises(Interrupted):
        (branch if is_branch else session).render(messages)
    for each in (session, branch):
        assert each.render(messages) == template.render(messages)
        assert each.render(chat(6)) == template.render(chat(6))


def test_an_interrupt_while_a_conversation_is_forgotten() -> None:
    """At any line of it."""
    template = ChatTemplate(CHAT + "{{ tools|tojson }}{{ raise_exception('no') if messages[6] }}")
    code = TemplateSession._clear.__code__
    edited = [*chat(3), {"role": "assistant", "content": "edited"}, *chat(2)]
    for line in {line for *_, line in code.co_lines() if line} - {code.co_firstlineno}:
        session = template.session()
        session.render(chat(6), tools=chats.TOOLS)

        def trace(frame: Any, event: str, _: Any) -> Any:
            if frame.f_code is code and event == "line" and frame.f_lineno == line:  # noqa: B023
                raise Interrupted
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            with pytest.raises(Interrupted):
                session.render(chat(8), tools=chats.TOOLS)
        finally:
            sys.settrace(before)
        for messages in (chat(6), edited, chat(6)):
            expected = template.render(messages, tools=chats.TOOLS)
            assert session.render(messages, tools=chats.TOOLS) == expected


def test_a_branch_that_fails_changes_no_other() -> None:
    source = (
        "{% for m in messages %}{{ m.content|indent if bad else x }}"
        "{% for p in m.content %}({{ p.text }}){% endfor %}{% endfor %}"
    )
    template, messages = ChatTemplate(source), [{"role": "user", "content": [{"text": "hello"}]}]
    session = template.session()
    session.render(messages, bad=False, x=1)
    branch = session.fork()
    with pytest.raises(AttributeError):
        branch.render(messages, bad=True, x=1)
    assert session.render(messages, bad=False, x=2) == template.render(messages, bad=False, x=2)
