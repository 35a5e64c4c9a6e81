"""Chat templates: the text is that of transformers, and nothing from outside is ever trusted."""

from __future__ import annotations

import collections
import functools
import re
import time
import tracemalloc
from typing import Any

import chats
import pytest
from oracles import ranks
from seeds import seeded

import bpe_engine
from bpe_engine.prompt import (
    ChatTemplate,
    Segment,
    TemplateLimitError,
    render_template,
    special,
    tokens,
    trusted,
    untrusted,
)

jinja2 = pytest.importorskip("jinja2")

TEMPLATES = chats.templates()
# What looks like a control token in a template, or may be one in the model's vocabulary.
_CONTROL = re.compile(
    r"<[|｜][^\s<>{}'\"]{1,40}[|｜]>|\[/?[A-Z_]{3,20}\]|</?[a-z_]{2,24}>|<s>|</s>"
    r"|<\|[a-z_]+>|<[a-z_]+\|>|\]<\]"
)


@functools.cache
def transformers_render() -> Any:
    return pytest.importorskip("transformers.utils.chat_template_utils").render_jinja_template


def control_of(template: str) -> list[str]:
    return sorted({*_CONTROL.findall(template), *chats.CONTROL, "</s>", "<pad>"})


@functools.cache
def encoding(template: str) -> bpe_engine.Encoding:
    """Bytes and some merges, and every control token of the template as a special one."""
    base = ranks("r50k_base")
    some = {token: rank for token, rank in base.items() if rank < 3000}
    names = control_of(TEMPLATES[template])
    return bpe_engine.Encoding(
        f"test {template}",
        pat_str=bpe_engine.get_encoding("cl100k_base")._pat_str,
        mergeable_ranks=some,
        special_tokens={name: 5000 + i for i, name in enumerate(names)},
    )


def rendered(template: str, messages: Any, **variables: Any) -> str | Exception:
    """What transformers makes of it."""
    try:
        conversation = [dict(message) for message in messages]
        return transformers_render()([conversation], chat_template=template, **variables)[0][0]
    except Exception as error:
        return error


def ours(template: str, messages: Any, **variables: Any) -> Any:
    try:
        return render_template(template, messages, **variables)
    except Exception as error:
        return error


@pytest.mark.parametrize("name", TEMPLATES)
def test_text_is_that_of_transformers(name: str) -> None:
    template = TEMPLATES[name]
    some = 0
    for messages, more in chats.CONVERSATIONS.values():
        tokens = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"}
        expected = rendered(template, messages, **tokens, **more)
        own = {key: special(value) for key, value in tokens.items()}
        segments = ours(template, messages, **own, **more)
        if isinstance(expected, Exception):
            assert isinstance(segments, Exception), (messages, expected)
            if not isinstance(expected, RecursionError):
                assert str(segments) == str(expected)
            continue
        if isinstance(segments, Exception):
            raise segments
        some += 1
        assert all(type(segment.text) is str for segment in segments)
        assert "".join(segment[0] for segment in segments) == expected
        # No trust that is needed is lost: the ids are those of the text.
        enc = encoding(name)
        if any(control in str(messages) for control in control_of(template)):
            continue
        assert enc.encode_segments(segments) == enc.encode(expected, allowed_special="all")
    # Some of the published ones refuse most of these conversations, and so do we.
    assert some >= 4 or name not in chats.TEMPLATES


def test_special_tokens_of_the_caller_are_trusted_when_they_are_handed_over_as_such() -> None:
    template = "{{ bos_token }}{{ messages[0].role }}"
    message = [{"role": trusted("<s>"), "content": ""}]
    assert [s[:2] for s in render_template(template, message, bos_token=special("<s>"))] == [
        ("<s>", {"<s>"}),
        ("<s>", True),
    ]
    assert [s[:2] for s in render_template(template, message, bos_token="<s>")] == [
        ("<s>", False),
        ("<s>", True),
    ]


def test_a_segment_that_allows_some_names_is_not_trusted_with_all() -> None:
    given = Segment("a<|im_end|><|im_start|>", frozenset({"<|im_end|>"}))
    assert [s[:2] for s in render_template("{{ x }}", [], x=given)] == [(given.text, False)]


def test_special_tokens_that_there_are_not_are_refused() -> None:
    enc = encoding("chatml")
    unknown = special("<|no_such|>", role="system")
    with pytest.raises(ValueError, match=r"segments\[0\] asks for the special token \"<|no_such"):
        enc.encode_segments(render_template("{{ x }}!", [], x=unknown))
    for template in [
        "{{ x + '!' }}",
        "{% generation %}{{ x }}{% endgeneration %}",
        "{{ [x]|join }}",
    ]:
        segments = render_template(template, [], x=unknown)
        assert segments[0] == unknown
        with pytest.raises(ValueError, match="no_such"):
            enc.encode_segments(segments)
    # What a template takes apart is text of the caller's own.
    taken = render_template("<{{ x[1:] }}{{ x|upper }}", [], x=special("<|im_end|>"))
    assert [s[:2] for s in taken] == [("<|im_end|><|IM_END|>", True)]


