"""Trains the model of a tokenizer: counts words on all processors, then learns from the counts."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from .._core import Pipeline, WordCounts
from ..common.threads import on_threads
from ..common.values import describe
from .trainers import Trainer, as_trainer, trainer_of

__all__ = ["texts_of_files", "texts_of_iterator", "train"]

#: Bytes or characters of text counted per block.
BLOCK = 1 << 20


def train(tokenizer: Pipeline, trainer: Any, texts: Iterator[list[str]], lines: str) -> Trainer:
    """Replaces the model of a tokenizer by one learned from texts. On an exception the tokenizer is
    unchanged. Returns the trainer used."""
    model = json.loads(tokenizer._model_json(False))
    chosen: Trainer = trainer_of(model["type"]) if trainer is None else as_trainer(trainer)
    if chosen._MODEL != model["type"]:
        raise TypeError(
            f"{type(chosen).__name__} trains a {chosen._MODEL} model, but this one is "
            f"{model['type']}; take {type(trainer_of(model['type'])).__name__}"
        )
    counts = WordCounts(tokenizer)
    bar = _Bar(chosen.show_progress)
    try:
        done = 0
        blocks = on_threads(lambda block: counts.count(block, lines), texts, os.cpu_count() or 1)
        for _, size in blocks:
            done += size
            bar.count(done)
        scores = chosen._learn(counts, model, bar.learn)
    finally:
        bar.close()
    tokenizer._set_component("model", json.dumps(model))
    if scores is not None:
        tokenizer._set_scores(scores)
    return chosen


def texts_of_files(files: Iterable[str | os.PathLike[str]]) -> Iterator[list[str]]:
    """Yields the text of files in blocks that end at line ends.

    Raises:
        OSError: A file cannot be read.
        ValueError: A file is not UTF-8.
    """
    if isinstance(files, (str, os.PathLike)):
        files = [files]
    for path in files:
        with open(path, "rb") as file:
            at, parts = 0, [b""]
            while block := file.read(BLOCK):
                end = block.rfind(b"\n") + 1
                if end:
                    whole = b"".join([*parts, block[:end]])
                    yield [_text(whole, path, at)]
                    at, parts = at + len(whole), []
                parts.append(block[end:])
            if last := b"".join(parts):
                yield [_text(last, path, at)]


def _text(block: bytes, path: str | os.PathLike[str], at: int) -> str:
    try:
        return block.decode()
    except UnicodeDecodeError as error:
        place = at + error.start
        raise ValueError(
            f"{os.fspath(path)}: the byte {block[error.start]:#04x} at {place:,} is not UTF-8; convert "
            f"the file to UTF-8"
        ) from None


def texts_of_iterator(iterator: Iterable[Any]) -> Iterator[list[str]]:
    """Yields blocks of the texts of an iterator over texts or lists of texts."""
    if isinstance(iterator, (str, bytes)):
        raise TypeError(f"iterator gives texts, and is not one itself: {describe(iterator)}")
    block: list[str] = []
    size = 0
    for item in iterator:
        for text in [item] if isinstance(item, str) else item:
            if not isinstance(text, str):
                raise TypeError(f"texts must be str, or lists of str, not {describe(text)}")
            block.append(text)
            size += len(text)
        if size >= BLOCK:
            yield block
            block, size = [], 0
    if block:
        yield block


class _Bar:
    def __init__(self, is_shown: bool) -> None:
        self._is_shown = is_shown and sys.stderr.isatty()
        self._is_open = False

    def count(self, done: int) -> None:
        self._show(f"counting words: {done / 2**20:,.0f} MiB of text")

    def learn(self, done: int, total: int) -> None:
        self._show(f"learning: {done:,} tokens, {total:,} wanted")

    def _show(self, text: str) -> None:
        if self._is_shown:
            self._is_open = True
            print(f"\r{text:<60}", end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        if self._is_open:
            print(file=sys.stderr)
