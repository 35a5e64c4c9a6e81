"""The tokenizer of vLLM's tokenizer mode ``bpe_engine``."""

from __future__ import annotations

from typing import Any

from vllm.logger import init_logger
from vllm.tokenizers import get_tokenizer

from ... import __version__
from ..._core import UnsupportedTokenizer
from ..served import load_with_ours, served
from .modes import mode_of_model

__all__ = ["ServedTokenizer"]

# vLLM only prints records of loggers below ``vllm``.
_logger = init_logger("vllm.plugins.bpe_engine")


class ServedTokenizer:
    """Loads tokenizers for vLLM like the mode "hf", with our tokenizer inside.

    If the result would be inexact, vLLM's tokenizer is returned, and one log line gives the reason.
    """

    @classmethod
    def from_pretrained(cls, path_or_repo_id: Any, *args: Any, **kwargs: Any) -> Any:
        """Loads a tokenizer. Takes the arguments of ``vllm.tokenizers.get_tokenizer``."""
        mode = mode_of_model(path_or_repo_id, **kwargs)

        def load() -> Any:
            return get_tokenizer(path_or_repo_id, *args, tokenizer_mode=mode, **kwargs)

        tokenizer = load_with_ours(load) if mode == "hf" else load()
        if mode != "hf":
            reason = f"vLLM has the mode {mode!r} for this model"
        elif not getattr(tokenizer, "is_fast", False):
            reason = f"{type(tokenizer).__name__} has no tokenizer.json"
        else:
            try:
                return cls._with_ours(path_or_repo_id, tokenizer)
            except (UnsupportedTokenizer, TypeError) as error:
                reason = str(error)
        _logger.warning(
            "bpe_engine does not serve %s, vLLM's own tokenizer does: %s", path_or_repo_id, reason
        )
        return tokenizer

    @staticmethod
    def _with_ours(name: Any, cached: Any) -> Any:
        # vLLM caches the vocabulary in a wrapper class, named in `__reduce__` with its factory.
        make, (inner,) = cached.__reduce__()[:2]
        tokenizer = make(served(inner))
        tokenizer.name_or_path = getattr(cached, "name_or_path", str(name))
        _logger.info("bpe_engine %s serves %s: %r", __version__, name, tokenizer._tokenizer)
        return tokenizer
