"""Packs token ids into the inputs of text encoders, and into rows for training language models.

The inputs of encoders are the three arrays of text preprocessors on TF Hub: ``input_word_ids``,
``input_mask`` and ``input_type_ids`` (https://www.tensorflow.org/hub/common_saved_model_apis/text).
"""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex

from .._arguments import whole_number
from ..common.values import check_choice, checked
from .ragged import TokenBatch

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["pack_causal", "pack_inputs"]

_LARGEST = 2**31 - 1

#: Label of ids that a loss ignores, as in torch and transformers.
IGNORED = -100


def pack_inputs(
    segments: Iterable[Any],
    seq_length: SupportsIndex,
    *,
    start_id: SupportsIndex,
    end_id: SupportsIndex,
    pad_id: SupportsIndex,
    truncator: Literal["round_robin", "waterfall"] = "round_robin",
) -> dict[str, npt.NDArray[np.int32]]:
    """Packs segments into rows: start, segment 0, end, segment 1, end, ..., padding.

    Args:
        segments: One or more segments with the same number of rows: each a `TokenBatch`, lists of
            ids, a matrix, or the ragged tensor of another package. Nested lists in a row are
            flattened.
        seq_length: The length of each row of the result. Segments share the room that special
            tokens leave: ``seq_length - (len(segments) + 1)``.
        start_id, end_id, pad_id: The ids of special tokens, as from
            ``encoding.encode_single_token``.
        truncator: How to truncate rows that are too long. ``"round_robin"`` gives one id to each
            segment in turn, so that short segments stay whole and long segments share the rest.
            ``"waterfall"`` fills the first segment, then the next.

    Returns:
        ``input_word_ids``, ``input_mask`` (1 before padding) and ``input_type_ids`` (the segment
        of each id; 0 for the start and for padding): ``int32[rows, seq_length]`` each.

    Raises:
        ValueError: `segments` is empty, their numbers of rows differ, `seq_length` is too small
            for the special tokens, or an id does not fit into int32.
        TypeError: A segment has another type, or an id is not an int.
        ImportError: numpy is missing.

    >>> from bpe_engine.abilities.packing import pack_inputs
    >>> packed = pack_inputs([[[1, 2, 3]], [[4, 5]]], 8, start_id=101, end_id=102, pad_id=0)
    >>> packed["input_word_ids"].tolist(), packed["input_type_ids"].tolist()
    ([[101, 1, 2, 3, 102, 4, 5, 102]], [[0, 0, 0, 0, 0, 1, 1, 1]])
    >>> pack_inputs([[[1, 2, 3]], [[4, 5]]], 6, start_id=101, end_id=102, pad_id=0)[
    ...     "input_word_ids"
    ... ].tolist()
    [[101, 1, 2, 102, 4, 102]]
    """
    import numpy as np

    if isinstance(segments, TokenBatch):
        raise TypeError("segments must be a list; for one segment pass [batch]")
    batches = [_batch(segment, place) for place, segment in enumerate(checked(segments))]
    if not batches:
        raise ValueError("segments is empty; pass a list of one or more")
    rows = len(batches[0])
    for place, batch in enumerate(batches):
        if len(batch) != rows:
            raise ValueError(
                f"segments[{place}] has {len(batch)} rows, but segments[0] has {rows}; all "
                "segments need the same number of rows"
            )
    width = operator.index(seq_length)
    if width > _LARGEST:
        raise ValueError(f"seq_length is {width}, more than {_LARGEST}")
    budget = width - (len(batches) + 1)
    if budget < 0:
        raise ValueError(
            f"seq_length is {width}, but {len(batches)} segments need {len(batches) + 1} special "
            "tokens"
        )
    start, end, pad = (
        _id(name, id)
        for name, id in (("start_id", start_id), ("end_id", end_id), ("pad_id", pad_id))
    )
    sizes = np.stack([batch.lengths for batch in batches], axis=1)
    kept = _TRUNCATORS[_known(truncator)](sizes, budget)

    words = np.full((rows, width), pad, np.int32)
    types = np.zeros((rows, width), np.int32)
    words[:, 0] = start
    # Column where the next segment starts, for each row.
    begin = np.ones(rows, np.int64)
    row_starts = np.arange(rows) * width
    for number, batch in enumerate(batches):
        lengths = kept[:, number]
        part = batch._gather(batch.row_splits[:-1], lengths)
        offsets = np.arange(len(part.values)) - np.repeat(part.row_splits[:-1], lengths)
        targets = np.repeat(row_starts + begin, lengths) + offsets
        words.reshape(-1)[targets] = part.values
        types.reshape(-1)[targets] = number
        begin += lengths
        words.reshape(-1)[row_starts + begin] = end
        types.reshape(-1)[row_starts + begin] = number
        begin += 1
    mask = (np.arange(width) < begin[:, None]).astype(np.int32)
    return {"input_word_ids": words, "input_mask": mask, "input_type_ids": types}


