"""Reads plain text: one document per file, or documents between separators."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from .block import AT_ONCE, LONGEST, Block, block_of
from .errors import CorpusError
from .fields import Fields
from .utf8 import NOT_UTF_16, UTF_16

__all__ = ["AUTO", "text_blocks"]


#: The automatic separator: none up to a size, empty lines for longer files.
AUTO = "auto"
_ONE_DOCUMENT = 1 << 20
_EMPTY_LINES = "\n\n"


def text_blocks(stream: Any, uri: str, separator: str | None, fields: Fields) -> Iterator[Block]:
    """Yields the documents of a file.

    Args:
        stream: The file at its beginning. A byte order mark is removed.
        uri: The name of the file, and of its documents.
        separator: The text between two documents, in which ``\n`` is a line end of any system; None
            if the file is one document; `AUTO` if a file up to a megabyte is one document, and
            longer files have documents up to that size between empty lines. A separator may end the
            file.
        fields: True if documents have names.
    """
    data = stream.read(3)
    if data[:2] in UTF_16:
        raise CorpusError(NOT_UTF_16.format(uri))
    start = b"" if data == b"\xef\xbb\xbf" else data
    limit = LONGEST
    if separator == AUTO:
        start += _read(stream, _ONE_DOCUMENT)
        separator = None
        if len(start) > _ONE_DOCUMENT:
            separator, limit = _EMPTY_LINES, _ONE_DOCUMENT
    if separator is None:
        found: Iterator[list[bytes | None]] = iter([[_whole(stream, start)]])
        advice = r"; name the separator of documents with --separator, such as '\n\n'"
    else:
        advice = f", without {separator!r}; name the separator of documents with --separator"
        found = _between(stream, start, separator, limit)
    if limit < LONGEST:
        advice = r", without an empty line; with --separator '\n' each line is a document"
    row = 1
    for documents in found:
        if limit < LONGEST:
            documents = [it for it in documents if it is None or it.strip()]
        if documents:
            yield _block(documents, row, uri, fields, f"{limit:,} bytes{advice}")
            row += len(documents)


def _read(stream: Any, size: int) -> bytes:
    parts = []
    while size > 0 and (data := stream.read(size)):
        parts.append(data)
        size -= len(data)
    return b"".join(parts)


def _whole(stream: Any, start: bytes) -> bytes | None:
    """Returns the contents of a file, or None if larger than the maximum document."""
    parts, size = [start], len(start)
    while data := stream.read(AT_ONCE):
        size += len(data)
        if size <= LONGEST:
            parts.append(data)
    return b"".join(parts) if size <= LONGEST else None


def _splitter(separator: str) -> Callable[[bytes], list[bytes]]:
    """Returns a function that splits at a separator, whose `\\n` also matches `\\r\\n`."""
    plain = separator.encode()
    if b"\n" not in plain or b"\r" in plain:
        return lambda data: data.split(plain)
    any_line_end = re.compile(re.escape(plain).replace(b"\\\n", b"\r?\n"))
    return lambda data: any_line_end.split(data) if b"\r" in data else data.split(plain)


def _between(stream: Any, rest: bytes, separator: str, limit: int) -> Iterator[list[bytes | None]]:
    """Yields lists of the documents between separators; None for an oversized document."""
    split, reach = _splitter(separator), len(separator.encode()) + separator.count("\n")
    is_dropped = is_last = False
    while not is_last:
        data = stream.read(AT_ONCE)
        is_last = not data
        rest += data
        documents: list[bytes | None] = [*split(rest)]
        rest = documents.pop() or b""
        if is_last and rest:
            documents.append(rest)
        if documents and is_dropped:
            documents[0], is_dropped = None, False
        elif is_last and is_dropped:
            documents = [None]
        if len(rest) > limit:
            rest, is_dropped = rest[-reach:], True
        if documents:
            yield [None if it is None or len(it) > limit else it for it in documents]


def _block(documents: list[bytes | None], row: int, uri: str, fields: Fields, than: str) -> Block:
    import numpy as np
    import pyarrow as pa

    names = None
    if fields.name is not None:
        names = pa.array([f"{uri}:{number}" for number in range(row, row + len(documents))])
    lines = np.arange(row, row + len(documents), dtype=np.int64)
    block = block_of(pa.array(documents, pa.large_binary()), names, lines, uri, fields)
    long = {place for place, document in enumerate(documents) if document is None}
    reason = f"the document is longer than {than}"
    return block._replace(bad=[(at, reason if at in long else why) for at, why in block.bad])
