"""The plug-in for vLLM: ``vllm serve MODEL --tokenizer-mode bpe_engine``."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...healing import Healed

__all__ = ["HEAL", "MODE", "TRIED", "heal_arguments", "register"]

#: The name that ``--tokenizer-mode`` takes.
MODE = "bpe_engine"

#: The argument of a request that heals its prompt.
HEAL = "heal"

#: The releases of vLLM that it was tried with.
TRIED = "0.32 and 0.33"

_CLASSES = {
    "tokenizers": (f"{__name__}.tokenizer", "ServedTokenizer"),
    "renderers": (f"{__name__}._renderer", "SegmentRenderer"),
}


def register() -> None:
    """Adds the tokenizer mode ``bpe_engine``. Nothing else changes, and nothing is loaded.

    vLLM calls this in each of its processes, through the entry point ``vllm.general_plugins``.
    """
    try:
        from vllm.renderers.registry import RENDERER_REGISTRY
        from vllm.tokenizers.registry import TokenizerRegistry
    except ImportError as error:
        logging.getLogger(__name__).warning(
            "--tokenizer-mode %s is not available: it was tried with vLLM %s, and this one has no "
            "registry where they have it (%s)",
            MODE,
            TRIED,
            error,
        )
        return
    # Registering twice would log a warning.
    if TokenizerRegistry.tokenizers.get(MODE) != _CLASSES["tokenizers"]:
        TokenizerRegistry.register(MODE, *_CLASSES["tokenizers"])
    if RENDERER_REGISTRY.renderers.get(MODE) != _CLASSES["renderers"]:
        RENDERER_REGISTRY.register(MODE, *_CLASSES["renderers"])


def heal_arguments(healed: Healed) -> dict[str, list[str]]:
    """Returns the arguments of a request that heals its prompt, where the server has a
    `HealingLogitsProcessor`: for ``SamplingParams(extra_args=...)``, and for ``vllm_xargs`` of an HTTP
    request. The prompt itself is ``healed.ids``.

    >>> import bpe_engine
    >>> heal_arguments(bpe_engine.get_encoding("gpt2").heal("say hello wor"))
    {'heal': ['20776f72']}
    """
    return {HEAL: [rest.hex() for rest in healed.rests]}
