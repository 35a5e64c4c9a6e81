"""`CorpusError`: raised if a corpus cannot be written or read."""

from __future__ import annotations

__all__ = ["CorpusError"]


class CorpusError(ValueError):
    """Raised for an invalid plan, input or output. The message says what to do."""
