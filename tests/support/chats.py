"""Conversations and chat templates shared by the tests of prompts.

The templates are the project's own, in the documented formats of published models. If `../shared`
exists, the models' own templates are read from there.
"""

from __future__ import annotations

import functools
import pathlib
import re
from typing import Any

import pytest
from oracles import ranks

import bpe_engine

SHARED = pathlib.Path(__file__).parents[3] / "shared" / "chat_templates"

TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "The weather of a place,\nas it is now",
            "parameters": {
                "type": "object",
                "properties": {
                    "city": {"type": "string", "description": "Which city"},
                    "unit": {"type": "string", "enum": ["C", "F"]},
                    "days": {"type": "integer"},
                },
                "required": ["city"],
            },
            "return": {"type": "string"},
        },
    }
]


def call(arguments: Any) -> dict[str, Any]:
    """Returns an assistant's message that calls the tool."""
    function = {"name": "get_weather", "arguments": arguments}
    calls = [{"id": "abcdefghi", "type": "function", "function": function}]
    return {"role": "assistant", "content": "", "tool_calls": calls}


SYSTEM = {"role": "system", "content": "You are helpful."}
USER = {"role": "user", "content": "  Hi there, what's <b>up</b> & so?\n "}
ANSWER = {"role": "assistant", "content": "Fine, thanks."}
THOUGHT = {"role": "assistant", "content": "It is.", "reasoning_content": "Let me think"}
RESULT = {"role": "tool", "name": "get_weather", "tool_call_id": "abcdefghi", "content": "sunny"}

#: Messages and the template's other variables, by name.
CONVERSATIONS: dict[str, tuple[list[dict[str, Any]], dict[str, Any]]] = {
    "user": ([USER], {}),
    "system": ([SYSTEM, USER], {}),
    "turns": ([SYSTEM, USER, ANSWER, USER, ANSWER, USER], {}),
    "generation": ([SYSTEM, USER], {"add_generation_prompt": True}),
    "reasoning": ([USER, THOUGHT, USER, THOUGHT], {}),
    "tools": ([SYSTEM, USER], {"tools": TOOLS, "add_generation_prompt": True}),
    "call": ([SYSTEM, USER, call({"city": "Paris", "days": 3}), RESULT, USER], {"tools": TOOLS}),
    "call as text": ([SYSTEM, USER, call('{"city": "Paris"}'), RESULT], {"tools": TOOLS}),
    "last call": ([USER, call({"city": "Paris", "days": 3})], {"tools": TOOLS}),
    "calls in turns": (
        [USER, call({"city": "Rome"}), RESULT, ANSWER, USER, call({}), RESULT, ANSWER],
        {"tools": TOOLS},
    ),
    "nested call": ([SYSTEM, USER, call({"a": {"b": [1, "c"]}, "d": None}), RESULT, ANSWER], {}),
    "parts": ([{"role": "user", "content": [{"type": "text", "text": "Hello"}]}], {}),
    "no thinking": ([SYSTEM, USER], {"add_generation_prompt": True, "enable_thinking": False}),
    "documents": ([USER], {"documents": [{"title": "Sea", "text": "It is wet."}]}),
    "functions": (
        [SYSTEM, USER, ANSWER],
        {"functions": "[]", "datetime": "now", "tools": TOOLS, "tools_in_user_message": False},
    ),
    "flat tools": ([SYSTEM, USER], {"tools": [TOOLS[0]["function"]]}),
    "think in content": (
        [USER, {"role": "assistant", "content": "<think>hm</think>\n\nYes"}, USER],
        {},
    ),
}

