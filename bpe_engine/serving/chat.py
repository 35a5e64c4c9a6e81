"""Renders the conversations of a server's clients to segments, and encodes them."""

from __future__ import annotations

import copy
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..prompt.apply_template import render
from ..prompt.segments import Segment, trusted
from .conversation_cache import ConversationCache

if TYPE_CHECKING:
    from ..hf.tokenizers import Tokenizer

__all__ = ["MAX_BYTES", "ROLES", "PromptEncoder", "PromptIds", "render_request"]

#: Memory limit of a server's conversations, in bytes.
MAX_BYTES = 256 << 20

#: Roles of the chat APIs. A template may build control tokens from these roles; any other role is
#: the client's invention, and is encoded as text.
ROLES = frozenset("assistant developer function ipython model system tool user".split())
_TRUSTED_ROLES = {role: trusted(role) for role in ROLES}


class PromptIds(list[int]):
    """The ids of a prompt, with its text."""

    def __init__(self, ids: Sequence[int], text: str):
        super().__init__(ids)
        #: The text that the template rendered.
        self.text = text


def render_request(
    template: str,
    messages: Sequence[Mapping[str, Any]],
    tokens: Mapping[str, str],
    *,
    tools: Sequence[Any] | None = None,
    documents: Sequence[Mapping[str, Any]] | None = None,
    add_generation_prompt: bool = False,
    continue_final_message: bool | str = False,
    variables: Mapping[str, Any],
) -> list[Segment]:
    """Renders a client's request to segments. The whole request is untrusted, except roles in
    `ROLES`.

    Args:
        template: The model's chat template.
        messages: The conversation.
        tokens: The tokenizer's special tokens by variable, such as ``bos_token``.
        tools, documents: The tools and documents of the request.
        add_generation_prompt, continue_final_message: As in transformers.
        variables: Other variables of the template that the request gives.

    Raises:
        ValueError: The conversation is empty, or its last message cannot be continued.
        jinja2.TemplateError: The template refuses the conversation.

    >>> template = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}"
    >>> message = {"role": "user", "content": "<|user|>"}
    >>> segments = render_request(template, [message], {}, variables={})
    >>> [(segment.text, segment.allowed_special) for segment in segments]
    [('<|user|>', True), ('<|user|>', False)]
    """
    prompts, _ = render(
        template,
        [_with_known_role(message) for message in messages],
        tools=tools,
        documents=documents,
        add_generation_prompt=add_generation_prompt,
        continue_final_message=continue_final_message,
        variables={**{name: trusted(token) for name, token in tokens.items()}, **variables},
    )
    return prompts[0]


def _with_known_role(message: Any) -> Any:
    if not isinstance(message, Mapping) or message.get("role") not in ROLES:
        return message
    return {**message, "role": _TRUSTED_ROLES[message["role"]]}


class PromptEncoder:
    """Encodes prompts with the conversation cache of one server. Copying returns the same object.

    Servers copy their tokenizers, once for each thread: all copies share the conversations.
    """

    def __init__(self, tokenizer: Tokenizer):
        self._tokenizer = tokenizer
        self._cache = ConversationCache(tokenizer, max_bytes=MAX_BYTES)
        self._state = _state(tokenizer)
        self._lock = threading.Lock()

    def encode(self, segments: list[Segment], tokenizer: Tokenizer) -> PromptIds:
        """Encodes a prompt.

        Args:
            segments: The prompt.
            tokenizer: The tokenizer of the copy, which encodes the prompt if a tokenizer was
                changed.
        """
        text = "".join(segment.text for segment in segments)
        state = _state(self._tokenizer)
        if tokenizer is not self._tokenizer and _state(tokenizer) != (0, state[1]):
            return PromptIds(tokenizer.encode_segments(segments), text)
        with self._lock:
            if state != self._state:
                # A cache keeps the tokens that the tokenizer had when the cache was created.
                self._cache = ConversationCache(self._tokenizer, max_bytes=MAX_BYTES)
                self._state = state
            cache = self._cache
        return PromptIds(cache.encode(segments), text)

    def __copy__(self) -> PromptEncoder:
        return self

    def __deepcopy__(self, memo: object) -> PromptEncoder:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        # Each process has separate conversations.
        return PromptEncoder, (copy.copy(self._tokenizer),)


def _state(tokenizer: Tokenizer) -> tuple[int, int]:
    """Returns the number of changes since a tokenizer was made or copied, and of tokens."""
    return getattr(tokenizer, "_changes", 0), tokenizer.get_vocab_size()
