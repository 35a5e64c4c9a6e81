"""Provides tiktoken's metadata to `importlib.metadata` while this package replaces tiktoken."""

from __future__ import annotations

import importlib.metadata
import os
from typing import Any

__all__ = ["TIKTOKEN_VERSION", "find"]

# The version of tiktoken that this package is compatible with.
TIKTOKEN_VERSION = "0.14.0"


class _Distribution(importlib.metadata.Distribution):
    def read_text(self, filename: str) -> str | None:
        if filename == "METADATA":
            return f"Metadata-Version: 2.1\nName: tiktoken\nVersion: {TIKTOKEN_VERSION}\n"
        if filename == "top_level.txt":
            return "tiktoken\ntiktoken_ext\n"
        return None

    def locate_file(self, path: Any) -> Any:
        return os.path.join(os.path.dirname(__file__), path)


def find(name: str | None) -> list[importlib.metadata.Distribution]:
    """Returns the replacement if `name` is tiktoken, or None for all distributions."""
    if name is not None and name.lower() == "tiktoken":
        return [_Distribution()]
    # If tiktoken is installed, its distribution must be the only match.
    if name is None and isinstance(importlib.metadata.distribution("tiktoken"), _Distribution):
        return [_Distribution()]
    return []
