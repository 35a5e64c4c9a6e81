"""Tests that caches never change results, and can be turned off."""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from pairs import FAMILIES, pair
from seeds import seeded

import bpe_engine

TEXT = "".join(f"word{i} unfathomableness{i % 97} 汉字{i} don't\n" for i in range(3000))


@pytest.mark.parametrize("name", FAMILIES)
def test_ids_do_not_depend_on_caching(name: str) -> None:
    both = pair(name)
    expected = both.expected(TEXT)
    assert both.ours.is_caching
    try:
        both.ours.set_caching(False)
        assert not both.ours.is_caching
        assert both.ours.encode(TEXT) == both.ours.encode(TEXT) == expected
        assert both.ours.encode_batch([TEXT, "a"], num_threads=2)[0] == expected
    finally:
        both.ours.set_caching(True)
    assert both.ours.is_caching
    assert both.ours.encode(TEXT) == both.ours.encode(TEXT) == expected


@pytest.mark.parametrize("size", [2**16, 2**17 + 1, 2**20, 2**23, 2**26])
@pytest.mark.parametrize("name", FAMILIES)
def test_ids_do_not_depend_on_the_cache_size(name: str, size: int) -> None:
    """Small caches evict and relocate constantly; large caches distribute pieces differently."""
    both = pair(name)
    default = both.ours.cache_size
    expected = both.expected(TEXT)
    try:
        both.ours.set_cache_size(size)
        assert both.ours.cache_size == 2 ** (size.bit_length() - 1)
        for _ in range(3):
            assert both.ours.encode(TEXT) == expected
        assert both.ours.encode_batch([TEXT, "a"], num_threads=2)[0] == expected
    finally:
        both.ours.set_cache_size(default)


def test_the_cache_size_is_checked() -> None:
    enc = bpe_engine.get_encoding("gpt2")
    for size in [0, -1, 1, 2**16 - 1, 2**30 + 1, 2**64, -(2**70)]:
        with pytest.raises(
            ValueError, match=rf"^a cache of {size} bytes .* 65536 .* turn caching off"
        ):
            enc.set_cache_size(size)
    for wrong in ["8 MiB", 1.5, None]:
        with pytest.raises(
            TypeError, match=r"^size must be .* 64 \* 2\*\*20 .*, not (None|the (str|float) )"
        ):
            enc.set_cache_size(wrong)
    enc.set_cache_size(np.int64(2**20))
    assert enc.cache_size == 2**20
    enc.set_cache_size(2**23)


def test_caching_is_true_or_false() -> None:
    enc = bpe_engine.get_encoding("gpt2")
    for wrong in ["no", None, 0]:
        with pytest.raises(
            TypeError, match=r"^caching must be True or False, not (None|the (str|int) )"
        ):
            enc.set_caching(wrong)
    assert enc.is_caching
    enc.set_caching(np.bool_(False))
    assert not enc.is_caching
    enc.set_caching(True)


@pytest.mark.parametrize(
    "change",
    [
        lambda enc, turn: (enc.set_caching(turn % 2 == 1), enc.clear_cache()),
        lambda enc, turn: enc.set_cache_size([2**16, 2**24, 2**18, 2**23][turn % 4]),
    ],
    ids=["caching", "size"],
)
def test_caches_can_change_while_others_encode(
    change: Callable[[bpe_engine.Encoding, int], object],
) -> None:
    enc = bpe_engine.get_encoding("cl100k_base")
    expected = enc.encode(TEXT)
    with ThreadPoolExecutor(3) as threads:
        found = [threads.submit(enc.encode, TEXT) for _ in range(30)]
        for turn in range(20):
            change(enc, turn)
        assert all(each.result() == expected for each in found)
    assert enc.is_caching and enc.cache_size == 2**23


