"""Tests that rows contain every id of the corpus once, and that packing is best-fit decreasing."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from corpora import texts, write_jsonl
from hypothesis import given
from hypothesis import strategies as st

from bpe_engine.abilities.packing import best_fit
from bpe_engine.corpus import CorpusError, PackedRows, make_plan, pack_rows, run_plan, verify_corpus
from bpe_engine.corpus.corpus_reader import CorpusReader
from bpe_engine.corpus.shuffle import Permutation

pytest.importorskip("pyarrow")


def plainly(lengths: list[int], room: int) -> list[list[int]]:
    """Packs by the definition of best-fit decreasing: searches all rows for each piece."""
    rows: list[list[int]] = []
    left: list[tuple[int, int]] = []  # By row: free space, and when the row last changed.
    for turn, piece in enumerate(sorted(range(len(lengths)), key=lambda at: -lengths[at])):
        fitting = [(*left[row], row) for row in range(len(rows)) if left[row][0] >= lengths[piece]]
        if fitting:
            row = min(fitting)[2]
        else:
            row = len(rows)
            rows.append([])
            left.append((room, turn))
        rows[row].append(piece)
        left[row] = (left[row][0] - lengths[piece], turn)
    return rows


@given(
    st.integers(1, 40).flatmap(
        lambda room: st.tuples(st.just(room), st.lists(st.integers(1, room)))
    )
)
def test_best_fit_is_its_definition(case: tuple[int, list[int]]) -> None:
    room, lengths = case
    order, ends = best_fit(np.array(lengths, np.int64), room)
    found = [part.tolist() for part in np.split(order, ends[:-1])] if len(ends) else []
    assert sorted(order.tolist()) == list(range(len(lengths)))
    sizes = [[lengths[piece] for piece in row] for row in found]
    assert all(sum(row) <= room for row in sizes)
    assert sorted(map(sorted, sizes)) == sorted(
        sorted(lengths[piece] for piece in row) for row in plainly(lengths, room)
    )


@given(st.integers(1, 3000), st.integers())
def test_permutations_are_permutations(count: int, seed: int) -> None:
    order = Permutation(count, seed)
    places = order.of(np.arange(count))
    assert sorted(places.tolist()) == list(range(count))
    assert (order.inverse(places) == np.arange(count)).all()


def test_permutations_never_change() -> None:
    assert Permutation(10, 1).of(np.arange(10)).tolist() == [6, 8, 3, 2, 7, 5, 9, 1, 0, 4]
    assert Permutation(10**12, 2).of([0, 1, 10**12 - 1]).tolist() == [
        256205100689,
        552155314878,
        382847655195,
    ]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("packing")
    documents = [*texts(150), "long " * 300, ""]
    source = write_jsonl(folder / "in.jsonl", documents)
    run_plan(make_plan([source], "gpt2", folder / "out", unit_bytes=4000), processes=1)
    return folder / "out"


@pytest.mark.parametrize("seed", [None, 9])
@pytest.mark.parametrize("method", ["best-fit", "wrap"])
@pytest.mark.parametrize("length", [3, 50, 64, 10_000])
def test_rows_hold_every_id_once(corpus: Path, length: int, method: str, seed: int | None) -> None:
    path = pack_rows(corpus, length, method=method, seed=seed)
    first = Path(path).read_bytes()
    assert Path(pack_rows(corpus, length, method=method, seed=seed)).read_bytes() == first
    rows = pickle.loads(pickle.dumps(PackedRows(corpus, length, method, seed)))
    reader = CorpusReader(corpus)
    spans = reader.spans(0, reader.documents)
    all_ids = reader.ids(0, reader.tokens)
    seen = np.zeros(reader.tokens, int)
    for number in range(len(rows)):
        row, pieces = rows[number], rows.pieces(number)
        assert 1 <= len(row["input_ids"]) <= length
        expected = [all_ids[first : first + count] for _, first, count in pieces]
        assert row["input_ids"].tolist() == np.concatenate(expected).tolist()
        cuts = row["cu_seqlens"].tolist()
        assert cuts == np.cumsum([0, *(count for *_, count in pieces)]).tolist()
        positions = [place for a, b in zip(cuts, cuts[1:]) for place in range(b - a)]
        assert row["position_ids"].tolist() == positions
        assert row["loss_mask"].all() and len(row["loss_mask"]) == len(positions)
        for document, first_id, count in pieces:
            assert spans[document] <= first_id and first_id + count <= spans[document + 1]
            seen[first_id : first_id + count] += 1
    assert (seen == 1).all()
    if method == "wrap":
        full = [len(rows[number]["input_ids"]) for number in range(len(rows) - 1)]
        assert set(full) <= {length}
    if seed is None and method == "wrap":
        joined = [rows[number]["input_ids"] for number in range(len(rows))]
        assert np.concatenate(joined).tolist() == all_ids.tolist()


def test_windows_do_not_lose_documents(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bpe_engine.corpus.pack._WINDOW", 7)
    for method in ("best-fit", "wrap"):
        pack_rows(corpus, 33, method=method)
        rows = PackedRows(corpus, 33, method, None)
        assert sum(len(row["input_ids"]) for row in map(rows.__getitem__, range(len(rows)))) == (
            CorpusReader(corpus).tokens
        )


def test_the_last_documents_may_be_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bpe_engine.corpus.pack._WINDOW", 2)
    source = write_jsonl(tmp_path / "in.jsonl", ["one two three", "", "", "", "", ""])
    run_plan(make_plan([source], "gpt2", tmp_path / "out", eod=None), processes=1)
    for length in (2, 5):
        pack_rows(tmp_path / "out", length, method="wrap")
        rows = PackedRows(tmp_path / "out", length, "wrap")
        found = [rows[number]["input_ids"] for number in range(len(rows))]
        assert np.concatenate(found).tolist() == CorpusReader(tmp_path / "out").ids(0, 3).tolist()


def test_wrong_rows_are_refused(corpus: Path, tmp_path: Path) -> None:
    pack_rows(corpus, 77)
    rows = PackedRows(corpus, 77)
    assert rows[-1]["input_ids"].tolist() == rows[len(rows) - 1]["input_ids"].tolist()
    for number in (len(rows), -len(rows) - 1):
        with pytest.raises(IndexError, match="of"):
            rows[number]
    with pytest.raises(CorpusError, match="no such index"):
        PackedRows(corpus, 78)
    with pytest.raises(CorpusError, match="at least 1 id"):
        pack_rows(corpus, 0)
    with pytest.raises(CorpusError, match="at most 2,147,483,647"):
        pack_rows(corpus, 1 << 31)
    pack_rows(corpus, (1 << 31) - 1)
    assert len(PackedRows(corpus, (1 << 31) - 1)) == 1
    with pytest.raises(CorpusError, match="choose one of best-fit, wrap"):
        pack_rows(corpus, 5, method="greedy")
    index = corpus / "packed-77-best-fit.idx"
    index.write_bytes(index.read_bytes()[:-8])
    with pytest.raises(CorpusError, match="is damaged"):
        PackedRows(corpus, 77)
    pack_rows(corpus, 77)


def test_pieces_that_cannot_be_are_named(corpus: Path) -> None:
    pack_rows(corpus, 77)
    index = corpus / "packed-77-best-fit.idx"
    whole = index.read_bytes()
    rows, pieces = len(PackedRows(corpus, 77)), json.loads(whole[:4096].rstrip(b"\0"))["pieces"]
    counts = 4096 + 8 * (rows + 1 + 2 * pieces)
    for place in (4096 + 8, counts - 8 * pieces, counts):
        broken = bytearray(whole)
        broken[place : place + 8] = (1 << 40).to_bytes(8, "little")
        index.write_bytes(broken)
        with pytest.raises(CorpusError, match="the index is damaged"):
            PackedRows(corpus, 77)[0]
    index.write_bytes(whole)


def test_no_framework_is_imported(corpus: Path) -> None:
    pack_rows(corpus, 50)
    code = (
        "import sys; from bpe_engine.corpus import PackedRows; rows = PackedRows(sys.argv[1], 50, 'best-fit', None);"
        "rows[0]; assert not {'torch', 'tensorflow'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code, corpus], check=True)


def test_another_seed_leaves_an_open_index(corpus: Path) -> None:
    pack_rows(corpus, 40, method="wrap", seed=1)
    rows = PackedRows(corpus, 40, "wrap")
    before = [rows.pieces(number) for number in range(len(rows))]
    fresh = PackedRows(corpus, 40, "wrap")
    pack_rows(corpus, 40, method="wrap", seed=2)
    assert [fresh.pieces(number) for number in range(len(rows))] == before
    other = PackedRows(corpus, 40, "wrap", seed=2)
    assert [other.pieces(number) for number in range(len(rows))] != before
    with pytest.raises(CorpusError, match="more than one index .*packed-40-wrap-seed1.idx"):
        PackedRows(corpus, 40, "wrap")


@pytest.mark.parametrize("place", [3, 60, 4095, 4096, 4200, -1])
def test_a_changed_index_is_found(corpus: Path, place: int) -> None:
    path = Path(pack_rows(corpus, 31, seed=5))
    assert verify_corpus(corpus, sample=0).problems == []
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)
    (problem,) = verify_corpus(corpus, sample=0).problems
    assert problem.startswith(f"{path} has other bytes") and problem.endswith("pack again")
    path.unlink()
