"""Runs benchmark cases on each engine (tokenizer), in one process per engine and round.

    python -m benchmarks.run --quick
    python -m benchmarks.run --full --corpora DIR --json out.json --render docs/benchmarks.md docs/benchmarks.csv
    python -m benchmarks.run --cases text 'piece-list-*' --engines bpe_engine,gigatoken --rounds 7
    python -m benchmarks.run --cases load text-list --encodings tokenizer.json --engines bpe_engine,tokenizers

Engines alternate within each round. A row is the median over rounds, with the token count and
whether the ids equal tiktoken's (for a tokenizer.json, tokenizers'; for a .model, sentencepiece's).
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import sys
import tempfile
from pathlib import Path
from typing import Any

from .cases.cases import CASES, chosen_cases
from .cases.corpora import Corpus, find_corpora
from .cases.encodings import ENCODINGS, FILES, spec_of
from .cases.training_texts import text_file
from .harness import render
from .harness.measures import CLOCKS
from .harness.runner import Runner, last_cpu, run_rounds, tasks
from .peers.engines import OURS, PLANS, installed_engines

QUICK_ENGINES = [OURS, "tiktoken", "tokenizers", "gigatoken", "splintr"]


def machine(engines: list[str]) -> dict[str, Any]:
    """Describes the machine, and the versions of the engines."""
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


def shared_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options shared by all programs that run cases."""
    parser.add_argument(
        "--cases", nargs="+", metavar="NAME", help="names or groups of cases, * allowed"
    )
    parser.add_argument(
        "--encodings",
        metavar="A,B",
        help=f"of {','.join(ENCODINGS)}, or tokenizer.json and .model files",
    )
    parser.add_argument(
        "--corpora", type=Path, metavar="DIR", help="take the *.txt of DIR as corpora"
    )
    parser.add_argument("--only", metavar="A,B", help="only these corpora, by name")
    parser.add_argument(
        "--megabytes", type=float, default=2, help="size of each default corpus (default 2)"
    )
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
    parser.add_argument("--cache", type=Path, help="folder for what is prepared once")


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
    shared_arguments(parser)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every row here")
    parser.add_argument(
        "--render",
        type=Path,
        nargs="+",
        metavar="FILE",
        help="write the tables into these pages, and all rows into a .csv",
    )
    parser.add_argument("--list", action="store_true", help="list the cases and stop")
    return parser.parse_args(argv)


def split_names(text: str | None, default: list[str]) -> list[str]:
    """Splits a comma-separated list; returns ``default`` for an empty list or None."""
    return [part for part in text.split(",") if part] if text else default


def _chosen_engines(arguments: argparse.Namespace) -> list[str]:
    installed = installed_engines()
    default = installed if arguments.full else [name for name in QUICK_ENGINES if name in installed]
    chosen = split_names(arguments.engines, default)
    for name in chosen:
        if name not in PLANS:
            raise ValueError(f"No engine {name!r}; choose from {', '.join(PLANS)}.")
        if name not in installed:
            raise ValueError(
                f"The engine {name!r} is not installed: pip install {PLANS[name].distribution}"
            )
    return chosen


def prepared_corpora(arguments: argparse.Namespace) -> tuple[Path, list[Corpus]]:
    """Returns the folder for prepared files, and the selected corpora."""
    cache: Path = arguments.cache or Path(tempfile.gettempdir()) / "bpe-engine-benchmarks"
    cache.mkdir(parents=True, exist_ok=True)
    folder = arguments.corpora.resolve() if arguments.corpora else None
    corpora = find_corpora(folder, cache, int(arguments.megabytes * 10**6))
    if arguments.only:
        corpora = [corpus for corpus in corpora if corpus.name in arguments.only.split(",")]
        if not corpora:
            raise ValueError(f"No corpus is named {arguments.only!r}.")
    return cache, corpora


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """Runs the selected cases. Returns the machine, the rows and the failures."""
    cases = chosen_cases(arguments.cases, quick=not arguments.full)
    engines = _chosen_engines(arguments)
    encodings = split_names(
        arguments.encodings, ["o200k_base", "cl100k_base"] if arguments.full else ["o200k_base"]
    )
    encodings = [str(Path(name).resolve()) if name.endswith(FILES) else name for name in encodings]
    specs = [spec_of(name) for name in encodings]
    cache, corpora = prepared_corpora(arguments)
    for name in engines:
        prepare = PLANS[name].prepare
        if prepare:
            for spec in specs:
                prepare(spec, cache)
    texts = [case.options for case in cases if case.measure in ("training", "models")]
    # Makes the largest text first, because the smaller texts are its prefixes.
    for text in sorted(texts, key=lambda text: -text["megabytes"]):
        paths = [corpus.path for corpus in corpora]
        text_file(text["text"], text["megabytes"], paths, cache)
    cpu = arguments.cpu if arguments.cpu is not None else last_cpu()
    runner = Runner(cache, corpora, arguments.timeout, cpu, arguments.clock)
    todo = tasks(cases, corpora, encodings, quick=not arguments.full)
    rounds = arguments.rounds or (5 if arguments.full else 3)
    run_rounds(runner, todo, engines, rounds)
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
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1), encoding="utf-8")
    print(render.table(results))
    for failure in results["failures"]:
        if failure["why"].startswith("error"):
            print("failed:", *(str(part) for part in failure.values() if part), file=sys.stderr)
    for path in arguments.render or []:
        render.write(results, path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
