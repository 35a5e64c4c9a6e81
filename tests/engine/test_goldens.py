"""Compares ids with those recorded from tiktoken by goldens/record.py."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from oracles import ENCODINGS

import bpe_engine

GOLDENS = Path(__file__).parent / "goldens"


def cases(name: str, kind: str) -> list[dict]:
    contents = json.loads((GOLDENS / f"{name}.json").read_text(encoding="ascii"))
    assert contents["encoding"] == name
    found = [case for case in contents["cases"] if kind in case]
    assert found
    return found


def test_every_encoding_is_recorded() -> None:
    assert sorted(path.stem for path in GOLDENS.glob("*.json")) == sorted(ENCODINGS)


@pytest.mark.parametrize("name", ENCODINGS)
def test_texts(name: str) -> None:
    encoding = bpe_engine.get_encoding(name)
    for case in cases(name, "text"):
        text, special, ordinary = case["text"], case["special"], case["ordinary"]
        assert encoding.encode(text, allowed_special="all") == special, text
        assert encoding.encode(text, disallowed_special=()) == ordinary, text
        assert encoding.encode_ordinary(text) == ordinary, text
        assert encoding.encode_to_numpy(text, allowed_special="all").tolist() == special, text
        assert encoding.is_canonical(ordinary) and encoding.is_canonical(special), text
        assert encoding.count(text, allowed_special="all") == len(special), text
        if "<|reserved_200018|>" not in text:  # shares its id with another name
            assert encoding.decode(special) == encoding.decode(ordinary), text


@pytest.mark.parametrize("name", ENCODINGS)
def test_long_texts(name: str) -> None:
    encoding = bpe_engine.get_encoding(name)
    for case in cases(name, "unit"):
        ids = encoding.encode_to_numpy(case["unit"] * case["times"] + case["tail"])
        assert len(ids) == case["count"], case
        assert hashlib.sha256(ids.astype("<u4").tobytes()).hexdigest() == case["sha256"], case
