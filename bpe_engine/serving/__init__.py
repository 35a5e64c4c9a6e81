"""A conversation cache for servers, and server plug-ins.

Servers find `vllm` and `sglang` through entry points; a plug-in changes nothing until the operator
asks for it. Each plug-in needs its server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .conversation_cache import CacheStats, ConversationCache

__all__ = ["CacheStats", "ConversationCache"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from . import conversation_cache

        return getattr(conversation_cache, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
