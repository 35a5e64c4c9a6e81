"""Tests the origins of rendered text, and the masks that follow from origins."""

from __future__ import annotations

import json
import pickle
import random
import re
from typing import Any

import chats
import pytest
from seeds import rounds, seeded
from small_files import LEVEL, byte_level_file

import bpe_engine
from bpe_engine import hf
from bpe_engine.prompt import ChatTemplate, Origin, render_template, special, untrusted
from bpe_engine.read import byte_level

jinja2 = pytest.importorskip("jinja2")

TEMPLATES = chats.templates()
TOKENS = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"}
OWN = {name: special(text) for name, text in TOKENS.items()}
# A tool's name, whose letters occur in no other word.
NAME = "zzz_z"
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": NAME,
            "description": "Tells it",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string", "description": "Where"}},
                "required": ["city"],
            },
        },
    }
]


def encodings(name: str) -> tuple[bpe_engine.Encoding, bpe_engine.Encoding]:
    """Returns two encodings with a template's control tokens: one of bytes, one with merges."""
    template = TEMPLATES[name]
    return chats.encoding_of(template, 256), chats.encoding_of(template, 20_000)


def shifted(value: Any) -> Any:
    """Replaces letters of the value with private-use characters, easy to find in a text."""
    if isinstance(value, str):
        return "".join(chr(0xE000 + ord(c)) if "a" <= c < "z" else c for c in value)
    if isinstance(value, dict):
        return {
            shifted(key) if key not in KEYS else key: item if key in FIXED else shifted(item)
            for key, item in value.items()
        }
    return [shifted(item) for item in value] if isinstance(value, list) else value


KEYS = {"function", "name", "arguments", "id", "type", "content", "reasoning_content", "tool_calls"}
FIXED = {"id", "type", "name"}


def words(choose: random.Random, some: bool = True) -> str:
    """Returns a text with unusual spaces and signs; without `some`, the text may be empty."""
    pool = ["hello", "it is", "ok?", "é", "\n", "a,b", " ", "{x}", "5", "thé", "\n\n", "two words"]
    return "".join(choose.choice(pool) for _ in range(choose.randrange(1 if some else 0, 7)))


def conversation(choose: random.Random) -> list[dict[str, Any]]:
    """Returns a random conversation that includes reasoning, tool calls and empty texts."""
    messages: list[dict[str, Any]] = []
    if choose.random() < 0.5:
        messages.append({"role": "system", "content": "be good " + words(choose)})
    for _ in range(choose.randrange(1, 4)):
        messages.append({"role": "user", "content": "asks " + words(choose)})
        while choose.random() < 0.4:
            arguments = {choose.choice(["city", "some"]): words(choose), "n": choose.randrange(9)}
            call = {"name": NAME, "arguments": arguments}
            calls = [{"id": "123456789", "type": "zzz", "function": call}]
            asks: dict[str, Any] = {"role": "assistant", "content": "", "tool_calls": calls}
            if choose.random() < 0.3:
                asks["content"] = "calls " + words(choose)
            messages.append(asks)
            result = {"role": "tool", "name": NAME, "tool_call_id": "123456789"}
            messages.append({**result, "content": "told " + words(choose)})
        answer: dict[str, Any] = {"role": "assistant", "content": words(choose, some=False)}
        if choose.random() < 0.4:
            answer["reasoning_content"] = "thinks " + words(choose)
        messages.append(answer)
    return messages


