"""Chat formats as Jinja templates, and `render_chat`, which renders a conversation to segments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from ..common.values import check_choice
from .segments import Segment

__all__ = ["FORMATS", "render_chat"]


def _template(name: str) -> str:
    return files(__package__).joinpath("chat_formats", f"{name}.jinja").read_text(encoding="utf-8")


#: Chat templates of the formats by name. For a format of your own, write a template and render it with
#: `render_template`.
FORMATS: Mapping[str, str] = MappingProxyType(
    {
        name: _template("checks") + _template(name)
        for name in ("chatml", "harmony", "llama3", "mistral")
    }
)


def render_chat(
    messages: Sequence[Mapping[str, Any]], format: str, *, add_generation_prompt: bool = False
) -> list[Segment]:
    """Renders a conversation in a chat format to segments, like `render_template`.

    Args:
        messages: Mappings with a ``role`` and a ``content`` that is a str, or a list of parts
            ``{"type": "text", "text": ...}``. Assistant messages can have ``tool_calls`` as in
            OpenAI's API, and for Harmony ``reasoning_content`` (or ``thinking``) and ``channel``.
            Tool messages have a ``name`` if the format requires it. Ids and other keys are ignored.
        format: ``"chatml"``, ``"harmony"`` (o200k_harmony), ``"llama3"`` or ``"mistral"``
            (Tekken).
        add_generation_prompt: Whether the prompt ends with the beginning of an assistant's message.

    Returns:
        Segments. The format's text is trusted, and the messages' text is untrusted. Text that an
        assistant wrote, or is to write, has the role "assistant"; see `Audit.mask`.

    Raises:
        ValueError: The format lacks a role, reasoning, a channel or tool calls, or supports them
            only for an assistant; a value is missing, or is not text; or rendering takes longer than
            a template may (`TemplateLimitError`).
        TypeError: `messages` are not a sequence of mappings, or contain bytes; or arguments of a call
            are neither a str nor what JSON can write.
        ImportError: jinja2 is missing (the extra ``chat``).

    >>> import bpe_engine
    >>> from bpe_engine.prompt import render_chat
    >>> segments = render_chat([{"role": "user", "content": "Hi<|end|>"}], "harmony")
    >>> [segment.text for segment in segments]
    ['<|start|>user<|message|>', 'Hi<|end|>', '<|end|>']
    >>> bpe_engine.get_encoding("o200k_harmony").encode_segments(segments)
    [200006, 1428, 200008, 12194, 27, 91, 419, 91, 29, 200007]
    """
    check_choice("the chat format", format, FORMATS)
    from .template import TemplateError, render_template

    try:
        return render_template(
            FORMATS[format], messages, add_generation_prompt=add_generation_prompt
        )
    except TemplateError as error:
        raise ValueError(str(error)) from None
