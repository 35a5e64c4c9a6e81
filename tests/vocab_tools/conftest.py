"""Fixtures shared by the tests of vocab_tools."""

from __future__ import annotations

from pathlib import Path

import pytest
from vocab_bases import BYTES

from vocab_tools import dump_ranks


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """Writes a small base of single bytes."""
    path = tmp_path / "base.tiktoken"
    path.write_bytes(dump_ranks(BYTES))
    return path
