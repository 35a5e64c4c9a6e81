"""Tests `tokenize_batch`, which maps other packages' Arrow tables to Arrow tables."""

from __future__ import annotations

import pytest
from corpora import texts

import bpe_engine
from bpe_engine.corpus import CorpusError, tokenize_batch

pa = pytest.importorskip("pyarrow")


def test_arrow_function() -> None:
    table = pa.table({"text": texts(30), "id": [str(number) for number in range(30)]})
    expected = tokenize_batch(table, "gpt2", id_field="id", eod="<|endoftext|>")
    assert expected["id"].to_pylist() == table["id"].to_pylist()
    assert tokenize_batch(table.slice(0, 0), "gpt2").num_rows == 0
    batch = tokenize_batch(table.to_batches()[0], "gpt2", id_field="id", eod="<|endoftext|>")
    assert isinstance(batch, pa.RecordBatch) and pa.Table.from_batches([batch]) == expected
    with pytest.raises(CorpusError, match="no column 'words', only 'text', 'id'"):
        tokenize_batch(table, "gpt2", field="words")
    with pytest.raises(CorpusError, match="row 2: the field 'text' is null"):
        tokenize_batch(pa.table({"text": ["a", None]}), "gpt2")


@pytest.mark.parametrize("package", ["polars", "datasets"])
def test_tables_of_other_packages(package: str) -> None:
    there = pytest.importorskip(package)
    if package == "polars":
        frame = there.DataFrame({"text": texts(20)})
        found = there.from_arrow(tokenize_batch(frame.to_arrow(), "gpt2"))["input_ids"].to_list()
    else:
        data = there.Dataset.from_dict({"text": texts(20)}).with_format("arrow")
        made = data.map(lambda table: tokenize_batch(table, "gpt2"), batched=True, batch_size=7)
        found = made.with_format(None)["input_ids"][:]
    gpt2 = bpe_engine.get_encoding("gpt2")
    assert found == [gpt2.encode_ordinary(text) for text in texts(20)]
