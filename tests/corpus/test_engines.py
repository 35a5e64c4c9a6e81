"""The bytes under Ray, Spark and datatrove, with workers killed, equal the bytes of one process."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from corpora import texts, write_jsonl, written

import bpe_engine
from bpe_engine.corpus import (
    CorpusError,
    Plan,
    make_plan,
    run_plan,
    run_unit,
    tokenize_batch,
    units_of_rank,
)

pa = pytest.importorskip("pyarrow")


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Plan:
    """A plan; the first worker that renames a file is killed."""
    source = write_jsonl(tmp_path / "in.jsonl", texts(80))
    undisturbed = make_plan([source], "gpt2", tmp_path / "undisturbed", unit_bytes=2000)
    run_plan(undisturbed, processes=1)
    once = f"""
import os, signal, sys
def hook(event, args):
    if event == "os.rename" and {str(tmp_path / "out")!r} in str(args[0]):
        try:
            os.close(os.open({str(tmp_path / "killed")!r}, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
        os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(hook)
"""
    made = make_plan([source], "gpt2", tmp_path / "out", unit_bytes=2000)
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(once)
    root = str(Path(__file__).parents[2])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path / "site"), root]))
    return made


def on_ray(plan: Plan, folder: Path) -> None:
    ray = pytest.importorskip("ray")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
    try:
        ray.get([ray.remote(run_unit).remote(plan.out, unit) for unit in units_of_rank(plan.out)])
        table = pa.table({"text": texts(30)})
        data = ray.data.from_arrow(table)
        found = data.map_batches(lambda b: tokenize_batch(b, "gpt2"), batch_format="pyarrow")
        rows = [list(row["input_ids"]) for row in found.take_all()]
        assert rows == tokenize_batch(table, "gpt2")["input_ids"].to_pylist()
        with open(plan.inputs[0].uri, "ab") as file:
            file.write(b"\n")
        (Path(plan.out) / "manifests" / "00001.json").unlink()
        with pytest.raises(CorpusError, match="bytes, but had"):
            ray.get(ray.remote(run_unit).remote(plan.out, 1))
        os.truncate(plan.inputs[0].uri, plan.inputs[0].size)
        run_unit(plan.out, 1)
    finally:
        ray.shutdown()


def on_spark(plan: Plan, folder: Path) -> None:
    sql = pytest.importorskip("pyspark.sql")
    if shutil.which("java") is None:
        pytest.skip("Spark needs a Java runtime")
    spark = (
        sql.SparkSession.builder.master("local[2, 4]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    try:
        spark.sparkContext.setLogLevel("OFF")
        out, units = plan.out, units_of_rank(plan.out)
        spark.sparkContext.parallelize(units, len(units)).foreach(lambda unit: run_unit(out, unit))
        frame = spark.createDataFrame([(text,) for text in texts(20)], "text string")
        encode = lambda batches: (tokenize_batch(b, "gpt2") for b in batches)  # noqa: E731
        found = frame.coalesce(1).mapInArrow(encode, "input_ids array<int>").collect()
        wanted = tokenize_batch(pa.table({"text": texts(20)}), "gpt2")["input_ids"].to_pylist()
        assert [row.input_ids for row in found] == wanted
    finally:
        spark.stop()


def on_datatrove(plan: Plan, folder: Path) -> None:
    """A pool of datatrove waits forever for a worker that was killed, unlike Slurm: no kill here."""
    local = pytest.importorskip("datatrove.executor").LocalPipelineExecutor
    out = plan.out
    (folder / "killed").touch()

    def step(data: Any, rank: int, world_size: int) -> list[int]:
        return [run_plan(out, processes=1, rank=rank, world_size=world_size)]

    local([step], tasks=4, workers=2, logging_dir=str(folder / "logs")).run()


@pytest.mark.parametrize("engine", [on_ray, on_spark, on_datatrove])
def test_engines(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: Callable[..., None]
) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    engine(plan, tmp_path)
    assert (tmp_path / "killed").exists(), "no worker was killed"
    assert written(tmp_path / "out") == written(tmp_path / "undisturbed")
    assert units_of_rank(plan.out) == []


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
