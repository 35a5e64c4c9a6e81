"""Hashes ids, in any container."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import Any

from ..cases.inputs import Item
from .engines import FlatRows


class Digest:
    """A hash of rows of ids, the same for lists, arrays and awkward arrays.

    >>> one, other = Digest(), Digest()
    >>> one.add([1, 2]); other.add([1]); other.add([2])
    >>> one.tokens == other.tokens, one.hex() == other.hex()
    (True, False)
    """

    def __init__(self) -> None:
        import hashlib

        self._hash = hashlib.blake2b(digest_size=16)
        self.tokens = 0

    def add(self, ids: Any) -> None:
        """Adds one row of ids."""
        data = ids.astype("<u4").tobytes() if hasattr(ids, "astype") else array("I", ids).tobytes()
        self._hash.update((len(data) // 4).to_bytes(8, "little"))
        self._hash.update(data)
        self.tokens += len(data) // 4

    def hex(self) -> str:
        return self._hash.hexdigest()


def digest_of(result: Any, item: Item) -> Digest:
    """Returns the digest of the result for ``item``: one row, or a row for each document."""
    digest = Digest()
    for row in _rows(result, item):
        digest.add(row)
    return digest


def _rows(result: Any, item: Item) -> Iterator[Any]:
    if isinstance(result, FlatRows):
        cuts = result.offsets.tolist()
        yield from (result.ids[start:end] for start, end in zip(cuts, cuts[1:]))
    elif type(result).__module__.partition(".")[0] == "awkward":
        import awkward
        import numpy

        ids = numpy.asarray(awkward.flatten(result))
        start = 0
        for length in awkward.num(result).tolist():
            yield ids[start : start + length]
            start += length
    elif hasattr(result, "keys"):  # The array has padded rows and a mask.
        pairs = zip(result["input_ids"], result["attention_mask"])
        yield from (row[mask != 0] for row, mask in pairs)
    elif isinstance(item, str):
        yield result
    else:
        yield from result
