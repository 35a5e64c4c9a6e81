"""`align`: groups the tokens of two tokenizers that cover the same bytes of a text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .._arguments import numpy_for
from .._core import Pipeline

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from ..face import Names

__all__ = ["Alignment", "align"]


@dataclass(frozen=True, eq=False, slots=True)
class Alignment:
    """The ids of two tokenizers for a text, in groups that cover the same bytes.

    Group ``i`` has the ids ``a_ids[a_splits[i]:a_splits[i + 1]]`` and
    ``b_ids[b_splits[i]:b_splits[i + 1]]``, and the bytes ``spans[i]``. Groups are minimal: a group
    ends at each byte boundary that no token of either tokenizer crosses.
    """

    #: The ids of the first tokenizer (uint32).
    a_ids: npt.NDArray[np.uint32]
    #: The ids of the second tokenizer (uint32).
    b_ids: npt.NDArray[np.uint32]
    #: Row splits of the groups in `a_ids` (int64, groups + 1).
    a_splits: npt.NDArray[np.int64]
    #: Row splits of the groups in `b_ids` (int64, groups + 1).
    b_splits: npt.NDArray[np.int64]
    #: Byte range of each group, end exclusive, in the UTF-8 of the text as given.
    spans: npt.NDArray[np.int64]
    #: Indices of the ids in `a_ids` that have no span in the text, such as ids that decode to
    #: nothing; each belongs to the group of the next token.
    a_unplaced: npt.NDArray[np.int64]
    #: Indices of the ids in `b_ids` that have no span in the text.
    b_unplaced: npt.NDArray[np.int64]

    def __len__(self) -> int:
        """Returns the number of groups."""
        return len(self.spans)


def align(
    a: Pipeline,
    b: Pipeline,
    text: str,
    *,
    a_ids: Sequence[int] | None = None,
    b_ids: Sequence[int] | None = None,
    allowed_special: Names | None = None,
    disallowed_special: Names = (),
) -> Alignment:
    """Groups the tokens of two tokenizers that cover the same bytes of a text. Needs numpy.

    Spans refer to the text as given, as in ``encode_with_offsets(text, unit="bytes")``, whether or
    not the tokenizer normalizes text or adds a prefix space. Tokens of a SentencePiece ``.model``
    cover all of their source bytes.

    Args:
        a, b: Tokenizers of any class.
        text: The text.
        a_ids, b_ids: The ids of the text, if known. They must decode to exactly
            `text`.
        allowed_special, disallowed_special: As in `encode`, for both tokenizers. None allows the
            tokens that each tokenizer allows by default.

    Raises:
        TypeError: `a` or `b` is not a tokenizer, or `text` not a str.
        ValueError: Given ids do not decode to the text, or the text has a disallowed name.
        KeyError: A given id has no token.

    >>> import bpe_engine
    >>> gpt2, o200k = (bpe_engine.get_encoding(name) for name in ("gpt2", "o200k_base"))
    >>> aligned = bpe_engine.align(gpt2, o200k, "根本 is root")
    >>> aligned.a_splits.tolist(), aligned.b_splits.tolist(), aligned.spans.tolist()
    ([0, 2, 4, 5, 6], [0, 1, 2, 3, 4], [[0, 3], [3, 6], [6, 9], [9, 14]])
    """
    np = numpy_for("align", "encode_with_offsets")
    names = {"allowed_special": allowed_special, "disallowed_special": disallowed_special}
    sides = []
    for name, given, ids in (("a", a, a_ids), ("b", b, b_ids)):
        if not issubclass(type(given), Pipeline):
            kind = type(given).__name__
            raise TypeError(
                f"{name} must be a tokenizer, not {kind}; bpe_engine.open_tokenizer opens names and files"
            )
        sides.append(_placed(given, names, text, ids))
    (of_a, a_ends, a_unplaced), (of_b, b_ends, b_unplaced), spans = _groups(*sides)
    a_splits, b_splits = (np.concatenate([[0], ends]) for ends in (a_ends, b_ends))
    return Alignment(of_a, of_b, a_splits, b_splits, spans, a_unplaced, b_unplaced)


#: Ids of a text and the byte span of each id; the second type adds the group ends.
_Placed = tuple[Any, Any]
_Side = tuple[Any, Any, Any]


def _placed(tokenizer: Pipeline, names: Any, text: str, ids: Sequence[int] | None) -> _Placed:
    """Returns the ids of a text and the source byte span of each id."""
    import numpy as np

    if ids is None:
        ids, spans = tokenizer._encode_with_origins(text, **names)
        return np.array(ids, np.uint32), np.array(spans, np.int64).reshape(-1, 2)
    decoded, starts = tokenizer._decode_with_starts(ids)
    if decoded != text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode():
        raise ValueError(
            "the ids do not decode to the text; give the ids of this text, without special tokens "
            "around it"
        )
    edges = np.array([*starts, len(decoded)], np.int64)
    return np.array(list(ids), np.uint32), np.stack([edges[:-1], edges[1:]], 1)


def _cuts(spans: Any) -> tuple[Any, Any, Any]:
    """Returns the byte boundaries that no token of a sequence crosses.

    Every token before a cut ends at or before the cut, and every other token begins at or after the
    cut. Tokens without a span come after a cut, but before the last cut.

    Returns:
        The first and the last possible byte of each cut, and the number of tokens before the cut.
    """
    import numpy as np

    (placed,) = np.nonzero(spans[:, 0] < spans[:, 1])
    starts, ends = spans[placed].T
    low = np.concatenate([[0], np.maximum.accumulate(ends)])
    high = np.concatenate([np.minimum.accumulate(starts[::-1])[::-1], [np.iinfo(np.int64).max]])
    counts = np.concatenate([[0], placed + 1])
    counts[-1] = len(spans)
    kept = low <= high
    return low[kept], high[kept], counts[kept]


def _groups(a: _Placed, b: _Placed) -> tuple[_Side, _Side, Any]:
    """Groups the tokens of two sequences at the cuts of both.

    Returns:
        For each sequence: the ids, the end of each group, and the indices of ids without a span;
        and the byte range of each group.
    """
    import numpy as np

    sides = (a, b)
    cuts = [_cuts(spans) for _, spans in sides]
    # Avoids `union1d`, whose import of a numpy module could hang a process forked meanwhile.
    places = np.sort(np.concatenate([cuts[0][0], cuts[1][0]]))
    places = places[np.diff(places, prepend=-1) > 0]
    numbers = [np.searchsorted(low, places, "right") - 1 for low, _, _ in cuts]
    is_cut = places > 0
    for (_, high, _), number in zip(cuts, numbers):
        is_cut &= places <= high[number]
    ends = [counts[number[is_cut]] for (_, _, counts), number in zip(cuts, numbers)]
    if not len(ends[0]) and len(a[0]) + len(b[0]):
        ends = [np.array([len(ids)]) for ids, _ in sides]
    first = np.full(len(ends[0]), np.iinfo(np.int64).max)
    last = np.zeros_like(first)
    found = []
    for (ids, spans), end in zip(sides, ends):
        is_placed = spans[:, 0] < spans[:, 1]
        group = np.searchsorted(end, np.nonzero(is_placed)[0], "right")
        np.minimum.at(first, group, spans[is_placed, 0])
        np.maximum.at(last, group, spans[is_placed, 1])
        found.append((ids, end, np.nonzero(~is_placed)[0]))
    return found[0], found[1], np.stack([np.minimum(first, last), last], 1)
