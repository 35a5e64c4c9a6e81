"""Tests that templates write JSON like transformers, and that native methods act like Python's."""

from __future__ import annotations

import itertools
import json
import random
from typing import Any

import jinja2
import pytest
from jinja2.filters import do_indent
from seeds import rounds, seeded

from bpe_engine._core import call_method
from bpe_engine.prompt import ChatTemplate, trusted
from bpe_engine.prompt.filters import string_filters
from bpe_engine.prompt.labels import new_labels
from bpe_engine.prompt.limits import Limits
from bpe_engine.prompt.sandbox import TracingEnvironment
from bpe_engine.prompt.taint import Traced, runs_of, traced

TEXTS = [
    "", " ", "\n", "a", '"', "\\", "/", "\x00", "\x1f", "\x7f", "\x85", "\xa0", "\xe9", "\u2028", "\u3000",
    "\u65e5\u672c", "\U0001f600", "\ufeff", "\t\r\b\f", "\x1c", "\u180e", "\u200b", "</think>", "<b>",
]  # fmt: skip
NUMBERS = [
    0, -1, 7, 2**62, -(2**63), 2**63, 10**30, 0.0, -0.0, 0.1, 1e300, 1e-7, 1e16, 5e-324,
    float("nan"), float("inf"), -float("inf"), True, False, None,
]  # fmt: skip


def text(rng: random.Random) -> str:
    return "".join(rng.choices(TEXTS, k=rng.randrange(6)))


def value(rng: random.Random, depth: int = 0) -> Any:
    kind = rng.randrange(6 if depth < 4 else 3)
    if kind < 2:
        return text(rng)
    if kind == 2:
        return rng.choice(NUMBERS)
    items = [value(rng, depth + 1) for _ in range(rng.randrange(4))]
    if kind == 5:
        return {text(rng): item for item in items}
    return tuple(items) if kind == 4 else items


@pytest.mark.parametrize(
    "arguments",
    ["", "indent=2", "indent=0", "indent=-1", "indent=true", "indent='--'", "ensure_ascii=true", "sort_keys=true",
     "separators=(',', ':')", "separators=(';', '='), indent=1", "indent=4, sort_keys=true"],
)  # fmt: skip
def test_json_in_templates_is_that_of_transformers(arguments: str) -> None:
    environment = jinja2.Environment()

    def tojson(
        x: Any, ensure_ascii: Any = False, indent: Any = None, separators: Any = None, sort_keys: Any = False
    ) -> str:  # fmt: skip
        return json.dumps(
            x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
        )

    environment.filters["tojson"] = tojson
    source = "".join(
        f"{{{{ {data} | tojson({arguments}) }}}};"
        for data in ("x", "[x, 'a']", "{'k': x}", "x['a']", "1.5", "'é'")
    )
    plain, ours = environment.from_string(source), ChatTemplate(source)
    for case in range(rounds(60)):
        rng = seeded("tojson", arguments, case)
        x = {"a": value(rng), "b" + text(rng): value(rng), "c": "\ud800" if case % 7 == 0 else 1}
        if case % 5 == 0:
            x["a"] = [10**30, {"z": 1, "a": 2}]
        expected = plain.render(x=x)
        assert "".join(part.text for part in ours.render([], x=x)) == expected


def test_long_json_is_refused_at_the_limit() -> None:
    for arguments in ("", "indent=4"):
        template = ChatTemplate(
            f"{{{{ messages[0].content | tojson({arguments}) | length }}}}", max_characters=20_000
        )
        assert template.render([{"content": ["é"] * 1000}])
        with pytest.raises(ValueError, match="max_characters"):
            template.render([{"content": ["é"] * 10_000}])


METHODS = [
    (name, args)
    for name in ("strip", "lstrip", "rstrip")
    for args in ((), ("\n",), (" a<",), ("",), ("日\u3000",), (None,))
] + [
    (name, (part,)) for name in ("startswith", "endswith", "split") for part in ("a", "</think>", "", " ", "\n", "日")
]  # fmt: skip


def outcome(call: Any) -> Any:
    try:
        return call()
    except Exception as error:
        return type(error)


