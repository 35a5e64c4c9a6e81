"""Selects and renders the template for `Tokenizer.apply_chat_template`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .fields import REASONING_KEYS
from .segments import Segment, whole_text

__all__ = ["choose", "named_templates", "render", "without_none"]

# Sentinel for `continue_final_message`. The prompt is truncated here.
_TAG = "CONTINUE_FINAL_MESSAGE_TAG "

_Templates = dict[str, str]


def named_templates(chat_template: Any) -> str | _Templates | None:
    """Returns a tokenizer's single template, or its templates by name.

    Raises:
        TypeError: The argument is neither a str nor a mapping.
    """
    if chat_template is None or isinstance(chat_template, str):
        return chat_template
    if isinstance(chat_template, (list, tuple)):
        chat_template = {entry["name"]: entry["template"] for entry in chat_template}
    if not isinstance(chat_template, Mapping):
        raise TypeError(
            f"chat_template must be a str or a dict of them, not {type(chat_template).__name__}"
        )
    return dict(chat_template)


def choose(templates: str | _Templates | None, asked_for: str | None, tools: Any) -> str:
    """Returns the template for a conversation.

    Raises:
        ValueError: The tokenizer has no template, or several templates and no default.
    """
    if isinstance(templates, Mapping):
        if asked_for is not None:
            return templates.get(asked_for, asked_for)
        for name in ("tool_use", "default") if tools is not None else ("default",):
            if name in templates:
                return templates[name]
        raise ValueError(
            "This model has multiple chat templates with no default specified! Please either pass a "
            "chat template or the name of the template you wish to use to the `chat_template` "
            f"argument. Available template names are {sorted(templates)}."
        )
    chosen = templates if asked_for is None else asked_for
    if chosen is None:
        raise ValueError(
            "Cannot use chat template functions because tokenizer.chat_template is not set and no "
            "template argument was passed! Set it to a template in Jinja, such as the one in the "
            "model's chat_template.jinja."
        )
    return chosen


def render(
    template: str,
    conversation: Any,
    *,
    tools: Sequence[Any] | None,
    documents: Sequence[Mapping[str, Any]] | None,
    add_generation_prompt: bool,
    continue_final_message: bool | str,
    variables: Mapping[str, Any],
) -> tuple[list[list[Segment]], bool]:
    """Returns the segments of each conversation, and whether the input was a batch.

    Raises:
        ValueError: A conversation is empty, or its last message cannot be continued.
    """
    from .template import render_template

    if isinstance(conversation, (list, tuple)) and not conversation:
        raise ValueError(
            "Cannot apply chat template to an empty conversation. Provide at least one message."
        )
    if continue_final_message and add_generation_prompt:
        raise ValueError(
            "continue_final_message and add_generation_prompt are not compatible. Use "
            "continue_final_message when you want the model to continue the final message, and "
            "add_generation_prompt when you want to add a header that will prompt it to start a "
            "new assistant message instead."
        )
    first = conversation[0]
    is_batch = isinstance(first, (list, tuple)) or hasattr(first, "messages")
    prompts = []
    for messages in conversation if is_batch else [conversation]:
        messages = without_none(getattr(messages, "messages", messages))
        final = ""
        if continue_final_message:
            part = continue_final_message if isinstance(continue_final_message, str) else "content"
            final = _left_open(messages, part, template)
        segments = render_template(
            template,
            messages,
            tools=tools,
            documents=documents,
            add_generation_prompt=add_generation_prompt,
            **variables,
        )
        prompts.append(_cut(segments, final) if continue_final_message else segments)
    return prompts, is_batch


def without_none(messages: Sequence[Any]) -> list[Any]:
    """Copies messages, dropping fields that are None, which templates would print."""
    return [
        {key: value for key, value in message.items() if value is not None}
        if isinstance(message, (dict, Mapping))
        else message
        for message in messages
    ]


def _left_open(messages: list[Any], part: str, template: str) -> str:
    """Puts the sentinel at the end of the last message, and returns the message's text."""
    final = messages[-1].get(part) if messages else None
    if final is None:
        raise ValueError(
            f'continue_final_message is set but the final message has no "{part}" to continue!'
        )
    parts = [part]
    if part in REASONING_KEYS:
        parts = [name for name in REASONING_KEYS if messages[-1].get(name) == final]
    if not any(name in template for name in parts):
        raise ValueError(
            f'continue_final_message is set to "{part}" but this is not an accepted field in the '
            "chat_template"
        )
    if isinstance(final, str):
        for name in parts:
            messages[-1][name] = final + _TAG
        return final
    blocks = [dict(block) for block in final]
    for block in reversed(blocks):
        if "text" in block:
            text = str(block["text"])
            block["text"] = text + _TAG
            messages[-1][part] = blocks
            return text
    raise ValueError(
        "continue_final_message is set but we could not find any text to continue in the final "
        "message!"
    )


def _cut(segments: list[Segment], final: str) -> list[Segment]:
    """Returns the segments before the sentinel."""
    text = whole_text(segments)
    if final.strip() not in text or _TAG.strip() not in text:
        raise ValueError(
            "continue_final_message is set but the final message does not appear in the chat after "
            "applying the chat template! This can happen if the chat template deletes portions of "
            "the final message."
        )
    end = text.rindex(_TAG.strip())
    if not text.startswith(_TAG, end):
        # The template strips trailing whitespace from messages.
        end = len(text[:end].rstrip())
    kept = []
    for segment in segments:
        if end <= 0:
            break
        kept.append(segment._replace(text=segment.text[:end]))
        end -= len(segment.text)
    return kept
