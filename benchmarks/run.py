"""Runs cases x engines, one process per engine and round, engines in turn.

    python -m benchmarks.run --quick
    python -m benchmarks.run --full --corpora DIR --json out.json --render README.md
    python -m benchmarks.run --cases text 'piece-list-*' --engines bpe_engine,gigatoken --rounds 7

Every row is a median over rounds, with the token count and whether the ids are tiktoken's.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import goals, render
from .cases import CASES, EVERY, NONE, Case, chosen_cases
from .corpora import Corpus, find_corpora
from .encodings import ENCODINGS, spec_of
from .engines import OURS, PLANS, installed_engines
from .measures import CLOCKS
from .reference import MAJORITY

ROOT = Path(__file__).resolve().parent.parent
QUICK_ENGINES = [OURS, "tiktoken", "gigatoken", "splintr"]
LOWER_IS_BETTER = {"us", "ms", "MB", "x"}


@dataclass(frozen=True, eq=False)
class Task:
    """One case on one corpus and encoding: what the engines do in turn."""

    case: Case
    corpus: Corpus | None
    encoding: str


def tasks(
    cases: list[Case], corpora: list[Corpus], encodings: list[str], quick: bool
) -> list[Task]:
    """The cases spread over corpora and encodings."""
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
    """Starts workers and keeps what they answer."""

    def __init__(
        self, cache: Path, corpora: list[Corpus], timeout: float, cpu: int | None, clock: str
    ) -> None:
        self.cache = cache
        self.clock = clock
        self.corpora = corpora
        self.timeout = timeout
        self.cpu = cpu
        self.values: dict[tuple[Task, str], list[list[dict[str, Any]]]] = defaultdict(list)
        self.failures: dict[tuple[Task, str], str] = {}
        self._references: dict[str, dict[str, Any]] = {}

    def worker(self, task: Task, engine: str | None) -> dict[str, Any]:
        """One worker's answer; ``{"error": ...}`` when it dies or takes too long."""
        job = {
            "case": task.case.name,
            "engine": engine,
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
            # Nobody multiplies matrices here; the threads for it would spin beside the others.
            "OPENBLAS_NUM_THREADS": "1",
            "TOKENIZERS_PARALLELISM": "true" if task.case.threads > 1 else "false",
            "TIKTOKEN_CACHE_DIR": "",
            "PYTHONHASHSEED": "0",
        }
        # The source tree comes last, so that an installed bpe_engine is the one that is measured.
        start = f"import sys; sys.path.append({str(ROOT)!r}); from benchmarks.worker import main; main()"
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
        """Lets each engine do the task once, except those that failed it before."""
        for engine in engines:
            if (task, engine) in self.failures:
                continue
            answer = self.worker(task, engine)
            if "values" in answer:
                self.values[task, engine].append(answer["values"])
            else:
                self.failures[task, engine] = (
                    answer.get("unsupported") or "error: " + answer["error"]
                )

    def reference(self, task: Task) -> dict[str, Any]:
        """The reference ids of the task's texts, by label; computed once for equal texts."""
        corpus = task.corpus.path if task.corpus else None
        key = repr((task.case.inputs, task.case.input_options, corpus, task.encoding))
        if key not in self._references:
            self._references[key] = self.worker(task, None).get("reference", {})
        return self._references[key]

    def rows(self, task: Task, engines: list[str]) -> list[dict[str, Any]]:
        """The finished rows of a task: medians, token counts, flags, ratios."""
        answers = {
            engine: self.values[task, engine] for engine in engines if self.values[task, engine]
        }
        wanted = dict(self.reference(task))
        rows = []
        for engine, rounds in answers.items():
            for number, value in enumerate(rounds[0]):
                same = [values[number] for values in rounds]
                label = value["label"]
                if label and label not in wanted and value["digest"]:
                    wanted[label] = _majority(answers, number)
                rows.append(_row(task, engine, same, wanted.get(label)))
        for key in dict.fromkeys(row["key"] for row in rows):
            _compare([row for row in rows if row["key"] == key])
        return rows