def of_assistant(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns the conversation with private-use characters in the assistant's text."""
    return [
        {**shifted({k: v for k, v in m.items() if k != "role"}), "role": "assistant"}
        if m["role"] == "assistant"
        else m
        for m in messages
    ]


def transformers_text(template: str, messages: Any, **more: Any) -> str | None:
    """Returns the text that transformers renders, or None if the template rejects the chat."""
    try:
        return chats.rendered(template, messages, **TOKENS, **more)
    except Exception:
        return None


@pytest.mark.parametrize("name", [n for n in TEMPLATES if n != "odd"])
def test_masks_without_tags_are_what_the_assistant_says(name: str) -> None:
    """Masks cover the private-use characters in the text that transformers renders."""
    template, choose = TEMPLATES[name], seeded(name)
    single, merged = encodings(name)
    if ChatTemplate(template).has_tags:
        pytest.skip("the template has tags")
    compared = 0
    for _ in range(rounds(25)):
        messages = conversation(choose)
        more: dict[str, Any] = {"tools": TOOLS if choose.random() < 0.7 else None}
        more["add_generation_prompt"] = choose.random() < 0.5
        more |= {"functions": "[]", "datetime": "now"}
        text = transformers_text(template, messages, **more)
        places = transformers_text(template, of_assistant(messages), **more)
        if text is None or places is None or len(text) != len(places):
            continue
        compared += 1
        segments = render_template(template, messages, **OWN, **more)
        audit = single.audit_segments(segments)
        bits = [
            bit
            for id, bit in zip(audit.ids, audit.mask(end=False, said=True))
            for _ in single.decode_single_token_bytes(id)
        ]
        at = 0
        for letter, place, before in zip(text, places, " " + text):
            if "a" <= letter < "z" and before != "\\":  # Skips the n of JSON's \n.
                assert bits[at] == (place != letter), (name, text, text.encode()[:at].decode())
            at += len(letter.encode())
        # With merges, an id is in the mask if all of its bytes are.
        audit = merged.audit_segments(segments)
        at = 0
        mixed = []
        for place_of_id, (id, bit) in enumerate(zip(audit.ids, audit.mask(end=False, said=True))):
            size = len(merged.decode_single_token_bytes(id))
            own = bits[at : at + size]
            assert bit == all(own)
            mixed += [place_of_id] if any(own) and not all(own) else []
            at += size
        assert audit.mixed() == mixed
        # In each message, `end` adds at most one special token after the text to the mask.
        added = [
            place_of_id
            for place_of_id, (with_end, without) in enumerate(
                zip(audit.mask(said=True), audit.mask(end=False, said=True))
            )
            if with_end and not without
        ]
        assert all(audit.special[place_of_id] for place_of_id in added)
        assert len(added) <= sum(message["role"] == "assistant" for message in messages)
    if name in chats.TEMPLATES:
        pytest.importorskip("transformers")
        assert compared


def tagged(template: str) -> str | None:
    """Returns a copy with `generation` tags around the body of the last outermost message loop."""
    blank = re.sub(r"\{#.*?#\}", lambda comment: " " * len(comment[0]), template, flags=re.DOTALL)
    depth = end = 0
    start: int | None = None
    found = None
    for tag in re.finditer(r"\{%[-+]?\s*(\w+)(.*?)[-+]?%\}", blank, re.DOTALL):
        if tag[1] in ("for", "if", "macro", "call", "filter"):
            depth += 1
            if depth == 1 and tag[1] == "for" and tag[2].split()[-1].endswith("messages"):
                start = tag.end()
        elif tag[1] in ("endfor", "endif", "endmacro", "endcall", "endfilter"):
            depth -= 1
            if depth == 0 and start is not None and tag[1] == "endfor":
                found, end, start = start, tag.start(), None
    if found is None or "break" in template[found:end] or "generation" in template[found:end]:
        return None
    inside = template[found:end]
    head, tail = "{%- generation -%}", "{%- endgeneration -%}"
    return template[:found] + head + inside + tail + template[end:]


@pytest.mark.parametrize("name", TEMPLATES)
def test_masks_with_tags_are_those_of_transformers(name: str) -> None:
    """Compares masks of templates with tags, and of copies with tags inserted by the test."""
    chats.skip_if_older(name)
    module = pytest.importorskip("transformers.utils.chat_template_utils")
    choose = seeded(name)
    source = TEMPLATES[name]
    template = source if ChatTemplate(source).has_tags else tagged(source)
    if template is None:
        pytest.skip("the template has no loop that tags could be put into")
    single, _ = encodings(name)
    for _ in range(rounds(12)):
        messages = conversation(choose)
        more: dict[str, Any] = {"tools": TOOLS, "functions": "[]", "datetime": "now"}
        try:
            texts, spans = module.render_jinja_template(
                [messages], chat_template=template, return_assistant_tokens_mask=True,
                **TOKENS, **more,
            )  # fmt: skip
        except Exception:
            continue
        inside = [any(a <= at < b for a, b in spans[0]) for at in range(len(texts[0]))]
        segments = render_template(template, messages, **OWN, **more)
        assert "".join(segment.text for segment in segments) == texts[0]
        audit = single.audit_segments(segments)
        assert audit.has_tags
        bits = [
            bit
            for id, bit in zip(audit.ids, audit.mask())
            for _ in single.decode_single_token_bytes(id)
        ]
        expected = [bit for letter, bit in zip(texts[0], inside) for _ in letter.encode()]
        assert bits == expected


def masked(audit: Any, enc: Any, **options: Any) -> str:
    return str(enc.decode([id for id, bit in zip(audit.ids, audit.mask(**options)) if bit]))


CHAT = [
    {"role": "user", "content": "Why?"},
    {"role": "assistant", "content": "So.", "reasoning_content": "hm"},
    {"role": "user", "content": "Why so?"},
    {"role": "assistant", "content": "Just so.", "reasoning_content": "hm hm"},
]
SHOWS_ALL = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n"
    "{% if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>{% endif %}"
    "{{ m.content }}<|im_end|>\n{% endfor %}"
)


