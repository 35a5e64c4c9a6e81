"""Measures what threads of Python gain, one call a document: with the GIL, and without it.

    python -m benchmarks.threads
    python3.14t -m benchmarks.threads --tokenizer FILE.json --text FILE.txt

A row is text per second of one thread and of two, each of which encodes all documents of 4 KB, text that
is known, some times: medians of rounds in turn, ids compared. Without the GIL, two threads take as long for
twice the text as one.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import bpe_engine
from bpe_engine import hf

from .cases.corpora import documents, find_corpora, read

#: How often a thread encodes all texts: as long as a scheduler takes to spread threads counts little.
PASSES = 20


def run(encode: Callable[[str], Any], texts: list[str]) -> list[Any]:
    """Returns the ids of texts, after encoding them several times."""
    for _ in range(PASSES - 1):
        for text in texts:
            encode(text)
    return [encode(text) for text in texts]


def measure(encode: Callable[[str], Any], texts: list[str], rounds: int) -> list[float]:
    """Returns the median bytes per second of one thread and of two."""
    expected = [encode(text) for text in texts]
    size = sum(len(text.encode()) for text in texts)
    rates: dict[int, list[float]] = {1: [], 2: []}
    with ThreadPoolExecutor(2) as threads:
        for count in [1, 2] * rounds:
            start = time.perf_counter()
            found = list(threads.map(lambda _: run(encode, texts), range(count)))
            rates[count].append(count * PASSES * size / (time.perf_counter() - start))
            assert all(rows == expected for rows in found)
    return [statistics.median(of) for of in rates.values()]


def main() -> None:
    """Prints the rows of a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tokenizer", help="a tokenizer.json")
    parser.add_argument("--text", type=Path, help="in place of the default English corpus")
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        made = {corpus.name: corpus.path for corpus in find_corpora(None, Path(folder))}
        texts = documents(read(options.text or made["en"], 2_000_000), 4096)
    encoding = bpe_engine.get_encoding("o200k_base")
    calls: dict[str, Callable[[str], Any]] = {
        "o200k_base, encode_ordinary": encoding.encode_ordinary,
        "o200k_base, encode_to_numpy": lambda it: encoding.encode_to_numpy(it).tobytes(),
    }
    if options.tokenizer:
        tokenizer = hf.Tokenizer.from_file(options.tokenizer)
        calls["tokenizer.json, encode(...).ids"] = lambda it: tokenizer.encode(it).ids
    has_gil = getattr(sys, "_is_gil_enabled", lambda: True)()
    print(f"Python {sys.version.split()[0]}, {'with' if has_gil else 'without'} the GIL\n")
    print("| call | one thread, MB/s | two, MB/s | gain |\n|---|---:|---:|---:|")
    for name, encode in calls.items():
        one, two = measure(encode, texts, options.rounds)
        print(f"| {name} | {one / 1e6:.0f} | {two / 1e6:.0f} | {two / one:.2f}x |")


if __name__ == "__main__":
    main()
