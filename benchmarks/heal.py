"""Cuts texts after each byte, heals each beginning, and checks that the ids of the whole may follow.

    python -m benchmarks.heal --cuts 20000 --corpora FOLDER gpt2 qwen3 some/tokenizer.json

The texts are 70 characters of a corpus: as they are, decomposed (NFD), and with marks of spaces (U+2581) for
spaces; and characters that normalization form C changes, in any order. Each kind has a quarter of the cuts.
Times are medians in microseconds: of `heal` for 70 characters, of the first mask, and of the slowest mask of
all that were cut.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import bpe_engine

from .cases.corpora import find_corpora, read

_LENGTH = 70
_RANGES = ((0xA0, 0x3400), (0xA000, 0xD7A4), (0xF900, 0x12000), (0x1D100, 0x1D200))


def texts_of(kind: str, corpora: list[str], rng: random.Random) -> Iterator[str]:
    """Returns texts of a kind without end."""
    characters = [chr(code) for first, end in _RANGES for code in range(first, end)]
    marks = [it for it in characters if unicodedata.combining(it)]
    changed = [it for it in characters if unicodedata.normalize("NFD", it) != it]
    while True:
        if kind == "form C":
            parts = [
                rng.choice((rng.choice(marks), rng.choice(changed), rng.choice("aeqOu \n")))
                for _ in range(rng.randrange(1, 8))
            ]
            text = "".join(parts)
            yield rng.choice((text, unicodedata.normalize("NFD", text)))
            continue
        corpus = rng.choice(corpora)
        start = rng.randrange(max(1, len(corpus) - _LENGTH))
        text = corpus[start : start + _LENGTH]
        if kind == "decomposed":
            text = unicodedata.normalize("NFD", text)
        elif kind == "marked":
            text = "".join("\u2581" if it == " " and rng.random() < 0.5 else it for it in text)
        yield text


def passes(tokenizer: Any, prompt: bytes, ids: list[int]) -> bool:
    """Returns true if these ids may follow a prompt that their text begins with."""
    healed = tokenizer.heal(prompt)
    if ids[: len(healed.ids)] != healed.ids:
        return False
    for id in ids[len(healed.ids) :]:
        if healed.done:
            break
        mask = healed.allowed()
        if not int(mask[id // 32]) >> (id % 32) & 1:
            return False
        healed.advance(id)
    return bool(healed.done)


def clocked(work: Callable[[], Any]) -> float:
    """Returns the median time of a call, in microseconds."""
    times = []
    for _ in range(9):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e6


def main(arguments: list[str] | None = None) -> None:
    """Cuts, checks, measures and prints."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("tokenizers", nargs="*", default=["gpt2", "o200k_base", "qwen3"])
    parser.add_argument("--cuts", type=int, default=20_000)
    parser.add_argument("--corpora", type=Path, help="a folder of *.txt; small ones are made else")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as cache:
        paths = [corpus.path for corpus in find_corpora(options.corpora, Path(cache))]
        corpora = [read(path, 1_000_000) for path in paths]
    print("| tokenizer | cuts | failures | `heal`, us | mask, us | slowest mask, us |")
    print("|---|---:|---:|---:|---:|---:|")
    for name in options.tokenizers:
        tokenizer, rng = bpe_engine.open_tokenizer(name), random.Random(name)
        cuts, failures, heal, masks = 0, 0, [], []
        for number, kind in enumerate(("corpus", "decomposed", "marked", "form C"), 1):
            for text in texts_of(kind, corpora, rng):
                if cuts >= options.cuts * number // 4:
                    break
                ids = tokenizer.encode_with_offsets(text, disallowed_special=())[0]
                prompt = text.encode()
                wrong = [
                    at for at in range(len(prompt) + 1) if not passes(tokenizer, prompt[:at], ids)
                ]
                cuts, failures = cuts + len(prompt) + 1, failures + len(wrong)
                if wrong:
                    print(f"{name}: {ascii(text)} cut after {wrong}")
                healed = tokenizer.heal(prompt[: rng.randrange(len(prompt) + 1)])
                out = np.zeros(healed.words, np.int32)
                masks.append(clocked(lambda healed=healed, out=out: healed.allowed(out)))  # type: ignore[misc]
                if kind == "corpus":
                    heal.append(clocked(lambda prompt=prompt: tokenizer.heal(prompt)))  # type: ignore[misc]
        of_heal, of_masks = statistics.median(heal), statistics.median(masks)
        print(
            f"| {Path(name).name} | {cuts:,} | {failures} | {of_heal:.1f} | {of_masks:.1f} | {max(masks):.0f} |"
        )


if __name__ == "__main__":
    main()