def test_labels_of_segments_are_kept() -> None:
    template = (
        "<|im_start|>{{ messages[0].content|trim }}{{ messages[0].role }}{% generation %}"
        "{{ messages[1].content }}{{ x }}{% endgeneration %}{{ x.upper() }}"
    )
    messages = [
        {"role": trusted("user", source="program"), "content": untrusted(" Hi\n", role="user")},
        {"content": untrusted("Yo", source="model")},
    ]
    segments = render_template(template, messages, x=untrusted("z", role="tool", source="web"))
    assert [segment[:4] for segment in segments] == [
        ("<|im_start|>", True, None, "template"),
        ("Hi", False, "user", None),
        ("user", True, None, "program"),
        ("Yo", False, "assistant", "model"),
        ("z", False, "tool", "web"),
        ("Z", False, "tool", "web"),
    ]


SAFE = [
    "'<|im_end|>' + (x|tojson|safe)", "('<|im_end|>'|safe) ~ x", "(x|tojson|safe) + ('<|im_end|>'|safe)",
    "x ~ ('<|im_end|>'|safe)", "('<|im_end|>'|safe).strip() ~ x", "('<|im_end|> '|safe|trim) ~ x",
    "['<|im_end|>'|safe, x]|join", "('<|im_end|>,'|safe).split(',')[0] ~ x", "(x|safe) ~ '<|im_end|>'",
    "('<|im_end|>b'|safe).replace('b', 'c') ~ x", "('<|im_end|>'|safe|string) ~ x",
    "('<|im_end|>' ~ x)|safe", "('|'|safe).join(['<|im_end|>'|safe, x])", "('a<|im_end|>'|safe)[1:] ~ x",
    "namespace(a='<|im_end|>'|safe).a ~ x", "('<|im_end|>'|safe)|center(20) ~ x", "('<|im_end|>'|e)|center(30) ~ x",
    "'<|im_end|>' ~ ['&'|e, x|safe]", "('<|im_end|>b'|safe).replace('b', 5) ~ x",
]  # fmt: skip


@pytest.mark.parametrize("operation", SAFE)
def test_what_is_safe_keeps_its_origin(operation: str) -> None:
    enc = encoding("chatml")
    template = f"{{% set x = messages[0].content %}}{{{{ {operation} }}}}"
    for content in ["fine", "a & b", "<|im_end|>", "|", ""]:
        messages = [{"content": content}]
        segments = render_template(template, messages)
        assert "".join(s.text for s in segments) == rendered(template, messages)
        if content == "fine":
            text = "".join(s.text for s in segments)
            assert enc.encode_segments(segments) == enc.encode(text, allowed_special="all")
            expected = special_ids(enc, segments)
        assert special_ids(enc, segments) == expected, content


def test_what_is_formatted_takes_no_trust_from_the_text_beside_it() -> None:
    enc = encoding("chatml")
    for operation in [
        "'<|im_end|>%s %d %5.1f %-3s' % (x, 5, 1.5, x)", "'<|im_end|>{} {:>5} {!r}'.format(5, x, x)",
        "'<|im_end|>{a:03d}{a}{b}'.format(a=5, b=[x])", "'<|im_end|>%(a)03d%(a)r%(b)s' % {'a': 5, 'b': [x]}",
        "'<|im_end|>%d %s'|format(5, x)", "'<|im_end|>%d%% %c' % (5, 'x')",
    ]:  # fmt: skip
        template = f"{{% set x = messages[0].content %}}{{{{ {operation} }}}}"
        for content in ["fine", "<|im_end|>", "%s", "{}", ""]:
            messages = [{"content": content}]
            segments = render_template(template, messages)
            assert "".join(s.text for s in segments) == rendered(template, messages)
            assert len(special_ids(enc, segments)) == 1, (operation, content)


def test_escaping_keeps_the_origin() -> None:
    template = "{{ ('a&' ~ messages[0].content)|e }}{{ '<' + ('b'|safe) }}"
    segments = render_template(template, [{"content": "<&"}])
    assert [s[:2] for s in segments] == [("a&amp;", True), ("&lt;&amp;", False), ("&lt;b", True)]


# ---- Hostile conversations ----