@pytest.mark.parametrize(("name", "args"), METHODS)
def test_methods_of_strings_are_those_of_python(name: str, args: tuple[Any, ...]) -> None:
    rng = seeded("methods", name, *map(repr, args))
    expression = f"m.content.{name}({', '.join(map(repr, args))})".replace("None", "none")
    template = ChatTemplate(
        f"{{% for m in messages %}}{{% set x = {expression} %}}"
        "{% for part in ([x] if x is string or x is boolean else x) %}[{{ part }}]{% endfor %}{% endfor %}"
    )
    for _ in range(40):
        content = text(rng) + rng.choice(["", "a", " a</think>a "]) + text(rng)
        expected = outcome(lambda: getattr(content, name)(*args))
        found = outcome(lambda: template.render([{"role": "user", "content": content}]))
        if isinstance(expected, type):
            assert found is expected
            continue
        parts = expected if isinstance(expected, list) else [expected]
        assert "".join(part.text for part in found) == "".join(f"[{part}]" for part in parts)
        for part in found:
            if part.origin.field == "content":
                assert not part.allowed_special
                if part.start is not None:
                    assert content[part.start :].startswith(part.text)
            else:
                assert part.allowed_special or part.text.strip("[]") in ("True", "False")


def marked(text: str, flags: int) -> Traced:
    return traced(text, ((len(text), flags),))


def stripped(text: str, *args: str) -> Any:
    labels, limits = new_labels(TracingEnvironment(), Traced), Limits(10.0, 1 << 80, 1 << 90)
    return call_method(labels, limits, None, text, "strip", args)


def test_every_space_is_stripped_as_by_python() -> None:
    labels, limits = new_labels(TracingEnvironment(), Traced), Limits(10.0, 1 << 80, 1 << 90)
    for character in map(chr, itertools.chain(range(0xD800), range(0xE000, 0x10FFF), [0x10FFFF])):
        text = f"{character}x{character}"
        for given in (text, marked(text, 4)):
            assert call_method(labels, limits, None, given, "strip", ()) == text.strip()


def test_parts_of_text_with_flags_have_those_of_their_characters() -> None:
    text = marked("  ab  ", 4)
    for part in (stripped(text), text.strip()):
        assert (part, runs_of(part)) == ("ab", ((2, 4 + (2 << 32)),))
    assert stripped(text, " ab")._flags == 0
    assert stripped(text, "x") is text
    mixed = text + marked("c ", 1)
    assert (mixed.strip(), runs_of(mixed.strip())) == ("ab  c", ((4, 4 + (2 << 32)), (1, 1)))


def test_methods_of_dicts_are_those_of_python() -> None:
    source = (
        "{% for m in messages %}{{ m.get('content') }}{{ m.get('none') }}{{ m.get('x', 'y') }}{{ m.get('x', m.role) }}"
        "{{ m.get('x', {}).get('y', []) }}{{ m.get('content', 1) }}{{ m.get(1) }}{{ m.get('d').get('a') }}"
        "{% for k, v in m.d.items() %}{{ k }}{{ v }}{% endfor %}{{ {'get': 1}.get('get') }}{{ m.d.get('f')('z') }}{% endfor %}"
    )
    source = "{% macro f(x) %}<{{ x }}>{% endmacro %}" + source.replace(
        "m.d.get('f')", "{'f': f}.get('f')"
    )
    messages = [{"role": "user", "content": "hi", "d": {"a": [1, "b"], "k": trusted("t")}}]
    plain = [{"role": "user", "content": "hi", "d": {"a": [1, "b"], "k": "t"}}]
    found = ChatTemplate(source).render(messages)
    assert "".join(part.text for part in found) == jinja2.Template(source).render(messages=plain)
    assert [str(part.origin) for part in found if part.text == "hi"] == ["messages[0].content"] * 2


def test_native_calls_are_counted() -> None:
    for source in ("{{ 'a'.strip() }}", "{{ 'a b'.split(' ') }}", "{{ {'a': 1}.get('a') }}"):
        bomb = f"{{% for i in range(100) %}}{{% for j in range(100) %}}{source}{{% endfor %}}{{% endfor %}}"
        with pytest.raises(ValueError, match="max_characters"):
            ChatTemplate(bomb, max_characters=1000).render([])
    limits = Limits(10.0, 1 << 80, 1 << 90)
    labels = new_labels(TracingEnvironment(), Traced)
    assert call_method(labels, limits, None, "  a", "strip", ()) == "a"
    assert limits.room < 1 << 90


def test_indent_is_that_of_jinja() -> None:
    rng, indent = seeded("indent"), string_filters()["indent"]
    ends = ["\n", "\r", "\r\n", "\v", "\x85", "\u2028", "\n\n"]
    for _ in range(rounds(2000)):
        plain = "".join(rng.choices([*TEXTS, *ends], k=rng.randrange(8)))
        options = rng.randrange(5), rng.random() < 0.5, rng.random() < 0.5
        expected = do_indent(plain, *options)
        for given in (plain, marked(plain, 1), marked(plain, 4)):
            found = indent(given, *options)
            assert found == expected
            at = 0
            for length, flags in runs_of(found):
                start = flags >> 32
                if flags >= 4:
                    # The flags belong to the same characters.
                    assert found[at : at + length] == plain[start : start + length]
                at += length
            assert at == len(found)
