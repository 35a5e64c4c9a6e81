"""Compares the ids of hard texts with tiktoken's, and with the digests recorded in goldens.json.

The digests are for places without tiktoken (`release/smoke.py`): the SHA-256 of the list of
[ids with every special token allowed, ids with none] for each text.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from oracles import ENCODINGS
from pairs import pair

GOLDENS = json.loads(Path(__file__).with_name("goldens.json").read_text(encoding="ascii"))
# A million spaces is left out: tiktoken does not survive it.
TEXTS = [*GOLDENS["texts"], *(unit * times + tail for unit, times, tail in GOLDENS["long"])]


@pytest.mark.parametrize("name", ENCODINGS)
def test_texts(name: str) -> None:
    both = pair(name)
    encoding = both.ours
    recorded = []
    for text in TEXTS:
        special, ordinary = both.expected(text, "all"), both.expected(text)
        assert encoding.encode(text, allowed_special="all") == special, text
        assert encoding.encode(text, disallowed_special=()) == ordinary, text
        assert encoding.encode_ordinary(text) == ordinary, text
        assert encoding.encode_to_numpy(text, allowed_special="all").tolist() == special, text
        assert encoding.is_canonical(ordinary) and encoding.is_canonical(special), text
        assert encoding.count(text, allowed_special="all") == len(special), text
        if "<|reserved_200018|>" not in text:  # shares its id with another name
            assert encoding.decode(special) == encoding.decode(ordinary), text
        recorded.append([special, ordinary])
    digest = hashlib.sha256(repr(recorded).encode()).hexdigest()
    assert GOLDENS["digests"][name] == digest, f"{name} has other ids: {digest}"


def test_every_encoding_is_recorded() -> None:
    assert sorted(GOLDENS["digests"]) == sorted(ENCODINGS)