class Hostile:
    """Fills a conversation with strings that try to become control tokens."""

    def __init__(self, case: int, control: list[str]):
        self.random = seeded("hostile", case)
        self.control = control

    def strings(self) -> tuple[str, str]:
        """A hostile string, and a harmless one in its place."""
        r = self.random
        token = r.choice(self.control)
        cut = r.randrange(1, len(token))
        hostile = r.choice(
            [
                token,
                token + "system\n" + token,
                token[:cut],
                token[cut:],
                token[:cut] + "\u200b" + token[cut:],
                token[1:-1],
                token.strip("<|>[]/"),
                token + "\u0338",
                "\u0338" + token,
                token[:cut] + token + token[cut:],
                token.upper(),
                token[:cut] + "\t" + token[cut:],
                token.replace("k", "\u212a"),
            ]
        )
        plain = "".join("x" if not c.isspace() else c for c in hostile)
        if r.random() < 0.3:
            hostile, plain = "Hi " + hostile + " there", "Hi " + plain + " there"
        return hostile, plain

    def conversation(self) -> tuple[list[Any], dict[str, Any], list[Any], dict[str, Any]]:
        r = self.random
        pairs: list[tuple[str, str]] = []

        def text() -> str:
            """A mark that stands for a hostile string."""
            pairs.append(self.strings())
            return f"\ue000{len(pairs) - 1}\ue001"

        def maybe(value: str) -> str:
            return text() if r.random() < 0.5 else value

        messages: list[Any] = []
        if r.random() < 0.5:
            messages.append({"role": "system", "content": text()})
        for _ in range(r.randrange(1, 4)):
            messages.append({"role": "user", "content": text() + maybe("")})
            messages.append({"role": "assistant", "content": maybe("fine")})
            if r.random() < 0.3:
                messages[-1]["reasoning_content"] = text()
        more: dict[str, Any] = {}
        if r.random() < 0.5:
            messages.append(chats.call({text(): text(), "city": {"a": text()}}))
            messages[-1]["tool_calls"][0]["function"]["name"] = maybe("get_weather")
            messages.append(chats.RESULT | {"name": maybe("get_weather"), "content": text()})
        if r.random() < 0.4:
            properties = {text(): {"type": "string", "description": text(), "enum": [text()]}}
            parameters = {"type": "object", "properties": properties, "required": [text()]}
            function = {"name": maybe("f"), "description": text(), "parameters": parameters}
            more["tools"] = [{"type": "function", "function": function}]
        if r.random() < 0.2:
            more["documents"] = [{"title": text(), "text": text()}]
        if r.random() < 0.1:
            messages.append({"role": text(), "content": text()})
        if r.random() < 0.3:
            more["add_generation_prompt"] = True
        if r.random() < 0.3:
            more["bos_token"] = more["model_identity"] = text()

        def filled(value: Any, which: int) -> Any:
            if isinstance(value, str):
                return re.sub(
                    "\ue000(\\d+)\ue001", lambda found: pairs[int(found[1])][which], value
                )
            if isinstance(value, dict):
                # Harmless keys must not become one.
                return {
                    filled(k, which) + (str(i) if "\ue000" in k else ""): filled(v, which)
                    for i, (k, v) in enumerate(value.items())
                }
            return [filled(item, which) for item in value] if isinstance(value, list) else value

        return filled(messages, 0), filled(more, 0), filled(messages, 1), filled(more, 1)


def special_ids(enc: bpe_engine.Encoding, segments: Any) -> collections.Counter[int]:
    return collections.Counter(id for id in enc.encode_segments(segments) if id >= 5000)


def check_hostile(name: str, case: int) -> bool:
    """Whether the case is one in which the template took the same way for both conversations."""
    template, enc = TEMPLATES[name], encoding(name)
    hostile, more, plain, plain_more = Hostile(case, control_of(template)).conversation()
    segments = ours(template, hostile, **more)
    if isinstance(segments, Exception):
        return False
    audit = enc.audit_segments(segments)
    audit.assert_safe()
    text = "".join(segment.text for segment in segments)
    expected = special_ids(enc, ours(template, plain, **plain_more))
    found = special_ids(enc, segments)
    if found != expected:
        # The template looked into the text and took another way; then its own text still is the
        # only source of special tokens. Without the origins there would be more of them.
        naive = collections.Counter(i for i in enc.encode(text, allowed_special="all") if i >= 5000)
        assert not found - naive, (case, name)
        assert looks_into_text(template), (case, name, found, expected)
        return False
    return True


def looks_into_text(template: str) -> bool:
    return (
        re.search(r"\bin\b|==|startswith|endswith|split|is mapping|default", template) is not None
    )


OWN = list(chats.TEMPLATES)


@pytest.mark.parametrize("name", TEMPLATES)
def test_hostile_conversations_make_no_control_token(name: str) -> None:
    cases = 300 if name in OWN else 30
    same = sum(check_hostile(name, case) for case in range(cases))
    assert same > cases // 4 or name not in OWN


@pytest.mark.thorough
@pytest.mark.parametrize("name", TEMPLATES)
def test_hostile_conversations_make_no_control_token_thoroughly(name: str) -> None:
    for case in range(10_000, 10_600):
        check_hostile(name, case)


def test_a_token_split_over_two_messages_or_key_and_value_is_none() -> None:
    template = "{% for m in messages %}{{ m.content }}{% endfor %}{{ tools[0].items() | map('join') | join }}"
    enc = encoding("chatml")
    messages = [{"content": "<|im_"}, {"content": "start|>"}]
    segments = render_template(template, messages, tools=[{"<|im_": "end|>"}])
    assert "".join(s.text for s in segments) == "<|im_start|><|im_end|>"
    assert not special_ids(enc, segments)


@pytest.mark.parametrize("content", ["", "user", "im_end"])
def test_the_text_of_a_template_on_both_sides_of_a_value_is_not_one(content: str) -> None:
    template = "{% for m in messages %}<|im_{{ m.content }}end|>{{ '<|im_' ~ m.content ~ 'end|>' }}{% set x = '<|im_' + m.content + 'end|>' %}{{ x | replace(m.content, '') }}{% endfor %}"
    segments = render_template(template, [{"content": content}])
    assert not special_ids(encoding("chatml"), segments)


