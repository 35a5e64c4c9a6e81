"""Smoke tests of benchmarks/: the parts by themselves, then runs on tiny texts."""

import dataclasses
import doctest
import importlib
import json
import re
import sys
from array import array
from pathlib import Path

import pytest

import bpe_engine
from benchmarks import compare, conversations, run
from benchmarks.cases import cases, collisions, corpora, encodings, hostile, inputs, training_texts
from benchmarks.harness import measures, render, runner, worker
from benchmarks.peers import digest, engines, reference, trainers

TEXT = (
    "One line of text, don't you think?\nΔεύτερη γραμμή 12345\n\t第三行，没有空格\r\n  last 👩‍💻 line\n"
    * 40
)
MODULES = (
    "cases.collisions", "cases.corpora", "cases.hostile", "cases.vocabularies", "harness.render",
    "peers.digest",
)  # fmt: skip


def needs(*modules):
    for module in modules:
        pytest.importorskip(module)


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    found = doctest.testmod(importlib.import_module(f"benchmarks.{name}"))
    assert found.attempted and not found.failed


def test_halves_and_documents_lose_nothing():
    even, odd = corpora.halves(TEXT)
    assert sorted(even + odd) == sorted(TEXT)
    for size in (11, 64, 1000):
        pieces = corpora.documents(TEXT, size)
        assert TEXT.startswith("".join(pieces))
        assert all(size <= len(piece.encode()) < size + 4 for piece in pieces[:-1])


def test_default_corpora_are_long_enough_and_stay_the_same(tmp_path):
    found = corpora.find_corpora(None, tmp_path, 20_000)
    texts = {corpus.name: corpora.read(corpus.path) for corpus in found}
    assert set(texts) == {"en", "code", "messy", "multi", "zh"}
    assert all(len(text.encode()) >= 20_000 for text in texts.values())
    again = corpora.find_corpora(None, tmp_path / "other", 20_000)
    assert texts == {corpus.name: corpora.read(corpus.path) for corpus in again}


def test_an_empty_folder_of_corpora_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"No \*\.txt"):
        corpora.find_corpora(tmp_path, tmp_path)


def test_names_of_special_tokens_are_broken_up(tmp_path):
    (tmp_path / "a.txt").write_text("x<|endoftext|>y\r\n", newline="")
    assert corpora.read(tmp_path / "a.txt") == "x< |endoftext|>y\r\n"


@pytest.mark.parametrize("name", hostile.LONG_PIECES)
def test_long_pieces_grow_with_their_length(name):
    assert len(hostile.long_piece(name, 1000)) in (1000, 1001)
    assert hostile.long_piece(name, 500) == hostile.long_piece(name, 500)


def test_distinct_words_are_distinct():
    words = "".join(hostile.word_stream(5000, 700)).split()
    assert len(words) == len(set(words)) == 5000


def test_searched_words_share_the_place_that_was_searched():
    words = collisions.searched_collisions(collisions.piece_cache_place, 14, 4, 0xFF)
    assert len(words) == 4
    assert len({collisions.piece_cache_place(b" " + word.encode()) & 0xFF for word in words}) == 1


def test_every_attack_fills_its_text():
    assert set(cases.ATTACKS) == set(collisions.ATTACKS)
    for name in ("a constant second half", "a constant first half, long"):
        attack = collisions.ATTACKS[name]
        words = attack.words(50)
        assert {len(word) for word in words} == {attack.letters}
        assert len(collisions.as_text(words, 5000)) == 5000


def test_digest_is_of_ids_not_of_containers():
    numpy = pytest.importorskip("numpy")
    rows = [[1, 2, 3], [], [70000]]
    wanted = digest.digest_of(rows, ["a", "b", "c"]).hex()
    arrays = [numpy.array(row, dtype=numpy.int64) for row in rows]
    flat = engines.FlatRows(numpy.array([1, 2, 3, 70000]), numpy.array([0, 3, 3, 4]))
    assert digest.digest_of(arrays, ["a", "b", "c"]).hex() == wanted
    assert digest.digest_of(flat, ["a", "b", "c"]).hex() == wanted
    assert digest.digest_of([[1, 2, 3, 70000]], ["abc"]).hex() != wanted
    assert array("I").itemsize == 4


def test_declarations_fit_together(tmp_path):
    for case in cases.CASES.values():
        assert case.measure in measures.MEASURES and case.inputs in inputs.BUILDERS
        plan = engines.PLANS[engines.OURS]
        assert case.measure == "training" or callable(
            plan.load(encodings.spec_of("o200k_base"), tmp_path).need(case.operation)
        )
    assert set(trainers.TRAINERS) <= set(engines.PLANS)
    assert set(cases.BY_NAME) <= {case.group for case in cases.CASES.values()}


def test_a_pattern_that_fits_no_case_is_refused():
    with pytest.raises(ValueError, match="groups: text"):
        cases.chosen_cases(["no-such-case"], quick=True)
    assert [case.name for case in cases.chosen_cases(["load", "text-l*"], quick=True)] == [
        "text-list",
        "load",
    ]


def row(engine, value, unit="MB/s", correct=True, case="text-numpy", key="first"):
    return {
        "case": case, "key": key, "corpus": "en", "encoding": "o200k_base", "engine": engine,
        "value": value, "unit": unit, "correct": correct, "title": case, "tokens": 5,
        "reference": "tiktoken", "best_peer": None, "ratio": None,
    }  # fmt: skip


def test_ratios_point_the_same_way_for_every_unit():
    for unit, ours in (("MB/s", 300), ("ms", 300), ("us", 300)):
        rows = [
            row("bpe_engine", ours, unit),
            row("splintr", 100, unit),
            row("riptoken", 50, unit, False),
        ]
        runner.compare_with_peers(rows)
        assert rows[0]["best_peer"] == "splintr"
        assert rows[0]["ratio"] == pytest.approx(3 if unit == "MB/s" else 1 / 3)


