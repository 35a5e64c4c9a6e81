"""Packs documents into rows of a given length. Writes only an index; ids are not copied.

The index is ``OUT/packed-LENGTH-METHOD.idx``, with a seed ``OUT/packed-LENGTH-METHOD-seedN.idx``: a
header in JSON that is padded to 4,096 bytes, then the first piece of each row and the number of
pieces (int64), then for each piece its document and its first id in the whole corpus (int64) and its
number of ids (int64). The header has the SHA-256 of its other fields and of the rest of the file.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from typing import Any

from .._arguments import whole_number
from ..abilities.packing import best_fit
from ..common.atomic_write import published
from ..common.values import check_choice
from ..texts.errors import CorpusError
from .corpus_reader import CorpusReader
from .formats.base import damaged
from .plan import Plan
from .scratch import scratch_folder
from .sealed import sum_of
from .shuffle import Permutation

__all__ = ["HEADER", "METHODS", "index_name", "index_sum", "pack_rows", "read_header"]

METHODS = ("best-fit", "wrap")

#: Size of the header in bytes.
HEADER = 4096

_FIELDS = {"plan", "length", "method", "seed", "rows", "pieces", "tokens", "sha256"}

#: Number of documents packed together: enough to fill nearly every row, few enough for memory.
_WINDOW = 1 << 20

#: Maximum row length: piece boundaries have 32 bits.
_LONGEST = 2**31 - 1


def index_name(length: int, method: str, seed: int | None = None) -> str:
    """Returns the name of an index in the folder of its corpus."""
    return f"packed-{length}-{method}{'' if seed is None else f'-seed{seed}'}.idx"


def read_header(path: str) -> dict[str, Any]:
    """Reads the header of an index. Raises CorpusError if it or the file size is wrong."""
    try:
        with open(path, "rb") as file:
            header: dict[str, Any] = json.loads(file.read(HEADER))
        if header.keys() != _FIELDS:
            raise ValueError(f"fields {', '.join(header)}")
        size = HEADER + 8 * (header["rows"] + 1 + 3 * header["pieces"])
    except (ValueError, AttributeError, TypeError) as error:
        raise damaged(path, f"it has no header ({error})") from error
    if os.path.getsize(path) != size:
        raise damaged(path, f"it has {os.path.getsize(path):,} bytes, not {size:,}")
    return header


def index_sum(header: dict[str, Any], path: str) -> str:
    """Returns the SHA-256 of a header without its checksum, followed by the rest of the file."""
    header = {name: value for name, value in header.items() if name != "sha256"}
    digest = hashlib.sha256(sum_of(header).encode())
    with open(path, "rb") as file:
        file.seek(HEADER)
        while data := file.read(1 << 20):
            digest.update(data)
    return digest.hexdigest()


def pack_rows(
    out: str | os.PathLike[str] | Plan,
    length: int,
    *,
    method: str = "best-fit",
    seed: int | None = None,
) -> str:
    """Writes an index of rows, each of at most `length` ids. The same arguments give the same
    bytes. Held-out documents are excluded.

    Args:
        out: The folder of a complete corpus, or its plan.
        length: Maximum number of ids in a row.
        method: "best-fit" puts each document, the longest first, into the fullest row that still
            has room; only documents longer than `length` are cut. "wrap" joins all documents and
            cuts: every row but the last is full.
        seed: Shuffles the rows (best-fit) or the documents (wrap).

    Returns:
        The path of the index.

    Raises:
        CorpusError: An argument is out of range, or the corpus is not complete.
    """
    import numpy as np

    length = whole_number("length", length)
    if not 1 <= length <= _LONGEST:
        raise CorpusError(f"rows have at least 1 id and at most {_LONGEST:,}, not {length:,}")
    check_choice("method", method, METHODS, CorpusError)
    reader = CorpusReader(out)
    plan = reader.plan
    name = index_name(length, method, seed)
    with scratch_folder(plan.out, "pack") as folder:
        columns = [open(os.path.join(folder, f"{at}"), "w+b") for at in range(4)]
        rows = pieces = 0
        packed = (
            _best_fit(reader, length) if method == "best-fit" else _wrapped(reader, length, seed)
        )
        for ends, documents, starts, lengths in packed:
            columns[0].write((ends + pieces).astype("<i8").data)
            for column, values in zip(columns[1:], (documents, starts, lengths)):
                column.write(values.astype("<i8").data)
            rows, pieces = rows + len(ends), pieces + len(documents)
        header = {
            "plan": plan.sha256,
            "length": length,
            "method": method,
            "seed": seed,
            "rows": rows,
            "pieces": pieces,
            "tokens": reader.tokens,
        }
        path = os.path.join(folder, name)
        with open(path, "wb") as file:
            file.seek(HEADER)
            file.write(np.zeros(1, "<i8").data)
            for column in columns:
                column.seek(0)
                while data := column.read(1 << 20):
                    file.write(data)
                column.close()
        header["sha256"] = index_sum(header, path)
        with open(path, "r+b") as file:
            file.write(json.dumps(header).encode().ljust(HEADER))
        published(path, plan.path(name))
    return plan.path(name)


_Window = Any  # Row ends in pieces; each piece's document, first id and length.


def _best_fit(reader: CorpusReader, length: int) -> Iterator[_Window]:
    import numpy as np

    count = reader.documents - reader.held_out[0]
    for first in range(0, count, _WINDOW):
        last = min(first + _WINDOW, count)
        spans = reader.spans(first, last)
        sizes = np.diff(spans)
        # A long document becomes full pieces and a remainder.
        counts = np.maximum(-(-sizes // length), 1) * (sizes > 0)
        documents = np.repeat(np.arange(first, last), counts)
        begins = np.cumsum(counts) - counts
        number = np.arange(len(documents)) - np.repeat(begins, counts)
        starts = np.repeat(spans[:-1], counts) + number * length
        lengths = np.minimum(np.repeat(spans[1:], counts) - starts, length)
        # Memory grows with the row length, so cap the row length at the sum of all lengths.
        order, ends = best_fit(lengths, max(1, min(length, int(lengths.sum()))))
        yield ends, documents[order], starts[order], lengths[order]


def _wrapped(reader: CorpusReader, length: int, seed: int | None) -> Iterator[_Window]:
    import numpy as np

    count = reader.documents - reader.held_out[0]
    order = None if seed is None else Permutation(count, seed)
    at = 0  # Number of ids so far, which determines the row boundaries.
    for first in range(0, count, _WINDOW):
        last = min(first + _WINDOW, count)
        if order is None:
            documents = np.arange(first, last)
            spans = reader.spans(first, last)
            starts, sizes = spans[:-1], np.diff(spans)
        else:
            documents = order.of(np.arange(first, last))
            bounds = np.array([reader.spans(it, it + 1) for it in documents.tolist()])
            starts, sizes = bounds[:, 0], bounds[:, 1] - bounds[:, 0]
        ends = at + np.cumsum(sizes)
        begins = ends - sizes
        # Pieces begin where a document or a row begins.
        counts = np.where(sizes > 0, (ends - 1) // length - begins // length + 1, 0)
        number = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        row = np.repeat(begins // length, counts) + number
        begin = np.maximum(np.repeat(begins, counts), row * length)
        end = np.minimum(np.repeat(ends, counts), (row + 1) * length)
        at = int(ends[-1])
        # The last row ends with the last id; any documents after it are empty.
        is_end = (end % length == 0) | (end == reader.tokens - reader.held_out[1])
        offset = np.repeat(starts - begins, counts)
        yield np.flatnonzero(is_end) + 1, np.repeat(documents, counts), begin + offset, end - begin