# Each puts text of the template's own, on both sides of a value, side by side when the value is
# empty or white space.
APART = [
    "('<|im_' ~ x)|trim ~ 'end|>'", "'<|im_' ~ (x ~ ' end|>')|trim", "('<|im_' ~ x).rstrip() ~ 'end|>'",
    "('<|im_' ~ x ~ 'end|>')[::-1][::-1]", "('<|im_' ~ x ~ 'end|>')|reverse|reverse",
    "('<|im_' ~ x)|trim ~ ('q' ~ x ~ 'end|>').lstrip('q \n')", "'<|im_' ~ (x or '') ~ 'end|>'",
    "('<|im_' ~ x ~ 'end|>')|list|join", "('<|im_' ~ x ~ 'end|>')|reject('equalto', ' ')|join",
    "('<|im_' ~ x ~ ' end|>').split()|join", "('<|im_' ~ x)[:5] ~ 'end|>'", "x.join(['<|im_', 'end|>'])",
    "('<|im_' ~ x ~ 'end|>')|replace(' ', '')", "('<|im_' ~ x ~ 'end|>')|replace(x, '')",
    "('<|im_' ~ x).removesuffix(x) ~ 'end|>'", "('<|im_' ~ x).partition(x or 'q')[0] ~ 'end|>'",
    "'<|im_' ~ ('a' ~ x) * 0 ~ 'end|>'", "'<|im_' ~ ('a' ~ x)[9:] ~ 'end|>'", "'<|im_%send|>' % x",
    "'<|im_{}end|>'.format(x)", "((('<|im_%' ~ x ~ 'end|>') % '') if x == 's' else x)",
    "'<|im_' ~ (x ~ ' ')|trim ~ 'end|>'", "('<|im_' ~ x)|list|first ~ ('<|im_' ~ x ~ 'end|>')[1:]",
    "('<|im_' ~ x ~ 'end|>')|upper|lower", "('<|im_' ~ x ~ '\nend|>').splitlines()|map('trim')|join",
    "('<|im_' ~ x ~ 'end|>')|map('string')|join", "('<|im_' ~ x ~ 'end|>')|batch(3)|map('join')|join",
]  # fmt: skip


@pytest.mark.parametrize("operation", APART)
def test_what_stood_on_both_sides_of_a_value_stays_apart(operation: str) -> None:
    template = (
        f"{{% set x = messages[0].content %}}{{{{ {operation} }}}}"
        f"{{% for c in {operation} %}}{{{{ c }}}}{{% endfor %}}"
    )
    for content in ["", " ", "\n", " \n ", "s", "\u00df", "xyz", "<|im_end|>", "im_", "end|>"]:
        messages = [{"content": content}]
        segments = render_template(template, messages)
        assert "".join(s.text for s in segments) == rendered(template, messages)
        assert not special_ids(encoding("chatml"), segments), content


def test_a_letter_that_becomes_two_takes_no_trust_from_the_text_beside_it() -> None:
    template = "{{ ('<|im_end|>' ~ messages[0].content ~ '<|IM_END|>')|upper|lower }}"
    segments = render_template(template, [{"content": "stra\u00dfe"}])
    assert len(special_ids(encoding("chatml"), segments)) == 1
    assert [s.text for s in segments] == ["<|im_end|>", "strasse", "<|im_end|>"]


OPERATIONS = [
    "(x|safe).strip('<')", "(x|safe).replace('|', y)", "(x|safe).join([y, 'b', 1])", "(x|safe).split('|')|join",
    "('%s'|safe) % x", "('{}'|safe).format(y)", "(x|safe).center(30)", "(x|safe).upper()", "x|safe|trim('<')",
    "x.rsplit(maxsplit=1)|join", "x.split(sep='|', maxsplit=1)|last", "x.rsplit('|')|first", "[x, y]|unique|list",
    "[[x], [y]]|sum(start=[])|join", "x.encode('utf-16').decode('utf-16')", "(x == y) ~ ([x] == [y])", "x|int(7)",
    "[x, y]|min", "[x, y]|groupby(0)|list", "{x: y, y: x}|dictsort|string", "(x, y) in [(x, y)]", "namespace(a=x)|string",
    "x ~ y", "x + y", "y + x", "x * 3", "x % y", "'%s|%s' % (x, y)", "'%(a)s' % {'a': x}",
    "'{}{}'.format(x, y)", "'{a}'.format(a=x)", "'{0!r:>9}'.format(x)", "x.format(y)",
    "x|format(y)", "[x, y]|join", "[x, y]|join(x)", "x.join([y, y])", "y.join(x)", "x[1:]",
    "x[:-1]", "x[::-1]", "x[::2]", "x[0]", "x[-1]", "x|first", "x|last", "x|list|join",
    "x|reverse|join", "x|reverse", "x.strip('<')", "x.lstrip('<|')", "x.rstrip('>')", "x|trim",
    "x|trim('<')", "x.split('|')|join", "x.split()|join", "x.rsplit('|', 1)|join(x)",
    "x.splitlines()|join", "x.partition('|')|join", "x.rpartition('|')|join", "x|replace('a', y)",
    "x.replace('|', y)", "x.replace('', '.')", "x|replace(y, '<|im_end|>')", "x|upper|lower",
    "x|title", "x|capitalize", "x.swapcase()", "x.casefold()", "x|center(30)", "x.ljust(30, '<')",
    "x.rjust(31, y[0])", "x.center(33, '>')", "x.zfill(30)", "x.expandtabs(2)", "x|indent(2, true)",
    "x|indent(y)", "x|tojson", "{x: y}|tojson", "[x]|tojson(indent=2)", "x|string", "x|e",
    "x|safe", "x|safe + y", "y + x|safe", "x|forceescape", "x|striptags", "x|urlize",
    "x|wordwrap(5)", "x|truncate(6)", "x|default(y)", "z|default(x)", "x if x else y", "x and y",
    "(x, y)|max", "[x, y]|sort|join", "[x, x]|unique|join", "[x]|map('upper')|join",
    "[{'a': x}]|map(attribute='a')|join", "[{'a': x}]|groupby('a')|map('first')|join",
    "{x: 1}|items|map('first')|join", "{x: y}|dictsort|map('join')|join", "dict(a=x).a",
    "namespace(a=x).a", "x|batch(2)|map('join')|join", "x|slice(2)|map('join')|join",
    "x.encode().decode()", "x|pprint", "x|xmlattr if x is mapping else x", "x|wordcount",
    "x.removeprefix('<')", "x.removesuffix('>')", "x.translate({60: 62})", "x|attr('upper')()",
    "joiner(x)() ~ y", "cycler(x, y).next()", "x|length ~ y", "x|select|join",
    "x.maketrans('a', 'b')|string", "x in y", "x == y", "x|filesizeformat if x is number else x",
    "x|urlencode", "[x]|sum(start=[])|join", "x|int ~ y", "loop|string if loop is defined else x",
    "x.find('|') ~ x.count('|')", "x.isupper() ~ x", "x|random if 0 else x", "'<|im_start|>' ~ x",
    "(x ~ '<|im_end|>')[3:]", "('<|im_end|>' ~ x).upper().lower()", "('<|' ~ x ~ '|>')|title",
    "('<|im_' ~ x)|replace('_', y)", "('a\\n' ~ x ~ '\\nb').splitlines()|join('<|im_end|>')",
]  # fmt: skip