def pack_causal(
    rows: Any,
    seq_length: SupportsIndex,
    *,
    pad_id: SupportsIndex,
    masks: Iterable[Sequence[int]] | None = None,
) -> dict[str, npt.NDArray[np.int64]]:
    """Packs documents or conversations into rows for training a causal language model.

    Documents are placed longest first, each into the fullest row that still has room. A document
    longer than a row is cut into pieces.

    Args:
        rows: The ids of each document: a `TokenBatch`, lists of ids, or a matrix.
        seq_length: The length of each row of the result.
        pad_id: The id after the last document of a row.
        masks: For each document, 1 for the ids to learn and 0 for other ids, as from
            ``Audit.mask()``. None learns all ids.

    Returns:
        ``int64[rows, seq_length]`` each: ``input_ids``; ``labels``, the ids to learn and -100 for
        other ids, for padding and for the first id of a document or piece, which has no context;
        ``attention_mask``, 1 before padding; ``position_ids``, which begin at 0 in each document,
        so that kernels for variable lengths keep documents apart.

    Raises:
        ValueError: `seq_length` is not positive, or the lengths of a mask and its document differ.
        TypeError, ImportError: As in `pack_inputs`.

    >>> from bpe_engine.abilities.packing import pack_causal
    >>> packed = pack_causal([[1, 2, 3], [4, 5]], 6, pad_id=0, masks=[[0, 1, 1], [1, 1]])
    >>> packed["input_ids"].tolist(), packed["labels"].tolist()
    ([[1, 2, 3, 4, 5, 0]], [[-100, 2, 3, -100, 5, -100]])
    >>> packed["position_ids"].tolist(), packed["attention_mask"].tolist()
    ([[0, 1, 2, 0, 1, 0]], [[1, 1, 1, 1, 1, 0]])
    """
    import numpy as np

    width = whole_number("seq_length", seq_length, at_least=1)
    batch, pad = _batch(rows, 0), _id("pad_id", pad_id)
    learned = np.ones(len(batch.values), bool)
    if masks is not None:
        given = TokenBatch.from_lists(masks)
        if len(given) != len(batch):
            raise ValueError(f"there are {len(given)} masks for {len(batch)} rows")
        for row in np.flatnonzero(given.lengths != batch.lengths)[:1].tolist():
            raise ValueError(
                f"masks[{row}] has {given.lengths[row]} numbers, but rows[{row}] has "
                f"{batch.lengths[row]} ids; each id needs one"
            )
        learned = given.values.astype(bool)
    # A long document becomes full pieces and a remainder.
    counts = -(-batch.lengths // width)
    begins = np.repeat(batch.row_splits[:-1], counts)
    number = np.arange(len(begins)) - np.repeat(np.cumsum(counts) - counts, counts)
    starts = begins + number * width
    lengths = np.minimum(np.repeat(batch.row_splits[1:], counts) - starts, width)
    order, ends = best_fit(lengths, width)
    starts, lengths = starts[order], lengths[order]

    inside = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    sources = np.repeat(starts, lengths) + inside
    pieces = np.diff(ends, prepend=0)
    row_of = np.repeat(np.repeat(np.arange(len(ends)), pieces), lengths)
    sizes = np.bincount(row_of, minlength=len(ends))
    targets = row_of * width + np.arange(len(row_of)) - (np.cumsum(sizes) - sizes)[row_of]
    ids = batch.values[sources].astype(np.int64)
    shape = len(ends) * width
    packed = {
        "input_ids": np.full(shape, pad, np.int64),
        "labels": np.full(shape, IGNORED, np.int64),
        "attention_mask": np.zeros(shape, np.int64),
        "position_ids": np.zeros(shape, np.int64),
    }
    packed["input_ids"][targets] = ids
    packed["labels"][targets] = np.where(learned[sources] & (inside > 0), ids, IGNORED)
    packed["attention_mask"][targets] = 1
    packed["position_ids"][targets] = inside
    return {name: array.reshape(len(ends), width) for name, array in packed.items()}


def best_fit(
    lengths: npt.NDArray[np.int64], room: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Packs pieces, the longest first, each into the fullest row with room for it.

    Pieces of the same length, and rows with the same room, keep their order.

    Args:
        lengths: The lengths of pieces, 1 to `room`.
        room: The length of a row.

    Returns:
        The indices of the pieces row by row, and the end of each row in them.

    >>> import numpy as np
    >>> order, ends = best_fit(np.array([3, 6, 2, 4, 1]), 8)
    >>> [part.tolist() for part in np.split(order, ends[:-1])]
    [[1, 2], [3, 0, 4]]
    """
    import numpy as np

    by_length = np.argsort(-lengths, kind="stable")
    row_of = np.empty(len(lengths), np.int64)
    # Rows by remaining room, oldest first; `present` has a bit for each room with rows.
    rows: dict[int, deque[int]] = {}
    present = count = 0
    for piece, size in zip(by_length.tolist(), lengths[by_length].tolist()):
        if open_rooms := present >> size:
            left = size + (open_rooms & -open_rooms).bit_length() - 1
            row = rows[left].popleft()
            present ^= (not rows[left]) << left
        else:
            left, row, count = room, count, count + 1
        row_of[piece] = row
        if left > size:
            rows.setdefault(left - size, deque()).append(row)
            present |= 1 << (left - size)
    # Within a row, the longest piece comes first.
    order = by_length[np.argsort(row_of[by_length], kind="stable")]
    return order, np.cumsum(np.bincount(row_of, minlength=count))


def _round_robin(sizes: Any, budget: int) -> Any:
    """Returns the number of ids to keep from each segment; `sizes` and the result are ``int64[rows,
    segments]``.

    Segments are kept whole from the smallest on, while they fit into an equal share of the
    remaining budget. Larger segments get that share, and the first of them one more id each, until
    the remainder of the division is used up.
    """
    import numpy as np

    rows, count = sizes.shape
    order = np.argsort(sizes, axis=1, kind="stable")
    sorted_sizes = np.take_along_axis(sizes, order, axis=1)
    left = np.full(rows, budget, np.int64)
    share = np.full(rows, np.iinfo(np.int64).max)
    extra = np.zeros(rows, np.int64)
    is_open = np.ones(rows, bool)  # True for rows in which all segments so far fit.
    for place in range(count):
        equal, rest = np.divmod(left, count - place)
        too_large = is_open & (sorted_sizes[:, place] > equal)
        share[too_large], extra[too_large] = equal[too_large], rest[too_large]
        is_open &= ~too_large
        left -= np.where(is_open, sorted_sizes[:, place], 0)
    is_cut = sizes > share[:, None]
    has_one_more = is_cut & (np.cumsum(is_cut, axis=1) <= extra[:, None])
    return np.minimum(sizes, share[:, None]) + has_one_more


def _waterfall(sizes: Any, budget: int) -> Any:
    """Like `_round_robin`, but fills the segments from left to right."""
    import numpy as np

    before = np.cumsum(sizes, axis=1) - sizes
    return np.clip(budget - before, 0, sizes)


_TRUNCATORS = {"round_robin": _round_robin, "waterfall": _waterfall}


def _known(truncator: str) -> str:
    check_choice("truncator", truncator, _TRUNCATORS)
    return truncator


def _id(name: str, id: SupportsIndex) -> int:
    try:
        number = operator.index(id)
    except TypeError:
        raise TypeError(
            f'{name} must be an int, as encoding.encode_single_token("<|name|>") returns, not '
            f"{type(id).__name__}"
        ) from None
    if not 0 <= number <= _LARGEST:
        raise ValueError(f"{name} is {number}, outside the range 0 to {_LARGEST}")
    return number


def _batch(segment: Any, place: int) -> TokenBatch:
    batch = segment if isinstance(segment, TokenBatch) else _batch_of_rows(segment, place)
    if len(batch.values) and int(batch.values.max()) > _LARGEST:
        raise ValueError(
            f"segments[{place}] has the id {int(batch.values.max())}, which does not fit into int32"
        )
    return batch


def _batch_of_rows(segment: Any, place: int) -> TokenBatch:
    # The segment may be a ragged tensor of tensorflow, torch or pyarrow.
    for name in ("to_list", "to_pylist", "tolist"):
        if callable(getattr(segment, name, None)):
            segment = getattr(segment, name)()
            break
    if isinstance(segment, (str, bytes)) or not isinstance(segment, Iterable):
        raise TypeError(
            f"segments[{place}] must be a TokenBatch or lists of ids, not {type(segment).__name__}"
        )
    rows = []
    for number, row in enumerate(segment):
        if isinstance(row, (str, bytes)) or not isinstance(row, Iterable):
            raise TypeError(
                f"segments[{place}] must hold rows of ids, but item {number} is a "
                f"{type(row).__name__}; for one row pass [ids]"
            )
        rows.append(_flattened(row))
    return TokenBatch.from_lists(rows)


def _flattened(row: Iterable[Any]) -> Sequence[int]:
    ids: list[int] = []
    for item in row:
        if isinstance(item, Iterable) and not isinstance(item, (str, bytes)):
            ids.extend(_flattened(item))
        else:
            ids.append(item)
    return ids
