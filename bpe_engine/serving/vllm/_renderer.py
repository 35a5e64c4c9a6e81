"""The renderer of vLLM's tokenizer mode ``bpe_engine``."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from vllm.logger import init_logger
from vllm.renderers.hf import HfRenderer
from vllm.renderers.registry import RENDERER_REGISTRY

from ..chat import PromptIds
from ..served import is_served
from .modes import mode_of_model

__all__ = ["SegmentRenderer"]

_logger = init_logger("vllm.plugins.bpe_engine")

#: Types of message parts that are text.
_TEXT_PARTS = frozenset(("text", "input_text", "output_text", "refusal", "thinking"))

#: Arguments of transformers' `apply_chat_template` other than template variables; vLLM's own
#: renderer, which asks for text, ignores them.
_NOT_OF_THE_TEMPLATE = frozenset(
    """max_length padding return_assistant_tokens_mask return_dict return_tensors
    tokenizer_kwargs truncation""".split()
)


class SegmentRenderer(HfRenderer):  # type: ignore[misc]
    """Renders conversations to segments and passes on their ids.

    Control strings in messages are text, and shared conversation prefixes are encoded once. vLLM's
    own renderer handles other tokenizers, and messages with images, audio or video.
    """

    def __new__(cls, config: Any, *args: Any, **kwargs: Any) -> Any:
        if args and not is_served(args[0]):
            model = config.model_config
            mode = mode_of_model(
                model.tokenizer,
                trust_remote_code=model.trust_remote_code,
                revision=model.tokenizer_revision,
            )
            own = RENDERER_REGISTRY.load_renderer_cls(mode)
            if not issubclass(cls, own):
                return own(config, *args, **kwargs)
        return super().__new__(cls)

    # ---- Messages to ids ----

    def render_messages(self, messages: Any, params: Any) -> tuple[Any, Any]:
        messages = _listed(messages)
        if not self._takes(messages):
            return super().render_messages(messages, params)  # type: ignore[no-any-return]
        conversation, prompt = super().render_messages(messages, _asking_for_ids(params))
        return conversation, _as_asked(prompt, params)

    async def render_messages_async(self, messages: Any, params: Any) -> tuple[Any, Any]:
        messages = _listed(messages)
        if not self._takes(messages):
            return await super().render_messages_async(messages, params)  # type: ignore[no-any-return]
        conversation, prompt = await super().render_messages_async(
            messages, _asking_for_ids(params)
        )
        return conversation, _as_asked(prompt, params)

    def _takes(self, messages: list[Any]) -> bool:
        if not is_served(self.tokenizer):
            return False
        if all(_is_text(message.get("content")) for message in messages):
            return True
        _logger.warning_once(
            "bpe_engine leaves conversations with images, audio, video or embeddings to vLLM's own "
            "renderer, where control strings in messages become tokens"
        )
        return False

    # ---- The tokens around a prompt, for requests that ask for them ----

    def _tokenize_singleton_prompt(self, prompt: Any, params: Any) -> Any:
        return super()._tokenize_singleton_prompt(self._completed(prompt, params), params)

    async def _tokenize_singleton_prompt_async(self, prompt: Any, params: Any) -> Any:
        prompt = self._completed(prompt, params)
        return await super()._tokenize_singleton_prompt_async(prompt, params)

    def _completed(self, prompt: Any, params: Any) -> Any:
        ids = prompt.get("prompt_token_ids") if isinstance(prompt, Mapping) else None
        if not isinstance(ids, PromptIds):
            return prompt
        if getattr(params, "do_lower_case", False):
            # For models with lowercased prompts, vLLM encodes the text itself.
            return {key: value for key, value in prompt.items() if key != "prompt_token_ids"}
        whole = list(ids)
        if params.add_special_tokens:
            backend: Any = self.get_tokenizer()._tokenizer
            plain = backend.encode("a", add_special_tokens=False).ids
            around = backend.encode("a").ids
            start = next(at for at in range(len(around)) if around[at : at + len(plain)] == plain)
            whole = [*around[:start], *ids, *around[start + len(plain) :]]
        return {**prompt, "prompt_token_ids": whole}


def _listed(messages: Any) -> list[Any]:
    """Copies messages, turning one-pass iterators of parts, such as pydantic's, into lists."""
    return [
        {**message, "content": list(message["content"])}
        if isinstance(message, Mapping)
        and isinstance(message.get("content"), Iterable)
        and not isinstance(message["content"], (str, list))
        else message
        for message in messages
    ]


def _is_text(content: Any) -> bool:
    if content is None or isinstance(content, str):
        return True
    return isinstance(content, list) and all(
        isinstance(part, str)
        or (isinstance(part, Mapping) and part.get("type", "text") in _TEXT_PARTS)
        for part in content
    )


def _asking_for_ids(params: Any) -> Any:
    given = params.chat_template_kwargs
    kwargs = {key: value for key, value in given.items() if key not in _NOT_OF_THE_TEMPLATE}
    return dataclasses.replace(params, chat_template_kwargs={**kwargs, "tokenize": True})


def _as_asked(prompt: Any, params: Any) -> Any:
    """Returns the prompt in the form of vLLM's own renderer: with text if the request asks for
    text, and optionally with special tokens around it."""
    ids = prompt.get("prompt_token_ids")
    if not isinstance(ids, PromptIds):
        return prompt
    if params.chat_template_kwargs.get("tokenize", True):
        return {**prompt, "prompt_token_ids": list(ids)}
    return {**prompt, "prompt": ids.text}