def test_options_of_masks() -> None:
    enc = bpe_engine.get_encoding("qwen3")
    audit = enc.audit_segments(render_template(SHOWS_ALL, CHAT))
    first, last = "<think>hm</think>So.", "<think>hm hm</think>Just so."
    assert masked(audit, enc) == f"{first}<|im_end|>{last}<|im_end|>"
    assert masked(audit, enc, said=True) == "hmSo.<|im_end|>hm hmJust so.<|im_end|>"
    assert masked(audit, enc, end=False) == first + last
    assert masked(audit, enc, end=False, said=True) == "hmSo.hm hmJust so."
    assert masked(audit, enc, last=True) == f"{last}<|im_end|>"
    assert masked(audit, enc, reasoning=False) == "So.<|im_end|>Just so.<|im_end|>"
    assert masked(audit, enc, messages=[1]) == f"{first}<|im_end|>"
    assert masked(audit, enc, messages=[1], last=True, end=False) == first
    assert masked(audit, enc, messages=[]) == ""
    assert masked(audit, enc, role="user", end=False) == "Why?Why so?"
    with pytest.raises(ValueError, match="holds -1, but indices begin at 0"):
        audit.mask(messages=[3, -1])
    with pytest.raises(ValueError, match="which message"):
        enc.audit_segments([untrusted("Why?", role="user")]).mask(last=True)


QUESTION, ASKED = (
    {"role": "user", "content": "Quince asks."},
    {"name": NAME, "arguments": {"city": "Oslo"}},
)
CALL = {"id": "123456789", "type": "function", "function": ASKED}
RESULT = {"role": "tool", "name": NAME, "tool_call_id": "123456789", "content": "Salt water."}
ANSWER = {"role": "assistant", "content": "Plum."}
TURNS = {
    "answer": [QUESTION, ANSWER],
    "reasoning": [QUESTION, {**ANSWER, "reasoning_content": "Fig."}],
    "call": [QUESTION, {**ANSWER, "content": "", "tool_calls": [CALL]}],
    "calls": [QUESTION, {**ANSWER, "tool_calls": [CALL, CALL]}],
    "reasoning, call": [
        QUESTION,
        {**ANSWER, "content": "", "tool_calls": [CALL], "reasoning_content": "Fig."},
    ],
    "result": [QUESTION, {**ANSWER, "content": "", "tool_calls": [CALL]}, RESULT, ANSWER],
}


