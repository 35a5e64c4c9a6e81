"""Smoke tests of benchmarks/: tests each part on its own, then runs cases on tiny texts."""

import dataclasses
import doctest
import importlib
import json
import sys
from pathlib import Path

import pytest

import bpe_engine
from benchmarks import compare, run
from benchmarks.cases import cases, corpora, encodings, inputs, sides
from benchmarks.harness import measures, render, runner, worker
from benchmarks.peers import engines, trainers

TEXT = (
    "One line of text, don't you think?\nΔεύτερη γραμμή 12345\n\t第三行，没有空格\r\n  last 👩‍💻 line\n"
    * 40
)
MODULES = (
    "cases.corpora", "cases.hostile", "cases.vocabularies", "harness.render",
    "peers.digest",
)  # fmt: skip


def needs(*modules):
    for module in modules:
        pytest.importorskip(module)


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    found = doctest.testmod(importlib.import_module(f"benchmarks.{name}"))
    assert found.attempted and not found.failed


def test_declarations_fit_together(tmp_path):
    for case in cases.CASES.values():
        assert case.measure in measures.MEASURES and case.inputs in inputs.BUILDERS
        plan = engines.PLANS[engines.OURS]
        assert case.measure in ("training", "models") or callable(
            plan.load(encodings.spec_of("o200k_base"), tmp_path).need(case.operation)
        )
    assert set(trainers.TRAINERS) <= set(engines.PLANS)
    assert set(cases.BY_NAME) <= {case.group for case in cases.CASES.values()}


def values(speed, tokens, digest="a"):
    value = {"key": "first", "value": speed, "unit": "MB/s", "label": "text", "correct": None}
    return [{**value, "tokens": tokens, "digest": digest}]


def test_wrong_ids_are_reported_as_wrong(tmp_path, monkeypatch):
    task = runner.Task(cases.CASES["text-numpy"], corpora.Corpus("en", tmp_path), "o200k_base")
    found = runner.Runner(tmp_path, [], 1, None, "wall")
    wanted = {"text": {"tokens": 5, "digest": "a", "source": "tiktoken"}}
    monkeypatch.setattr(found, "reference", lambda task: wanted)
    names = ["bpe_engine", "splintr", "gigatoken"]
    for name, given in zip(names, [values(350.5, 5), values(100, 5), values(400, 5, "b")]):
        found.values[task, name] = [given]
    results = {
        "rows": found.rows(task, names), "engines": names, "rounds": 3, "corpora": "default",
        "clock": "wall", "machine": run.machine(["bpe_engine"]),
    }  # fmt: skip
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- benchmarks -->\nold\n<!-- end -->\nafter\n")
    render.write(results, page)
    line = "| text -> numpy, first, en | MB/s | 5 | 350 | 100 | 400 ✗ | 3.50x |"
    assert line in page.read_text().splitlines() and "old" not in page.read_text()
    render.write(results, tmp_path / "rows.csv")
    assert (tmp_path / "rows.csv").read_text().endswith(",MB/s,5,350,100,400 ✗,3.50x\n")
    found.values[task, "bpe_engine"] = [values(350.5, 4)]
    assert "| 350 ✗ | 100 | 400 ✗ | wrong ids |" in render.table(
        {**results, "rows": found.rows(task, names)}
    )


def test_rows_of_the_tables_are_measured():
    for case, _, _ in (*render.SHORT, *render.MANUAL):
        assert cases.CASES[case].quick


def test_patterns_and_special_tokens_are_those_of_tiktoken(monkeypatch):
    public = pytest.importorskip("tiktoken_ext.openai_public")
    monkeypatch.setattr(public, "load_tiktoken_bpe", lambda *args, **kwargs: {})
    for name in ("o200k_base", "cl100k_base", "p50k_base", "r50k_base"):
        wanted = public.ENCODING_CONSTRUCTORS[name]()
        spec = encodings.spec_of(name)
        assert spec.pattern == wanted["pat_str"]
        assert spec.special_tokens == wanted["special_tokens"]


@pytest.mark.parametrize(
    ("name", "engine"),
    [
        *(("column-2", engine) for engine in ("bpe_engine", "gigatoken", "fastokens")),
        *(("padded", engine) for engine in ("bpe_engine", "transformers")),
        ("peak-split", "bpe_engine"), ("build-hex", "bpe_engine"), ("build-hex", "tiktoken"),
        ("train-english", "bpe_engine"), ("train-english", "bpe_engine-bytes"),
        ("train-english", "tokenizers"), ("train-english", "rustbpe"),
    ],
)  # fmt: skip
def test_cases_that_run_by_name_alone(tmp_path, monkeypatch, name, engine):
    needs(engines.PLANS[engine].module.partition(".")[0], "pyarrow", "tiktoken", "regex")
    corpus = tmp_path / "en.txt"
    corpus.write_text(TEXT * 5, encoding="utf-8")
    small = {"count": 20, "megabytes": 1, "size": 60 if name in ("padded", "column-2") else 300}
    case = cases.CASES[name]
    given, options = (
        {key: small.get(key, value) for key, value in each.items()}
        for each in (case.input_options, case.options)
    )
    small_case = dataclasses.replace(case, input_options=given, options=options)
    monkeypatch.setitem(cases.CASES, name, small_case)
    job = {
        "case": name, "encoding": "r50k_base", "corpus": str(corpus), "corpora": [str(corpus)],
        "cache": str(tmp_path), "clock": "wall", "cpu": None, "engine": engine,
    }  # fmt: skip
    values = worker.work(job)["values"]
    assert values and all(value["value"] >= 0 for value in values)
    wanted = worker.work({**job, "engine": None})["reference"]
    for value in values:
        if value["label"] in wanted and value["digest"]:
            assert value["digest"] == wanted[value["label"]]["digest"]


