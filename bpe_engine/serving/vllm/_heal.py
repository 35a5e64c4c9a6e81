"""Parts of the logits processors for both model runners of vLLM."""

from __future__ import annotations

from typing import Any

from vllm.logger import init_logger

from ...healing import Followed, Healed, refused
from ...hf.tokenizers import Tokenizer
from . import HEAL

__all__ = ["Healer", "check_params"]

_logger = init_logger("vllm.plugins.bpe_engine")


def check_params(params: Any) -> None:
    """Raises ValueError if the argument ``heal`` of a request is not as `heal_arguments` makes it."""
    _rests_of(params)


class Healer:
    """Heals prompts with the tokenizer of a model.

    Raises:
        ValueError: The model has no tokenizer, or one that is not read exactly.
    """

    def __init__(self, config: Any):
        from vllm.tokenizers import cached_tokenizer_from_config

        self._tokenizer = _ours(cached_tokenizer_from_config(config.model_config))

    def followed(self, params: Any) -> Followed | None:
        """Returns the prompt of a request, or None for a request that heals nothing."""
        healed = Healed.of_rests(self._tokenizer, _rests_of(params))
        return None if healed.done else Followed(healed)

    @staticmethod
    def mask(followed: Followed, ids: list[int], logits: Any) -> None:
        """Makes the logits of tokens that may not come after `ids` minus infinity. Where another
        processor has let a wrong token through, the prompt is left as it is."""
        try:
            healed = followed.after(ids)
        except ValueError as error:
            _logger.warning_once("bpe_engine stops healing a prompt: %s", error)
            return
        if not healed.done:
            logits[refused(healed, logits.shape[-1])] = -float("inf")


def _rests_of(params: Any) -> list[bytes]:
    """Returns the bytes that the next tokens of a request must begin with."""
    rests = (params.extra_args or {}).get(HEAL, ())
    try:
        if isinstance(rests, str):
            raise TypeError(rests)
        return [bytes.fromhex(rest) for rest in rests]
    except (TypeError, ValueError):
        raise ValueError(
            f"the argument {HEAL!r} must be a list of bytes in hexadecimal, as "
            f"bpe_engine.serving.vllm.heal_arguments makes it, not {rests!r:.100}"
        ) from None


def _ours(tokenizer: Any) -> Tokenizer:
    """Returns our tokenizer in one of vLLM, or one with the same file."""
    inner: Any = getattr(tokenizer, "_tokenizer", None)
    if isinstance(inner, Tokenizer):
        return inner
    if not hasattr(inner, "to_str"):
        raise ValueError(
            f"healing needs a tokenizer.json, which {type(tokenizer).__name__} has not"
        )
    return Tokenizer.from_str(inner.to_str())
