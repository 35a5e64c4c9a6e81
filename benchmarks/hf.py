"""Tokenizer files: time and memory beside other engines, and which calls each answers rightly.

    python -m benchmarks.hf FILE...                 # loading and encoding
    python -m benchmarks.hf --transformers FILE...  # calls through transformers
    python -m benchmarks.hf --loading FILE...       # from_pretrained, patched and not
    python -m benchmarks.hf --calls FILE            # which calls give what `tokenizers` gives

FILE is a ``tokenizer.json``, or the name of a built-in encoding, of which one is made. Each engine
runs in processes of its own, which take turns. They are held to the first CPU, and times are CPU
times but for those of short texts; with ``--cpus 0,1`` they have both, and times are those of the
clock. ``--next FOLDER`` adds tokenizers 1.0 out of a folder (``pip install --target FOLDER
tokenizers==1.0.0rc3``). Ids are compared with those of `tokenizers`; an engine whose ids differ
gets no figures. ``--render docs/hf.md`` writes the tables into that page. A file takes less than a
minute a round.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from .cases import tokenizer_calls
from .cases.tokenizer_files import tokenizer_json
from .cases.tokenizer_work import CLASSES, PATCHED, UNPATCHED, WORK
from .harness.pages import into_page
from .harness.render import number
from .peers.tokenizer_engines import ENGINES, NEXT, prepare

OURS = "bpe_engine"
ROOT = Path(__file__).resolve().parents[1]

#: What the processes of an engine found.
Runs = dict[str, list[dict[str, Any]]]


def run(job: str, engine: str, path: str, options: argparse.Namespace) -> dict[str, Any] | None:
    """One process; None when it fails, which is said."""
    command = ["taskset", "-c", options.cpus, sys.executable, "-m", "benchmarks.hf"]
    command += ["--worker", job, engine, path, "--cpus", options.cpus]
    if options.next is not None:
        command += ["--next", options.next]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode:
        print(f"{engine}: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        return None
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def in_turn(job: str, engines: list[str], path: str, options: argparse.Namespace) -> Runs:
    """As many processes of each engine as there are rounds; none of one that failed."""
    runs: Runs = {engine: [] for engine in engines}
    failed = set()
    for _ in range(options.rounds):
        for engine in engines:
            result = None if engine in failed else run(job, engine, path, options)
            if result is None:
                failed.add(engine)
            else:
                runs[engine].append(result)
    return {engine: [] if engine in failed else results for engine, results in runs.items()}


def _values(result: dict[str, Any]) -> dict[str, float]:
    """The rows of a process."""
    memory = {"memory after loading, MiB": result["memory"]} if "memory" in result else {}
    return result["times"] | memory


def table(runs: Runs, each_peer: bool = False) -> str:
    """Medians as Markdown: a line per row, a column per engine whose ids are right.

    The last columns are ratios to ours: that of the best peer, or with ``each_peer`` of each.

    >>> def found(value): return {"times": {"1 KB": value}, "ids": "0"}
    >>> print(table({"bpe_engine": [found(2)], "tokenizers": [found(9), found(7)], "other": []}))
    | milliseconds | bpe_engine | tokenizers | best peer / bpe_engine |
    |---|---:|---:|---:|
    | 1 KB | 2 | 8 | 4.00 |
    <BLANKLINE>
    other fails.
    """
    right = runs["tokenizers"][0]["ids"]
    shown = [e for e in runs if runs[e] and all(r["ids"] == right for r in runs[e])]
    if OURS not in shown:
        raise ValueError(f"the ids of {OURS} are not those of tokenizers")
    peers = [engine for engine in shown if engine != OURS]
    ratios = peers if each_peer else ["best peer"]
    lines = [
        "| " + " | ".join(["milliseconds", *shown, *(f"{e} / {OURS}" for e in ratios)]) + " |",
        "|---|" + "---:|" * (len(shown) + len(ratios)),
    ]
    values = {e: [_values(result) for result in runs[e]] for e in shown}
    for row in values[OURS][0]:
        medians = {e: statistics.median(each[row] for each in values[e]) for e in shown}
        others = [medians[engine] for engine in peers]
        cells = [
            f"{other / medians[OURS]:.2f}" for other in (others if each_peer else [min(others)])
        ]
        lines.append("| " + " | ".join([row, *map(number, medians.values()), *cells]) + " |")
    for engine in runs:
        if engine not in shown:
            lines.append(f"\n{engine} {'gives other ids' if runs[engine] else 'fails'}.")
    return "\n".join(lines)


def loading_table(paths: list[str], options: argparse.Namespace) -> str:
    """How long transformers takes to load each file, by its general class and by another."""
    lines = [
        f"| file | class | {UNPATCHED}, ms | {PATCHED}, ms | patched / not |",
        "|---|---|---:|---:|---:|",
    ]
    for path in paths:
        name = Path(path).stem
        for class_name in ("PreTrainedTokenizerFast", CLASSES.get(name)):
            if class_name is None:
                continue
            with tempfile.TemporaryDirectory() as folder:
                shutil.copy(path, Path(folder) / "tokenizer.json")
                config = Path(folder) / "tokenizer_config.json"
                config.write_text(json.dumps({"tokenizer_class": class_name}))
                runs = in_turn("loading", [UNPATCHED, PATCHED], folder, options)
            if not all(runs.values()):
                raise ValueError(f"{class_name} does not load {path}")
            results = [result for engine in runs for result in runs[engine]]
            if len({result["ids"] for result in results}) != 1:
                raise ValueError(f"{class_name} gives other ids for {path} after the patch")
            if not all(result["ours"] for result in runs[PATCHED]):
                raise ValueError(f"{class_name} keeps the tokenizer of transformers for {path}")
            before, after = (
                statistics.median(result["times"]["load"] for result in runs[engine])
                for engine in (UNPATCHED, PATCHED)
            )
            cells = f"{number(before)} | {number(after)} | {after / before:.2f}"
            lines.append(f"| {name} | `{class_name}` | {cells} |")
    return "\n".join(lines)


def caption(options: argparse.Namespace) -> str:
    """When, with what, and how the figures were taken."""
    packages = ["tokenizers", "transformers", "fastokens", "gigatoken"]
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in packages)
    clock = "CPU time on one CPU" if options.cpus.isdigit() else f"time with CPUs {options.cpus}"
    return f"{datetime.date.today().isoformat()}; {versions}; {clock}, " + (
        "one process each." if options.rounds == 1 else f"median of {options.rounds} processes."
    )


def tables(paths: list[str], options: argparse.Namespace) -> dict[str, str]:
    """What was asked for, by the names of the markers."""
    several = "" if options.cpus.isdigit() else ", several CPUs"
    # Transformers takes no tokenizers 1.0 yet.
    engines = [engine for engine in ENGINES if engine != NEXT]
    if options.loading:
        return {"loading": f"{loading_table(paths, options)}\n\n{caption(options)}"}
    if options.calls:
        results = {engine: run("calls", engine, paths[0], options) for engine in engines}
        found = {engine: result for engine, result in results.items() if result is not None}
        return {"calls": tokenizer_calls.table(found)}
    job = "transformers" if options.transformers else "encoding"
    if job == "encoding" and options.next is not None:
        engines = ENGINES
    return {
        f"{job} {Path(path).stem}{several}": (
            f"{table(in_turn(job, engines, path, options), options.transformers)}\n\n{caption(options)}"
        )
        for path in paths
    }


def file_of(name: str, folder: str) -> str:
    """The path of a tokenizer file; one is made for the name of a built-in encoding."""
    if Path(name).exists():
        return str(Path(name).resolve())
    path = Path(folder) / f"{name}.json"
    path.write_text(tokenizer_json(name, special_tokens=False), encoding="utf-8")
    return str(path)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.hf",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("files", nargs="+", help="tokenizer.json files, or built-in encodings")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--transformers", action="store_true", help="calls through transformers")
    what.add_argument("--loading", action="store_true", help="from_pretrained, patched and not")
    what.add_argument("--calls", action="store_true", help="which calls are answered rightly")
    what.add_argument("--worker", choices=WORK, help=argparse.SUPPRESS)
    parser.add_argument("--cpus", default="0", help="hold processes to these, as taskset -c")
    parser.add_argument("--next", metavar="FOLDER", help="where tokenizers 1.0 is")
    parser.add_argument("--rounds", type=int, default=3, help="processes of each engine")
    parser.add_argument("--render", type=Path, metavar="PAGE", help="write the tables into a page")
    options = parser.parse_args()
    if options.next is not None:
        options.next = str(Path(options.next).resolve())
    return options


def main() -> int:
    options = _arguments()
    if options.worker:
        engine, path = options.files
        prepare(OURS if options.worker == "loading" else engine, options.next)
        clock = time.process_time if options.cpus.isdigit() else time.perf_counter
        print(json.dumps(WORK[options.worker](engine, path, clock)))
        return 0
    try:
        with tempfile.TemporaryDirectory() as folder:
            for name in [options.files] if options.loading else [[file] for file in options.files]:
                found = tables([file_of(file, folder) for file in name], options)
                for marker, rows in found.items():
                    print(f"\n{marker}:\n\n{rows}", flush=True)
                    if options.render:
                        page = options.render.read_text(encoding="utf-8")
                        page = into_page(page, f"hf: {marker}", rows)
                        options.render.write_text(page, encoding="utf-8")
    except ValueError as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