def test_a_tokenizer_file_is_compared_with_tokenizers(tmp_path):
    needs("tokenizers")
    (tmp_path / "en.txt").write_text(TEXT, encoding="utf-8")
    file = encodings.tokenizer_file(encodings.spec_of("r50k_base"), tmp_path)
    out = tmp_path / "out.json"
    status = run.main(
        ["--corpora", str(tmp_path), "--encodings", str(file), "--engines", "bpe_engine,tokenizers",
         "--cases", "load", "text-list", "--rounds", "1", "--json", str(out),
         "--cache", str(tmp_path / "cache")]
    )  # fmt: skip
    rows = json.loads(out.read_text())["rows"]
    assert status == 0 and {row["engine"] for row in rows} == {"bpe_engine", "tokenizers"}
    assert all(row["correct"] for row in rows if row["tokens"])
    assert {row["reference"] for row in rows if row["tokens"]} == {"tokenizers"}


@pytest.fixture(scope="module")
def tiny_run(tmp_path_factory):
    """Runs six quick cases on a tiny corpus with at most two engines."""
    needs("tiktoken", "regex", "numpy")
    folder = tmp_path_factory.mktemp("corpora")
    (folder / "en.txt").write_text(TEXT * 5, encoding="utf-8", newline="")
    out = folder / "out.json"
    status = run.main(
        ["--corpora", str(folder), "--engines", "bpe_engine,tiktoken", "--rounds", "1", "--json", str(out),
         "--cases", "text-list", "text-numpy", "batch-list-1", "decode-list", "load", "memory",
         "--encodings", "r50k_base", "--cache", str(folder / "cache")]
    )  # fmt: skip
    assert status == 0
    return json.loads(out.read_text())


def test_a_run_measures_every_engine_and_all_are_exact(tiny_run):
    assert not tiny_run["failures"]
    for engine in tiny_run["engines"]:
        rows = [row for row in tiny_run["rows"] if row["engine"] == engine]
        assert {row["case"] for row in rows} == {
            "text-list", "text-numpy", "batch-list-1", "decode-list", "load", "memory"
        }  # fmt: skip
        assert all(row["value"] > 0 for row in rows)
        assert all(row["correct"] for row in rows if row["tokens"])
    assert "✗" not in render.table(tiny_run)


def test_two_builds_are_compared(tmp_path, capsys):
    """An installed build compared with itself has the same ids, and a ratio for each row."""
    (tmp_path / "en.txt").write_text(TEXT * 5, encoding="utf-8", newline="")
    build = str(Path(bpe_engine.__file__).parents[1])
    out = tmp_path / "out.json"
    status = compare.main(
        ["--before", build, "--after", build, "--corpora", str(tmp_path), "--cases", "text-list",
         "--encodings", "r50k_base", "--rounds", "2", "--most", "2", "--least", "0",
         "--json", str(out), "--cache", str(tmp_path / "cache")]
    )  # fmt: skip
    found = json.loads(out.read_text())
    assert [row["title"] for row in found["rows"]] == [
        "r50k_base, text -> list, first, en", "r50k_base, text -> list, again, en"
    ]  # fmt: skip
    assert all(row["same_ids"] and row["before"] > 0 for row in found["rows"])
    assert status == (0 if found["geometric_mean"] >= 1 else 1)
    assert "2 rows, geometric mean" in capsys.readouterr().out


def test_slower_rows_and_different_ids_are_reported():
    task = runner.Task(cases.CASES["text-list"], None, "r50k_base")
    found = runner.Runner(Path("."), [], 1, None, "wall")
    for speed, tokens in ((100, 3), (90, 3), (110, 4)):
        found.values[task, "before"].append(values(100, 3))
        found.values[task, "after"].append(values(speed, tokens))
    rows = compare.rows_of(found, task)
    assert [(row.ratio, row.same_ids) for row in rows] == [(1.0, False)]
    slow = [compare.Row("a", "ms", 10, 20, 0.5, True), compare.Row("b", "ms", 20, 10, 2, True)]
    assert compare.geometric_mean(slow) == pytest.approx(1)
    assert "1 below 0.97, 0 with different ids" in compare.report(slow, 0.97)


def test_a_missing_build_is_refused(tmp_path, capsys):
    assert compare.main(["--before", str(tmp_path), "--after", sys.prefix]) == 2
    assert str(tmp_path) in capsys.readouterr().err


def test_bad_arguments_are_errors(capsys):
    assert run.main(["--engines", "no-such-engine"]) == 2
    assert "choose from" in capsys.readouterr().err
    assert run.main(["--cases", "no-such-case"]) == 2
    assert run.main(["--encodings", "no-such-encoding", "--cases", "load"]) == 2
    assert "choose from o200k_base" in capsys.readouterr().err


@pytest.mark.parametrize("rows", ["prompts", "masks"])
def test_two_ways_to_one_result_are_measured(tmp_path, rows):
    needs("jinja2", "numpy")
    job = {
        "case": f"sides-{rows}", "encoding": "qwen", "corpus": None, "corpora": [],
        "cache": str(tmp_path), "clock": "wall", "cpu": None, "engine": "bpe_engine",
    }  # fmt: skip
    values = worker.work(job)["values"]
    assert values and all(value["value"] > 0 and value["unit"] == "times" for value in values)
    assert "unsupported" in worker.work({**job, "engine": "tiktoken"})


def test_every_group_of_rows_is_a_case():
    assert {case.options["rows"] for case in cases.CASES.values() if case.group == "sides"} == set(
        sides.ROWS
    )
