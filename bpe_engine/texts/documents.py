"""Reads plain text: a document a file, or documents between separators."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .block import AT_ONCE, LONGEST, Block, block_of
from .fields import Fields

__all__ = ["text_blocks"]


def text_blocks(stream: Any, uri: str, separator: str | None, fields: Fields) -> Iterator[Block]:
    """Yields the documents of a file.

    Args:
        stream: The file at its beginning. A byte order mark is removed.
        uri: Its name, which is also that of its documents.
        separator: What is between two documents; None if the file is one. The last separator may
            end the file.
        fields: Whether documents have names.
    """
    row, data = 1, stream.read(3)
    data = b"" if data == b"\xef\xbb\xbf" else data
    if separator is None:
        parts = [data]
        size = len(data)
        while data := stream.read(AT_ONCE):
            size += len(data)
            if size <= LONGEST:
                parts.append(data)
        yield _block([b"".join(parts) if size <= LONGEST else None], row, uri, fields)
        return
    between = separator.encode()
    rest, is_dropped, is_last = data, False, False
    while not is_last:
        data = stream.read(AT_ONCE)
        is_last = not data
        rest += data
        documents: list[bytes | None] = [*rest.split(between)]
        rest = documents.pop() or b""
        if is_last and rest:
            documents.append(rest)
        if documents and is_dropped:
            documents[0], is_dropped = None, False
        elif is_last and is_dropped:
            documents = [None]
        if len(rest) > LONGEST:
            rest, is_dropped = rest[-len(between) :], True
        if documents:
            yield _block(documents, row, uri, fields)
            row += len(documents)


def _block(documents: list[bytes | None], row: int, uri: str, fields: Fields) -> Block:
    import numpy as np
    import pyarrow as pa

    names = None
    if fields.name is not None:
        names = pa.array([f"{uri}:{number}" for number in range(row, row + len(documents))])
    lines = np.arange(row, row + len(documents), dtype=np.int64)
    block = block_of(pa.array(documents, pa.large_binary()), names, lines, uri, fields)
    long = {place for place, document in enumerate(documents) if document is None}
    reason = f"the document is longer than {LONGEST:,} bytes"
    return block._replace(bad=[(at, reason if at in long else why) for at, why in block.bad])
