"""Puts our tokenizer into transformers' tokenizers, so that chat templates render to segments."""

from __future__ import annotations

import copy
import logging
import threading
from functools import cache
from typing import Any, Callable

import tokenizers

from ..hf.stream import DecodeStream
from ..hf.tokenizers import Tokenizer
from ..hf.transformers import as_transformers, patch_transformers, unpatch_transformers
from .chat import PromptEncoder, PromptIds, render_request

__all__ = ["is_served", "load_with_ours", "served"]

_lock = threading.RLock()

_ENCODER = "_bpe_engine_prompts"

#: Attributes with the vocabulary and merges in some transformers classes.
_MADE_FROM = frozenset(("_vocab", "_merges"))


def load_with_ours(load: Callable[[], Any]) -> Any:
    """Loads a tokenizer under `patch_transformers`, and restores the previous state.

    DeepSeek's files are read as written, under any version of transformers.
    """
    with _lock:
        decoders: Any = tokenizers.decoders
        was_patched = decoders.DecodeStream is DecodeStream
        patch_transformers()
        # The plug-in itself logs one line with the reason.
        logger = logging.getLogger(patch_transformers.__module__)
        logger.addFilter(_is_other_news)
        try:
            return load()
        finally:
            logger.removeFilter(_is_other_news)
            if not was_patched:
                unpatch_transformers()


def _is_other_news(record: logging.LogRecord) -> bool:
    return "keeps the tokenizer of transformers" not in str(record.msg)


def is_served(tokenizer: Any) -> bool:
    """Returns True for a result of `served`, and for copies."""
    return isinstance(getattr(tokenizer, _ENCODER, None), PromptEncoder)


def served(tokenizer: Any) -> Any:
    """Puts our tokenizer into a transformers tokenizer, for a server.

    Its ``apply_chat_template(..., tokenize=True, return_dict=False)`` returns ids with the text;
    control strings in messages are ordinary text. Everything else is as in the class. Copies and
    deep copies share the vocabulary and the conversations.

    Args:
        tokenizer: A ``TokenizersBackend``, which is changed and returned.

    Raises:
        UnsupportedTokenizer: The tokenizer requires an unsupported feature; it is unchanged.
        TypeError: The argument has another type.
    """
    tokenizer = as_transformers(tokenizer)
    if not isinstance(tokenizer._tokenizer, Tokenizer):
        raise TypeError(f"{type(tokenizer).__name__} has no tokenizer.json")
    if not is_served(tokenizer):
        tokenizer.__class__ = _served_class(tokenizer.__class__)
        setattr(tokenizer, _ENCODER, PromptEncoder(tokenizer._tokenizer))
    return tokenizer


def _restored(base: Any, state: dict[str, Any]) -> Any:
    tokenizer = base.__new__(_served_class(base))
    vars(tokenizer).update(state)
    return tokenizer


@cache
def _served_class(base: Any) -> Any:
    class Served(base):  # type: ignore[misc]
        def apply_chat_template(
            self,
            conversation: Any,
            tools: Any = None,
            documents: Any = None,
            chat_template: str | None = None,
            add_generation_prompt: bool = False,
            continue_final_message: bool | str = False,
            tokenize: bool = True,
            return_dict: bool = True,
            **variables: Any,
        ) -> Any:
            options: dict[str, Any] = {
                "tools": tools,
                "documents": documents,
                "add_generation_prompt": add_generation_prompt,
                "continue_final_message": continue_final_message,
            }
            if not tokenize or return_dict:
                how = {"chat_template": chat_template, "tokenize": tokenize}
                return super().apply_chat_template(
                    conversation, return_dict=return_dict, **how, **options, **variables
                )
            template = self.get_chat_template(chat_template, tools)
            return self._prompt_ids(conversation, template, variables=variables, **options)

        def _prompt_ids(self, conversation: Any, template: str, **options: Any) -> PromptIds:
            named = {
                name: str(token)
                for name, token in self.special_tokens_map.items()
                if isinstance(token, str)
            }
            encoder: PromptEncoder = getattr(self, _ENCODER)
            segments = render_request(template, conversation, named, **options)
            return encoder.encode(segments, self._tokenizer)

        # Keeps the name and state of a subclass that a server makes.
        def __copy__(self) -> Any:
            other: Any = object.__new__(type(self))
            vars(other).update(vars(self))
            return other

        def __deepcopy__(self, memo: dict[int, Any]) -> Any:
            other: Any = object.__new__(type(self))
            memo[id(self)] = other
            # Copies share these large, immutable objects.
            made_from = {name: vars(self)[name] for name in _MADE_FROM & vars(self).keys()}
            memo.update((id(value), value) for value in made_from.values())
            vars(other).update(copy.deepcopy(vars(self), memo))
            return other

        def __reduce__(self) -> tuple[Any, ...]:
            return _restored, (base, vars(self))

    Served.__name__ = f"Served{base.__name__}"
    Served.__qualname__ = Served.__name__
    return Served