def test_the_tables_go_between_their_markers(tmp_path):
    rows = [row("bpe_engine", 350.5), row("riptoken", 20, correct=False)]
    runner.compare_with_peers(rows)
    results = {
        "rows": rows, "engines": ["bpe_engine", "riptoken"], "rounds": 3, "corpora": "default",
        "clock": "wall", "machine": run.machine(["bpe_engine"]),
    }  # fmt: skip
    page = tmp_path / "page.md"
    page.write_text("no markers")
    with pytest.raises(ValueError, match="lacks a line"):
        render.write(results, page)
    for name, cells in (
        ("benchmarks", "| text-numpy, first, en | MB/s | 5 | 350 | 20.0 ✗ |  |"),
        ("speed", "| English text to numpy | MB/s | 350 | 20.0 ✗ |  |"),
    ):
        page.write_text(f"before\n<!-- {name} -->\nold\n<!-- end -->\nafter\n")
        render.write(results, page)
        render.write(results, page)
        text = page.read_text()
        assert text.startswith("before\n") and text.endswith("\nafter\n") and "old" not in text
        assert cells in text
    render.write(results, tmp_path / "rows.csv")
    assert (tmp_path / "rows.csv").read_text().splitlines() == [
        "encoding,row,unit,tokens,bpe_engine,riptoken,ratio",
        'o200k_base,"text-numpy, first, en",MB/s,5,350,20.0 ✗,',
    ]


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


def test_reference_has_an_answer_where_tiktoken_fails():
    needs("tiktoken", "regex")
    given = inputs.piece(None, "spaces, then x", 10**6)
    given.timed["short"] = "hello world"
    found = reference.reference(given, encodings.spec_of("r50k_base"))
    assert found["short"]["source"] == reference.TIKTOKEN
    assert found["text"]["source"] == reference.PATTERN and found["text"]["tokens"] == 10**6


def test_merges_of_a_tokenizer_json_give_back_every_token(tmp_path):
    spec = encodings.spec_of("r50k_base")
    model = json.loads(encodings.tokenizer_file(spec, tmp_path).read_text())["model"]
    assert len(model["vocab"]) == 50256
    assert {left + right for left, right in model["merges"]} <= set(model["vocab"])
    assert len(model["merges"]) == 50000


@pytest.mark.parametrize(
    ("name", "engine"),
    [
        *(("column-2", engine) for engine in ("bpe_engine", "gigatoken", "fastokens")),
        *(("padded", engine) for engine in ("bpe_engine", "transformers")),
        ("peak-split", "bpe_engine"), ("build-hex", "bpe_engine"), ("build-hex", "tiktoken"),
        ("learn-1000", "bpe_engine"),
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
    """Runs each quick kind of case on tiny corpora, with two engines at most."""
    needs("tiktoken", "regex", "numpy")
    folder = tmp_path_factory.mktemp("corpora")
    (folder / "en.txt").write_text(TEXT * 5, encoding="utf-8", newline="")
    out = folder / "out.json"
    names = [name for name in engines.installed_engines() if name in ("bpe_engine", "tiktoken")]
    status = run.main(
        ["--corpora", str(folder), "--engines", ",".join(names), "--rounds", "1", "--json", str(out),
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


def test_a_run_can_be_rendered(tiny_run):
    table = render.table(tiny_run)
    assert re.search(r"\| text -> list, first, en \| MB/s \| [\d,]+ \|", table)
    assert "✗" not in table


def test_two_builds_are_compared(tmp_path, capsys):
    """Compares the installed build with itself."""
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
    case = cases.CASES["text-list"]
    task = runner.Task(case, None, "r50k_base")
    found = runner.Runner(Path("."), [], 1, None, "wall")
    value = {"key": "first", "unit": "MB/s", "label": "text", "tokens": 3, "digest": "a"}
    for speed, tokens in ((100, 3), (90, 3), (110, 4)):
        found.values[task, "before"].append([{**value, "value": 100}])
        found.values[task, "after"].append([{**value, "value": speed, "tokens": tokens}])
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


def test_training_texts_begin_alike(tmp_path):
    corpus = tmp_path / "en.txt"
    corpus.write_text(TEXT * 10, encoding="utf-8")
    found = {}
    for folder, sizes in (("up", (1, 2)), ("down", (2, 1))):
        for size in sizes:
            path = training_texts.text_file("en", size, [corpus], tmp_path / folder)
            found[folder, size] = path.read_bytes()
            assert size * 10**6 - 4 < len(found[folder, size]) <= size * 10**6
    assert found["up", 1] == found["down", 1] and found["up", 2] == found["down", 2]
    assert found["up", 2].startswith(found["up", 1][:-4])
    with pytest.raises(ValueError, match="zh"):
        training_texts.text_file("zh", 1, [corpus], tmp_path)


def test_conversations_are_measured_in_three_forms(capsys, tmp_path):
    (tmp_path / "text.txt").write_text(TEXT * 5, encoding="utf-8")
    conversations.main(["--sessions=2", "--turns=3", "--tokens=2000", f"--corpora={tmp_path}"])
    printed = capsys.readouterr().out
    for kind in ("special tokens", "document", "no special tokens"):
        assert f"\n{kind}: 2 sessions, 3 turns, 2000 tokens\n" in printed
    assert (
        len(
            re.findall(
                r"^\| ConversationCache \| [\d.]+ \| \d+ \| \d+ \| \d+ \|$", printed, re.MULTILINE
            )
        )
        == 3
    )
