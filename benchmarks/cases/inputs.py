"""Which texts a case gives to an engine: some to warm up on, and labelled ones under the clock."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import corpora, hostile

#: One thing to encode: a text, a list of documents, or documents made one by one.
Item = str | list[str] | Iterator[str]


@dataclass
class Inputs:
    """``warm`` is encoded outside the clock; ``timed`` holds what is measured, by label."""

    warm: list[Item]
    timed: dict[str, Item]


def _start() -> str:
    """Text of every script: what an engine sets up lazily is not counted against a case."""
    return (corpora.TEXTS / "multi.txt").read_text(encoding="utf-8")


def halves(corpus: Path) -> Inputs:
    """Warm on the even lines, the odd lines as one text."""
    even, odd = corpora.halves(corpora.read(corpus))
    return Inputs([even], {"text": odd})


def documents(corpus: Path, size: int) -> Inputs:
    """Warm on documents of the even lines, the documents of the odd lines as one batch."""
    even, odd = corpora.halves(corpora.read(corpus))
    return Inputs([corpora.documents(even, size)], {"text": corpora.documents(odd, size)})


def prompts(corpus: Path, sizes: dict[str, int]) -> Inputs:
    """Prompts of each size, each size from its own stretch of the odd lines: none is seen twice."""
    even, odd = corpora.halves(corpora.read(corpus))
    share = len(odd) // len(sizes)
    timed: dict[str, Item] = {
        label: corpora.documents(odd[number * share : (number + 1) * share], size)
        for number, (label, size) in enumerate(sizes.items())
    }
    return Inputs(
        [even],
        {label: texts for label, texts in timed.items() if texts},
    )


def piece(corpus: Path | None, name: str, length: int) -> Inputs:
    """A hostile text, after some that is not."""
    return Inputs([_start()], {"text": hostile.long_piece(name, length)})


def growth(corpus: Path | None, name: str | None, unit: int) -> Inputs:
    """One text at one unit of bytes and at eight: a long piece, or the corpus repeated."""
    if name is None:
        if corpus is None:
            raise ValueError("A growth case without the name of a long piece needs a corpus.")
        text = corpora.read(corpus)
        data = (text * (1 + 9 * unit // len(text.encode()))).encode("utf-8")
        small = data[:unit].decode("utf-8", "ignore")
        large = data[unit : 9 * unit].decode("utf-8", "ignore")
    else:
        width = len(hostile.long_piece(name, 4)[0].encode("utf-8"))
        small, large = (hostile.long_piece(name, size // width) for size in (unit, 8 * unit))
    return Inputs([_start()], {"small": small, "large": large})


def collision(corpus: Path, attack: str, size: int) -> Inputs:
    """Ordinary text, random words, and chosen words of the same shape, ``size`` bytes each."""
    from . import collisions

    chosen = collisions.ATTACKS[attack]
    count = size // (chosen.letters + 1) + 1
    words = chosen.words(count)
    control = collisions.control_words(chosen.letters, len(words))
    text = corpora.read(corpus)
    half = len(text) // 2
    ordinary = corpora.documents(text[half:], size)[0]
    return Inputs(
        [text[:half]],
        {
            "ordinary": ordinary,
            "random words": collisions.as_text(control, size),
            "chosen words": collisions.as_text(words, size),
        },
    )


def hello(corpus: Path | None) -> Inputs:
    """The first text of a fresh process."""
    return Inputs([], {"text": "hello world"})


def stream(corpus: Path | None, total: int, chunk: int) -> Inputs:
    """Distinct words, made while they are asked for."""
    return Inputs(["hello world"], {"stream": hostile.word_stream(total, chunk)})


def nothing(corpus: Path | None) -> Inputs:
    """For cases that read their texts while they run."""
    return Inputs([], {})


BUILDERS: dict[str, Callable[..., Inputs]] = {
    build.__name__: build
    for build in (halves, documents, prompts, piece, growth, collision, hello, stream, nothing)
}


def build(name: str, corpus: Path | None, options: dict[str, Any]) -> Inputs:
    """The inputs that a case declares."""
    return BUILDERS[name](corpus, **options)