def _majority(answers: dict[str, list[list[dict[str, Any]]]], number: int) -> dict[str, Any]:
    votes = Counter(
        (rounds[0][number]["tokens"], rounds[0][number]["digest"]) for rounds in answers.values()
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
        "encoding": task.encoding,
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


def _compare(rows: list[dict[str, Any]]) -> None:
    """Gives each row its ratio to the best correct peer: above 1 is better, for every unit."""
    lower = rows[0]["unit"] in LOWER_IS_BETTER
    peers = [row for row in rows if row["engine"] != OURS and row["correct"] is not False]
    best = (min if lower else max)(peers, key=lambda row: row["value"], default=None)
    for row in rows:
        row["best_peer"] = best["engine"] if best else None
        row["ratio"] = _ratio(row["value"], best["value"], lower) if best else None


def _ratio(value: float, other: float, lower: bool) -> float | None:
    top, bottom = (other, value) if lower else (value, other)
    return top / bottom if bottom else None


def machine(engines: list[str]) -> dict[str, Any]:
    """What the numbers were measured on, and with which versions."""
    model = platform.processor() or platform.machine()
    memory = None
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
        total = Path("/proc/meminfo").read_text().split()[1]
        memory = round(int(total) / 1024**2)
    except (OSError, ValueError):
        pass
    return {
        "cpu": model,
        "cpus": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count(),
        "memory_gb": memory,
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
        "date": datetime.date.today().isoformat(),
        "versions": {name: PLANS[name].version() for name in engines},
    }


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.run",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    length = parser.add_mutually_exclusive_group()
    length.add_argument(
        "--quick", action="store_true", help="few cases, few engines, three rounds (default)"
    )
    length.add_argument("--full", action="store_true", help="every case and engine, five rounds")
    parser.add_argument("--engines", metavar="A,B", help=f"of {','.join(PLANS)}")
    parser.add_argument(
        "--cases", nargs="+", metavar="NAME", help="names or groups of cases, * allowed"
    )
    parser.add_argument("--encodings", metavar="A,B", help=f"of {','.join(ENCODINGS)}")
    parser.add_argument(
        "--corpora", type=Path, metavar="DIR", help="take the *.txt of DIR as corpora"
    )
    parser.add_argument("--only", metavar="A,B", help="only these corpora, by name")
    parser.add_argument("--rounds", type=int, help="processes per engine and case")
    parser.add_argument("--timeout", type=float, default=300, help="seconds one process may take")
    parser.add_argument(
        "--cpu", type=int, help="CPU that one-thread cases stay on (default: the last)"
    )
    parser.add_argument(
        "--clock",
        choices=list(CLOCKS),
        default="wall",
        help="cpu: CPU time in one-thread cases, for a machine that others use too",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every row here")
    parser.add_argument(
        "--render", type=Path, metavar="FILE", help="write the table into this README"
    )
    parser.add_argument("--cache", type=Path, help="folder for what is prepared once")
    parser.add_argument("--list", action="store_true", help="list the cases and stop")
    return parser.parse_args(argv)


def _split(text: str | None, default: list[str]) -> list[str]:
    return [part for part in text.split(",") if part] if text else default


def _chosen_engines(arguments: argparse.Namespace) -> list[str]:
    installed = installed_engines()
    default = installed if arguments.full else [name for name in QUICK_ENGINES if name in installed]
    chosen = _split(arguments.engines, default)
    for name in chosen:
        if name not in PLANS:
            raise ValueError(f"No engine {name!r}; choose from {', '.join(PLANS)}.")
        if name not in installed:
            raise ValueError(
                f"The engine {name!r} is not installed: pip install {PLANS[name].distribution}"
            )
    return chosen


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """Runs what the arguments ask for; the machine, the rows and the failures."""
    cases = chosen_cases(arguments.cases, quick=not arguments.full)
    engines = _chosen_engines(arguments)
    encodings = _split(
        arguments.encodings, ["o200k_base", "cl100k_base"] if arguments.full else ["o200k_base"]
    )
    specs = [spec_of(name) for name in encodings]
    cache = arguments.cache or Path(tempfile.gettempdir()) / "bpe-engine-benchmarks"
    cache.mkdir(parents=True, exist_ok=True)
    corpora = find_corpora(arguments.corpora.resolve() if arguments.corpora else None, cache)
    if arguments.only:
        corpora = [corpus for corpus in corpora if corpus.name in arguments.only.split(",")]
        if not corpora:
            raise ValueError(f"No corpus of the name {arguments.only!r}.")
    for name in engines:
        prepare = PLANS[name].prepare
        if prepare:
            for spec in specs:
                prepare(spec, cache)
    cpus = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [None]
    cpu = arguments.cpu if arguments.cpu is not None else cpus[-1]
    runner = Runner(cache, corpora, arguments.timeout, cpu, arguments.clock)
    todo = tasks(cases, corpora, encodings, quick=not arguments.full)
    rounds = arguments.rounds or (5 if arguments.full else 3)
    for number in range(rounds):
        turn = engines[number % len(engines) :] + engines[: number % len(engines)]
        for place, task in enumerate(todo, 1):
            if number < (task.case.rounds or rounds):
                where = f"{task.case.name} {task.corpus.name if task.corpus else ''}"
                print(f"round {number + 1}/{rounds}, {place}/{len(todo)}: {where}", file=sys.stderr)
                runner.round(task, turn)
    rows = [row for task in todo for row in runner.rows(task, engines)]
    failures = [
        {"case": task.case.name, "encoding": task.encoding, "engine": engine, "why": why,
         "corpus": task.corpus.name if task.corpus else None}
        for (task, engine), why in runner.failures.items()
    ]  # fmt: skip
    return {
        "machine": machine(engines),
        "engines": engines,
        "rounds": rounds,
        "clock": arguments.clock,
        "corpora": str(arguments.corpora.name) if arguments.corpora else "default",
        "rows": rows,
        "failures": failures,
    }


def main(argv: list[str] | None = None) -> int:
    arguments = _arguments(argv)
    if arguments.list:
        for case in CASES.values():
            print(f"{case.name:32} {case.group:11} {'quick' if case.quick else '':6} {case.title}")
        return 0
    try:
        results = measure(arguments)
    except ValueError as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 2
    results["goals"] = goals.evaluate(results["rows"], arguments.clock)
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1), encoding="utf-8")
    print(render.table(results))
    print(goals.report(results["goals"]))
    for failure in results["failures"]:
        if failure["why"].startswith("error"):
            print("failed:", *(str(part) for part in failure.values() if part), file=sys.stderr)
    if arguments.render:
        render.into_readme(results, arguments.render)
    return 0


if __name__ == "__main__":
    sys.exit(main())
