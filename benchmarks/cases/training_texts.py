"""Texts of any size for training.

A text is the corpus of that name; where that is shorter than asked for, the rest is a chain of
characters over it: every seven (Chinese: every three) characters in a row occur in the corpus.
`mixed` is all corpora, and such a rest.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import random
from collections.abc import Iterator
from pathlib import Path

from .corpora import find_corpora


def text_file(name: str, megabytes: int, corpora: Path | None, cache: Path) -> Path:
    """A text of this size, made once."""
    found = {
        corpus.name: corpus.path.read_text(encoding="utf-8")
        for corpus in find_corpora(corpora, cache)
    }
    taken = found if name == "mixed" else {name: found[name]}
    parts = list(taken.values())
    key = hashlib.blake2b(repr(parts).encode() + Path(__file__).read_bytes(), digest_size=4)
    folder = cache / "training"
    path = folder / f"{name}-{megabytes}-{key.hexdigest()}.txt"
    if path.exists():
        return path
    folder.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(f".{os.getpid()}")
    size = megabytes * 10**6
    # Texts of one name begin alike.
    there = folder.glob(f"{name}-*-{key.hexdigest()}.txt")
    others = [int(other.name.split("-")[1]) for other in there]
    longer = [other for other in others if other > megabytes]
    with open(partial, "wb") as file:
        if longer:
            whole = folder / f"{name}-{min(longer)}-{key.hexdigest()}.txt"
            with open(whole, "rb") as source:
                file.write(source.read(size).decode(errors="ignore").encode())
        else:
            for part in itertools.chain(parts, chained(taken)):
                data = part.encode()[: size - file.tell()].decode(errors="ignore").encode()
                file.write(data)
                if size - file.tell() < 4:
                    break
    partial.replace(path)
    return path


def chained(texts: dict[str, str]) -> Iterator[str]:
    """Endless text in the manner of each of the texts, a hundred thousand characters at a time."""
    chains = [_chain(text, 2 if name == "zh" else 6) for name, text in texts.items()]
    while True:
        for chain in chains:
            yield next(chain)


def _chain(text: str, order: int) -> Iterator[str]:
    pick = random.Random(7).random
    followers: dict[str, list[str]] = {}
    for place in range(len(text) - order):
        followers.setdefault(text[place : place + order], []).append(text[place + order])
    state = text[:order]
    while True:
        out = []
        for _ in range(100_000):
            choices = followers.get(state) or [text[int(pick() * len(text))]]
            character = choices[int(pick() * len(choices))]
            out.append(character)
            state = state[1:] + character
        yield "".join(out)


def documents(path: str) -> list[str]:
    """The text in parts of some 64 KB, cut where GPT-2's pattern cuts: between a line end behind
    text and a letter."""
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
