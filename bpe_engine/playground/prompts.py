"""Encodes a prompt twice: safely, and naively as one text with every special token allowed."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..prompt import Segment, account_prompt, render_chat, special, trusted, untrusted
from .vocabularies import Vocabulary

__all__ = ["prompt"]


def prompt(
    vocabulary: Vocabulary,
    messages: Sequence[Mapping[str, Any]],
    *,
    format: str | None,
    template: str | None,
    tools: Sequence[Any] | None = None,
    generation: bool,
    variables: Mapping[str, str],
) -> dict[str, Any]:
    """Renders messages and encodes them twice.

    Args:
        vocabulary: The tokenizer.
        messages: ``role``, ``content``, and ``trusted``, true for messages of the program; an
            assistant message can have ``reasoning`` and ``tool_calls``.
        format: A format of `render_chat`; or None for `template`.
        template: The text of a chat template.
        tools: JSON schemas of functions, which only templates take.
        generation: End the prompt with the header of an answer.
        variables: Trusted variables of the template, such as ``bos_token``.

    Returns:
        ``safe``, the tokens of `encode_segments` with their origins and the assistant's mask;
        ``naive``, the tokens of ``encode(text, allowed_special="all")``, with the origin "forged"
        for special tokens made by untrusted text; ``controls``, the control strings in untrusted
        text; and ``parts``, the tokens of each part.
    """
    if tools and template is None:
        raise ValueError(
            f"the format {format or 'chatml'} has no place for tools; choose a chat template"
        )
    segments = _rendered(
        vocabulary, messages, format or "chatml", template, tools, generation, variables
    )
    tokenizer = vocabulary.tokenizer
    audit = tokenizer.audit_segments(segments)
    audit.assert_safe()
    safe = [
        "control" if is_special else _origin(segments[owner])
        for owner, is_special in zip(audit.segments, audit.special)
    ]
    text = "".join(segment.text for segment in segments)
    ids, spans = tokenizer.encode_with_offsets(text, allowed_special="all", disallowed_special=())
    owners = [index for index, segment in enumerate(segments) for _ in segment.text]
    naive = []
    for id, (start, end) in zip(ids, spans):
        # A token without characters has the origin of the text at its position.
        touched = {_origin(segments[owner]) for owner in owners[start : max(end, start + 1)]}
        if vocabulary.is_special(id):
            naive.append("forged" if "untrusted" in touched else "control")
        else:
            naive.append(next((o for o in ("untrusted", "trusted") if o in touched), "template"))
    pieces = {id: vocabulary.bytes_of(id).hex() for id in {*ids, *audit.ids}}
    return {
        "safe": {"ids": audit.ids, "origins": safe, "mask": audit.mask("assistant")},
        "naive": {"ids": ids, "origins": naive},
        "pieces": pieces,
        "parts": [
            part.to_dict() for part in account_prompt(segments, tokenizer, tools=tools).parts
        ],
        "controls": [
            {"token": c.token, "source": s.source or str(s.origin), "offset": c.offset}
            for c in audit.controls
            for s in [segments[c.segment]]
        ],
        "text": text,
    }


def _origin(segment: Segment) -> str:
    """Returns the origin of text: "untrusted", "template", or "trusted" for trusted content."""
    if segment.allowed_special is False:
        return "untrusted"
    return "trusted" if (segment.source or "").startswith("messages[") else "template"


def _more(message: Mapping[str, Any], make: Callable[[str], Any]) -> dict[str, Any]:
    """Returns the reasoning and the calls of a message, with `make` applied to every str."""
    fields = {"reasoning": "reasoning_content", "tool_calls": "tool_calls"}
    return {name: _made(message[key], make) for key, name in fields.items() if message.get(key)}


def _made(value: Any, make: Callable[[str], Any]) -> Any:
    if isinstance(value, str):
        return make(value)
    if isinstance(value, list):
        return [_made(item, make) for item in value]
    if isinstance(value, dict):
        return {key: _made(item, make) for key, item in value.items()}
    return value


def _rendered(
    vocabulary: Vocabulary,
    messages: Sequence[Mapping[str, Any]],
    format: str,
    template: str | None,
    tools: Sequence[Any] | None,
    generation: bool,
    variables: Mapping[str, str],
) -> list[Segment]:
    try:
        from ..prompt.template import ChatTemplate, TemplateError
    except ImportError as error:
        raise ValueError(str(error)) from None
    given: list[dict[str, Any]] = []
    for index, message in enumerate(messages):
        role, mark = message["role"], trusted if message["trusted"] else untrusted
        make = functools.partial(mark, role=role, source=f"messages[{index}]")
        # The role comes from the page's menu, not from untrusted text.
        content = {"role": trusted(role), "content": make(message["content"])}
        given.append({**content, **_more(message, make)})
    known = vocabulary.tokenizer.special_tokens_set
    own: dict[str, Any] = {
        name: (special if v in known else trusted)(v) for name, v in variables.items()
    }
    if template is None:
        return render_chat(given, format, add_generation_prompt=generation)
    try:
        return ChatTemplate(template, max_seconds=3.0, max_characters=1 << 20).render(
            given, tools=tools or None, add_generation_prompt=generation, **own
        )
    except (TemplateError, ArithmeticError) as error:
        line = getattr(error, "lineno", None)
        where = f", line {line}" if line else ""
        raise ValueError(f"the template{where}: {error}") from None
