"""The plug-in for SGLang: ``SGLANG_PLUGINS=bpe_engine python -m sglang.launch_server ...``."""

from __future__ import annotations

import logging
import os
from typing import Any

__all__ = ["TRIED", "register", "use_ours"]

#: Tested releases of SGLang.
TRIED = "0.5.22 and 0.5.23"

_NAME = "bpe_engine"
_TARGET = "sglang.srt.utils.hf_transformers.tokenizer.get_tokenizer"
_logger = logging.getLogger(__name__)


def register() -> None:
    """Adds a hook after `get_tokenizer`, if the variable ``SGLANG_PLUGINS`` names ``bpe_engine``.

    SGLang calls this in each of its processes, through the entry point ``sglang.srt.plugins``;
    without the variable, SGLang calls all installed plug-ins, and this function changes nothing.
    """
    names = os.environ.get("SGLANG_PLUGINS", "").split(",")
    if _NAME not in (name.strip() for name in names):
        return
    try:
        from sglang.srt.plugins.hook_registry import HookRegistry, HookType
    except ImportError as error:
        _logger.warning(
            "bpe_engine serves nothing: it was tried with SGLang %s, and this one has no registry "
            "of hooks where it has it (%s)",
            TRIED,
            error,
        )
        return
    hooks = HookRegistry._hooks.get(_TARGET, ()) if hasattr(HookRegistry, "_hooks") else ()
    if not any(use_ours in hook for hook in hooks):
        HookRegistry.register(_TARGET, use_ours, HookType.AFTER)


def use_ours(tokenizer: Any, name: Any = "", *args: Any, **kwargs: Any) -> Any:
    """Puts our tokenizer into a tokenizer that SGLang loaded and repaired.

    If the result would be inexact, the tokenizer is unchanged, and one log line gives the reason.
    """
    from .. import __version__
    from .._core import UnsupportedTokenizer
    from ..hf.transformers import as_transformers

    try:
        tokenizer = as_transformers(tokenizer)
    except (UnsupportedTokenizer, TypeError, ValueError) as error:
        _logger.warning(
            "bpe_engine does not serve %s, SGLang's own tokenizer does: %s", name, error
        )
    else:
        inner = tokenizer._tokenizer
        _logger.info("bpe_engine %s serves %s: %r", __version__, name, inner)
    return tokenizer
