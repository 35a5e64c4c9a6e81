"""Runs tasks in processes: a process for each engine and round, with engines alternating."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..cases.cases import EVERY, NONE, Case
from ..cases.corpora import Corpus
from ..cases.encodings import spec_of
from ..peers.engines import OURS, PLANS, is_ours
from ..peers.reference import MAJORITY

ROOT = Path(__file__).resolve().parents[2]
LOWER_IS_BETTER = {"us", "ms", "s", "MB", "B/B", "x"}


@dataclass(frozen=True, eq=False)
class Task:
    """One case with one corpus and one encoding."""

    case: Case
    corpus: Corpus | None
    encoding: str


def tasks(
    cases: list[Case], corpora: list[Corpus], encodings: list[str], quick: bool
) -> list[Task]:
    """Returns a task for each case, encoding and corpus."""
    named = {corpus.name: corpus for corpus in corpora}
    spread = []
    for case in cases:
        spread_over = case.quick_corpora if quick and case.corpora == EVERY else case.corpora
        if spread_over == NONE:
            chosen: list[Corpus | None] = [None]
        elif spread_over == EVERY:
            chosen = list(corpora)
        else:
            chosen = [next((named[name] for name in case.prefer if name in named), corpora[0])]
        spread += [Task(case, corpus, encoding) for encoding in encodings for corpus in chosen]
    return spread


class Runner:
    """Starts workers and stores their answers.

    ``builds`` maps names of builds of this project to the folders of their ``bpe_engine`` packages;
    each build runs as a separate engine.
    """

    def __init__(
        self,
        cache: Path,
        corpora: list[Corpus],
        timeout: float,
        cpu: int | None,
        clock: str,
        builds: dict[str, Path] | None = None,
    ) -> None:
        self.builds = builds or {}
        self.cache = cache
        self.clock = clock
        self.corpora = corpora
        self.timeout = timeout
        self.cpu = cpu
        self.values: dict[tuple[Task, str], list[list[dict[str, Any]]]] = defaultdict(list)
        self.failures: dict[tuple[Task, str], str] = {}
        self._references: dict[str, dict[str, Any]] = {}

    def worker(self, task: Task, engine: str | None) -> dict[str, Any]:
        """Runs one worker; returns ``{"error": ...}`` if it dies or takes too long."""
        job = {
            "case": task.case.name,
            "engine": OURS if engine in self.builds else engine,
            "encoding": task.encoding,
            "corpus": str(task.corpus.path) if task.corpus else None,
            "corpora": [str(corpus.path) for corpus in self.corpora],
            "cache": str(self.cache),
            "clock": self.clock,
            "cpu": self.cpu if task.case.threads == 1 else None,
        }
        threads = str(task.case.threads)
        environment = {
            **os.environ,
            "RAYON_NUM_THREADS": threads,
            "OMP_NUM_THREADS": threads,
            # BLAS threads would only waste CPU time.
            "OPENBLAS_NUM_THREADS": "1",
            "TOKENIZERS_PARALLELISM": "true" if task.case.threads > 1 else "false",
            "TIKTOKEN_CACHE_DIR": "",
            "PYTHONHASHSEED": "0",
        }
        if engine in self.builds:
            environment["PYTHONPATH"] = str(self.builds[engine])
        # The source tree is last on the path, so the worker imports an installed bpe_engine.
        start = f"import sys; sys.path.append({str(ROOT)!r}); from benchmarks.harness.worker import main; main()"
        try:
            done = subprocess.run(
                [sys.executable, "-c", start],
                input=json.dumps(job), capture_output=True, text=True, env=environment,
                cwd=self.cache, timeout=self.timeout,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return {"error": f"no answer in {self.timeout:.0f} s"}
        try:
            answer: dict[str, Any] = json.loads(done.stdout)
            return answer
        except ValueError:
            end = done.stderr.strip().splitlines()[-1:] or ["no message"]
            return {"error": f"exit status {done.returncode}: {end[0][:200]}"}

    def round(self, task: Task, engines: list[str]) -> None:
        """Runs the task once with each engine that has not failed before."""
        for engine in engines:
            plan = PLANS[OURS if engine in self.builds else engine]
            if (task, engine) in self.failures or plan.only not in (None, task.case.group):
                continue
            answer = self.worker(task, engine)
            if "values" in answer:
                self.values[task, engine].append(answer["values"])
            else:
                self.failures[task, engine] = (
                    answer.get("unsupported") or "error: " + answer["error"]
                )

    def reference(self, task: Task) -> dict[str, Any]:
        """Returns the reference ids by label; tasks with the same texts share one result."""
        corpus = task.corpus.path if task.corpus else None
        key = repr((task.case.inputs, task.case.input_options, corpus, task.encoding))
        if key not in self._references:
            self._references[key] = self.worker(task, None).get("reference", {})
        return self._references[key]

    def rows(self, task: Task, engines: list[str]) -> list[dict[str, Any]]:
        """Returns the finished rows of a task, with medians, token counts, flags and ratios."""
        answers = {
            engine: self.values[task, engine] for engine in engines if self.values[task, engine]
        }
        values = [value for rounds in answers.values() for value in rounds[0]]
        has_ids = any(value["tokens"] is not None for value in values)
        wanted = dict(self.reference(task)) if has_ids else {}
        rows = []
        for engine, rounds in answers.items():
            for number, value in enumerate(rounds[0]):
                same = [values[number] for values in rounds]
                label = value["label"]
                if label and label not in wanted and value["digest"]:
                    wanted[label] = _majority(answers, number, label)
                rows.append(_row(task, engine, same, wanted.get(label)))
        for key in dict.fromkeys(row["key"] for row in rows):
            compare_with_peers([row for row in rows if row["key"] == key])
        return rows


def _majority(
    answers: dict[str, list[list[dict[str, Any]]]], number: int, label: str
) -> dict[str, Any]:
    votes = Counter(
        (rounds[0][number]["tokens"], rounds[0][number]["digest"])
        for rounds in answers.values()
        if rounds[0][number]["label"] == label
    )
    (tokens, digest), _ = votes.most_common(1)[0]
    return {"tokens": tokens, "digest": digest, "source": MAJORITY}


def _row(
    task: Task, engine: str, values: list[dict[str, Any]], wanted: dict[str, Any] | None
) -> dict[str, Any]:
    numbers = [value["value"] for value in values]
    first = values[0]
    correct = first["correct"]
    if wanted and first["tokens"] is not None and correct is None:
        correct = all(
            value["tokens"] == wanted["tokens"] and value["digest"] in (None, wanted["digest"])
            for value in values
        )
    return {
        "case": task.case.name,
        "title": task.case.title,
        "key": first["key"],
        "corpus": task.corpus.name if task.corpus else None,
        "encoding": spec_of(task.encoding).name,
        "engine": engine,
        "value": statistics.median(numbers),
        "unit": first["unit"],
        "min": min(numbers),
        "max": max(numbers),
        "rounds": len(numbers),
        "tokens": first["tokens"],
        "correct": correct,
        "reference": wanted["source"] if wanted and correct is not None else None,
    }


def compare_with_peers(rows: list[dict[str, Any]]) -> None:
    """Adds to each row its ratio to the best correct peer; in any unit, above 1 is better."""
    lower = rows[0]["unit"] in LOWER_IS_BETTER
    peers = [row for row in rows if not is_ours(row["engine"]) and row["correct"] is not False]
    best = (min if lower else max)(peers, key=lambda row: row["value"], default=None)
    for row in rows:
        row["best_peer"] = best["engine"] if best else None
        row["ratio"] = ratio(row["value"], best["value"], lower) if best else None


def ratio(value: float, other: float, lower: bool) -> float | None:
    top, bottom = (other, value) if lower else (value, other)
    return top / bottom if bottom else None


def run_rounds(
    runner: Runner, todo: list[Task], engines: list[str], rounds: int, start: int = 0
) -> None:
    """Runs each task ``rounds`` times; each round begins with a different engine."""
    for number in range(start, start + rounds):
        turn = engines[number % len(engines) :] + engines[: number % len(engines)]
        for place, task in enumerate(todo, 1):
            if number < (task.case.rounds or number + 1):
                where = f"{task.case.name} {task.corpus.name if task.corpus else ''}"
                print(f"round {number + 1}, {place}/{len(todo)}: {where}", file=sys.stderr)
                runner.round(task, turn)


def last_cpu() -> int | None:
    """Returns the CPU to which single-threaded cases are pinned by default."""
    return max(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