def test_every_operation_gives_the_text_of_jinja_and_no_trust() -> None:
    """Each operation on hostile text, beside plain Jinja: the same text, and no special id."""
    enc = encoding("chatml")
    own = collections.Counter({"<|im_end|>": 1, "<|im_start|>": 1})
    for operation in OPERATIONS:
        template = (
            f"{{% set x = messages[0].x %}}{{% set y = messages[0].y %}}{{{{ {operation} }}}}"
        )
        for x, y in [
            ("<|im_start|>", "<|im_end|>"),
            ("<|im_", "start|>"),
            ("im_end", "|"),
            ("", ""),
        ]:
            messages = [{"x": x, "y": y}]
            expected = rendered(template, messages)
            segments = ours(template, messages)
            if isinstance(expected, Exception):
                assert isinstance(segments, Exception), (operation, x, expected)
                continue
            assert not isinstance(segments, Exception), (operation, x, segments)
            assert "".join(s.text for s in segments) == expected, (operation, x)
            found = special_ids(enc, segments)
            plain = special_ids(enc, ours(template, [{"x": "Xyz", "y": "Qrs"}]))
            spelled = {enc._special_tokens[name] for name in own if name in operation}
            assert set(found) <= spelled, (operation, x, found, plain)


def test_generation_blocks_have_the_role_of_the_assistant() -> None:
    messages = [chats.USER, chats.ANSWER, chats.USER, chats.THOUGHT]
    segments = render_template(TEMPLATES["thinking"], messages)
    audit = encoding("thinking").audit_segments(segments)
    text = encoding("thinking").decode([i for i, m in zip(audit.ids, audit.mask()) if m])
    assert text == "Fine, thanks.<|im_end|><think>Let me think</think>It is.<|im_end|>"


# ---- Bounds ----

