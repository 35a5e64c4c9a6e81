"""The bytes under Ray, Spark and datatrove, with workers killed, equal the bytes of one process."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from corpora import texts, write_jsonl, written

from bpe_engine.corpus import CorpusError, Plan, make_plan, run_plan

pytest.importorskip("pyarrow")


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


def check(plan: Plan) -> None:
    folder = Path(plan.out)
    assert (folder.parent / "killed").exists(), "no worker was killed"
    assert written(folder) == written(folder.parent / "undisturbed")


@pytest.fixture
def local_ray() -> Iterator[Any]:
    ray = pytest.importorskip("ray")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
    yield ray
    ray.shutdown()


def test_ray(plan: Plan, local_ray: Any) -> None:
    from bpe_engine.corpus.ray import run

    assert run(plan) == len(plan.units)
    check(plan)
    assert run(plan) == 0


def test_ray_raises_what_a_unit_raises(plan: Plan, local_ray: Any) -> None:
    from bpe_engine.corpus.ray import run

    (Path(plan.out).parent / "killed").touch()
    with open(plan.inputs[0].uri, "ab") as file:
        file.write(b"\n")
    with pytest.raises(CorpusError, match="bytes, but had"):
        run(plan)


def test_ray_data(local_ray: Any) -> None:
    pa = pytest.importorskip("pyarrow")
    from bpe_engine.corpus import tokenize_batch

    table = pa.table({"text": texts(30)})
    data = local_ray.data.from_arrow(table)
    found = data.map_batches(lambda batch: tokenize_batch(batch, "gpt2"), batch_format="pyarrow")
    rows = [list(row["input_ids"]) for row in found.take_all()]
    assert rows == tokenize_batch(table, "gpt2")["input_ids"].to_pylist()


@pytest.fixture
def spark(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    sql = pytest.importorskip("pyspark.sql")
    if shutil.which("java") is None:
        pytest.skip("Spark needs a Java runtime")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    session = (
        sql.SparkSession.builder.master("local[2, 4]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


def test_spark(plan: Plan, spark: Any) -> None:
    from bpe_engine.corpus import tokenize_batch
    from bpe_engine.corpus.spark import run

    assert run(spark, plan) == len(plan.units)
    check(plan)
    assert run(spark, plan) == 0
    frame = spark.createDataFrame([(text,) for text in texts(20)], "text string")

    def encode(batches: Any) -> Any:
        for batch in batches:
            yield tokenize_batch(batch, "gpt2")

    found = frame.coalesce(1).mapInArrow(encode, "input_ids array<int>").collect()
    import pyarrow as pa

    expected = tokenize_batch(pa.table({"text": texts(20)}), "gpt2")["input_ids"].to_pylist()
    assert [row.input_ids for row in found] == expected


def test_datatrove(plan: Plan, tmp_path: Path) -> None:
    pytest.importorskip("datatrove")
    import subprocess

    code = """
import sys
from datatrove.executor import LocalPipelineExecutor
from bpe_engine.corpus.datatrove import Tokenize
if __name__ == "__main__":
    out, logs = sys.argv[1:]
    LocalPipelineExecutor([Tokenize(out)], tasks=4, workers=2, logging_dir=logs).run()
"""
    program = tmp_path / "program.py"
    program.write_text(code)
    for attempt in range(3):
        command = [sys.executable, program, plan.out, tmp_path / f"logs{attempt}"]
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
        )
        try:
            # A pool of datatrove waits forever for a worker that was killed: so does Slurm not.
            _, errors = process.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            _, errors = process.communicate()
        if process.returncode == 0:
            break
    assert process.returncode == 0, errors
    check(plan)


def test_datatrove_has_the_same_ids(tmp_path: Path) -> None:
    """datatrove's own tokenization of the same texts with the same tokenizer."""
    pytest.importorskip("datatrove")
    tokenizers = pytest.importorskip("tokenizers")
    from datatrove.data import Document
    from datatrove.pipeline.tokens import DocumentTokenizer

    letters = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    vocab = {letter: number for number, letter in enumerate(sorted(letters))}
    made = tokenizers.Tokenizer(tokenizers.models.BPE(vocab, []))
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    made.add_special_tokens(["<|endoftext|>"])
    path = tmp_path / "tokenizer.json"
    made.save(str(path))
    documents = [text for text in texts(40) if "<|endoftext|>" not in text and text]
    step = DocumentTokenizer(
        str(tmp_path / "theirs"),
        tokenizer_name_or_path=str(path),
        eos_token="<|endoftext|>",
        shuffle_documents=False,
        save_filename="x",
    )
    list(step.run([Document(text, str(at)) for at, text in enumerate(documents)], 0, 1) or [])
    source = write_jsonl(tmp_path / "in.jsonl", documents)
    plan = make_plan([source], str(path), tmp_path / "out", format="datatrove")
    run_plan(plan, processes=1)
    theirs = sorted((tmp_path / "theirs").rglob("*.ds*"))
    for other in theirs:
        ours = tmp_path / "out" / "parts" / ("00000.ds" + other.name.partition(".ds")[2])
        if not other.name.endswith("metadata"):
            assert ours.read_bytes() == other.read_bytes(), other.name
    assert len(theirs) >= 2


def test_arrow_function_elsewhere() -> None:
    pa = pytest.importorskip("pyarrow")
    from bpe_engine.corpus import tokenize_batch

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


def test_polars() -> None:
    polars = pytest.importorskip("polars")
    from bpe_engine.corpus import tokenize_batch

    frame = polars.DataFrame({"text": texts(20)})
    found = polars.from_arrow(tokenize_batch(frame.to_arrow(), "gpt2"))
    import bpe_engine

    gpt2 = bpe_engine.get_encoding("gpt2")
    assert found["input_ids"].to_list() == [gpt2.encode_ordinary(text) for text in texts(20)]


def test_datasets() -> None:
    datasets = pytest.importorskip("datasets")
    from bpe_engine.corpus import tokenize_batch

    data = datasets.Dataset.from_dict({"text": texts(20)}).with_format("arrow")
    found = data.map(lambda table: tokenize_batch(table, "gpt2"), batched=True, batch_size=7)
    import bpe_engine

    gpt2 = bpe_engine.get_encoding("gpt2")
    wanted = [gpt2.encode_ordinary(text) for text in texts(20)]
    assert found.with_format(None)["input_ids"][:] == wanted
