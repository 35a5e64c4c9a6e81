"""The plug-in for vLLM: ``vllm serve MODEL --tokenizer-mode bpe_engine``."""

from __future__ import annotations

import logging

__all__ = ["MODE", "TRIED", "register"]

#: Value of ``--tokenizer-mode``.
MODE = "bpe_engine"

#: Tested releases of vLLM.
TRIED = "0.32 and 0.33"

_CLASSES = {
    "tokenizers": (f"{__name__}.tokenizer", "ServedTokenizer"),
    "renderers": (f"{__name__}._renderer", "SegmentRenderer"),
}


def register() -> None:
    """Adds the tokenizer mode ``bpe_engine`` to vLLM's registries.

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
    # A second registration would log a warning.
    if TokenizerRegistry.tokenizers.get(MODE) != _CLASSES["tokenizers"]:
        TokenizerRegistry.register(MODE, *_CLASSES["tokenizers"])
    if RENDERER_REGISTRY.renderers.get(MODE) != _CLASSES["renderers"]:
        RENDERER_REGISTRY.register(MODE, *_CLASSES["renderers"])
