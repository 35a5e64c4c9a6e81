"""Prepares the texts of a case: texts to warm up with, and labeled texts to time."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import corpora, hostile

#: An input to encode: a text, a list of documents, or documents made one by one.
Item = str | list[str] | Iterator[str]


class Column(list[str]):
    """A batch of texts that is also available as an Arrow column."""

    @functools.cached_property
    def arrow(self) -> Any:
        """The texts as an Arrow column, made on first use. Needs pyarrow."""
        import pyarrow

        return pyarrow.array(list(self))


@dataclass
class Inputs:
    """Texts of a case: ``warm`` to encode before timing, ``timed`` to measure, by label."""

    warm: list[Item]
    timed: dict[str, Item]


def _start() -> str:
    """Returns text in every script, so that an engine builds its lazy tables before timing."""
    return (corpora.TEXTS / "multi.txt").read_text(encoding="utf-8")


def halves(corpus: Path) -> Inputs:
    """Warms up on the even lines, and times the odd lines as one text."""
    even, odd = corpora.halves(corpora.read(corpus))
    return Inputs([even], {"text": odd})


def documents(corpus: Path, size: int) -> Inputs:
    """Warms up on documents cut from the even lines, and times a batch cut from the odd lines."""
    even, odd = corpora.halves(corpora.read(corpus))
    return Inputs([corpora.documents(even, size)], {"text": corpora.documents(odd, size)})


def column(corpus: Path, size: int, count: int) -> Inputs:
    """Cuts the odd lines into ``count`` texts of ``size`` bytes; repeated texts are rotated."""
    even, odd = corpora.halves(corpora.read(corpus))
    pieces = corpora.documents(odd, size)
    turns = range(count // len(pieces) + 1)
    rotated = [piece[7 * turn :] + piece[: 7 * turn] for turn in turns for piece in pieces]
    warm, timed = Column(corpora.documents(even, size)), Column(rotated[:count])
    with contextlib.suppress(ImportError):
        warm.arrow, timed.arrow  # noqa: B018  made outside the clock
    return Inputs([warm], {"text": timed})


def repeated(corpus: Path, megabytes: int) -> Inputs:
    """Repeats the corpus up to ``megabytes``, and warms up on its beginning."""
    text = corpora.read(corpus)
    times = max(1, megabytes * 10**6 // len(text.encode("utf-8")))
    return Inputs([text[:1_000_000]], {"text": text * times})


def prompts(corpus: Path, sizes: dict[str, int]) -> Inputs:
    """Cuts the prompts of each size from a different part of the odd lines, so that each is new."""
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
    """Warms up on ordinary text, and times a hostile text."""
    return Inputs([_start()], {"text": hostile.long_piece(name, length)})


def growth(corpus: Path | None, name: str | None, unit: int) -> Inputs:
    """Times a long piece, or the repeated corpus, at the sizes ``unit`` and ``8 * unit``."""
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


def hello(corpus: Path | None) -> Inputs:
    """Times the first text of a fresh process."""
    return Inputs([], {"text": "hello world"})


def stream(corpus: Path | None, total: int, chunk: int) -> Inputs:
    """Times a stream of distinct words, generated on request."""
    return Inputs(["hello world"], {"stream": hostile.word_stream(total, chunk)})


def nothing(corpus: Path | None) -> Inputs:
    """Returns no texts, for cases that make their own."""
    return Inputs([], {})


BUILDERS: dict[str, Callable[..., Inputs]] = {
    build.__name__: build
    for build in (
        halves, documents, column, repeated, prompts, piece, growth, hello, stream, nothing
    )
}  # fmt: skip


def build(name: str, corpus: Path | None, options: dict[str, Any]) -> Inputs:
    """Builds the inputs that a case declares."""
    return BUILDERS[name](corpus, **options)
