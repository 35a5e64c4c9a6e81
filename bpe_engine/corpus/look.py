"""Samples token files for a report: document lengths, a tokenized document, use of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..abilities.visible import CONTINUED, visible_bytes, whole_characters
from ..texts.errors import CorpusError
from .corpus_reader import CorpusReader
from .plan import Plan

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["Look", "look_at"]

#: Number of documents to sample, from the start; number of ids to show; row lengths.
_DOCUMENTS, _SAMPLE, _ROWS = 1 << 20, 80, (512, 1024, 2048, 4096, 8192)


@dataclass
class Look:
    """Figures about the first documents of a corpus."""

    #: Number of documents sampled.
    documents: int
    #: Histogram: upper bound of ids per document, a power of two, to percent of documents.
    lengths: dict[str, float]
    #: For each row length: the percentage of documents that fit whole, and the percentage of ids
    #: that are not padding if each row has one document.
    rows: list[tuple[int, float, float]]
    #: Tokens of the first document, in visible form.
    sample: list[str]


def look_at(plan: Plan) -> Look | None:
    """Returns figures of the token files; None if the files are incomplete or damaged."""
    try:
        reader = CorpusReader(plan)
        count = min(reader.documents, _DOCUMENTS)
        if not count:
            return None
        ends = reader.ends(0, count)
        ids = reader.ids(0, min(int(ends[0]), _SAMPLE)).tolist()
        return _look(ends, _shown(plan, ids))
    except (CorpusError, ImportError, OSError, ValueError):
        return None


def _look(ends: npt.NDArray[np.int64], sample: list[str]) -> Look:
    import numpy as np

    sizes = np.maximum(np.diff(ends, prepend=0), 1)
    counts = np.bincount(np.ceil(np.log2(sizes)).astype(np.int64))
    share = 100 / len(sizes)
    lengths = {f"up to {1 << n:,}": float(count * share) for n, count in enumerate(counts) if count}
    rows = []
    for length in _ROWS:
        needed = int((-(-sizes // length)).sum()) * length
        fits = float((sizes <= length).sum() * share)
        rows.append((length, fits, 100 * int(sizes.sum()) / needed))
    return Look(len(sizes), lengths, rows, sample)


def _shown(plan: Plan, ids: list[int]) -> list[str]:
    engine: Any = plan.coder().engine
    tokens = engine.decode_tokens_bytes(ids)
    return [
        CONTINUED * goes_on + (visible_bytes(characters) if characters or not goes_on else "")
        for goes_on, characters in whole_characters(tokens)
    ]
