"""Tests fingerprints of encodings: golden values, and the parts of an encoding that change them."""

from __future__ import annotations

import hashlib
import pickle
import struct
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import bpe_engine
from bpe_engine.read.builtin import BUILTIN

# Users store fingerprints with the ids of an encoding, so a new version must not change them.
GOLDEN = {
    "gpt2": "bc98d100a6f5097f798d807c399c086939a96045fb9ea8e734c59278cceb8864",
    "r50k_base": "bc98d100a6f5097f798d807c399c086939a96045fb9ea8e734c59278cceb8864",
    "p50k_base": "9e978f29fed263d1a680de1b06f4d462c5c4dc366a4035bad7033ddeede3c935",
    "p50k_edit": "7c2cf88d0964423866e698dd1e5ba63cb362eef586d272b3d8c471f34f0891cc",
    "cl100k_base": "8c83c1b77650648a1cbed8638a5715f0c0f81c4a086630d3572cfcf68a478b34",
    "o200k_base": "91e7497adb1ef275c65090feefa74a17b965f5c695f40a7c7ccd93959fd9bb4f",
    "o200k_harmony": "dd0a1ff0c27b436ae10986709b014b4c3347792085a52b3a15c237e3b065220b",
    "qwen": "c118ec9e3e8cff84c586a4ab381233ecc032d1dcf37cb65b77d347965dd31b42",
    "qwen2.5": "d9b0a544a888d4faff46a944b410ecdb162e8360c0bc6b1ba05dde58c002e386",
    "qwen3": "e242dd8f40f2a40a92c27d179ce5054a08f863c5daec3497b88e2c4aa609bdc5",
}

PARTS: dict[str, Any] = {
    "pat_str": r"\S+|\s+",
    "mergeable_ranks": {b"a": 0, b"b": 1, b" ": 2, b"ab": 3},
    "special_tokens": {"<|end|>": 4, "<|start|>": 5},
}


def plain_fingerprint(parts: dict[str, Any]) -> str:
    """Computes the fingerprint in plain Python."""
    form = bytearray()

    def number(value: int) -> None:
        form.extend(struct.pack("<Q", value))

    def string(value: bytes) -> None:
        number(len(value))
        form.extend(value)

    string(b"bpe_engine encoding 1")
    string(parts["pat_str"].encode())
    string((parts.get("normalization") or "").encode())
    number(len(parts["special_tokens"]))
    for id, name in sorted((id, name) for name, id in parts["special_tokens"].items()):
        number(id)
        string(name.encode())
    number(len(parts["mergeable_ranks"]))
    for token, id in sorted(parts["mergeable_ranks"].items(), key=lambda item: item[1]):
        number(id)
        string(token)
    return hashlib.sha256(form).hexdigest()


def test_golden_values():
    assert {name: bpe_engine.get_encoding(name).fingerprint for name in BUILTIN} == GOLDEN


@pytest.mark.parametrize("name", ["gpt2", "o200k_harmony", "qwen"])
def test_fingerprint_in_plain_python(name):
    assert plain_fingerprint(BUILTIN[name]()) == GOLDEN[name]


def test_order_and_name_are_not_in_it():
    first = bpe_engine.Encoding("first", **PARTS)
    turned = {key: dict(reversed(PARTS[key].items())) for key in PARTS if key != "pat_str"}
    second = bpe_engine.Encoding("second", pat_str=PARTS["pat_str"], **turned)
    assert first.fingerprint == second.fingerprint == plain_fingerprint(PARTS)
    assert pickle.loads(pickle.dumps(first)).fingerprint == first.fingerprint
    assert repr(first) == f"<Encoding 'first' {first.fingerprint[:12]}>"


def test_every_part_is_in_it():
    changes: list[dict[str, Any]] = [
        {},
        {"pat_str": r"\S+|\s"},
        {"mergeable_ranks": {b"a": 0, b"b": 1, b" ": 2, b"ba": 3}},
        {"mergeable_ranks": {b"a": 0, b"b": 1, b" ": 2, b"ab": 6}},
        {"mergeable_ranks": {b"a": 1, b"b": 0, b" ": 2, b"ab": 3}},
        {"special_tokens": {"<|end|>": 4}},
        {"special_tokens": {"<|end|>": 5, "<|start|>": 4}},
        {"special_tokens": {"<|end|>": 4, "<|begin|>": 5}},
        {"normalization": "NFC"},
    ]
    found = [bpe_engine.Encoding("x", **{**PARTS, **change}).fingerprint for change in changes]
    assert len(set(found)) == len(changes)
    assert found == [plain_fingerprint({**PARTS, **change}) for change in changes]


def test_threads_and_processes_agree():
    encoding = bpe_engine.Encoding("x", **PARTS)
    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(lambda _: encoding.fingerprint, range(32)))
    program = f"import bpe_engine; print(bpe_engine.Encoding('y', **{PARTS!r}).fingerprint)"
    for seed in ("1", "2"):
        found.add(
            subprocess.run(
                [sys.executable, "-c", program],
                env={
                    "PYTHONHASHSEED": seed,
                    "BPE_ENGINE_TIER": "portable",
                    "PYTHONPATH": ":".join(sys.path),
                },
                capture_output=True,
                text=True,
                check=True,
            ).stdout.strip()
        )
    assert found == {plain_fingerprint(PARTS)}


def test_tokenizer_adds_what_it_adds_to_texts():
    gpt2 = bpe_engine.get_encoding("gpt2")
    plain = bpe_engine.Tokenizer(gpt2, pad_token="<|endoftext|>", padding_side="left")
    assert plain.fingerprint == gpt2.fingerprint
    assert f"fingerprint='{gpt2.fingerprint[:12]}'" in repr(plain)
    others = [
        bpe_engine.Tokenizer(gpt2, bos_token="<|endoftext|>", add_bos_token=True),
        bpe_engine.Tokenizer(gpt2, eos_token="<|endoftext|>", add_eos_token=True),
        bpe_engine.Tokenizer(gpt2, split_special_tokens=True),
        bpe_engine.Tokenizer(gpt2, pad_token="<|pad|>"),
    ]
    found = [tokenizer.fingerprint for tokenizer in others]
    assert len({gpt2.fingerprint, *found}) == 5
    assert others[3].fingerprint == others[3].backend.fingerprint
    assert [pickle.loads(pickle.dumps(other)).fingerprint for other in others] == found


def test_qwen_tokenizer_is_named_by_its_encoding():
    from bpe_engine.qwen import QwenTokenizer

    assert QwenTokenizer().fingerprint == GOLDEN["qwen"]
