"""Maps the ids of one vocabulary to those of another by the bytes of their tokens."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

from bpe_engine.texts import Paths, corpus_files, read_texts, size_or_zero

from .arguments import checked_path
from .brief import Brief
from .text import plural

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from bpe_engine import Encoding, Tokenizer
    from bpe_engine.hf import Tokenizer as HfTokenizer

    AnyTokenizer = Encoding | Tokenizer | HfTokenizer
    Ids = npt.NDArray[np.uint32]

#: Texts before which tokens are encoded, to see them in the middle of a text.
_BEFORE = ("\n", "a", ".")

#: The longest token that is looked for in bytes that are not text.
_LONGEST = 64


@dataclass(frozen=True, repr=False, eq=False)
class Decompositions(Brief):
    """The ids of ``b`` that tokens of ``a`` become.

    Row ``i`` is ``values[row_splits[i]:row_splits[i + 1]]``.
    """

    #: The ids of ``a``, ascending.
    ids: Ids
    #: The ids of ``b`` of all rows.
    values: Ids
    #: The row splits, one more than there are rows.
    row_splits: npt.NDArray[np.int64]

    def __len__(self) -> int:
        """Returns the number of rows."""
        return len(self.ids)

    def __iter__(self) -> Iterator[tuple[int, list[int]]]:
        """Yields each id of ``a`` with its ids of ``b``."""
        rows = zip(self.ids.tolist(), self.row_splits.tolist(), self.row_splits[1:].tolist())
        return ((id, self.values[start:end].tolist()) for id, start, end in rows)


@dataclass(frozen=True)
class CorpusOverlap:
    """The tokens of a corpus in both vocabularies."""

    #: The number of tokens of ``a``, and of those that ``b`` has, too.
    tokens: int
    shared: int
    #: The number of tokens of ``b``, and of those that ``a`` has, too.
    tokens_b: int
    shared_b: int


@dataclass(frozen=True, repr=False, eq=False)
class VocabularyMap(Brief):
    """The ids of a vocabulary ``a`` in another one, ``b``.

    Ordinary tokens are compared by their bytes in ``token_table``. Special tokens are left out.
    """

    name_a: str
    name_b: str
    #: The number of ordinary tokens of each vocabulary.
    size_a: int
    size_b: int
    #: Pairs of ids with the same bytes, ascending by the id of ``a``: two columns. Of several ids with
    #: the same bytes, as of a letter and of its byte, the one counts that encoding makes, or else the
    #: lowest.
    equal: Ids
    #: Every other token of ``a``, in the middle of a text. A row is empty where ``b`` cannot spell the
    #: token: it has no token for a byte, or encodes the text to an unknown or a special token.
    decompositions: Decompositions
    #: Every other token of ``a``, at the start of a text; and those equal tokens that become other ids
    #: there, since ``a`` or ``b`` puts a space before a text.
    at_start: Decompositions
    #: The bytes of each id of both vocabularies.
    tokens_a: Sequence[bytes]
    tokens_b: Sequence[bytes]
    #: The overlap in a corpus, if one was given.
    corpus: CorpusOverlap | None = None

    @property
    def overlap(self) -> float:
        """The share of the tokens of ``a`` that ``b`` has."""
        return len(self.equal) / self.size_a if self.size_a else 0.0

    @property
    def spelled(self) -> int:
        """The number of tokens of ``a`` that become other tokens of ``b``."""
        splits = self.decompositions.row_splits
        return int((splits[1:] > splits[:-1]).sum())

    def weights(self) -> tuple[Ids, npt.NDArray[np.int64], Ids, npt.NDArray[np.float32]]:
        """Returns the weights of averages of rows of an embedding of ``b``, for each token of ``a``.

        Returns:
            The ids of ``a``, ascending; the row splits; and in these rows the ids of ``b`` and their
            weights, which sum to 1. A token that ``b`` cannot spell has an empty row.
        """
        import numpy as np

        lengths = np.diff(self.decompositions.row_splits)
        ids = np.concatenate([self.equal[:, 0], self.decompositions.ids])
        order = np.argsort(ids, kind="stable")
        counts = np.concatenate([np.ones(len(self.equal), np.int64), lengths])
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])[:-1]
        values = np.concatenate([self.equal[:, 1], self.decompositions.values])
        counts = counts[order]
        splits = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
        places = np.repeat(starts[order] - splits[:-1], counts) + np.arange(splits[-1])
        weights = np.repeat(1 / np.maximum(counts, 1), counts).astype(np.float32)
        return ids[order], splits, values[places], weights

    def to_arrow(self) -> Any:
        """Returns a pyarrow table with a row for each token of ``a``: ``id``, ``token``, ``equal``
        (the id of ``b``, or null), ``in_middle`` and ``at_start`` (lists of ids of ``b``).

        Raises:
            ImportError: pyarrow is missing.
        """
        import pyarrow as pa

        equal = dict(self.equal.tolist())
        middle, start = dict(self.decompositions), dict(self.at_start)
        ids = sorted({*equal, *middle})
        lists = [
            [found[id] if id in found else [equal[id]] for id in ids] for found in (middle, start)
        ]
        kind = pa.list_(pa.uint32())
        return pa.table(
            {
                "id": pa.array(ids, pa.uint32()),
                "token": pa.array([self.tokens_a[id] for id in ids], pa.binary()),
                "equal": pa.array([equal.get(id) for id in ids], pa.uint32()),
                "in_middle": pa.array(lists[0], kind),
                "at_start": pa.array(lists[1], kind),
            }
        )

    def save(self, path: str | os.PathLike[str] | BinaryIO) -> None:
        """Writes the table of `to_arrow` as Parquet.

        Raises:
            ImportError: pyarrow is missing.
            OSError: The file cannot be written.
        """
        import pyarrow.parquet

        target = path if hasattr(path, "write") else checked_path(path)
        pyarrow.parquet.write_table(self.to_arrow(), target)

    def conclusions(self) -> list[str]:
        """Returns what the figures say, in sentences."""
        found = [
            f"{len(self.equal):,} of {self.size_a:,} tokens of {self.name_a} ({self.overlap:.1%}) are "
            f"tokens of {self.name_b}."
        ]
        rows, spelled = len(self.decompositions), self.spelled
        if spelled:
            mean = len(self.decompositions.values) / spelled
            found.append(
                f"{spelled:,} others become {mean:.2f} tokens of {self.name_b} on average."
            )
        if rows > spelled:
            found.append(f"{self.name_b} cannot spell {plural(rows - spelled, 'token')}.")
        if self.corpus is not None and self.corpus.tokens:
            one, other = self.corpus, self.corpus
            found.append(
                f"Of the corpus, {one.shared / one.tokens:.1%} of the tokens of {self.name_a} and "
                f"{other.shared_b / max(other.tokens_b, 1):.1%} of those of {self.name_b} are in both."
            )
        return found


def map_vocabularies(
    a: AnyTokenizer | str | os.PathLike[str],
    b: AnyTokenizer | str | os.PathLike[str],
    corpus: Paths | None = None,
    *,
    field: str = "text",
    errors: str = "strict",
    progress: Callable[[int, int], None] | None = None,
) -> VocabularyMap:
    """Maps the ids of one vocabulary to those of another by the bytes of their tokens.

    The tables are those that a draft model with another vocabulary needs, and an embedding that is
    carried over to another vocabulary.

    Args:
        a, b: tokenizers of any class, or names, files and folders, as
            :func:`bpe_engine.open_tokenizer` takes them.
        corpus: files, folders and globs on which to count the tokens that both have.
        field: the field of JSON lines and tables that has the text.
        errors: "strict", or "replace" to read bytes that are not UTF-8 as U+FFFD.
        progress: called now and then with bytes done and bytes in all.

    Returns:
        Pairs of equal tokens, and the ids of ``b`` that every other token of ``a`` becomes: the
        encoding of the token's text by ``b``. Bytes that are not UTF-8 are cut into the longest
        tokens from the left, of at most 64 bytes each.

    Raises:
        TypeError: ``a`` or ``b`` is not a tokenizer.
        UnsupportedTokenizer: the ids of a tokenizer have no bytes of their own.
        ImportError: numpy is missing.
        OSError, ValueError: a file cannot be read, or is malformed.

    >>> import vocab_tools
    >>> map = vocab_tools.map_vocabularies("gpt2", "o200k_base")
    >>> len(map.equal), len(map.decompositions), f"{map.overlap:.2f}"
    (42873, 7383, '0.85')
    """
    import numpy as np

    one, other = (_opened(it) for it in (a, b))
    (tokens_a, ids_a), (tokens_b, ids_b) = _tokens(one), _tokens(other)
    own, known = _ids_by_bytes(one, tokens_a, ids_a), _ids_by_bytes(other, tokens_b, ids_b)
    pairs = sorted((id, known[token]) for token, id in own.items() if token in known)
    same = dict(pairs)
    others = [id for id in ids_a if id not in same]
    made = [tokens_a[id] for id in others]
    middle = start = _decomposition(
        others, _decomposed(other, made, tokens_b, known, in_middle=True), set(ids_b)
    )
    if _prepends(one) or _prepends(other):
        made = [tokens_a[id] for id in ids_a]
        rows = _decomposed(other, _as_texts(one, made), tokens_b, known, in_middle=False)
        start = _decomposition(ids_a, rows, set(ids_b), same)
    equal = np.array(pairs, np.uint32).reshape(-1, 2)
    overlap = None
    if corpus is not None:
        overlap = _overlap(one, other, equal, corpus, field, errors, progress)
    return VocabularyMap(
        _name(a, one),
        _name(b, other),
        len(ids_a),
        len(ids_b),
        equal,
        middle,
        start,
        tokens_a,
        tokens_b,
        overlap,
    )


def _opened(tokenizer: AnyTokenizer | str | os.PathLike[str]) -> Any:
    if isinstance(tokenizer, (str, os.PathLike)):
        from bpe_engine import open_tokenizer

        return open_tokenizer(tokenizer)
    if not hasattr(tokenizer, "token_table"):
        kind = type(tokenizer).__name__
        raise TypeError(f"a and b must be tokenizers, or their names, files or folders, not {kind}")
    return tokenizer


def _name(given: AnyTokenizer | str | os.PathLike[str], opened: Any) -> str:
    """Returns the name of a tokenizer in reports: of the file, or of the encoding."""
    if isinstance(given, (str, os.PathLike)):
        return os.path.basename(os.fspath(given).rstrip("/"))
    return str(getattr(opened, "name", type(opened).__name__))


def _tokens(tokenizer: Any) -> tuple[list[bytes], list[int]]:
    """Returns the bytes of each id, and the ids of the ordinary tokens that have bytes."""
    table = tokenizer.token_table()
    offsets, buffer = table.offsets.tolist(), bytes(table.buffer)
    tokens = [buffer[start:end] for start, end in zip(offsets, offsets[1:])]
    return tokens, [id for id in table.ids("ordinary") if tokens[id]]


def _ids_by_bytes(tokenizer: Any, tokens: list[bytes], ids: list[int]) -> dict[bytes, int]:
    """Returns the id of the bytes of each token: of several, the one that encoding makes, or else
    the lowest."""
    known = {tokens[id]: id for id in reversed(ids)}
    if len(known) == len(ids):
        return known
    counts = Counter(tokens[id] for id in ids)
    repeated = [token for token, count in counts.items() if count > 1]
    ordinary = set(ids)
    rows = _decomposed(tokenizer, repeated, tokens, known, in_middle=True)
    for token, made in zip(repeated, rows):
        if len(made) == 1 and made[0] in ordinary and tokens[made[0]] == token:
            known[token] = made[0]
    return known


def _prepends(tokenizer: Any) -> bool:
    """True if a tokenizer puts a space before a text."""
    ids = tokenizer.encode_to_numpy("a", disallowed_special=()).tolist()
    return bool(ids) and tokenizer.token_table()[ids[0]].startswith(b" ")


def _as_texts(tokenizer: Any, tokens: list[bytes]) -> list[bytes]:
    """Returns the text that each token is at the start of: without the space that comes before it."""
    if not _prepends(tokenizer):
        return tokens
    return [token[1:] if token[:1] == b" " and len(token) > 1 else token for token in tokens]


def _decomposed(
    tokenizer: Any,
    tokens: list[bytes],
    table: list[bytes],
    known: dict[bytes, int],
    *,
    in_middle: bool,
) -> list[list[int]]:
    """Returns the ids of each token of another vocabulary."""
    texts = [_text(token) for token in tokens]
    rows: list[list[int] | None] = [
        None if text is not None else _longest_match(token, known)
        for token, text in zip(tokens, texts)
    ]
    if in_middle and _prepends(tokenizer):
        for before in _BEFORE:
            _encode_after(tokenizer, before, texts, table, rows)
    missing = [place for place, row in enumerate(rows) if row is None]
    for place, row in zip(missing, _encode(tokenizer, [texts[place] or "" for place in missing])):
        rows[place] = row
    return [row or [] for row in rows]


def _decomposition(
    ids: list[int], rows: list[list[int]], ordinary: set[int], same: dict[int, int] | None = None
) -> Decompositions:
    """Returns the rows of ids, without those that are equal to `same`; those with an id that is not
    ordinary are empty."""
    import numpy as np

    kept = [
        (id, row if ordinary.issuperset(row) else [])
        for id, row in zip(ids, rows)
        if not same or row != [same.get(id)]
    ]
    splits = np.cumsum([0, *(len(row) for _, row in kept)], dtype=np.int64)
    values = np.array([id for _, row in kept for id in row], np.uint32)
    return Decompositions(np.array([id for id, _ in kept], np.uint32), values, splits)


def _text(token: bytes) -> str | None:
    try:
        return token.decode()
    except UnicodeDecodeError:
        return None


def _encode(tokenizer: Any, texts: list[str]) -> list[list[int]]:
    names: dict[str, Any] = {"disallowed_special": ()}
    batch = tokenizer.encode_batch_to_numpy(texts, **names)
    found: list[list[int]] = batch.to_lists()
    return found


def _encode_after(
    tokenizer: Any,
    before: str,
    texts: list[str | None],
    table: list[bytes],
    rows: list[list[int] | None],
) -> None:
    """Fills the rows of texts whose tokens begin where `before`, which comes before them, ends."""
    [first] = _encode(tokenizer, [before])
    size = sum(len(table[id]) for id in first)
    places = [place for place, row in enumerate(rows) if row is None]
    found = _encode(tokenizer, [before + (texts[place] or "") for place in places])
    for place, ids in zip(places, found):
        if ids[: len(first)] == first and size:
            rows[place] = ids[len(first) :]


def _longest_match(token: bytes, known: dict[bytes, int]) -> list[int]:
    """Cuts bytes into the longest tokens from the left; into none if a byte has no token."""
    ids, start = [], 0
    while start < len(token):
        ends = range(min(len(token), start + _LONGEST), start, -1)
        end = next((end for end in ends if token[start:end] in known), None)
        if end is None:
            return []
        ids.append(known[token[start:end]])
        start = end
    return ids


def _overlap(
    a: Any,
    b: Any,
    equal: Ids,
    corpus: Paths,
    field: str,
    errors: str,
    progress: Callable[[int, int], None] | None,
) -> CorpusOverlap:
    """Counts the tokens of a corpus that both vocabularies have."""
    import numpy as np

    counts = [np.zeros(len(it.token_table()), np.int64) for it in (a, b)]
    files = corpus_files(corpus)
    total, done = sum(map(size_or_zero, files)), 0
    for file in files:
        for texts in read_texts(file, field, errors):
            for it, count in zip((a, b), counts):
                values = it.encode_batch_to_numpy(texts, disallowed_special=()).values
                count += np.bincount(values, minlength=len(count))
            done += sum(len(text.encode()) for text in texts)
            if progress is not None:
                progress(min(done, total), total)
    shared = [int(count[equal[:, side]].sum()) for side, count in enumerate(counts)]
    return CorpusOverlap(int(counts[0].sum()), shared[0], int(counts[1].sum()), shared[1])
