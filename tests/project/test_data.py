"""Tests that data/README.md describes the rank files."""

import base64
import hashlib
import re
from pathlib import Path

import pytest

DATA = Path(__file__).parents[2] / "data"
README = (DATA / "README.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| `(\w+\.tiktoken)` \| (\d+) \| `([0-9a-f]{64})` \|$", README, re.MULTILINE)


def test_every_rank_file_has_a_row() -> None:
    assert sorted(name for name, _, _ in ROWS) == sorted(p.name for p in DATA.glob("*.tiktoken"))


@pytest.mark.parametrize(("name", "tokens", "sha256"), ROWS, ids=[row[0] for row in ROWS])
def test_row_matches_file(name: str, tokens: str, sha256: str) -> None:
    contents = (DATA / name).read_bytes()
    assert hashlib.sha256(contents).hexdigest() == sha256
    lines = [line.split() for line in contents.splitlines()]
    assert len(lines) == int(tokens)
    assert len({base64.b64decode(token) for token, _ in lines}) == int(tokens)
    assert len({int(rank) for _, rank in lines}) == int(tokens)


def test_licenses_are_beside_the_files() -> None:
    assert "MIT License" in (DATA / "LICENSE-openai").read_text(encoding="utf-8")
    assert "Apache License" in (DATA / "LICENSE-qwen").read_text(encoding="utf-8")
    for name in ("LICENSE-openai", "LICENSE-qwen"):
        assert f"`{name}`" in README
