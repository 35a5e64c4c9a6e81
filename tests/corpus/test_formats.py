"""Tests that a reader written from each format's layout finds the ids of `encode`."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from corpora import EOD, read_datatrove, read_llmc, read_megatron, read_olmo, texts, write_jsonl

import bpe_engine
from bpe_engine.corpus import CorpusError, Plan, make_plan, merge_parts, run_plan, verify_corpus
from bpe_engine.corpus.corpus_reader import CorpusReader
from bpe_engine.corpus.formats.base import write_ids

pa = pytest.importorskip("pyarrow")

FORMS = ["megatron", "datatrove", "olmo", "llm.c", "nanogpt", "parquet", "arrow"]


def made(
    folder: Path, form: str, encoding: str = "gpt2", **options: object
) -> tuple[Plan, list[str]]:
    documents = texts()
    source = write_jsonl(folder / "in.jsonl", documents)
    plan = make_plan([source], encoding, folder / "out", format=form, unit_bytes=2400, **options)
    assert run_plan(plan, processes=1) == len(plan.units)
    return plan, documents


def expected(documents: list[str], encoding: str = "gpt2") -> list[list[int]]:
    engine = bpe_engine.get_encoding(encoding)
    return [engine.encode_ordinary(text) for text in documents]


def ended(documents: list[str], encoding: str = "gpt2") -> list[list[int]]:
    eod = bpe_engine.get_encoding(encoding).eot_token
    return [[*ids, eod] for ids in expected(documents, encoding)]


@pytest.mark.parametrize("encoding", ["gpt2", "o200k_base"])
def test_megatron(tmp_path: Path, encoding: str) -> None:
    plan, documents = made(tmp_path, "megatron", encoding)
    parts = sorted((tmp_path / "out" / "parts").glob("*.idx"))
    assert len(parts) == len(plan.units) > 3
    found = [row for part in parts for row in read_megatron(part.with_suffix(""))]
    assert found == ended(documents, encoding)
    merge_parts(plan)
    assert read_megatron(tmp_path / "out" / "corpus_text_document") == found


@pytest.mark.parametrize("encoding, width", [("gpt2", 2), ("o200k_base", 4)])
def test_datatrove(tmp_path: Path, encoding: str, width: int) -> None:
    plan, documents = made(tmp_path, "datatrove", encoding)
    merge_parts(plan)
    assert read_datatrove(tmp_path / "out" / "corpus", width) == ended(documents, encoding)


def test_olmo(tmp_path: Path) -> None:
    documents = texts()
    names = [f"a,{number}" for number in range(len(documents))]
    sources = [write_jsonl(tmp_path / f"{n}.jsonl", documents, id=names) for n in "ab"]
    options = {"format": "olmo", "unit_bytes": 900, "id_field": "id"}
    plan = make_plan(sources, "gpt2", tmp_path / "out", **options)
    run_plan(plan, processes=1)
    wanted = [
        (ids, name, str(source), line)
        for source in sources
        for line, (ids, name) in enumerate(zip(ended(documents), names), 1)
    ]
    parts = [read_olmo(tmp_path / "out" / "parts" / f"part-00-0000{n}", 2) for n in (0, 1)]
    assert parts[0] + parts[1] == wanted
    merge_parts(plan)
    assert read_olmo(tmp_path / "out" / "part-00-00000", 2) == wanted


def test_olmo_refuses_names_of_two_lines(tmp_path: Path) -> None:
    source = write_jsonl(tmp_path / "in.jsonl", ["a", "b"], id=["one", "two\nlines"])
    plan = make_plan([source], "gpt2", tmp_path / "out", format="olmo", id_field="id")
    with pytest.raises(CorpusError, match="holds a line end"):
        run_plan(plan)


@pytest.mark.parametrize("encoding", ["gpt2", "o200k_base"])
def test_llmc(tmp_path: Path, encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plan, documents = made(tmp_path, "llm.c", encoding)
    eod = bpe_engine.get_encoding(encoding).eot_token
    wanted = [id for ids in expected(documents, encoding) for id in (eod, *ids)]
    parts = sorted((tmp_path / "out" / "parts").glob("*.bin"))
    assert [id for part in parts for id in read_llmc(part)] == wanted
    monkeypatch.setattr("bpe_engine.corpus.formats.llmc.SHARD_TOKENS", 100)
    merge_parts(plan)
    shards = sorted((tmp_path / "out").glob("*.bin"), key=lambda path: path.name[-10:])
    assert shards[0].name == "corpus_val_000000.bin"
    assert shards[1].name == "corpus_train_000001.bin"
    found = [read_llmc(shard) for shard in shards]
    assert {len(ids) for ids in found[:-1]} == {100}
    assert [id for ids in found for id in ids] == wanted
    assert verify_corpus(plan).problems == []


def test_nanogpt(tmp_path: Path) -> None:
    plan, documents = made(tmp_path, "nanogpt")
    merge_parts(plan)
    data = np.memmap(tmp_path / "out" / "train.bin", dtype=np.uint16, mode="r")
    assert data.tolist() == [id for ids in ended(documents) for id in ids]
    with pytest.raises(CorpusError, match="holds ids up to 65,535.*199,999|200,0"):
        make_plan([tmp_path / "in.jsonl"], "o200k_base", tmp_path / "b", format="nanogpt")


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_tables(tmp_path: Path, form: str) -> None:
    import pyarrow.parquet as parquet

    documents = texts()
    source = write_jsonl(tmp_path / "in.jsonl", documents, key=range(len(documents)))
    plan = make_plan(
        [source], "gpt2", tmp_path / "out", format=form, unit_bytes=2400, id_field="key"
    )
    run_plan(plan, processes=1)
    merge_parts(plan)
    path = tmp_path / "out" / f"corpus.{form}"
    table = parquet.read_table(path) if form == "parquet" else pa.ipc.open_file(path).read_all()
    assert table.schema.field("input_ids").type == pa.list_(pa.int32())
    assert table["input_ids"].to_pylist() == ended(documents)
    assert table["id"].to_pylist() == [str(number) for number in range(len(documents))]


def test_datasets_reads_tables(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    plan, documents = made(tmp_path, "arrow")
    merge_parts(plan)
    files = str(tmp_path / "out" / "corpus.arrow")
    found = datasets.Dataset.from_list(pa.ipc.open_file(files).read_all().to_pylist())
    assert found["input_ids"][:] == ended(documents)


def replace_closed(source: str, target: str, replace: Any = os.replace) -> None:
    """Replaces a file that is neither open nor mapped, as Windows requires."""
    maps = Path("/proc/self/maps")
    if maps.exists():
        opened = {os.path.realpath(link) for link in Path("/proc/self/fd").iterdir()}
        assert source not in opened and source not in maps.read_text(encoding="utf-8")
    replace(source, target)


@pytest.mark.parametrize("form", FORMS)
def test_every_format_reads_itself(
    tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "replace", replace_closed)
    plan, documents = made(tmp_path, form)
    reader = CorpusReader(plan)
    spans = reader.spans(0, reader.documents).tolist()
    found = [reader.ids(a, b).tolist() for a, b in zip(spans, spans[1:])]
    wanted = ended(documents)
    if form == "llm.c":
        wanted = [[EOD, *ids] for ids in expected(documents)]
    assert found == wanted
    assert verify_corpus(plan).problems == []
    del reader
    merge_parts(plan)
    assert not (tmp_path / "out" / "parts").exists()
    merged = CorpusReader(plan)
    assert merged.is_merged and merged.ids(0, merged.tokens).tolist() == [
        i for d in wanted for i in d
    ]
    assert merged.ids(7, 30).tolist() == [i for d in wanted for i in d][7:30]
    assert verify_corpus(plan).problems == []


@pytest.mark.parametrize("form", FORMS)
def test_shuffle_is_the_same_for_any_units(tmp_path: Path, form: str) -> None:
    documents = texts()
    source = write_jsonl(tmp_path / "in.jsonl", documents)
    found = []
    for size in (2500, 6000):
        out = tmp_path / f"out{size}"
        plan = make_plan([source], "gpt2", out, format=form, unit_bytes=size, shuffle=11)
        run_plan(plan, processes=1)
        with pytest.raises(CorpusError, match="until it is merged"):
            CorpusReader(plan)
        merge_parts(plan)
        assert verify_corpus(plan).problems == []
        reader = CorpusReader(plan)
        spans = reader.spans(0, reader.documents).tolist()
        found.append([tuple(reader.ids(a, b).tolist()) for a, b in zip(spans, spans[1:])])
    assert found[0] == found[1]
    wanted = [tuple(ids) for ids in ended(documents)]
    if form == "llm.c":
        wanted = [(EOD, *ids) for ids in expected(documents)]
    assert sorted(found[0]) == sorted(wanted) and found[0] != wanted


@pytest.mark.parametrize("form", FORMS)
def test_damage_is_found(tmp_path: Path, form: str) -> None:
    plan, _ = made(tmp_path, form)
    for path in sorted((tmp_path / "out" / "parts").iterdir())[:4]:
        contents = path.read_bytes()
        for changed in (contents[:-1], contents + b"\0", bytes([contents[0] ^ 1]) + contents[1:]):
            path.write_bytes(changed)
            problems = verify_corpus(plan).problems
            assert problems and path.name in problems[0], (form, path.name)
        path.write_bytes(contents)
    assert verify_corpus(plan).problems == []


def test_width_counts_added_tokens(tmp_path: Path) -> None:
    special = {"<|endoftext|>": 256, "<|far|>": 65_536}
    ranks = {bytes([byte]): byte for byte in range(256)}
    wide = bpe_engine.Encoding(
        "wide", pat_str=r"(?s).", mergeable_ranks=ranks, special_tokens=special
    )
    from bpe_engine.corpus.coder import Coder
    from bpe_engine.corpus.formats.base import Layout

    assert Coder(wide).largest_id == 65_536
    sizes = [Layout(n, None, None, False, False, False, "").uint() for n in (65_535, 65_536)]
    assert sizes == ["<u2", "<u4"]


def test_bos_and_no_eod(tmp_path: Path) -> None:
    documents = texts(20)
    source = write_jsonl(tmp_path / "in.jsonl", documents)
    plan = make_plan([source], "gpt2", tmp_path / "a", eod=None, bos="<|endoftext|>")
    run_plan(plan)
    found = read_megatron(tmp_path / "a" / "parts" / "00000_text_document")
    assert found == [[EOD, *ids] for ids in expected(documents)]
    bare = make_plan([source], "gpt2", tmp_path / "b", eod=None)
    run_plan(bare)
    assert read_megatron(tmp_path / "b" / "parts" / "00000_text_document") == expected(documents)
    assert verify_corpus(bare).problems == []
    both = make_plan([source], "gpt2", tmp_path / "c", bos="<|endoftext|>")
    run_plan(both)
    assert verify_corpus(both).problems == []


def test_masks_and_names_need_a_place(tmp_path: Path) -> None:
    source = write_jsonl(tmp_path / "in.jsonl", texts(3))
    with pytest.raises(CorpusError, match="cannot store the names of documents"):
        make_plan([source], "gpt2", tmp_path / "out", id_field="id")
    with pytest.raises(CorpusError, match="cannot store loss masks"):
        make_plan([source], "gpt2", tmp_path / "out", content="messages", template="x")


def test_manifests_tell_what_was_written(tmp_path: Path) -> None:
    plan, documents = made(tmp_path, "megatron")
    manifests = [json.loads(p.read_text()) for p in sorted((tmp_path / "out/manifests").iterdir())]
    assert sum(manifest["written"] for manifest in manifests) == len(documents)
    assert sum(manifest["empty"] for manifest in manifests) == documents.count("")
    names = sum(manifest["controls"].get("<|endoftext|>", [0])[0] for manifest in manifests)
    assert names == sum(text.count("<|endoftext|>") for text in documents)
    assert sum(manifest["bytes"] for manifest in manifests) == len("".join(documents).encode())
    assert {manifest["plan"] for manifest in manifests} == {plan.sha256}
    line = next(at for at, text in enumerate(documents, 1) if "<|endoftext|>" in text)
    found = next(m["controls"]["<|endoftext|>"] for m in manifests if m["controls"])
    assert found[1:] == [str(tmp_path / "in.jsonl"), line]


@pytest.mark.parametrize("dtype", ["<u2", "<i4"])
def test_many_ids_are_written_in_pieces(dtype: str) -> None:
    ids = np.arange(2_500_000, dtype=np.uint32) % 65_536
    file = io.BytesIO()
    write_ids(file, ids, dtype)
    assert file.getvalue() == ids.astype(dtype).tobytes()