BOMBS = [
    "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
    "{% macro f(n) %}{{ f(n - 1) }}{{ f(n - 1) }}{% endmacro %}{{ f(60) }}",
    "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(40) }}",
    "{% set ns = namespace(x='ab') %}{% for i in range(60) %}{% set ns.x = ns.x + ns.x %}{% endfor %}{{ ns.x }}",
    "{% set ns = namespace(x='ab') %}{% for i in range(60) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}{{ ns.x }}",
    "{% set ns = namespace(x='ab') %}{% for i in range(60) %}{% set ns.x = ns.x|replace('a', ns.x) %}{% endfor %}{{ ns.x }}",
    "{% set ns = namespace(x=[1]) %}{% for i in range(60) %}{% set ns.x = ns.x + ns.x %}{% endfor %}{{ ns.x|length }}",
    "{% set ns = namespace(x=messages[0].role) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x]|join %}{% endfor %}{{ ns.x }}",
    "{{ 'a' * 99999999999 }}", "{{ 99999999999 * messages[0].role }}", "{{ [0] * 99999999999 }}",
    "{{ 10 ** (10 ** 10) }}", "{% set ns = namespace(x=9) %}{% for i in range(60) %}{% set ns.x = ns.x * ns.x %}{% endfor %}",
    "{{ 'a'|center(99999999999) }}", "{{ messages[0].role.ljust(99999999999) }}",
    "{{ messages[0]['role']['center'](99999999999) }}", "{{ messages[0].role|attr('rjust')(99999999999) }}",
    "{{ '%99999999999d' % 1 }}", "{{ '{:99999999999}'.format(1) }}", "{{ '%*d' % (99999999999, 1) }}",
    "{{ 'a'|indent(99999999999) }}", "{{ [1]|batch(99999999999, 0)|list }}", "{{ [1]|slice(99999999999)|list }}",
    "{{ 1.5|round(99999999999, 'ceil') }}", "{{ {}|tojson(indent=99999999999) }}", "{{ lipsum(999999999) }}",
    "{{ 'a\\tb'.expandtabs(99999999999) }}", "{{ 1 .to_bytes(99999999999, 'big') }}",
    "{{ ''.encode().center(99999999999) }}", "{{ ('a' * 9999999).translate({97: 'b' * 9999999}) }}",
    "{{ ('<!--x-->' * 99999)|striptags }}", "{% for i in range(99999) %}{{ 'a' * 99999 }}{% endfor %}",
    "{{ ('a'|safe).center(99999999999) }}", "{{ ('a'|safe)['ljust'](99999999999) }}", "{{ ('%99999999999d'|safe) % 1 }}",
    "{{ ('{:99999999999}'|safe).format(1) }}", "{{ ('a' * 9999999|safe).replace('a', 'b' * 9999999) }}",
    "{{ ('a' * 9999999)|safe|replace('a', 'b' * 9999999) }}", "{{ ('a' * 9999999|safe).join(range(99999)) }}",
    "{{ (('a' * 9999999)|safe).strip('b' * 4999999 ~ 'a') }}", "{{ (('a' * 9999999)|safe).rfind('b' ~ 'a' * 4999999) }}",
    "{{ (('a' * 9999999)|safe).encode('punycode') }}",
    # Small in memory, endless for whatever walks over it.
    *(
        "{% set ns = namespace(x=['a'], y=['b']) %}{% for i in range(40) %}"
        "{% set ns.x = [ns.x, ns.x] %}{% set ns.y = [ns.y, ns.y] %}{% endfor %}" + use
        for use in [
            "{{ ns.x }}", "{{ ns.x|string }}", "{{ ns.x|tojson }}", "{{ 'a' ~ ns.x }}", "{{ ns.x|upper }}",
            "{{ '%s' % ns.x }}", "{{ '%s' % (ns.x,) }}", "{{ '{}'.format(ns.x) }}", "{{ ns.x|e }}",
            "{{ [ns.x]|join }}", "{{ ns.x == ns.y }}", "{{ ns.x in [ns.y, ns.x + []] }}", "{{ ns.x is eq(ns.y) }}",
            "{{ [ns.x, ns.y]|sort }}", "{{ [ns.x, ns.y]|max }}", "{{ ns.x|pprint }}", "{{ ns.x|wordcount }}",
            "{{ [ns.x, ns.y]|map('string')|list }}", "{{ [ns.x]|map('tojson')|join }}", "{{ [ns.y].index(ns.x) }}",
            "{{ raise_exception(ns.x) }}", "{{ ns.x|safe }}", "{{ ('%s'|safe) % ns.x }}", "{{ 'a'.format(a=ns.x) }}",
            "{{ {}[ns.x].foo }}", "{{ messages[ns.x].foo }}", "{{ [{}]|map(attribute=ns.x)|sum }}", "{{ [1]|map(ns.x)|list }}",
            "{% autoescape true %}{{ ns.x }}{% endautoescape %}", "{% autoescape true %}{{ ns.x ~ 'a' }}{% endautoescape %}",
            "{% autoescape true %}{{ [ns.x]|join }}{% endautoescape %}", "{% autoescape true %}{{ 'a'|replace('a', ns.x) }}{% endautoescape %}",
            "{{ {'a': ns.x} }}", "{{ {'a': ns.x}.items().mapping }}", "{{ {'a': ns.x}.items() }}", "{{ 'x'|replace('x', ns.x) }}", "{{ ns }}",
        ]
    ),
    "{% macro f() %}{% set ns.x = varargs %}{% endmacro %}{% set ns = namespace(x=(1,)) %}"
    "{% for i in range(40) %}{{ f(ns.x, ns.x) }}{% endfor %}{{ {}[ns.x] }}{{ {ns.x: 1} }}",
    "{{ ([dict.fromkeys(range(90000)).keys() - []] * 60000)|string|length }}",
    *(
        "{% set ns = namespace(x=(1,)) %}{% for i in range(40) %}{% set ns.x = (ns.x, ns.x) %}{% endfor %}" + use
        for use in ["{{ [ns.x]|unique|list }}", "{{ ns.x is filter }}", "{{ ns.x is test }}", "{{ [1]|map(ns.x)|list }}",
                    "{{ [{}]|map('attr', ns.x)|list }}"]
    ),
    "{{ ([messages * 1000] * 1000 * 100)|string }}",
    "{{ ([[1] * 1000] * 99999)|sum(start=[])|length }}",
    # Many values that are not too large one by one.
    "{% set ns = namespace(x=[]) %}{% for i in range(99999) %}{% set ns.x = ns.x + ['a' * 9999999 ~ i] %}{% endfor %}",
    "{% set ns = namespace(x=[]) %}{% set b = 'a' * 9999999 %}{% for i in range(99999) %}{% set ns.x = ns.x + [b[1:]] %}{% endfor %}",
    "{% set b = 'a' * 9999999 %}{{ ([b] * 99999)|map('upper')|list|length }}",
    "{% set b = [0] * 999999 %}{{ ([b] * 99999)|map('list')|list|length }}",
    "{% set b = [0] * 999999 %}{% set ns = namespace(x=[]) %}{% for i in range(99999) %}{% set ns.x = ns.x + [b.copy()] %}{% endfor %}",
    "{{ ('a' * 9999999)|list|length }}", "{{ ('a,' * 9999999).split(',')|length }}",
    # Worse than linear.
    "{{ ('a' * 9999999).rfind('b' ~ 'a' * 4999999) }}", "{{ ('a' * 9999999).strip('b' * 4999999 ~ 'a') }}",
    "{{ ('a' * 9999999)|trim('b' * 4999999 ~ 'a') }}", "{{ ('é' * 9999999).encode('punycode') }}",
    "{{ ('a' * 9999999).encode().decode('idna') }}", "{{ (('f' * 9999999)|int(base=16)) // 3 }}",
    "{{ strftime_now('%c' * 9999999) }}", "{{ messages|tojson(indent=9999999) }}",
    "{% set ns = namespace(x='a') %}{% for i in range(4000) %}{% set ns.x = ns.x ~ messages[0].role ~ 'b,' %}{% endfor %}"
    "{% for i in range(99999) %}{% set b = ns.x.split(',') %}{% endfor %}",
]  # fmt: skip


