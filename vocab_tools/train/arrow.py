"""Counts the pieces of Arrow tables, and stores counts in Parquet, to count on several machines.

A table of counts has the columns ``piece`` (text) and ``count`` (64-bit integers). If a piece
occurs more than once, in one or several tables, its counts are added.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from bpe_engine.common.values import describe

from ..arguments import several_names
from ..corpus.cutting import Cutting, cutting
from ..corpus.piece_counts import CorpusCounts
from .models import words_of

if TYPE_CHECKING:
    import pyarrow

#: Metadata key in a file of counts for how the text was cut.
METADATA = b"bpe_engine.cutting"

#: Number of rows to read or count at a time.
ROWS = 1 << 14


def _pyarrow(what: str) -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError(
            f"{what} needs the package pyarrow; install it with pip install 'bpe-engine[vocab-tools]'"
        ) from error
    return pyarrow


@functools.lru_cache(maxsize=8)
def _cutting(pattern: str | None, special_tokens: tuple[str, ...], nfc: bool | None) -> Cutting:
    return cutting(pattern, special_tokens, nfc)


def count_pieces(
    table: pyarrow.Table | pyarrow.RecordBatch,
    *,
    pattern: str | None = None,
    special_tokens: Sequence[str] = (),
    nfc: bool | None = None,
    like: str | None = None,
    field: str = "text",
) -> pyarrow.Table:
    """Counts the pieces of the texts in a table, the distributable part of training.

    For use with Ray Data's ``map_batches(count_pieces, batch_format="pyarrow")`` and, batch by
    batch, with Spark's ``mapInArrow``.

    Args:
        table: a table, or a record batch, with a column of texts.
        pattern: the name of an encoding, or a regular expression; o200k_base's pattern by default.
        special_tokens: names to cut out of the texts.
        nfc: whether to normalize text to NFC; by default as the named encoding does.
        like: the pipeline of a different model, which cuts texts into words line by line, as in
            :func:`vocab_tools.train_model`.
        field: the name of the column of texts.

    Returns:
        A table with the columns ``piece`` and ``count``, sorted by the bytes of the pieces.

    Raises:
        ValueError: the column is missing, or its type is not text.
        ImportError: pyarrow is not installed.

    >>> import pyarrow
    >>> count_pieces(pyarrow.table({"text": ["low low", "lower"]})).to_pydict()
    {'piece': [' low', 'low', 'lower'], 'count': [1, 1, 1]}
    """
    arrow = _pyarrow("count_pieces")
    if not isinstance(table, (arrow.Table, arrow.RecordBatch)):
        raise TypeError(
            f"count_pieces counts a pyarrow.Table, not {describe(table)}; count_corpus counts files"
        )
    special_tokens = several_names("special_tokens", special_tokens, '["<|endoftext|>"]')
    names = table.schema.names
    if field not in names:
        has = ", ".join(map(repr, names[:8])) or "none"
        raise ValueError(f"the table has no column {field!r}, only {has}; name it with field=")
    kind = table.schema.field(field).type
    if not (arrow.types.is_string(kind) or arrow.types.is_large_string(kind)):
        raise ValueError(f"the column {field!r} has {kind}, not text")
    if like is None:
        cut = _cutting(pattern, tuple(special_tokens), nfc)
    elif pattern is not None or special_tokens or nfc is not None:
        raise ValueError("like brings a pipeline; leave pattern, special_tokens and nfc out")
    else:
        cut = words_of(None, like)
    texts = table.column(field)
    try:
        texts.validate(full=True)
    except arrow.ArrowException as error:
        raise ValueError(f"the column {field!r} is damaged or not UTF-8: {error}") from error
    with CorpusCounts(cut) as counts:
        for start in range(0, len(texts), ROWS):
            found = texts.slice(start, ROWS).to_pylist()
            counts.pieces.count([text for text in found if text is not None])
        parts = [_table(arrow, pieces, n) for pieces, n in counts.rows()]
    return arrow.concat_tables(parts) if parts else _table(arrow, [], [])


def _table(arrow: Any, pieces: Sequence[bytes], counts: Sequence[int]) -> Any:
    # Counts are signed, because Spark has no unsigned integers.
    counts = [min(count, 2**63 - 1) for count in counts]
    column = arrow.array(pieces, arrow.binary()).cast(arrow.string())
    return arrow.table({"piece": column, "count": arrow.array(counts, arrow.int64())})


def write_counts(counts: CorpusCounts, path: str | os.PathLike[str], least: int = 1) -> int:
    """Writes the counts of pieces with at least ``least`` occurrences to a Parquet file, and
    returns the number of distinct pieces written."""
    arrow = _pyarrow(f"writing {os.fspath(path)}")
    metadata = {METADATA: counts.cutting.dump().encode()}
    schema = _table(arrow, [], []).schema.with_metadata(metadata)
    written = 0
    rows = counts.rows(least)
    with arrow.parquet.ParquetWriter(path, schema, compression="zstd") as file:
        for pieces, some in rows:
            file.write_table(_table(arrow, pieces, some).replace_schema_metadata(metadata))
            written += len(pieces)
    return written


def read_counts(
    paths: Iterable[str | os.PathLike[str]], cut: Cutting, *, max_memory: int | None = None
) -> CorpusCounts:
    """Adds up Parquet files of counts.

    Args:
        paths: the paths of the files.
        cut: the required settings for cutting text; checked if a file records its settings.
        max_memory: bytes of memory for counts; further counts go to temporary files.

    Raises:
        ValueError: a file has different columns, or its text was cut differently.
    """
    counts = CorpusCounts(cut)
    for path in paths:
        name = os.fspath(path)
        arrow = _pyarrow(f"reading {name}")
        try:
            with arrow.parquet.ParquetFile(name, buffer_size=1 << 20, pre_buffer=False) as file:
                _check_schema(name, file.schema_arrow, cut)
                for batch in file.iter_batches(ROWS, columns=["piece", "count"]):
                    _add(counts, name, batch)
                    if max_memory is not None and counts.pieces.memory() * 3 > max_memory:
                        counts.spill()
        except arrow.ArrowException as error:
            raise ValueError(f"{name} is not a Parquet file: {error}") from error
        except OSError as error:
            if error.filename is not None or error.errno is not None:
                raise
            reason = str(error).strip()
            raise ValueError(f"{name}: the Parquet file is damaged: {reason}") from error
    return counts


def _check_schema(name: str, schema: Any, cut: Cutting) -> None:
    missing = [column for column in ("piece", "count") if column not in schema.names]
    if missing:
        has = ", ".join(map(repr, schema.names[:8])) or "none"
        raise ValueError(
            f"{name} is not a file of counts: it has the columns {has}, not 'piece' and 'count'"
        )
    described = (schema.metadata or {}).get(METADATA)
    if described is None:
        return
    try:
        other = json.loads(described)
    except ValueError:
        other = None
    if not isinstance(other, dict):
        raise ValueError(f"{name}: the metadata is damaged; count again")
    cut.check_same(other, name)


def _add(counts: CorpusCounts, name: str, batch: Any) -> None:
    batch.validate(full=True)
    pieces, some = batch.column(0).to_pylist(), batch.column(1).to_pylist()
    for piece, count in zip(pieces, some):
        if not isinstance(piece, str) or not isinstance(count, int) or count < 0:
            raise ValueError(f"{name}: {piece!r}: {count!r} is not a piece and its count")
    counts.pieces.add([piece.encode() for piece in pieces], some)