@pytest.mark.parametrize("name", FAMILIES)
def test_many_words_on_several_threads(name: str) -> None:
    """Caches see the same pieces in different contexts: shuffled words are encoded on two native
    threads, and then on four Python threads."""
    both = pair(name)
    latin = ["".join(letters) for letters in itertools.product("bcdfgkmpxz", repeat=3)]
    cyrillic = ["".join(letters) for letters in itertools.product("бвгджзклмн", repeat=3)]
    words = [
        *(f" q{end}" for end in latin), *(f" unfathomable{end}ness" for end in latin),
        *(f" {'zyx' * 11}{end}" for end in latin[::10]), *(f" {end}ость" for end in cyrillic),
        *(f" непостижимо{end}" for end in cyrillic), *(f",{chr(0x4e00 + i)}汉字" for i in range(1000)),
        *(f" {'-' * i}" for i in range(1, 60)),
    ]  # fmt: skip
    texts = []
    for seed in range(4):
        shuffled = seeded("orders", seed).sample(words, len(words))
        texts.append(["".join(shuffled[i : i + 50]) for i in range(0, len(shuffled), 50)])
    expected = [[both.expected(text) for text in own] for own in texts]
    both.ours.clear_cache()
    for _ in range(2):
        for own, right in zip(texts, expected, strict=True):
            assert both.ours.encode_ordinary_batch(own, num_threads=2) == right
    both.ours.clear_cache()
    start = threading.Barrier(len(texts))

    def encode(own: list[str]) -> list[list[list[int]]]:
        start.wait()
        return [[both.ours.encode_ordinary(text) for text in own] for _ in range(3)]

    with ThreadPoolExecutor(len(texts)) as threads:
        for ids, right in zip(threads.map(encode, texts), expected, strict=True):
            assert ids == [right] * 3


def run(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program],
        env={"PATH": "", **environment},
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"CACHE": "off"}, (False, 2**23)),
        ({"CACHE": "on", "CACHE_SIZE": "65536"}, (True, 2**16)),
        ({"CACHE": "", "CACHE_SIZE": "64MiB"}, (True, 2**26)),
        ({"CACHE_SIZE": "100 MiB"}, (True, 2**26)),
        ({"CACHE_SIZE": "1 GiB"}, (True, 2**30)),
        ({"CACHE_SIZE": ""}, (True, 2**23)),
        ({"CACHE": "maybe"}, 'BPE_ENGINE_CACHE must be "on" or "off", not "maybe"'),
        *(
            (
                {"CACHE_SIZE": value},
                f'BPE_ENGINE_CACHE_SIZE must be .*KiB, MiB or GiB.*not "{value}"',
            )
            for value in ("8MB", "-1", "1KiB", "2 GiB", "9" * 30, "1e9")
        ),
    ],
)
def test_environment(variables: dict[str, str], expected: object) -> None:
    program = """
import bpe_engine
for name in "gpt2", "o200k_base":
    enc = bpe_engine.get_encoding(name)
    found = enc.is_caching, enc.cache_size
    assert enc.decode(enc.encode("some words")) == "some words"
print(found)
"""
    result = run(program, **{f"BPE_ENGINE_{name}": value for name, value in variables.items()})
    if isinstance(expected, str):
        assert re.search(f"ValueError: .*{expected}", result.stderr), result.stderr
    else:
        assert result.stdout == f"{expected}\n", result.stderr


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")
def test_memory_is_given_back() -> None:
    program = """
import bpe_engine, resource
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 1e6
text = "".join(f"word{i} unfathomableness{i % 97} " for i in range(60_000))
enc = bpe_engine.get_encoding("o200k_base")
enc.count(text)
before = resident()
enc.set_caching(False)
print(before - resident())
enc.count(text)
assert not enc.is_caching
enc.set_caching(True)
enc.set_cache_size(2**28)
enc.count(text)
before = resident()
enc.set_cache_size(2**16)
print(before - resident())
"""
    result = run(program)
    freed = [float(line) for line in result.stdout.split()]
    assert len(freed) == 2 and min(freed) > 2, result