@pytest.mark.parametrize("name", TEMPLATES)
def test_masks_are_what_the_model_has_to_write(name: str) -> None:
    """Masks cover the difference of two renderings, except whitespace after the end token."""
    template = TEMPLATES[name]
    # Control tokens of two models that do not have the usual form.
    names = [*chats.control_of(template), "[e~[", "<seed:eos>"]
    single = bpe_engine.Encoding(
        "test bytes",
        pat_str=r"\S+|\s+",
        mergeable_ranks={bytes([byte]): byte for byte in range(256)},
        special_tokens={token: 256 + place for place, token in enumerate(names)},
    )
    more: dict[str, Any] = {"tools": TOOLS, "functions": "[]", "datetime": "now", **OWN}

    def text(messages: Any, prompt: bool = False) -> str:
        segments = render_template(template, messages, add_generation_prompt=prompt, **more)
        return "".join(segment.text for segment in segments)

    for messages in TURNS.values():
        try:
            whole, prompt = text(messages), text(messages[:-1], True)
        except (jinja2.TemplateError, TypeError, ValueError):
            continue
        audit = single.audit_segments(render_template(template, messages, **more))
        if audit.has_tags or prompt == text(messages[:-1]) or not whole.startswith(prompt):
            continue
        written, answer = masked(audit, single, last=True), whole[len(prompt) :]
        ends = [match.end() for match in re.finditer("|".join(map(re.escape, names)), answer)]
        assert answer.startswith(written)
        if audit.special[max(place for place, bit in enumerate(audit.mask()) if bit)]:
            assert written in [answer[:end] for end in ends]
            # After the end token, a template writes whitespace or the header of the next turn.
            assert not answer[len(written) :].strip() or prompt.endswith(
                answer[len(written) :].strip("\n") + "\n\n"
            )


def test_masks_of_calls_have_their_markup() -> None:
    enc = bpe_engine.get_encoding("qwen3")
    template = TEMPLATES.get("Qwen-Qwen3-0.6B")
    if template is None:
        pytest.skip("the template is not there")
    call = {"type": "function", "function": {"name": "add", "arguments": {"a": 1}}}
    chat: list[dict[str, Any]] = [
        {"role": "user", "content": "1+1?"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "content": "2"},
    ]
    audit = enc.audit_segments(render_template(template, chat))
    written = '<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>'
    assert masked(audit, enc) == written + "<|im_end|>"
    assert masked(audit, enc, end=False) == written
    assert masked(audit, enc, said=True) == 'adda": 1<|im_end|>'
    chat[1] |= {"content": "I will add", "reasoning_content": "Simple"}
    audit = enc.audit_segments(render_template(template, chat))
    begin = "<think>\nSimple\n</think>\n\nI will add\n"
    assert masked(audit, enc) == begin + written + "<|im_end|>"
    assert masked(audit, enc, reasoning=False) == f"I will add\n{written}<|im_end|>"


#: Gemma's templates render results inside the turn of their calls; the model continues the turn.
INSIDE = (
    "{% for m in messages if m.role != 'tool' %}"
    "{% if not IS_OPEN or loop.index0 != 2 %}<|turn>{{ m.role }}\n{% endif %}"
    "{% for call in m.tool_calls or [] %}<|call>{{ call.function.name }}:"
    "{{ call.function.arguments|tojson }}<call|><|result>"
    "{% for k in range(messages|length) if messages[k].role == 'tool' %}"
    "of {{ call.function.name }}={{ messages[k].content }}<result|>{% endfor %}{% endfor %}"
    "{{ m.content }}{% if not m.tool_calls %}<turn|>\n{% endif %}{% endfor %}"
    "{% if add_generation_prompt and messages[-1].role != 'tool' %}<|turn>assistant\n{% endif %}"
)


@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("content", ["", "I add."])
def test_results_inside_of_a_turn_are_not_in_the_mask(is_open: bool, content: str) -> None:
    """The mask omits results, and also the tool's name before a result and the next header."""
    template = INSIDE.replace("IS_OPEN", str(is_open))
    enc = chats.encoding_of(template, 256)
    call = {"type": "function", "function": {"name": "add", "arguments": {"a": 1}}}
    asks = {"role": "assistant", "content": content, "tool_calls": [call]}
    result = {"role": "tool", "content": "2<|result>"}
    answer = {"role": "assistant", "content": "Two."}
    written = '<|call>add:{"a": 1}<call|><|result>' + content
    for chat in ([QUESTION, asks, result], [QUESTION, asks, result, answer]):
        audit = enc.audit_segments(render_template(template, chat))
        assert masked(audit, enc) == written + ("Two.<turn|>" if answer in chat else "")


