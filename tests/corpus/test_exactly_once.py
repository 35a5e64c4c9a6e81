"""Tests that any run of a corpus writes the same bytes, even if killed, parallel or with faults."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from corpora import texts, write_jsonl, written

import bpe_engine
from bpe_engine.corpus import (
    CorpusError,
    Plan,
    corpus_report,
    make_plan,
    merge_parts,
    pack_rows,
    read_plan,
    run_plan,
    run_unit,
    units_of_rank,
    verify_corpus,
)

pytest.importorskip("pyarrow")

KILLED = Path(__file__).parents[1] / "support" / "killed.py"


def planned(folder: Path, name: str = "out", **options: Any) -> Plan:
    source = folder / "in.jsonl"
    if not source.exists():
        write_jsonl(source, texts(80))
    options = {"format": "megatron", "unit_bytes": 3000, **options}
    return make_plan([source], "gpt2", folder / name, **options)


def undisturbed(folder: Path, **options: Any) -> dict[str, bytes]:
    plan = planned(folder, "undisturbed", **options)
    run_plan(plan, processes=1)
    return written(Path(plan.out))


def killed(step: str, plan: Plan, kills: int, seed: int) -> int:
    command = [sys.executable, KILLED, step, plan.out, str(kills), str(seed)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr
    return int(result.stdout)


@pytest.mark.parametrize("form", ["megatron", "olmo", "parquet"])
def test_kills_leave_the_same_bytes(tmp_path: Path, form: str) -> None:
    expected = undisturbed(tmp_path, format=form)
    plan = planned(tmp_path, format=form)
    assert killed("run", plan, 12, seed=1) >= 2
    assert written(tmp_path / "out") == expected


def test_kills_of_merging_and_packing(tmp_path: Path) -> None:
    undisturbed(tmp_path, shuffle=5)
    whole = read_plan(tmp_path / "undisturbed")
    merge_parts(whole)
    pack_rows(whole, 64, seed=3)
    plan = planned(tmp_path, shuffle=5)
    killed("run", plan, 3, seed=2)
    assert killed("merge", plan, 8, seed=3) == 8
    killed("pack", plan, 4, seed=4)
    assert written(tmp_path / "out") == written(tmp_path / "undisturbed")
    assert verify_corpus(plan).problems == []


def test_threads_processes_and_ranks(tmp_path: Path) -> None:
    expected = undisturbed(tmp_path)
    threaded = planned(tmp_path, "threads")
    run_plan(threaded, processes=1, num_threads=3)
    ranks = planned(tmp_path, "ranks")
    for rank in (2, 0, 1):
        run_plan(ranks, processes=1, rank=rank, world_size=3)
    backwards = planned(tmp_path, "backwards")
    for unit in reversed(units_of_rank(backwards)):
        run_unit(backwards, unit)
        run_unit(backwards, unit)
    processes = planned(tmp_path, "processes")
    seen: list[Any] = []
    run_plan(processes, processes=2, progress=seen.append)
    assert sorted(manifest.unit for manifest in seen) == list(range(len(processes.units)))
    for plan in (threaded, ranks, backwards, processes):
        assert written(Path(plan.out)) == expected, plan.out


def test_a_unit_without_manifest_is_written_again(tmp_path: Path) -> None:
    expected = undisturbed(tmp_path)
    plan = planned(tmp_path)
    run_plan(plan, processes=1)
    (tmp_path / "out" / "manifests" / "00001.json").unlink()
    (tmp_path / "out" / "parts" / "00001_text_document.bin").write_bytes(b"half")
    assert "unit 1 first" in verify_corpus(plan).problems[0]
    with pytest.raises(CorpusError, match="unit 1 first"):
        merge_parts(plan)
    assert run_plan(plan, processes=1) == 1
    assert written(tmp_path / "out") == expected


def test_a_changed_plan_is_refused(tmp_path: Path) -> None:
    plan = planned(tmp_path)
    assert planned(tmp_path) == plan
    for option, value in [("eod", None), ("format", "olmo"), ("bos", "<|endoftext|>")]:
        with pytest.raises(CorpusError, match=f"{option} was .* and is now"):
            planned(tmp_path, **{option: value})
    path = tmp_path / "out" / "plan.json"
    path.write_text(path.read_text().replace('"eod": 50256', '"eod": 50255'))
    with pytest.raises(CorpusError, match="was changed after it was made"):
        run_plan(tmp_path / "out")
    path.write_text("{")
    with pytest.raises(CorpusError, match="cannot be read"):
        run_plan(tmp_path / "out")
    path.rename(path.with_name("note"))
    with pytest.raises(CorpusError, match="the plan is missing"):
        run_plan(tmp_path / "out")
    with pytest.raises(CorpusError, match="is not empty"):
        planned(tmp_path)


def test_a_plan_that_was_killed_is_made_again(tmp_path: Path) -> None:
    (tmp_path / "out" / "unfinished" / "plan-host-1-x").mkdir(parents=True)
    plan = planned(tmp_path)
    run_plan(plan, processes=1)
    assert written(tmp_path / "out") == undisturbed(tmp_path)


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name in ("file", "file/out", "link"):
        with pytest.raises(CorpusError, match=f"{name} cannot be made a folder"):
            planned(tmp_path, name)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out").symlink_to(tmp_path / "elsewhere")
    run_plan(planned(tmp_path), processes=1)
    assert written(tmp_path / "elsewhere") == undisturbed(tmp_path)


def test_another_tokenizer_is_refused(tmp_path: Path) -> None:
    plan = planned(tmp_path)
    with pytest.raises(CorpusError, match="has the fingerprint"):
        run_plan(plan, tokenizer="cl100k_base")
    run_plan(plan, tokenizer="r50k_base", processes=1)  # r50k_base has gpt2's ids.
    assert written(tmp_path / "out") == undisturbed(tmp_path)


def test_a_changed_input_is_refused(tmp_path: Path) -> None:
    plan = planned(tmp_path)
    source = tmp_path / "in.jsonl"
    before = source.read_bytes()
    source.write_bytes(before + b'{"text": "more"}\n')
    with pytest.raises(CorpusError, match=r"in\.jsonl has .* bytes, but had"):
        run_plan(plan, processes=1)
    source.write_bytes(before)
    run_plan(plan, processes=1)
    assert written(tmp_path / "out") == undisturbed(tmp_path)
    changed = bytearray(before)
    changed[30] ^= 1
    source.write_bytes(changed)
    assert "than its source" in verify_corpus(plan, sample=500).problems[0]


def test_an_input_that_grows_under_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from bpe_engine.corpus import units

    plan = planned(tmp_path)
    source, blocks = tmp_path / "in.jsonl", units.blocks
    before = source.read_bytes()

    def growing(*args: Any) -> Any:
        for block in blocks(*args):
            source.write_bytes(before + b"\n")
            yield block

    monkeypatch.setattr(units, "blocks", growing)
    with pytest.raises(CorpusError, match="but had"):
        run_plan(plan, processes=1)
    assert not (tmp_path / "out" / "parts").exists()
    monkeypatch.undo()
    source.write_bytes(before)
    run_plan(plan, processes=1)
    assert written(tmp_path / "out") == undisturbed(tmp_path)


@pytest.mark.parametrize("place", ["write", "fsync", "rename", "read"])
def test_faults(tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from bpe_engine.common import atomic_write as writing
    from bpe_engine.corpus import units
    from bpe_engine.corpus.formats import megatron

    plan = planned(tmp_path)
    calls = 0

    def failing(work: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == 3:
                code = errno.EIO if place == "read" else errno.ENOSPC
                raise OSError(code, os.strerror(code), "somewhere")
            return work(*args, **kwargs)

        return call

    if place == "write":
        monkeypatch.setattr(megatron._Writer, "_add", failing(megatron._Writer._add))
    elif place == "read":
        monkeypatch.setattr(units, "first_line", failing(units.first_line))
        monkeypatch.setattr(units, "part_blocks", failing(units.part_blocks))
    else:
        name = "replace" if place == "rename" else place
        monkeypatch.setattr(writing.os, name, failing(getattr(os, name)))
    with pytest.raises(CorpusError, match=r"(somewhere|\d\.json) cannot be written|Input/output"):
        run_plan(plan, processes=1)
    assert os.listdir(tmp_path / "out" / "unfinished") == []
    monkeypatch.undo()
    run_plan(plan, processes=1)
    assert written(tmp_path / "out") == undisturbed(tmp_path)


def test_a_killed_process_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = planned(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    once = f"""
import os, signal, sys
if "spawn_main" in " ".join(sys.orig_argv) and not os.path.exists({str(tmp_path / "once")!r}):
    def hook(event, _):
        if event == "os.rename":
            try:
                os.close(os.open({str(tmp_path / "once")!r}, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                return
            os.kill(os.getpid(), signal.SIGKILL)
    sys.addaudithook(hook)
"""
    (tmp_path / "sitecustomize.py").write_text(once)
    with pytest.raises(CorpusError, match="was killed"):
        run_plan(plan, processes=2)
    run_plan(plan, processes=1)
    assert written(tmp_path / "out") == undisturbed(tmp_path)


def test_ranks_out_of_range(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="the rank is 3, but there are 3"):
        run_plan(planned(tmp_path), rank=3, world_size=3)


def test_text_is_never_a_control_token(tmp_path: Path) -> None:
    hostile = ["<|endoftext|>", "a<|endoftext|>b<|endoftext|>", "<|endo", "ftext|>"]
    write_jsonl(tmp_path / "in.jsonl", hostile)
    plan = planned(tmp_path)
    run_plan(plan)
    assert verify_corpus(plan).problems == []
    report = corpus_report(plan)
    assert report.controls == {"<|endoftext|>": (3, str(tmp_path / "in.jsonl"), 1)}
    trusted = planned(tmp_path, "trusted", allow_special=("<|endoftext|>",))
    run_plan(trusted)
    gpt2 = bpe_engine.get_encoding("gpt2")
    wanted = sum(len(gpt2.encode(text, allowed_special="all")) + 1 for text in hostile)
    assert corpus_report(trusted).tokens == wanted


def test_plans_do_not_depend_on_the_machine(tmp_path: Path) -> None:
    plan = planned(tmp_path)
    shutil.move(tmp_path / "out", tmp_path / "elsewhere")
    moved = read_plan(tmp_path / "elsewhere")
    assert moved.sha256 == plan.sha256
    assert json.loads((tmp_path / "elsewhere/plan.json").read_text())["sha256"] == plan.sha256


def changed(path: Path, place: int) -> None:
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("name", ["refused/00000.jsonl", "manifests/00000.json"])
def test_every_file_beside_the_ids_is_verified(tmp_path: Path, name: str) -> None:
    lines = write_jsonl(tmp_path / "in.jsonl", texts(80)).read_text()
    (tmp_path / "in.jsonl").write_text(f"no json\n{lines}")
    plan = planned(tmp_path, on_error="skip")
    run_plan(plan, processes=1)
    path = tmp_path / "out" / name
    whole = path.read_bytes()
    for place in range(0, len(whole), 1 + len(whole) // 25):
        changed(path, place)
        (problem, *_) = verify_corpus(plan, sample=0).problems
        assert str(path) in problem
        path.write_bytes(whole)
    assert verify_corpus(plan).problems == []


def test_a_merged_manifest_is_not_to_be_deleted(tmp_path: Path) -> None:
    plan = planned(tmp_path)
    run_plan(plan, processes=1)
    merge_parts(plan)
    changed(tmp_path / "out" / "manifests" / "merged.json", 40)
    (problem,) = verify_corpus(plan).problems
    assert "write the corpus again in a new folder" in problem and "delete" not in problem
