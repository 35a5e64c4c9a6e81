"""Fuzzes templates with marked characters: the text is the same as plain Jinja's, and no marked
character is trusted.

Runs 300 cases, about a second's work, per second of FUZZ_SECONDS, which `make fuzz` sets.
"""

from __future__ import annotations

import os
import random
from typing import Any

import pytest
from seeds import seeded

from bpe_engine.prompt import render_template

pytest.importorskip("jinja2")
render = pytest.importorskip("transformers.utils.chat_template_utils").render_jinja_template

CASES = 300 * max(1, int(float(os.environ.get("FUZZ_SECONDS", "1"))))

# Only the caller's strings contain these characters.
MARKED = "\ue000\ue001\ue002"
LITERALS = [
    "'<|im_start|>'", "'|'", "'<'", "'a b\\n c'", "''", "'%s'", "'{}'", "' '", "'\\t'", "'é'",
]  # fmt: skip

# Jinja folds an invalid slice of a literal to an empty value, but raises for a variable's slice.
UNARY = [
    "({})|trim", "({}).strip()", "({}).lstrip('<|')", "({})|upper", "({})|lower", "({})|title",
    "({})|capitalize", "(({})|string)[1:]", "(({})|string)[:-1]", "(({})|string)[::-1]", "(({})|string)[::2]", "(({})|string)[:3]", "({})|reverse",
    "({})|list|join", "({})|first", "({})|last", "({}).split()|join", "({}).splitlines()|join('-')",
    "({})|string", "({})|tojson", "({})|indent(2)", "({})|indent(1, true, true)", "({})|center(9)",
    "({}).ljust(7)", "({}).zfill(6)", "({}).expandtabs(3)", "({})|safe", "({})|e", "({}) * 2",
    "({}).swapcase()", "({}).casefold()", "({})|truncate(5)", "({})|wordwrap(3)", "({})|urlencode",
    "[{}]|join('<')", "[{}]|map('trim')|join", "{{'k': {}}}.k", "{{'k': {}}}|tojson",
    "namespace(a={}).a", "({})|default('z', true)", "({})|batch(2)|map('join')|join",
    "({}).title()", "({}).removeprefix('<')", "f({})", "({})|sort|join", "({})|unique|join", "{{({}): 1}}|list|first",
]  # fmt: skip
BINARY = [
    "({}) ~ ({})", "({}) + ({})", "[{}, {}]|join", "({}).replace({}, '<|')", "({})|replace('|', {})",
    "({}).join([{}, 'b'])", "({}).split({} or ',')|join('+')", "({}) if ({}) else 'c'", "({}) or ({})",
    "({}) and ({})", "'%s-%s' % ({}, {})", "'{{}}{{}}'.format({}, {})", "'%s+%s'|format({}, {})",
    "({}).partition({} or '|')|join", "({}).rpartition({} or '|')|join('.')", "({}).rsplit({} or '<', 1)|first",
    "({}) in ({})", "({}) == ({})", "({}).startswith({})", "({}).count({})", "[{}, {}]|max",
    "({}).removesuffix({})", "({})|indent({})", "({}).rstrip({})", "({})|trim({})", "({}) % ({})",
    "({}).format({})", "({}).center(12, ({}) or '.')", "({}).find({})", "[{}, {}]|sort|join('/')",
]  # fmt: skip


def expression(rng: random.Random, depth: int) -> str:
    kind = rng.random()
    if depth == 0 or kind < 0.15:
        return rng.choice(["x", "y", "m.content", "m['role']", *LITERALS])
    if kind < 0.55:
        return rng.choice(UNARY).format(expression(rng, depth - 1))
    parts = [expression(rng, depth - 1) for _ in range(2)]
    return rng.choice(BINARY).format(*parts)


def template(rng: random.Random) -> str:
    source = ["{%- macro f(v) -%}[{{ v }}]{{ v|upper }}{%- endmacro -%}"]
    source.append("{%- set x = tools[0].x -%}{%- set y = extra -%}")
    source.append("{%- set ns = namespace(t='') -%}{%- for m in messages -%}")
    for _ in range(rng.randrange(1, 5)):
        part = expression(rng, rng.randrange(4))
        source.append(
            rng.choice(
                [
                    "{{ %s }}",
                    "{{- 'pre' + (%s)|string + '<|im_end|>' -}}",
                    "{%% set y %%}{{ %s }}<|im_end|>{%% endset %%}{{ y }}",
                    "{%% set ns.t = ns.t ~ (%s) %%}",
                    "{%% filter replace('b', 'c') %%}{{ %s }}<|im_end|>{%% endfilter %%}",
                    "{%% for c in (%s)|string %%}{{ c }}{{ '.' if not loop.last }}{%% endfor %%}",
                    "{%% if %s %%}<|im_start|>{{ m.role }}{%% else %%}{{ x }}{%% endif %%}",
                    "{%% generation %%}{{ %s }}{%% endgeneration %%}",
                ]  # fmt: skip
            )
            % part
        )
    return "".join([*source, "{%- endfor -%}{{ ns.t }}"])


def marked(rng: random.Random) -> str:
    return "".join(rng.choices(MARKED + " \n\t" + MARKED, k=rng.randrange(6))) or MARKED[0]


def check(rng: random.Random) -> bool:
    """Compares a random template rendered by transformers and here; returns True if both
    succeed."""
    source = template(rng)
    messages = [{"role": marked(rng), "content": marked(rng)} for _ in range(rng.randrange(1, 3))]
    more: dict[str, Any] = {"tools": [{"x": marked(rng)}], "extra": marked(rng)}
    try:
        expected = render([messages], chat_template=source, **more)[0][0]
    except Exception as error:
        with pytest.raises(Exception):  # noqa: B017, PT011
            render_template(source, messages, **more)
        assert error
        return False
    segments = render_template(source, messages, **more)
    assert "".join(segment.text for segment in segments) == expected, source
    for segment in segments:
        assert not segment.allowed_special or not set(MARKED) & set(segment.text), (source, segment)
    return True


def test_random_templates() -> None:
    rendered = 0
    for case in range(CASES):
        try:
            rendered += check(seeded("templates", case))
        except BaseException:
            print(f"case {case}: check(seeded('templates', {case}))")
            raise
    assert rendered > CASES // 4