def test_header_after_an_empty_turn_is_not_in_the_mask() -> None:
    enc = bpe_engine.get_encoding("qwen3")
    template = (
        "{% for m in messages if m.role != 'tool' %}<|im_start|>{{ m.role }}\n{{ m.content }}"
        "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )
    empty = {"role": "assistant", "content": ""}
    last = {"role": "assistant", "content": "Two."}
    for between in ([], [{"role": "tool", "content": "2"}], [empty]):
        chat = [{"role": "user", "content": "1+1?"}, empty, *between, last]
        audit = enc.audit_segments(render_template(template, chat))
        turns = sum(message["role"] == "assistant" for message in chat)
        assert masked(audit, enc) == "<|im_end|>" * (turns - 1) + "Two.<|im_end|>"


def test_audits_can_be_pickled() -> None:
    enc = bpe_engine.get_encoding("qwen3")
    audit = enc.audit_segments(render_template(SHOWS_ALL, CHAT))
    again = pickle.loads(pickle.dumps(audit))
    for name in ("ids", "segments", "special", "controls", "origins", "has_tags"):
        assert getattr(again, name) == getattr(audit, name)
    assert again.mask() == audit.mask() and again.mixed() == audit.mixed()


def byte_file(prefix: bool = False, normalizer: Any = None) -> hf.Tokenizer:
    level = {**LEVEL, "add_prefix_space": prefix}
    contents = byte_level_file(normalizer=normalizer, pre_tokenizer=level)
    return hf.Tokenizer.from_str(json.dumps(contents))


def test_origins_of_ids_are_those_of_their_bytes() -> None:
    """Ids have the origins of their bytes, even if a prefix or a normalizer changes the bytes."""
    choose = seeded("bytes")
    ranks_of = bpe_engine.get_encoding("gpt2").mergeable_ranks
    engines: dict[str, Any] = {
        form: bpe_engine.Encoding(
            f"test {form}",
            pat_str=bpe_engine.get_encoding("gpt2").pattern,
            mergeable_ranks=ranks_of,
            special_tokens={"<|end|>": 60000},
            normalization=form,
        )
        for form in (None, "NFC")
    }
    engines |= {"file": byte_file(), "prefix": byte_file(True)}
    engines |= {"NFC file": byte_file(normalizer={"type": "NFC"})}
    pool = ["a", "b", " hello", "\u00e9", "\u65e5\u672c", " ", "\n", ""]
    for name, engine in engines.items():
        for _ in range(rounds(150)):
            segments = [
                untrusted(
                    "".join(choose.choice(pool) for _ in range(choose.randrange(9))),
                    role=choose.choice("xyz"),
                )
                if choose.random() < 0.7
                else special("<|end|>", role="x")
                for _ in range(choose.randrange(1, 9))
            ]
            is_joined = choose.random() < 0.8 or name == "prefix"
            audit = engine.audit_segments(segments, join=is_joined)
            assert audit.ids == engine.encode_segments(segments, join=is_joined)
            owners = [place for place, part in enumerate(segments) for _ in part.text.encode()]
            whole, touched = audit.mask("x"), audit.mask("x", mixed=True)
            mixed = audit.mixed("x")
            at, is_inserted = 0, name == "prefix"
            for place, id in enumerate(audit.ids):
                piece = bytes_of(engine, id)
                text = "".join(part.text for part in segments).encode()
                size = len(piece) - (piece != text[at : at + len(piece)])
                assert is_inserted or size == len(piece)
                roles = {segments[owner].role for owner in owners[at : at + size]}
                if roles:
                    assert audit.segments[place] == owners[at]
                    assert whole[place] == (roles == {"x"}), (name, segments)
                    assert touched[place] == ("x" in roles), (name, segments)
                    assert (place in mixed) == ("x" in roles and len(roles) > 1)
                at += size
            assert at == len(owners)
            again = pickle.loads(pickle.dumps(audit))
            assert (again.segments, again.special) == (audit.segments, audit.special)
            assert again.mask("x", mixed=True) == touched


def bytes_of(engine: Any, id: int) -> bytes:
    if isinstance(engine, bpe_engine.Encoding):
        return engine.decode_single_token_bytes(id)
    token = engine.id_to_token(id)
    return token.encode() if token == "<|end|>" else byte_level.bytes_of(token)


def test_origins_where_the_form_of_text_changes() -> None:
    """A letter and a mark from different segments compose to one id of mixed origin."""
    for engine in (bpe_engine.get_encoding("qwen3"), byte_file(normalizer={"type": "NFC"})):
        segments = [untrusted("e", role="x"), untrusted("\u0301 the", role="y")]
        audit = engine.audit_segments(segments)
        assert audit.mask("x", mixed=True)[0] == 1 and audit.mask("x")[0] == 0
        assert audit.mixed("x")[0] == 0 and audit.mask("y")[-1] == 1


def test_labels_of_the_caller_win() -> None:
    enc = bpe_engine.get_encoding("qwen3")
    chat = [
        {"role": "assistant", "content": untrusted("no", role="other")},
        {"role": "user", "content": untrusted("yes", role="assistant")},
    ]
    audit = enc.audit_segments(render_template(SHOWS_ALL, chat))
    assert masked(audit, enc, end=False) == "yes"
    assert masked(audit, enc, role="other", end=False) == "no"


def test_origins() -> None:
    enc = bpe_engine.get_encoding("qwen3")
    segments = render_template(SHOWS_ALL, CHAT[1:2])
    audit = enc.audit_segments(segments)
    assert [enc.decode([id]) for id in audit.ids] == [
        "<|im_start|>", "assistant", "\n", "<think>", "hm", "</think>", "So", ".", "<|im_end|>", "\n"
    ]  # fmt: skip
    fields = [origin and origin.field for origin in audit.origins]
    assert fields == [
        *("template", "role", "template", "template", "reasoning", "template"),
        *("content", "content", "template", "template"),
    ]
    origin = Origin(0, "assistant", "content", ("content",))
    assert audit.origins[6] == origin
    assert str(origin) == "messages[0].content"
    assert str(audit.origins[0]) == "the template"
    assert segments[6].start == 0


def test_unseen_characters() -> None:
    enc = bpe_engine.get_encoding("qwen3")
    template = (
        "{{ tools|tojson }}{% for m in messages %}{{ m.content.split('</think>')[-1]|trim }}"
        "{% for call in m.tool_calls or [] %}{{ call.function|tojson }}{% endfor %}{% endfor %}"
    )
    chat: list[dict[str, Any]] = [
        {"role": "user", "content": " hello\n"},
        {"role": "assistant", "content": "<think>a</think>a", "reasoning": "b"},
        {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f"}}]},
    ]
    unseen = enc.audit_segments(render_template(template, chat, tools=TOOLS)).unseen(chat)
    assert [(u.message, u.field, u.start, u.end, u.text) for u in unseen] == [
        (0, "content", 0, 1, " "),
        (0, "content", 6, 7, "\n"),
        (1, "content", 0, 16, "<think>a</think>"),
        (1, "reasoning", 0, 1, "b"),
    ]


def test_places_of_characters_survive_operations() -> None:
    """Each part of a rendered text has the positions of its characters in the message."""
    operations = [
        "x.split(',')|join('-')", "x[2:9][1:4]", "x|trim|replace('b', '')", "x.partition(',')[2]",
        "x|upper", "x.splitlines()[1]", "x|list|join('.')", "'%s!' % x[3:]", "x.removeprefix(' a')",
    ]  # fmt: skip
    text = " ab,cab,\nde\u00e9f,b "
    for operation in operations:
        template = f"{{% set x = messages[0].content %}}{{{{ {operation} }}}}"
        seen = 0
        for segment in render_template(template, [{"role": "user", "content": text}]):
            if segment.origin and segment.origin.field == "content":
                assert segment.start is not None
                there = text[segment.start : segment.start + len(segment.text)]
                assert there.lower() == segment.text.lower(), operation
                seen += 1
        assert seen
    for operation in ["x[::-1]", "x|tojson"]:
        template = f"{{% set x = messages[0].content %}}{{{{ {operation} }}}}"
        (segment,) = render_template(template, [{"role": "user", "content": text}])
        assert segment.origin is not None and segment.origin.field == "content"
        assert segment.start is None


def test_values_in_calls_keep_their_origin() -> None:
    """Numbers, Booleans and None in calls render and compare as in transformers."""
    template = (
        "{% for k, v in messages[0].tool_calls[0].function.arguments|items %}{{ k }}="
        "{{ v }}/{{ v|tojson }}/{{ v|string }}/{{ '%s' % v }}/{{ v ~ '' }}/{{ [v]|tojson }}/"
        "{{ [v is "
        + "none, v is true, v is false, v is boolean, v is integer, v is number, v is float,"
        " v is sameas true, v is string, v is mapping, v is iterable, v == none, v == true, v or 5,"
        " not v, v in [none], v|default(3, true), [v]] }};{% endfor %}"
    )
    arguments = {"a": 1, "b": 1.5, "c": True, "d": False, "e": None, "f": 0, "g": [None, True]}
    call = {"function": {"name": "f", "arguments": arguments}}
    chat = [{"role": "assistant", "content": "", "tool_calls": [call]}]
    segments = render_template(template, chat)
    text = "".join(segment.text for segment in segments)
    expected = transformers_text(template, chat)
    assert expected is None or text == expected
    enc = bpe_engine.get_encoding("gpt2")
    short = (
        "{% for v in messages[0].tool_calls[0].function.arguments.values() %}{{ v }} {% endfor %}"
    )
    audit = enc.audit_segments(render_template(short, chat), join=False)
    assert masked(audit, enc) == "11.5TrueFalseNone0[None, True]"


#: Expressions that read the city of a call, or the first of its two tags.
READS = [
    "{{ args.city }}",
    "{{ args['city'] }}",
    "{% set key = 'city' %}{{ args[key] }}",
    "{{ args.get('city') }}",
    "{{ args.items()|list|first|last }}",
    "{{ args|dictsort|first|last }}",
    "{{ args|attr('city') or args.values()|first }}",
    "{% for k, v in args|items %}{{ v if k == 'city' }}{% endfor %}",
    "{% for k in args %}{{ args[k] if k == 'city' }}{% endfor %}",
    "{{ '%(city)s' % args }}",
    "{{ '{city}'.format(**args) }}",
    "{{ dict(args).city }}",
    "{{ dict(**args).city }}",
    "{{ namespace(args).city }}",
    "{{ [m.tool_calls[0].function]|map(attribute='arguments.city')|join }}",
    "{{ messages[1:]|map(attribute='tool_calls')|first|map(attribute='function.arguments.city')|first }}",
    "{% for c in m.tool_calls[:1] %}{{ c.function.arguments.city }}{% endfor %}",
    "{% for c in m.tool_calls + [] %}{{ c.function.arguments.city }}{% endfor %}",
    "{% for c in m.tool_calls * 1 %}{{ c.function.arguments.city }}{% endfor %}",
    "{% macro f(x) %}{{ x.city }}{% endmacro %}{{ f(args) }}",
    "{% set ns = namespace(x=args) %}{{ ns.x.city }}",
    "{% set b, c = args.tags %}{{ b }}",
    "{% for b, c in [args.tags] %}{{ b }}{% endfor %}",
    "{% for b, c in args.pairs %}{{ b }}{% endfor %}",
    "{{ args.tags[0] }}{{ args.tags[-2] }}",
    "{{ args.tags|first }}",
    "{{ args.tags|join('') }}",
    "{{ ''.join(args.tags) }}",
    "{{ (args.tags + [])[0] }}",
    "{{ args.tags|list|first }}",
    "{{ args.tags|reverse|list|last }}",
    "{{ cycler(*args.tags).next() }}",
]


@pytest.mark.parametrize("read", READS)
def test_however_a_value_is_read_it_has_its_origin(read: str) -> None:
    arguments = {"city": "Paris", "tags": ["Paris", "x"], "pairs": [["Paris", "y"]]}
    call = {"type": "function", "function": {"name": "f", "arguments": arguments}}
    # An object shared by two messages has a separate origin in each message.
    messages = [
        {"role": "assistant", "content": "", "tool_calls": calls} for calls in [[call], [call]]
    ]
    source = "{%% set m = messages[1] %%}{%% set args = m.tool_calls[0].function.arguments %%}%s"
    found = [
        segment.origin
        for segment in render_template(source % read, messages)
        if segment.text.startswith("Paris")
    ]
    assert found
    for origin in found:
        assert origin is not None
        assert (origin.message, origin.field) == (1, "tool_calls"), origin
        assert origin.path[:4] == ("tool_calls", 0, "function", "arguments")
        assert origin.path[4:] in [("city",), ("tags", 0), ("pairs", 0, 0)]
