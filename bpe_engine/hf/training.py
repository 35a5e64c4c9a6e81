"""Trains the model of a tokenizer: counts words on all cores, then learns from the counts."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .._core import PieceCounts, Pipeline
from ..common.system import cores
from ..common.threads import on_threads
from ..common.values import checked, describe, is_arrow, safe_repr
from ..texts.listed import Paths, given_paths
from .trainers import Trainer, as_trainer, trainer_of

__all__ = ["texts_of_files", "texts_of_iterator", "train"]

#: Size of a block of text to count, in bytes or characters.
BLOCK = 1 << 20


def train(tokenizer: Pipeline, trainer: Any, texts: Iterator[list[str]], lines: str) -> Trainer:
    """Replaces a tokenizer's model with a model learned from texts, and returns the trainer used.
    If an error is raised, the tokenizer is unchanged."""
    model = json.loads(tokenizer._model_json(False))
    chosen: Trainer = trainer_of(model["type"]) if trainer is None else as_trainer(trainer)
    if chosen._MODEL != model["type"]:
        raise TypeError(
            f"{type(chosen).__name__} trains a {chosen._MODEL} model, but this one is "
            f"{model['type']}; take {type(trainer_of(model['type'])).__name__}"
        )
    counts = PieceCounts.of_words(tokenizer, lines)
    bar = _Bar(chosen.show_progress)
    try:
        done = 0
        blocks = on_threads(counts.count, texts, cores())
        for _, size in blocks:
            done += size
            bar.count(done)
        scores = chosen._learn(counts, model, bar.learn)
    except UnicodeEncodeError as error:
        raise ValueError(
            f"the text {safe_repr(error.object)} has a surrogate at {error.start:,}, which UTF-8 "
            f"cannot express; replace it"
        ) from None
    finally:
        bar.close()
    tokenizer._set_component("model", json.dumps(model))
    if scores is not None:
        tokenizer._set_scores(scores)
    return chosen


def texts_of_files(files: Paths) -> Iterator[list[str]]:
    """Yields the text of files in blocks that end at line ends.

    Raises:
        OSError: A file cannot be read.
        ValueError: A file is not UTF-8.
    """
    for path in given_paths(files):
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
    """Yields the texts of an iterator over texts or lists of texts, in blocks."""
    wrong = "the iterator must give texts, or lists of texts, not"
    if isinstance(iterator, str) or not _has_texts(iterator):
        raise TypeError(f"{wrong} be {describe(iterator)}")
    block: list[str] = []
    size = 0
    for item in checked(iterator):
        if not _has_texts(item):
            raise TypeError(f"{wrong} {describe(item)}")
        for text in [item] if isinstance(item, str) else checked(item):
            if not isinstance(text, str):
                raise TypeError(f"{wrong} {describe(text)}")
            block.append(text)
            size += len(text)
        if size >= BLOCK:
            yield block
            block, size = [], 0
    if block:
        yield block


def _has_texts(value: Any) -> bool:
    """Returns True for text and objects that may contain texts. A dict would yield its keys."""
    is_wrong = isinstance(value, (bytes, bytearray, Mapping)) or is_arrow(value)
    return not is_wrong and isinstance(value, Iterable)


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
