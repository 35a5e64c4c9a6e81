"""`tokenize_batch`, which turns Arrow tables of text into Arrow tables of ids, for data engines."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from ..texts.block import block_of
from ..texts.errors import CorpusError
from ..texts.fields import Fields
from .coder import Coder, Engine, load_engine
from .formats.arrow import batch_of, schema_of
from .formats.base import Documents, Layout
from .units import with_ends

__all__ = ["tokenize_batch"]

_CODERS: dict[Any, Coder] = {}


def tokenize_batch(
    batch: Any,
    tokenizer: str | Engine,
    *,
    field: str = "text",
    id_field: str | None = None,
    eod: str | None = None,
    bos: str | None = None,
    allow_special: Collection[str] = (),
    num_threads: int | None = 1,
) -> Any:
    """Encodes the texts of a record batch or table.

    Works in `mapInArrow` of Spark, `map_batches` of Ray and polars, and `datasets.map`. Names of
    special tokens in text are text.

    Args:
        batch: A `pyarrow.RecordBatch` or `pyarrow.Table`, or data that pyarrow converts to a table.
        tokenizer: An `Encoding`, a `bpe_engine.hf.Tokenizer`, or the name, file or folder of a
            tokenizer, loaded once per process.
        field: The column of texts.
        id_field: The column of names, kept as ``id``.
        eod, bos: Special tokens after and before each text.
        allow_special: Names that are encoded as special tokens wherever they occur in text.
        num_threads: Number of threads that encode; None for one per core.

    Returns:
        A batch of the same kind with ``input_ids`` (list of int32) and, with `id_field`, ``id``.

    Raises:
        CorpusError: A column is missing, a row is null or not UTF-8, or a name is not a special
            token.

    >>> import pyarrow as pa
    >>> batch = pa.record_batch({"text": ["hello world", ""]})
    >>> tokenize_batch(batch, "gpt2", eod="<|endoftext|>").to_pylist()
    [{'input_ids': [31373, 995, 50256]}, {'input_ids': [50256]}]
    """
    import numpy as np
    import pyarrow as pa

    if not isinstance(batch, (pa.RecordBatch, pa.Table)):
        batch = pa.table(batch)
    if isinstance(batch, pa.Table):
        arguments: dict[str, Any] = {
            "field": field,
            "id_field": id_field,
            "eod": eod,
            "bos": bos,
            "allow_special": allow_special,
            "num_threads": num_threads,
        }
        # An empty table has a schema and no batches.
        batches = batch.to_batches() or [pa.RecordBatch.from_pylist([], batch.schema)]
        return pa.Table.from_batches(
            [tokenize_batch(part, tokenizer, **arguments) for part in batches]
        )
    coder = _coder(tokenizer, allow_special)
    for name in (field, id_field):
        if name is not None and name not in batch.schema.names:
            has = ", ".join(map(repr, batch.schema.names)) or "none"
            raise CorpusError(f"the batch has no column {name!r}, only {has}")
        if name is not None and batch.schema.names.count(name) > 1:
            raise CorpusError(f"the batch has more than one column {name!r}; rename one")
    names = None if id_field is None else batch.column(id_field)
    lines = np.arange(1, batch.num_rows + 1)
    block = block_of(batch.column(field), names, lines, "the batch", Fields(field, id_field, False))
    if block.bad:
        row, reason = block.bad[0]
        raise CorpusError(f"the batch, row {row + 1}: {reason}; drop it or fill it first")
    layout = Layout(
        coder.largest_id,
        None if eod is None else coder.id_of(eod),
        None if bos is None else coder.id_of(bos),
        False,
        id_field is not None,
        False,
        coder.name,
    )
    ids, splits = coder.encode(block.texts, num_threads)
    ids, splits = with_ends(ids, splits, layout.eod, layout.bos, False)
    if len(ids) >= 1 << 31:
        raise CorpusError(
            f"the batch has {len(ids):,} ids, and an Arrow list 2**31; make it smaller"
        )
    return batch_of(Documents(ids, splits[1:], None, block.names), schema_of(layout))


def _coder(tokenizer: str | Engine, allow_special: Collection[str]) -> Coder:
    if not isinstance(tokenizer, str):
        return Coder(tokenizer, allow_special)
    key = (tokenizer, tuple(sorted(allow_special)))
    coder = _CODERS.get(key)
    if coder is None:
        coder = _CODERS[key] = Coder(load_engine(tokenizer), allow_special)
    return coder
