"""Tests counting for many machines: Arrow tables, and batches as Ray and Spark pass them."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from seeds import seeded

from vocab_tools import TrainOptions, count_pieces, train_model, train_vocabulary
from vocab_tools.corpus.cutting import cutting
from vocab_tools.corpus.piece_counts import CorpusCounts
from vocab_tools.train.arrow import read_counts, write_counts

arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")

CUT = cutting("gpt2", ["<|end|>"])


def rows(count: int) -> list[str | None]:
    chooser = seeded("arrow")
    words = "low lower lowest new newer newest 猫 犬 <|end|>".split()
    return [None, "", *(" ".join(chooser.choices(words, k=9)) for _ in range(count))]


def whole(texts: list[str | None], folder: Path) -> dict[bytes, int]:
    """Returns the vocabulary that one process learns from the same texts."""
    path = folder / "whole.parquet"
    arrow.parquet.write_table(arrow.table({"text": texts}), path)
    return train_vocabulary(
        path, 320, TrainOptions(pattern="gpt2", special_tokens=["<|end|>"])
    ).ranks


def test_a_table_is_counted(tmp_path: Path) -> None:
    texts = rows(200)
    counted = count_pieces(
        arrow.table({"content": texts}), pattern="gpt2", special_tokens=["<|end|>"], field="content"
    )
    assert counted.schema.names == ["piece", "count"]
    assert counted.schema.field("count").type == arrow.int64()
    pieces = counted.column("piece").to_pylist()
    assert pieces == sorted(pieces, key=str.encode) and not any("end" in piece for piece in pieces)
    expected = CorpusCounts(CUT)
    expected.pieces.count([text for text in texts if text])
    assert sum(counted.column("count").to_pylist()) == expected.pieces.totals()[1]
    with pytest.raises(ValueError, match="no column 'text', only 'content'"):
        count_pieces(arrow.table({"content": texts}))
    with pytest.raises(ValueError, match="has int64, not text"):
        count_pieces(arrow.table({"text": [1]}))
    assert count_pieces(arrow.table({"text": arrow.array([], arrow.string())})).num_rows == 0


def test_batches_as_spark_gives_them(tmp_path: Path) -> None:
    """Counts iterators of record batches, which Spark's `mapInArrow` passes and expects."""
    texts = rows(300)
    count = functools.partial(count_pieces, pattern="gpt2", special_tokens=["<|end|>"])

    def counted(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            yield from count(batch).to_batches()

    batches = arrow.table({"text": texts}).to_batches(max_chunksize=37)
    path = tmp_path / "counts.parquet"
    arrow.parquet.write_table(arrow.Table.from_batches(list(counted(iter(batches)))), path)
    with read_counts([path], CUT) as counts:
        result = train_vocabulary(
            counts, 320, TrainOptions(pattern="gpt2", special_tokens=["<|end|>"])
        )
    assert result.ranks == whole(texts, tmp_path)


def test_files_of_counts(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    with CorpusCounts(CUT) as counts:
        counts.pieces.add([b"ab", "猫".encode()], [3, 2**40])
        assert write_counts(counts, path) == 2
    with read_counts([path, path], CUT) as counts:
        assert list(counts.rows()) == [([b"ab", "猫".encode()], [6, 2**41])]
    with pytest.raises(ValueError, match="was counted with pattern"):
        read_counts([path], cutting("qwen", ["<|end|>"]))
    arrow.parquet.write_table(arrow.table({"piece": ["a"], "n": [1]}), path)
    with pytest.raises(ValueError, match="columns 'piece', 'n', not 'piece' and 'count'"):
        read_counts([path], CUT)
    arrow.parquet.write_table(arrow.table({"piece": ["a"], "count": [-1]}), path)
    with pytest.raises(ValueError, match="'a': -1 is not a piece"):
        read_counts([path], CUT)
    path.write_bytes(b"PAR1")
    with pytest.raises(ValueError, match="is not a Parquet file"):
        read_counts([path], CUT)


def test_columns_are_refused() -> None:
    for column in (arrow.array(["low"]), arrow.chunked_array([["low"]])):
        with pytest.raises(TypeError, match="not the .*Array"):
            count_pieces(column)
        for train in (train_vocabulary, train_model):
            with pytest.raises(TypeError, match="not the .*Array"):
                train(column, 300)