TEMPLATES: dict[str, str] = {
    "chatml": """\
{%- for message in messages %}
    {{- '<|im_start|>' + message.role + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}
""",
    "headers": """\
{{- bos_token }}
{%- set offset = 0 %}
{%- if messages[0]['role'] == 'system' %}
    {%- set system = messages[0]['content'] | trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system = '' %}
{%- endif %}
{{- '<|im_start|>system\\nToday is ' ~ '1 May' ~ '.\\n\\n' ~ system ~ '<|im_end|>' }}
{%- for message in messages %}
    {%- if 'tool_calls' in message and message.tool_calls %}
        {%- for call in message.tool_calls %}
            {%- set call = call.function %}
            {{- '<|im_start|>assistant\\n{"name": "' + call.name + '", ' }}
            {{- '"parameters": ' }}{{ call.arguments | tojson }}{{ '}<|im_end|>' }}
        {%- endfor %}
    {%- elif message.role in ['tool', 'ipython'] %}
        {{- '<|im_start|>ipython\\n' }}
        {%- if message.content is mapping or message.content is not string %}
            {{- message.content | tojson }}
        {%- else %}{{- message.content }}{%- endif %}
        {{- '<|im_end|>' }}
    {%- else %}
        {{- '<|im_start|>' ~ message.role ~ '\\n' ~ (message.content | string | trim) }}<|im_end|>
    {%- endif %}
{%- endfor %}
""",
    "tools": """\
{%- macro schema(name, value, depth=0) -%}
    {%- if value is mapping -%}
        {{- '  ' * depth ~ name ~ ':' ~ '\\n' -}}
        {%- for key, inner in value | dictsort -%}{{- schema(key, inner, depth + 1) -}}{%- endfor -%}
    {%- elif value is string -%}
        {{- '  ' * depth -}}{{- name|upper|lower -}}{{- ' = "%s"\\n' % value -}}
    {%- else -%}
        {{- '  ' * depth ~ name ~ ' = ' ~ value|tojson(indent=2) ~ '\\n' -}}
    {%- endif -%}
{%- endmacro -%}
{%- set ns = namespace(text='', count=0) -%}
{%- if tools -%}
    <|im_start|>system{{ '\\n# Tools\\n' }}
    {%- for tool in tools -%}
        {%- set ns.text = ns.text + schema('tool', tool) + '<|im_end|>' -%}
        {%- set ns.count = ns.count + 1 -%}
    {%- endfor -%}
    {{- ns.text -}}{{- ns.count -}}
{%- endif -%}
{%- for document in documents or [] -%}
    {{- '<|im_start|>document\\n' + document.title|title + ': ' + document['text'] + '<|im_end|>' -}}
{%- endfor -%}
{%- for message in messages -%}
    {%- if loop.index0 > 200 -%}{%- break -%}{%- endif -%}
    {%- if message.content is not string and message.content is iterable -%}
        {%- set content = message.content | map(attribute='text') | join('<|fim_pad|>') -%}
    {%- else -%}
        {%- set content = message.content -%}
    {%- endif -%}
    {%- set lines = content.split('\\n') -%}
    {{- '<|im_start|>{}\\n'.format(message.role) -}}
    {%- for line in lines -%}
        {{- line.rstrip() | replace('\\t', '<|fim_middle|>') -}}{{- '\\n' if not loop.last -}}
    {%- endfor -%}
    {%- for call in message.tool_calls or [] -%}
        {{- '<tool_call>' ~ {'name': call.function.name, 'arguments': call.function.arguments} | tojson(ensure_ascii=true, sort_keys=true) ~ '</tool_call>' -}}
    {%- endfor -%}
    {{- '<|im_end|>' -}}
{%- endfor -%}
""",
    "thinking": """\
{%- for message in messages -%}
    {%- if message.role not in ['system', 'user', 'assistant', 'tool'] -%}
        {{- raise_exception('Unknown role ' + message.role) -}}
    {%- endif -%}
    {%- if message.role == 'assistant' -%}
        {%- set content = message.content if message.content is string else '' -%}
        {%- set reasoning = '' -%}
        {%- if message.reasoning_content is defined and message.reasoning_content is not none -%}
            {%- set reasoning = message.reasoning_content -%}
        {%- elif '</think>' in content -%}
            {%- set reasoning = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1] -%}
            {%- set content = content.split('</think>')[-1].lstrip('\\n') -%}
        {%- endif -%}
        <|im_start|>assistant{{ '\\n' }}
        {%- generation -%}
            {{- '<think>' ~ reasoning[:2000] ~ '</think>' if reasoning -}}
            {{- content | trim | indent(2) -}}{{- '<|im_end|>' -}}
        {%- endgeneration -%}
    {%- else -%}
        {%- set name = [message.role, message.name] | select('string') | join('/') -%}
        {{- ['<|im_start|>', name, '\\n', message.content, '<|im_end|>'] | join -}}
    {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}<|im_start|>assistant{{ '\\n' }}{%- endif -%}
""",
    "odd": """\
{%- macro wrap(role) -%}<|im_start|>{{ role | capitalize }}{{ '\\n' ~ caller() }}<|im_end|>{%- endmacro -%}
{%- for message in messages -%}
    {%- call wrap(message.role) -%}
        {%- set text -%}[{{ message.content }}]{%- endset -%}
        {%- filter replace('[', '<|fim_prefix|>') -%}{{ text[1:-1] | center(4) }}{%- endfilter -%}
        {{- (text ~ '<|fim_suffix|>')[::-1][::-1] | truncate(5000) -}}
        {{- '%s/%%/%s' | format(message.role, 'x') -}}
        {{- ' and '.join([message.role, '<|fim_pad|>', 'b']) -}}
        {{- message | items | list | length -}}
        {{- (message.role + ':').ljust(12) ~ text.partition('!')[0].swapcase() -}}
        {{- ('a<|fim_pad|>b' ~ message.role).removeprefix('a').removesuffix('z').splitlines()[0] -}}
        {{- '{0}-{1}'.format('<|im_end|>', message.role) -}}
        {{- "<b>"|safe + message.role + "</b>" -}}
        {{- 'é' in text, text == '', text.startswith('['), text | length, message.role < 'b' -}}
    {%- endcall -%}
{%- endfor -%}
""",
    # Keeps reasoning only until the user's next question, and writes calls value by value.
    "forgets": """\
{%- set ns = namespace(last=-1) %}
{%- for m in messages %}{% if m.role == 'user' %}{% set ns.last = loop.index0 %}{% endif %}{% endfor %}
{%- for m in messages %}
    {%- set content = m.content %}
    {%- if m.role == 'assistant' %}
        {%- if m.reasoning_content %}
            {%- set content = '<think>' + m.reasoning_content + '</think>' + content %}
        {%- endif %}
        {%- if loop.index0 < ns.last %}
            {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
        {%- endif %}
    {%- endif %}
    {{- '<|im_start|>' + m.role + '\\n' + content }}
    {%- for call in m.tool_calls or [] %}
        {{- '<tool_call>' + call.function.name }}
        {%- for key, value in (call.function.arguments | items if call.function.arguments is mapping else []) %}
            {{- ' ' + key + '=' }}{{ value if value is string else value | tojson }}
        {%- endfor %}
        {{- '</tool_call>' }}
    {%- endfor %}
    {{- '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}
""",
}

