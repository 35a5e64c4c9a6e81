"""`StoredBlocks`: cuts prompts into blocks that end after special tokens, and finds them in a store."""

from __future__ import annotations

import hashlib
import sys
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from ..core import Encoding
from ..hf.tokenizers import Tokenizer
from .block_store import BlockStore

__all__ = ["Block", "StoredBlocks"]

#: The version of keys and blocks.
_VERSION = "bpe_engine block 1"
#: The least bytes of a block. The first ones are its key; the rest of a prompt is encoded each time.
_LEAST = 2048

#: No UTF-8 has this byte: it begins a segment, and its kind follows.
_MARK = b"\xff"

_Part = tuple[Any, ...]


class Block(NamedTuple):
    """A block that the store lacks."""

    key: bytes
    content: bytes
    #: The block as a prompt of its own.
    prompt: Any


class _Data(NamedTuple):
    """A prompt as bytes, in which equal blocks have equal ids."""

    bytes: bytes
    #: Where each segment begins, and where its text does; empty for a text.
    starts: list[int]
    texts: list[int]
    segments: list[_Part]


class StoredBlocks:
    """Cuts the prompts of one tokenizer.

    A block ends after a special token, where the ids before it and those behind it depend on nothing
    beyond: for tokens that take no white space in, in tokenizers that find them before normalization.
    Other prompts are not cut.

    Args:
        store: The store.
        tokenizer: The tokenizer.
        allowed, disallowed: The special tokens of texts, as for the cache.
    """

    def __init__(self, store: BlockStore, tokenizer: Any, allowed: Any, disallowed: Any):
        self._store = store
        self._tokenizer = getattr(tokenizer, "backend", tokenizer)
        self._names = _safe_names(self._tokenizer)
        self._is_encoding = isinstance(self._tokenizer, Encoding)
        self._form = self._tokenizer.normalization if self._is_encoding else None
        self._allowed = self._names if allowed == "all" else self._names & frozenset(allowed)
        self._takes_texts = self._is_encoding or (allowed == "all" and not disallowed)
        named = [
            names if isinstance(names, str) else sorted(names) for names in (allowed, disallowed)
        ]
        whole = f"{_VERSION} {tokenizer.fingerprint} {named} {self._is_encoding} {sys.byteorder}"
        self._root = hashlib.sha1(whole.encode("utf-8", "surrogatepass")).digest()

    def find(self, prompt: Any) -> tuple[list[bytes], list[Block], Any] | None:
        """Finds the blocks of a prompt.

        Returns:
            The ids of the first blocks, as bytes; the blocks behind them, which the store lacks; and
            the prompt behind those. None if the prompt cannot be cut, or is malformed.
        """
        data = self._data(prompt)
        if data is None or len(data.bytes) < _LEAST:
            return None
        is_text = isinstance(prompt, str) and self._is_encoding
        key = hashlib.sha1(self._root + (b"text" if is_text else b"segments")).digest()
        ids, at, key = self._store.read(data.bytes, key, _LEAST)
        parts = self._parts(data, at)
        if parts is None:
            return None
        blocks, rest = self._blocks(parts, data.bytes, at, key, is_text)
        return (ids, blocks, rest) if ids or blocks else None

    # ---- Prompts as bytes ----

    def _data(self, prompt: Any) -> _Data | None:
        if not self._names:
            return None
        if not isinstance(prompt, str):
            return _data_of(prompt)
        if not self._takes_texts:
            return None
        if not self._is_encoding:
            return _data_of([(prompt, True)])
        return _Data(prompt.encode("utf-8", "surrogatepass"), [], [], [])

    # ---- Parts: tuples like segments, their bytes, and whether a block may end behind them ----

    def _parts(self, data: _Data, at: int) -> list[tuple[_Part, int, bool]] | None:
        """Returns the parts of a prompt from a byte on."""
        if not data.starts:
            return self._parts_of_text(data.bytes[at:].decode("utf-8", "surrogatepass"))
        parts: list[tuple[_Part, int, bool]] = []
        first = bisect_right(data.starts, at) - 1
        for place in range(first, len(data.segments)):
            segment, start, text = data.segments[place], data.starts[place], data.texts[place]
            if at > start:
                segment = (
                    data.bytes[at : self._end(data, place)].decode("utf-8", "surrogatepass"),
                    *segment[1:],
                )
                text = start = at
            parts += self._parts_of_segment(segment, text - start)
        return parts

    @staticmethod
    def _end(data: _Data, place: int) -> int:
        return data.starts[place + 1] if place + 1 < len(data.starts) else len(data.bytes)

    def _parts_of_text(self, text: str) -> list[tuple[_Part, int, bool]] | None:
        # Otherwise a mark may take a name apart, or form one.
        if self._form and not text.isascii():
            if not text[:1].isascii() or not unicodedata.is_normalized(self._form, text):
                return None
        ends = [end for name, _, end in self._tokenizer.find_special(text) if name in self._allowed]
        return list(_cut_at((text, True), ends, 0))

    def _parts_of_segment(self, segment: _Part, marks: int) -> Iterable[tuple[_Part, int, bool]]:
        kind = segment[4] if len(segment) > 4 else "text"
        ends: list[int] = []
        if kind == "special":
            ends = [len(segment[0])] if segment[0] in self._names else []
        elif kind == "text" and segment[1] is True:
            found = self._tokenizer.find_special(segment[0])
            ends = [end for name, _, end in found if name in self._names]
        return _cut_at(segment, ends, marks)

    # ---- Blocks ----

    def _blocks(
        self, parts: list[tuple[_Part, int, bool]], data: bytes, at: int, key: bytes, is_text: bool
    ) -> tuple[list[Block], Any]:
        blocks: list[Block] = []
        first, end = 0, at
        for place, (_, size, is_end) in enumerate(parts):
            end += size
            if is_end and end - at >= _LEAST:
                key = hashlib.sha1(key + data[at : at + _LEAST]).digest()
                prompt = _prompt(parts[first : place + 1], is_text)
                blocks.append(Block(key, data[at:end], prompt))
                first, at = place + 1, end
        return blocks, _prompt(parts[first:], is_text)


