"""Tokenizer files: time and memory beside other engines, and which calls each answers rightly.

    python -m benchmarks.hf FILE...              # loading and encoding
    python -m benchmarks.hf --transformers FILE...  # calls through transformers
    python -m benchmarks.hf --calls FILE         # which calls give what `tokenizers` gives

FILE is a ``tokenizer.json``, or the name of a built-in encoding, of which one is made. Each engine
runs in processes of its own. ``--cpus 0`` holds them to CPUs; with one CPU, times are CPU times.
``--next FOLDER`` adds tokenizers 1.0 out of a folder (``pip install --target FOLDER
tokenizers==1.0.0rc3``). Ids are compared with those of `tokenizers`; an engine whose ids differ
gets no figures.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Callable

from .cases import tokenizer_calls
from .cases.tokenizer_files import tokenizer_json
from .peers.tokenizer_engines import ENGINES, NEXT, load, prepare, transformers_tokenizer

CORPORA = Path(__file__).resolve().parents[1].parent / "shared" / "corpora"
SIZE = 400_000

WORKERS: dict[str, Callable[[str, str, Callable[[], float]], dict[str, Any]]] = {}


def worker(function: Callable[[str, str, Callable[[], float]], dict[str, Any]]) -> Any:
    """Registers what one process does: engine, file and clock in, a dictionary out."""
    WORKERS[function.__name__] = function
    return function


def text(name: str, part: int) -> str:
    raw = (CORPORA / f"{name}.txt").read_bytes()
    return raw[part * SIZE : (part + 1) * SIZE].decode("utf-8", "ignore")


def resident() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def median_time(count: int, call: Callable[[], Any]) -> float:
    """Milliseconds."""
    rounds = []
    for _ in range(count):
        start = time.perf_counter()
        call()
        rounds.append((time.perf_counter() - start) * 1000)
    return statistics.median(rounds)


@worker
def encoding(engine: str, path: str, clock: Callable[[], float]) -> dict[str, Any]:
    """Loading, first calls, calls with new text, short texts. Milliseconds."""
    times: dict[str, float] = {}
    digest = hashlib.sha256()
    before = resident()

    def timed(row: str, work: Callable[[], Any]) -> Any:
        start = clock()
        result = work()
        times[row] = (clock() - start) * 1000
        return result

    encode = timed("load", lambda: load(engine, path))
    memory = resident() - before
    for kind, part in (("first", 0), ("new", 1)):
        for name in ("en", "code", "zh"):
            contents = text(name, part)
            ids = timed(f"{kind} {name}", lambda: encode(contents))
            digest.update(json.dumps(list(map(int, ids))).encode())
    for row, contents in (("26 B", "The quick brown fox jumps!"), ("1 KB", text("en", 2)[:1000])):
        times[row] = median_time(300, lambda: encode(contents))
        digest.update(json.dumps(list(map(int, encode(contents)))).encode())
    return {"times": times, "memory": memory / 2**20, "ids": digest.hexdigest()}


@worker
def transformers(engine: str, path: str, _: Callable[[], float]) -> dict[str, Any]:
    """Calls through transformers. Milliseconds."""
    tokenizer = transformers_tokenizer(engine, path)
    contents = text("en", 0)
    batch = [contents[at : at + 2000] for at in range(0, 300_000, 2000)] * 7
    calls = {
        "1 KB": (200, lambda: tokenizer(contents[:1000])),
        "100 KB": (5, lambda: tokenizer(contents[:100_000])),
        "1,000 texts of 2 KB, padded": (
            3,
            lambda: tokenizer(batch[:1000], padding=True, return_tensors="np"),
        ),
    }
    times = {}
    digest = hashlib.sha256()
    for row, (count, call) in calls.items():
        result = call()
        times[row] = median_time(count, call)
        for name in ("input_ids", "attention_mask"):
            rows = [result[name]] if row.endswith("KB") else result[name]
            digest.update(json.dumps([list(map(int, ids)) for ids in rows]).encode())
    return {"times": times, "ids": digest.hexdigest()}


@worker
def calls(engine: str, path: str, _: Callable[[], float]) -> dict[str, Any]:
    """What calls through transformers return, as text."""
    return tokenizer_calls.answers(engine, path)


def run(
    job: str, engine: str, path: str, cpus: str | None, next_folder: str | None
) -> dict[str, Any] | None:
    command = [sys.executable, "-m", "benchmarks.hf", "--worker", job, engine, path]
    if next_folder is not None:
        command += ["--next", next_folder]
    if cpus is not None:
        command = ["taskset", "-c", cpus, *command, "--cpus", cpus]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"{engine}: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        return None
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def engines(job: str, next_folder: str | None) -> list[str]:
    # Transformers takes no tokenizers 1.0 yet.
    has_next = next_folder is not None and job == "encoding"
    return [engine for engine in ENGINES if has_next or engine != NEXT]


def tables(paths: list[str], job: str, arguments: argparse.Namespace) -> None:
    names = engines(job, arguments.next)
    for path in paths:
        runs: dict[str, list[dict[str, Any]]] = {engine: [] for engine in names}
        for _ in range(arguments.rounds):
            for engine in names:
                result = run(job, engine, path, arguments.cpus, arguments.next)
                if result is not None:
                    runs[engine].append(result)
        right = runs["tokenizers"][0]["ids"]
        shown = [e for e in names if runs[e] and all(r["ids"] == right for r in runs[e])]
        print(f"\n{Path(path).stem}, milliseconds, median of {arguments.rounds}\n")
        print("| row | " + " | ".join(shown) + " | best peer / bpe_engine |")
        print("|---|" + "---|" * (len(shown) + 1))
        rows = {row: (lambda r, row=row: r["times"][row]) for row in runs["tokenizers"][0]["times"]}
        if "memory" in runs["tokenizers"][0]:
            rows["memory, MiB"] = lambda r: r["memory"]
        for row, value in rows.items():
            cells = {e: statistics.median(map(value, runs[e])) for e in shown}
            best = min(cell for e, cell in cells.items() if e != "bpe_engine")
            figures = " | ".join(f"{cell:.3g}" for cell in cells.values())
            print(f"| {row} | {figures} | {best / cells['bpe_engine']:.2f} |")
        for engine in set(names) - set(shown):
            print(f"\n{engine}: other ids, or it does not load the file")


def print_calls(path: str, arguments: argparse.Namespace) -> None:
    results = {
        engine: run("calls", engine, path, arguments.cpus, None)
        for engine in engines("calls", None)
    }
    found = {engine: result for engine, result in results.items() if result is not None}
    print(tokenizer_calls.table(found))


def file_of(name: str, folder: str) -> str:
    """The path of a tokenizer file; one is made for the name of a built-in encoding."""
    if Path(name).exists():
        return name
    path = Path(folder) / f"{name}.json"
    path.write_text(tokenizer_json(name), encoding="utf-8")
    return str(path)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("files", nargs="+", help="tokenizer.json files, or built-in encodings")
    parser.add_argument("--transformers", action="store_true", help="calls through transformers")
    parser.add_argument("--calls", action="store_true", help="which calls are answered rightly")
    parser.add_argument("--cpus", help="hold each process to these CPUs, as taskset -c")
    parser.add_argument("--next", help="a folder with tokenizers 1.0")
    parser.add_argument("--rounds", type=int, default=3, help="processes of each engine")
    parser.add_argument("--worker", choices=WORKERS, help="one engine, one file, in this process")
    arguments = parser.parse_args()
    if arguments.worker:
        engine, path = arguments.files
        prepare(engine, arguments.next)
        is_one_cpu = arguments.cpus is not None and arguments.cpus.isdigit()
        clock = time.process_time if is_one_cpu else time.perf_counter
        print(json.dumps(WORKERS[arguments.worker](engine, path, clock)))
        return
    with tempfile.TemporaryDirectory() as folder:
        paths = [file_of(name, folder) for name in arguments.files]
        if arguments.calls:
            print_calls(paths[0], arguments)
        else:
            tables(paths, "transformers" if arguments.transformers else "encoding", arguments)


if __name__ == "__main__":
    main()