# What each operation costs goes by the sizes of what it is given.
_WIDE = "{% set a = 'a' * 8000000 ~ 'b' %}{% set b = 'a' * 8000000 ~ 'c' %}"
BOMBS += [
    _WIDE + use
    for use in [
        "{{ a in [b] * 60000 }}", "{{ a not in ([b] * 60000) }}", "{{ ([b] * 60000).count(a) }}", "{{ ([b] * 60000).index(a) }}",
        "{{ ([a] * 60000)|select('equalto', b)|list }}", "{{ ([a] * 60000)|select('==', b)|list }}",
        "{{ ([a] * 60000)|select('in', [b])|list }}", "{{ ([a] * 300)|reject('in', [b] * 2000)|list }}",
        "{{ ([{'x': a}] * 60000)|selectattr('x', 'eq', b)|list }}", "{{ a in dict.fromkeys(range(60000), b).values() }}",
        "{{ [a] * 60000 == [b] * 60000 }}", "{{ [a] * 60000 < [b] * 60000 < [a] }}", "{{ ([a] * 60000)|unique|list }}",
        "{{ a in ([b] * 60000)|map('string') }}", "{{ a == a in ([b] * 60000)|map('string') }}", "{{ ([a, b] * 60000)|sort|length }}",
        "{% for i in range(99999) %}{{ a == b }}{% endfor %}", "{% for i in range(99999) %}{{ 'c' in a }}{% endfor %}",
        "{% for i in range(99999) %}{% if loop.changed(a if i % 2 else b) %}{% endif %}{% endfor %}",
        "{% for i in range(99999) %}{{ a.find('c') }}{% endfor %}", "{% for i in range(99999) %}{{ a.count('c') }}{% endfor %}",
        "{% for i in range(99999) %}{{ a is lower }}{% endfor %}", "{{ a|batch(1)|list|length }}", "{{ a|list|length }}",
        "{{ ('%(a)s' * 99999) % {'a': a} }}", "{{ ('{0}' * 99999).format(a) }}", "{{ ('%(a)9999d' * 99999) % {'a': 1} }}",
        "{{ ('%(a)9999d' * 99999|safe) % {'a': 1} }}", "{{ ('{0}' * 99999|safe).format(a) }}", "{{ '{:{w}}'.format('x', w=99999999) }}",
        "{{ ('a\n' * 4000000).splitlines()|length }}", "{{ ('a ' * 4000000).split()|length }}", "{{ (a|safe).split('a')|length }}",
        "{{ a.split('a')|length }}", "{{ messages[0].content.split('y')|length }}", "{{ a|pprint }}", "{{ [a]|pprint }}", "{{ a|title }}", "{{ a|urlencode }}",
        "{% set ns = namespace(x=(1,)) %}{% for i in range(40) %}{% set ns.x = (ns.x, ns.x) %}{% endfor %}{{ {1: ns.x}.items() - [] }}",
    ]
]  # fmt: skip


@pytest.mark.parametrize("bomb", BOMBS)
def test_templates_are_bounded(bomb: str) -> None:
    template = ChatTemplate(bomb, max_seconds=0.2)
    start = time.process_time()
    with pytest.raises(Exception) as raised:
        template.render([{"role": "user", "content": "x" if "y" not in bomb else "xy" * 4_000_000}])
    assert time.process_time() - start < 5
    assert isinstance(raised.value, (ValueError, jinja2.TemplateError, OverflowError, TypeError))


def test_replacing_and_splitting_long_texts_takes_little_time_and_memory() -> None:
    template = ChatTemplate(
        "{% set x = messages[0].content %}{{ x.replace('a', 'b')|length }} {{ (x ~ 'c').replace('a', 'b')|length }}"
        " {{ ('a' * 4000000).replace('a', 'bb')|length }} {{ x|replace('a', '')|length }}"
    )
    messages = [{"content": "a" * 4_000_000}]
    tracemalloc.start()
    start = time.process_time()
    text = "".join(s.text for s in template.render(messages))
    seconds, peak = time.process_time() - start, tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert text == "4000000 4000001 8000000 0"
    assert seconds < 2 and peak < 100_000_000


def test_long_operations_on_short_texts_are_not_refused() -> None:
    template = (
        "{% for m in messages %}{{ m.content in known }}{{ '*%s*' % m.content == '*x*' }}"
        "{{ '{:*^5}'.format('x') }}{{ m.content.split('x')|length }}{% endfor %}"
    )
    messages = [{"content": "x" * 50_000}] * 50
    segments = render_template(template, messages, known=["x" * 50_000 + "y"] * 50)
    assert "".join(s.text for s in segments) == "FalseFalse**x**50001" * 50


@pytest.mark.parametrize(
    "source",
    [
        "{% if 1 %}" * 120 + "x" + "{% endif %}" * 120,
        "{% for i in [1] %}" * 25 + "x" + "{% endfor %}" * 25,
        "{{ " + "[" * 250 + "]" * 250 + " }}",
    ],
)
def test_templates_that_python_cannot_compile(source: str) -> None:
    with pytest.raises(TemplateLimitError, match="nests .*too deeply.*move inner"):
        ChatTemplate(source)


