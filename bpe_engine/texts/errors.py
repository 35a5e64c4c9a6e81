"""`CorpusError`: what stops a corpus from being written or read."""

from __future__ import annotations

__all__ = ["CorpusError"]


class CorpusError(ValueError):
    """A plan, an input or an output is not as it must be. The message names it and the way out."""
