"""Makes training texts of any size from the benchmark corpora.

A text begins with the corpus of the same name. If the corpus is too short, Markov chains over its
characters continue the text: any seven consecutive characters (three in Chinese) occur in the
corpus, except where the chain changes, every thousand characters. Such text has many more distinct
words than real text. `mixed` joins all corpora, continued in the same way.
"""

from __future__ import annotations

import hashlib
import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np


def text_file(name: str, megabytes: int, corpora: list[Path], cache: Path) -> Path:
    """Returns a text file of `megabytes` MB, made once from the named corpus (`mixed`: from all).

    Raises ValueError if no corpus has the name.
    """
    paths = [path for path in corpora if name in ("mixed", corpus_name(path))]
    if not paths:
        raise ValueError(f"No corpus is named {name!r}.")
    sizes = [(corpus_name(path), path.stat().st_size) for path in paths]
    key = hashlib.blake2b(repr(sizes).encode() + Path(__file__).read_bytes(), digest_size=4)
    folder = cache / "training"
    path = folder / f"{name}-{megabytes}-{key.hexdigest()}.txt"
    if path.exists():
        return path
    folder.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(f".{os.getpid()}")
    size = megabytes * 10**6
    # If two texts have the same name, the shorter text is a prefix of the longer.
    there = folder.glob(f"{name}-*-{key.hexdigest()}.txt")
    others = [int(other.name.split("-")[1]) for other in there]
    longer = [other for other in others if other > megabytes]
    with open(partial, "wb") as file:
        if longer:
            whole = folder / f"{name}-{min(longer)}-{key.hexdigest()}.txt"
            with open(whole, "rb") as source:
                file.write(source.read(size).decode(errors="ignore").encode())
        else:
            taken = {corpus_name(path): path.read_text(encoding="utf-8") for path in paths}
            parts = list(taken.values())
            for part in itertools.chain(parts, chained(taken)):
                data = part.encode()[: size - file.tell()].decode(errors="ignore").encode()
                file.write(data)
                if size - file.tell() < 4:
                    break
    partial.replace(path)
    return path


def corpus_name(path: Path) -> str:
    """Returns the name of a corpus: the last dotted part of its file's stem."""
    return path.stem.rpartition(".")[2]


def chained(texts: dict[str, str]) -> Iterator[str]:
    """Yields endless text, a million characters at a time, in the style of each text in turn."""
    chains = [_chain(text, 2 if name == "zh" else 6) for name, text in texts.items()]
    while True:
        for chain in chains:
            yield next(chain)


def _chain(text: str, order: int) -> Iterator[str]:
    """Yields text from 1,024 parallel chains, about a thousand characters from each at a time."""
    random = np.random.default_rng(7)
    characters = np.frombuffer(text.encode("utf-32-le"), "<u4").astype(np.uint64)
    # Hashes the characters before each index, then numbers the distinct contexts.
    before = np.zeros(len(characters) - order, np.uint64)
    for place in range(order):
        before = before * np.uint64(0x9E3779B97F4A7C15) + characters[place : place - order]
    _, before, counts = np.unique(before, return_inverse=True, return_counts=True)
    places = np.argsort(before, kind="stable")
    firsts = np.cumsum(counts) - counts
    followers = characters[order:].astype("<u4")
    # Wraps around: the first context follows the last.
    following = np.append(before[1:], before[0])
    states = random.integers(len(before), size=1024)
    states = before[states]
    while True:
        out = np.empty((1024, len(states)), "<u4")
        for row in out:
            chosen = places[
                firsts[states] + (random.random(len(states)) * counts[states]).astype(int)
            ]
            row[:] = followers[chosen]
            states = following[chosen]
        yield out.T.tobytes().decode("utf-32-le")


def documents(path: str) -> list[str]:
    """Cuts the text into parts of about 64 KB at points where GPT-2's pattern also cuts: before a
    letter at the start of a line, if the previous line does not end with whitespace."""
    text = Path(path).read_text(encoding="utf-8")
    parts, start = [], 0
    while start < len(text):
        end = start + 65536
        while end < len(text):
            end = text.find("\n", end) + 1 or len(text)
            if end >= len(text) or (text[end].isalpha() and not text[end - 2].isspace()):
                break
        parts.append(text[start:end])
        start = end
    return parts
