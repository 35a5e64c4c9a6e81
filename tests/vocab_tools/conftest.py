"""Fixtures that several of these test files share."""

from __future__ import annotations

from pathlib import Path

import pytest
from vocab_bases import BYTES

from vocab_tools import dump_ranks


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A small base: single bytes."""
    path = tmp_path / "base.tiktoken"
    path.write_bytes(dump_ranks(BYTES))
    return path
