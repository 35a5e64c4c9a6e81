"""How long it takes to train a vocabulary of 32,000 tokens, beside other trainers.

    python -m benchmarks.train
    python -m benchmarks.train --corpus english --render docs/training.md
    python -m benchmarks.train --corpus growth --growth 10 25 50 100 200

Each trainer and round has a process of its own with two threads; trainers take turns. Time is that
from the text file to the merges, without imports; memory is the peak of the process, imports
included. Merges are compared with ours where the rules for ties are the same: Hugging Face's and
gigatoken's take the lowest ids in GPT-2's order of bytes, rustbpe the lowest ids in the order of
byte values, which ours does from a base of these; bpeasy's rule is another. A trainer that does not
end within --limit seconds is stopped, and is not run on that text again. For `growth`, ours alone
is measured, on mixed text. Making the texts takes some minutes the first time; --make does that
beforehand.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .cases.training_texts import text_file
from .harness.pages import into_page
from .peers.trainers import THREADS, TRAINERS

#: What is trained on: the name of the text, and megabytes.
TEXTS = {"english": ("en", 10), "chinese": ("zh", 10), "mixed": ("mixed", 50)}

#: The row about how time grows.
GROWTH = "growth"

OURS = "bpe_engine"
FROM_BYTES = "bpe_engine from byte values"

#: What each run of a trainer found; None when it did not end.
Runs = dict[str, list[dict[str, Any] | None]]


def work(trainer: str, path: str, size: int) -> dict[str, Any]:
    """Trains once in this process."""
    train = TRAINERS[trainer](path, size)
    wall, cpu = time.perf_counter(), time.process_time()
    merges = train()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = peak_memory() / 2**20
    digest = None
    if merges is not None:
        # Those of tokenizers are spelled in GPT-2's characters.
        from vocab_tools.convert.alphabet import read

        rows = [
            row
            if isinstance(row, bytes)
            else tuple(read(p) if isinstance(p, str) else p for p in row)
            for row in merges
        ]
        digest = hashlib.blake2b(repr(rows).encode(), digest_size=8).hexdigest()
    return {"wall": wall, "cpu": cpu, "memory": peak, "merges": digest}


def peak_memory() -> int:
    """The most memory that this process has had, in bytes."""
    try:
        # Not `getrusage`, which begins with the memory of the process that started this one.
        status = Path("/proc/self/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) * 1024
    except (OSError, IndexError):
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def run(trainer: str, path: Path, size: int, limit: float) -> dict[str, Any] | None:
    """Trains once in a process of its own; None when that takes longer than the limit.

    Raises RuntimeError, with the last line of the error, when the trainer fails.
    """
    module = [sys.executable, "-m", "benchmarks.train", "--work", trainer, str(path), str(size)]
    environment = {
        **os.environ, "RAYON_NUM_THREADS": str(THREADS), "TOKENIZERS_PARALLELISM": "true",
    }  # fmt: skip
    try:
        done = subprocess.run(
            module, capture_output=True, text=True, env=environment, timeout=limit
        )
    except subprocess.TimeoutExpired:
        return None
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip().rpartition("\n")[2])
    return json.loads(done.stdout.rpartition("\n@")[2])  # type: ignore[no-any-return]


def measure(path: Path, trainers: Sequence[str], size: int, rounds: int, limit: float) -> Runs:
    """The runs of each trainer; those that are not installed are left out, and said."""
    found: Runs = {}
    left_out = set()
    for _ in range(rounds):
        for trainer in trainers:
            if trainer in left_out:
                continue
            try:
                result = run(trainer, path, size, limit)
            except RuntimeError as error:
                print(f"{trainer} is left out: {error}", file=sys.stderr)
                left_out.add(trainer)
                continue
            found.setdefault(trainer, []).append(result)
            if result is None:
                left_out.add(trainer)
    return found


def version(trainer: str) -> str:
    """The trainer and, of another package, its version."""
    if trainer.startswith(OURS):
        return trainer
    try:
        return f"{trainer} {importlib.metadata.version(trainer)}"
    except importlib.metadata.PackageNotFoundError:
        return trainer


def table(found: Runs, limit: float) -> str:
    """The rows of one text, in Markdown.

    >>> ours = {"wall": 2.0, "cpu": 3.0, "memory": 50.0, "merges": "a"}
    >>> peer = {"wall": 8.0, "cpu": 9.0, "memory": 80.0, "merges": "a"}
    >>> print(table({"bpe_engine": [ours], "peer": [peer], "slow": [None]}, 60))
    | trainer | s | CPU s | time over ours | CPU over ours | peak MiB | same merges |
    | --- | ---: | ---: | ---: | ---: | ---: | --- |
    | bpe_engine | 2.00 | 3.00 | 1.0 | 1.0 | 50 | |
    | peer | 8.00 | 9.00 | 4.0 | 3.0 | 80 | yes |
    | slow | did not end in 60 s | | over 30.0 | | | |
    """
    lines = [
        "| trainer | s | CPU s | time over ours | CPU over ours | peak MiB | same merges |",
        "| --- | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    for trainer, runs in found.items():
        cells = _cells(trainer, runs, found, limit)
        lines.append(f"| {version(trainer)} | {' | '.join(cells)} |".replace("|  |", "| |"))
    return "\n".join(line.replace("|  |", "| |") for line in lines)


def _cells(trainer: str, runs: list[dict[str, Any] | None], found: Runs, limit: float) -> list[str]:
    ours = [row for row in found[OURS] if row is not None]
    if runs[-1] is None:
        least = limit / min(row["wall"] for row in ours) if ours else 0.0
        return [f"did not end in {limit:g} s", "", f"over {least:.1f}", "", "", ""]
    ended = [row for row in runs if row is not None]
    ratios = [
        statistics.median(a[key] / b[key] for a, b in zip(ended, ours)) for key in ("wall", "cpu")
    ]
    mirror = found.get(FROM_BYTES, [None])[0] if trainer == "rustbpe" else found[OURS][0]
    same = ""
    if trainer not in (OURS, FROM_BYTES) and mirror and ended[0]["merges"]:
        same = "yes" if ended[0]["merges"] == mirror["merges"] else "no"
    return [
        f"{min(row['wall'] for row in ended):.2f}",
        f"{min(row['cpu'] for row in ended):.2f}",
        *(f"{ratio:.1f}" for ratio in ratios),
        f"{statistics.median(row['memory'] for row in ended):.0f}",
        same,
    ]


def growth(paths: dict[int, Path], size: int, rounds: int, limit: float) -> str:
    """How time and memory grow with the text, in Markdown."""
    lines = [
        "| mixed text, MB | s | CPU s | CPU s per MB | peak MiB |",
        "| ---: | ---: | ---: | ---: | ---: |",
    ]
    for megabytes, path in paths.items():
        runs = measure(path, [OURS], size, rounds, limit)[OURS]
        rows = [row for row in runs if row is not None]
        if not rows:
            lines.append(f"| {megabytes} | did not end in {limit:g} s | | | |")
            continue
        wall, cpu = (min(row[key] for row in rows) for key in ("wall", "cpu"))
        memory = statistics.median(row["memory"] for row in rows)
        lines.append(
            f"| {megabytes} | {wall:.2f} | {cpu:.2f} | {cpu / megabytes:.3f} | {memory:.0f} |"
        )
    return "\n".join(lines)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.train",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--corpus",
        nargs="+",
        choices=[*TEXTS, GROWTH],
        default=[*TEXTS, GROWTH],
        help="what to train on; by default all",
    )
    parser.add_argument("--corpora", type=Path, help="a folder with the *.txt to take")
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "bpe_engine")
    parser.add_argument("--trainers", default=",".join(TRAINERS), metavar="A,B")
    parser.add_argument("--size", type=int, default=32_000, help="tokens")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--limit", type=float, default=60, help="seconds for one run")
    parser.add_argument("--growth", type=int, nargs="+", default=[10, 25, 50, 100, 200])
    parser.add_argument("--make", action="store_true", help="make the texts, and no more")
    parser.add_argument("--render", type=Path, metavar="FILE", help="write the tables into a page")
    parser.add_argument("--work", nargs=3, help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    options = _arguments()
    if options.work:
        trainer, path, size = options.work
        print("\n@" + json.dumps(work(trainer, path, int(size))))
        return
    wanted = set(options.trainers.split(","))
    trainers = [name for name in TRAINERS if name in wanted | {OURS}]

    def text(name: str, megabytes: int) -> Path:
        return text_file(name, megabytes, options.corpora, options.cache)

    for name in options.corpus:
        if name == GROWTH:
            # The largest first: the others are its beginnings.
            largest_first = sorted(set(options.growth), reverse=True)
            paths = {megabytes: text("mixed", megabytes) for megabytes in largest_first}
            paths = dict(sorted(paths.items()))
        else:
            path = text(*TEXTS[name])
        if options.make:
            continue
        if name == GROWTH:
            rows = growth(paths, options.size, options.rounds, options.limit)
        else:
            found = measure(path, trainers, options.size, options.rounds, options.limit)
            rows = table(found, options.limit)
        print(f"{name}:\n\n{rows}\n", flush=True)
        if options.render:
            page = options.render.read_text(encoding="utf-8")
            options.render.write_text(into_page(page, f"train: {name}", rows), encoding="utf-8")


if __name__ == "__main__":
    main()