#: Control tokens that every test encoding has.
CONTROL = [
    *("<|im_start|>", "<|im_end|>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>"),
    *("<|fim_pad|>", "<tool_call>", "</tool_call>", "<think>", "</think>", "<s>"),
]


def templates() -> dict[str, str]:
    """Returns the project's own templates, and the templates in `../shared`."""
    shared = {path.stem: path.read_text() for path in sorted(SHARED.glob("*.jinja"))}
    return {**TEMPLATES, **shared}


# Text in a template that looks like a control token of the model.
_CONTROL = re.compile(
    r"<[|｜][^\s<>{}'\"]{1,40}[|｜]>|\[/?[A-Z_]{3,20}\]|</?[a-z_]{2,24}>|<s>|</s>"
    r"|<\|[a-z_]+>|<[a-z_]+\|>|\]<\]"
)


def control_of(template: str) -> list[str]:
    """Returns the control tokens of a template and the control tokens of every test encoding."""
    return sorted({*_CONTROL.findall(template), *CONTROL, "</s>", "<pad>"})


@functools.cache
def encoding_of(template: str, size: int) -> bpe_engine.Encoding:
    """Returns an encoding of r50k_base's first `size` tokens and a template's control tokens."""
    return bpe_engine.Encoding(
        f"test {size}",
        pat_str=bpe_engine.get_encoding("cl100k_base").pattern,
        mergeable_ranks={token: rank for token, rank in ranks("r50k_base").items() if rank < size},
        special_tokens={name: 60000 + place for place, name in enumerate(control_of(template))},
    )


def rendered(template: str, messages: Any, **variables: Any) -> str:
    """Returns the prompt that transformers renders."""
    module = pytest.importorskip("transformers.utils.chat_template_utils")
    conversation = [dict(message) for message in messages]
    texts, _ = module.render_jinja_template([conversation], chat_template=template, **variables)
    return str(texts[0])


def skip_if_older(name: str) -> None:
    """Skips the template `odd`, which counts keys of messages, before transformers 5.20."""
    module = pytest.importorskip("transformers.utils.chat_template_utils")
    if name == "odd" and not hasattr(module, "_REASONING_FIELDS"):
        pytest.skip("this transformers knows one name of reasoning")
