"""Ids recorded once and for all; see record_goldens.py."""

from __future__ import annotations

import json

from conftest import ENCODINGS
from record_goldens import GOLDENS, TEXTS

from bpe_engine import get_encoding

RECORDED = json.loads(GOLDENS.read_text())


def test_everything_is_recorded():
    assert list(RECORDED) == ENCODINGS
    for rows in RECORDED.values():
        assert [row["text"] for row in rows] == TEXTS


def test_goldens():
    for name, rows in RECORDED.items():
        encoding = get_encoding(name)
        for row in rows:
            assert encoding.encode_ordinary(row["text"]) == row["ordinary"]
            assert encoding.encode(row["text"], allowed_special="all") == row["all"]
            assert encoding.is_canonical(row["ordinary"])