def _prompt(parts: list[tuple[_Part, int, bool]], is_text: bool) -> Any:
    some = [part for part, *_ in parts]
    return "".join(part[0] for part in some) if is_text else some


def _safe_names(tokenizer: Encoding | Tokenizer) -> frozenset[str]:
    """Returns the special tokens after which a block may end; none if they are found in normalized
    text, or where the characters beside them count."""
    if isinstance(tokenizer, Encoding):
        return frozenset(tokenizer.special_tokens_set)
    added = list(tokenizer.get_added_tokens_decoder().values())
    normalizes = tokenizer.normalizer is not None
    if any(token.single_word or (token.normalized and normalizes) for token in added):
        return frozenset()
    return frozenset(token.content for token in added if not token.rstrip)


def _cut_at(part: _Part, ends: Iterable[int], marks: int) -> Iterator[tuple[_Part, int, bool]]:
    """Yields a part cut behind characters; `marks` are bytes before its text."""
    text, rest, start = part[0], part[1:], 0
    for end in ends:
        yield (text[start:end], *rest), marks + _size(text[start:end]), True
        start, marks = end, 0
    if start < len(text) or marks:
        yield (text[start:], *rest), marks + _size(text[start:]), False


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _data_of(segments: Iterable[Any]) -> _Data | None:
    """Returns segments as bytes; None if one is malformed."""
    parts: list[bytes] = []
    data = _Data(b"", [], [], [])
    size = 0
    for segment in segments:
        if not (isinstance(segment, tuple) and len(segment) > 1 and type(segment[0]) is str):
            return None
        mark = _mark(segment)
        text = segment[0].encode("utf-8", "surrogatepass")
        data.starts.append(size)
        data.texts.append(size + len(mark))
        data.segments.append(segment)
        size += len(mark) + len(text)
        parts += (mark, text)
    return data._replace(bytes=b"".join(parts))


def _mark(segment: _Part) -> bytes:
    """Returns bytes before the text of a segment, different for segments whose ids may differ."""
    kind, allowed = segment[4] if len(segment) > 4 else "text", segment[1]
    if kind == "text" and isinstance(allowed, bool):
        return b"\xffT" if allowed else b"\xffU"
    if kind == "special":
        return b"\xffS"
    names = allowed if isinstance(allowed, bool) else sorted(map(str, allowed))
    whole = f"{kind} {names!r} {list(segment[5]) if len(segment) > 5 else ()}"
    return b"\xffO" + whole.encode("utf-8", "surrogatepass") + _MARK
