"""`align`: groups the tokens of two tokenizers that cover the same bytes of a text."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, SupportsIndex

from ._arguments import numpy_for
from ._core import align_texts

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from ._core import Engine
    from ._engine import Names

__all__ = ["AlignedBatch", "Alignment", "align", "align_batch"]


class _Tokenizer(Protocol):
    @property
    def _native_engine(self) -> Engine: ...

    def _names(self, allowed: Names | None, disallowed: Names | None) -> tuple[Names, Names]: ...


@dataclass(frozen=True, eq=False, slots=True)
class Alignment:
    """The ids of two tokenizers for a text, in groups that cover the same bytes.

    Group ``i`` has the ids ``a_ids[a_splits[i]:a_splits[i + 1]]`` and
    ``b_ids[b_splits[i]:b_splits[i + 1]]``, and the bytes ``spans[i]``. Groups are as small as they
    can be: one ends at each byte that no token of either tokenizer crosses.
    """

    #: The ids of the first tokenizer (uint32).
    a_ids: npt.NDArray[np.uint32]
    #: The ids of the second tokenizer (uint32).
    b_ids: npt.NDArray[np.uint32]
    #: The row splits of the groups in `a_ids` (int64), one more than there are groups.
    a_splits: npt.NDArray[np.int64]
    #: The row splits of the groups in `b_ids` (int64), as many.
    b_splits: npt.NDArray[np.int64]
    #: The first byte of each group and the one after its last, in the UTF-8 of the text as given.
    spans: npt.NDArray[np.int64]
    #: The indices of `a_ids` without a place in the text, such as given ids that decode to nothing.
    #: They are in the group of the token after them.
    a_unplaced: npt.NDArray[np.int64]
    #: The indices of `b_ids` without a place in the text.
    b_unplaced: npt.NDArray[np.int64]

    def __len__(self) -> int:
        """Returns the number of groups."""
        return len(self.spans)


@dataclass(frozen=True, eq=False, slots=True)
class AlignedBatch:
    """The alignments of many texts, one after the other. ``batch[i]`` is that of one text.

    Arrays are those of `Alignment`, over all texts. Spans count the bytes of each text from 0.
    """

    a_ids: npt.NDArray[np.uint32]
    b_ids: npt.NDArray[np.uint32]
    a_splits: npt.NDArray[np.int64]
    b_splits: npt.NDArray[np.int64]
    spans: npt.NDArray[np.int64]
    #: The row splits of texts: text ``i`` has the groups ``row_splits[i]`` to ``row_splits[i + 1]``.
    row_splits: npt.NDArray[np.int64]
    a_unplaced: npt.NDArray[np.int64]
    b_unplaced: npt.NDArray[np.int64]

    def __len__(self) -> int:
        """Returns the number of texts."""
        return len(self.row_splits) - 1

    def __getitem__(self, index: SupportsIndex) -> Alignment:
        """Returns the alignment of one text.

        Raises:
            TypeError: `index` is not an integer.
            IndexError: There are fewer texts.
        """
        if not isinstance(index, SupportsIndex):
            kind = type(index).__name__
            raise TypeError(f"the index of a text must be an int, not {kind}; or iterate over all")
        index = operator.index(index)
        if not -len(self) <= index < len(self):
            raise IndexError(f"text {index} of {len(self)}")
        start, end = self.row_splits[index % len(self) :][:2]
        parts = []
        for ids, splits, unplaced in (
            (self.a_ids, self.a_splits, self.a_unplaced),
            (self.b_ids, self.b_splits, self.b_unplaced),
        ):
            first, last = splits[start], splits[end]
            inside = unplaced[(unplaced >= first) & (unplaced < last)] - first
            parts.append((ids[first:last], splits[start : end + 1] - first, inside))
        (a, a_splits, a_unplaced), (b, b_splits, b_unplaced) = parts
        return Alignment(a, b, a_splits, b_splits, self.spans[start:end], a_unplaced, b_unplaced)

    def __iter__(self) -> Iterator[Alignment]:
        return (self[index] for index in range(len(self)))


def align(
    a: _Tokenizer,
    b: _Tokenizer,
    text: str,
    *,
    a_ids: Sequence[int] | None = None,
    b_ids: Sequence[int] | None = None,
    allowed_special: Names | None = None,
    disallowed_special: Names = (),
) -> Alignment:
    """Groups the tokens of two tokenizers that cover the same bytes of a text. Needs numpy.

    Tokens are placed in the text as given, so a normalizer or a space before the text does not shift
    them: as by ``encode_with_offsets(text, unit="bytes")``, but those of a SentencePiece ``.model``
    have all bytes that they come from.

    Args:
        a, b: Tokenizers of any class.
        text: The text.
        a_ids, b_ids: The ids of the text, if they are there already. They must decode to exactly
            `text`.
        allowed_special, disallowed_special: As in `encode`, for both tokenizers. None allows what
            each allows by default.

    Raises:
        TypeError: `a` or `b` is not a tokenizer, or `text` not a str.
        ValueError: Given ids do not decode to the text, or the text has a disallowed name.
        KeyError: A given id is not a token's.

    >>> import bpe_engine
    >>> gpt2, o200k = (bpe_engine.get_encoding(name) for name in ("gpt2", "o200k_base"))
    >>> aligned = bpe_engine.align(gpt2, o200k, "根本 is root")
    >>> aligned.a_splits.tolist(), aligned.b_splits.tolist(), aligned.spans.tolist()
    ([0, 2, 4, 5, 6], [0, 1, 2, 3, 4], [[0, 3], [3, 6], [6, 9], [9, 14]])
    """
    given = (None if ids is None else [ids] for ids in (a_ids, b_ids))
    return align_batch(
        a,
        b,
        [text],
        a_ids=next(given),
        b_ids=next(given),
        num_threads=1,
        allowed_special=allowed_special,
        disallowed_special=disallowed_special,
    )[0]


def align_batch(
    a: _Tokenizer,
    b: _Tokenizer,
    texts: Iterable[str],
    *,
    num_threads: int | None = None,
    a_ids: Sequence[Sequence[int]] | None = None,
    b_ids: Sequence[Sequence[int]] | None = None,
    allowed_special: Names | None = None,
    disallowed_special: Names = (),
) -> AlignedBatch:
    """Returns `align` of each text.

    Args:
        texts: The texts.
        num_threads: How many threads may work on the batch, or None for as many as the machine runs
            at once.
        a_ids, b_ids: The ids of each text, if they are there already.
        a, b, allowed_special, disallowed_special: As in `align`.

    Raises:
        ValueError: As in `align`, or there are ids of more or fewer texts.
        TypeError: `a` or `b` is not a tokenizer, or a text is not a str.
        KeyError: A given id is not a token's.

    >>> import bpe_engine
    >>> gpt2, o200k = (bpe_engine.get_encoding(name) for name in ("gpt2", "o200k_base"))
    >>> batch = bpe_engine.align_batch(gpt2, o200k, ["根本", "", " is root"])
    >>> batch.a_splits.tolist(), batch.b_splits.tolist(), batch.row_splits.tolist()
    ([0, 2, 4, 5, 6], [0, 1, 2, 3, 4], [0, 2, 2, 4])
    """
    np = numpy_for("align", "encode_with_offsets")
    for name, given in (("a", a), ("b", b)):
        if not hasattr(given, "_native_engine"):
            kind = type(given).__name__
            raise TypeError(
                f"{name} must be a tokenizer, not {kind}; bpe_engine.open_tokenizer opens names and files"
            )
    if isinstance(texts, (str, bytes)):
        kind = type(texts).__name__
        raise TypeError(f"texts must be several str, not {kind}; for one text call align")
    names = (one._names(allowed_special, disallowed_special) for one in (a, b))
    ids, numbers = align_texts(
        a._native_engine, b._native_engine, texts, (a_ids, b_ids), num_threads, *names
    )
    a_found, b_found = (np.frombuffer(one, dtype=np.uint32) for one in ids)
    arrays = [np.frombuffer(one, dtype=np.int64) for one in numbers]
    a_splits, b_splits, spans, rows, a_unplaced, b_unplaced = arrays
    return AlignedBatch(
        a_found, b_found, a_splits, b_splits, spans.reshape(-1, 2), rows, a_unplaced, b_unplaced
    )