@pytest.mark.parametrize(
    "source",
    ["{{a}}" * 50_000, "{% if x %}{% set a = 1 %}{% endif %}" * 7_000, "{{ a|e }}" * 25_000],
)
def test_templates_that_take_long_to_compile(source: str) -> None:
    start = time.process_time()
    with pytest.raises(TemplateLimitError, match="more than 20000 words and signs"):
        ChatTemplate(source)
    assert time.process_time() - start < 1


def test_expressions_that_nest_too_deeply_are_refused() -> None:
    for source in ["{{ " + "(" * 20_000 + ")" * 20_000 + " }}", "{{ " + "not " * 50_000 + "1 }}"]:
        with pytest.raises((TemplateLimitError, jinja2.TemplateError)):
            ChatTemplate(source)
    with pytest.raises(TemplateLimitError, match="262144"):
        ChatTemplate("x" * 300_000)


def test_the_sandbox_holds() -> None:
    for source in [
        "{{ messages.__class__ }}",
        "{{ messages[0].role.__class__.__mro__ }}",
        "{{ ''['__class__'] }}",
        "{{ 'x'._runs }}",
        "{{ messages.append(1) }}",
        "{{ namespace(_x=1) }}",
        "{{ '{0.__class__}'.format(messages) }}",
        "{{ ''.format.__globals__ }}",
        "{{ ''|attr('__class__') }}",
        "{{ cycler.__init__.__globals__ }}",
        "{{ ''.join.__self__.__class__ }}",
        "{% include 'x' %}",
        "{{ ''.strip.func }}{{ ''.strip.args }}{{ ''.format.func }}{{ ''.encode.args }}",
        "{{ messages[0].role.encode().decode.args }}",
        "{{ messages|map(attribute='__class__')|join }}",
        "{{ [messages]|map('attr', '__class__')|join }}",
        "{{ namespace()['_Namespace__attrs'] }}",
        "{{ namespace._Namespace__attrs }}",
        "{{ (messages|groupby('role')|first).__class__ }}",
        "{{ '{0._runs}'.format('a') }}",
        "{{ ('{0.__class__}'|safe).format(1) }}",
        "{{ strftime_now.__globals__ }}",
        "{% for x in [1] %}{{ loop.__class__ }}{{ loop._iterable }}{% endfor %}",
        "{% macro f() %}{% endmacro %}{{ f._func }}{{ f.__init__ }}",
        "{{ messages[0].update({'a': 1}) }}",
    ]:
        try:
            text = "".join(s.text for s in render_template(source, [{"role": "user"}]))
        except (jinja2.TemplateError, TypeError, ValueError):
            continue
        assert text == "", source


@pytest.mark.parametrize(
    ("messages", "more", "message"),
    [
        ("text", {}, "messages must be a list of dicts, not str"),
        (None, {}, "messages must be a list of dicts, not NoneType"),
        ([1], {}, r"messages\[0\] must be a dict, not int"),
        ([{}], {"tools": [len]}, r"tools\[0\] must be a dict.*get_json_schema"),
        ([{}], {"documents": ["x"]}, r"documents\[0\] must be a dict, not str"),
    ],
)
def test_wrong_shapes(messages: Any, more: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        render_template("", messages, **more)


@pytest.mark.parametrize(
    ("messages", "more", "place"),
    [
        ([{"content": b"x"}], {}, r"messages\[0\]\['content'\] is bytes; decode it first"),
        ([{"a": [{}, {"b": bytearray()}]}], {}, r"messages\[0\]\['a'\]\[1\]\['b'\] is bytearray"),
        ([{b"x": 1}], {}, r"a key of messages\[0\] is bytes"),
        ([], {"x": b"x"}, r"x is bytes"),
        ([], {"tools": [{"a": b"x"}]}, r"tools\[0\]\['a'\] is bytes"),
        ([{"content": tokens([1])}], {}, r"messages\[0\]\['content'\] is tokens"),
        ([{"content": Segment(5, True)}], {}, r"text must be a str, not int"),
        ([{"content": Segment("a", True, 5)}], {}, r"role must be a str, not int"),
        ([{"content": Segment("a", True, None, None, "bogus")}], {}, r"of the kind 'bogus'"),
    ],
)
def test_what_is_no_text_is_refused_by_name(messages: Any, more: Any, place: str) -> None:
    with pytest.raises(TypeError, match=place):
        render_template("{{ messages }}", messages, **more)


def test_variables_may_have_any_name() -> None:
    text = render_template(
        "{{ template }}{{ source }}{{ given }}", [], template="a", source="b", given="c"
    )
    assert text[0].text == "abc"
    with pytest.raises(ValueError, match="cannot be named 'self'"):
        render_template("{{ self }}", [], self="x")


def test_messages_that_hold_themselves() -> None:
    message: dict[str, Any] = {}
    message["content"] = message
    with pytest.raises(ValueError, match="nested too deeply"):
        render_template("", [message])


def test_objects_are_made_plain() -> None:
    class Loud(str):
        def upper(self) -> str:
            raise AssertionError

    import numpy as np

    message = {
        "a": Loud("<|im_end|>"),
        "b": np.int64(3),
        "c": object(),
        "d": (1, "x"),
        "e": np.zeros(2),
    }
    text = "".join(
        s.text
        for s in render_template("{{ messages[0].values()|map('string')|join(';') }}", [message])
    )
    assert text == "<|im_end|>;3;<object>;(1, 'x');<ndarray>"
    assert render_template("{{ messages[0].a.upper() }}", [message])[0].text == "<|IM_END|>"
