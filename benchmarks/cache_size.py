"""Caches of several sizes, beside an engine whose cache has no bound: texts that are encoded again.

    python -m benchmarks.cache_size
    python -m benchmarks.cache_size --corpora DIR --rounds 5

Texts of several MB with many different words have more pieces than the default cache holds. Each
side has a process of its own and encodes a text to an array of ids once, then several times more,
of which the median counts; sides take turns. A ratio is the CPU time of the other engine divided by
ours: above 1 we are faster. The ids must be the same.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from .cases import corpora
from .cases.encodings import spec_of
from .harness.measures import timed, use_clock
from .peers.digest import digest_of
from .peers.engines import PLANS

SIZES = {"8 MiB": 2**23, "64 MiB": 2**26}
TEXTS = ("multi", "zh")
WHEN = ("first", "again")
PASSES = 25


def measure(side: str, encoding: str, path: Path, cache: Path) -> dict[str, Any]:
    """Seconds of CPU for a text, the first time and again, in this process."""
    use_clock("cpu")
    name, _, cache_size = side.partition(", ")
    engine = PLANS[name].load(spec_of(encoding), cache)
    if cache_size:
        import bpe_engine

        bpe_engine.get_encoding(encoding).set_cache_size(SIZES[cache_size])
    call = engine.need("encode_numpy")
    text = corpora.read(path)
    call("hello world")
    first, ids = timed(call, text)
    digest = digest_of(ids, text).hex()
    del ids
    seconds = [timed(call, text)[0] for _ in range(PASSES)]
    return {"first": first, "again": statistics.median(seconds), "ids": digest}


def run(side: str, arguments: argparse.Namespace, path: Path, cache: Path) -> dict[str, Any]:
    """The same in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.cache_size", "--encoding", arguments.encoding]
    command += ["--worker", side, str(path), str(cache)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{side}: {done.stderr.strip()}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def row(
    corpus: corpora.Corpus, sides: list[str], arguments: argparse.Namespace, cache: Path
) -> str:
    """A row of the table. The first of ``sides`` is the other engine."""
    ratios: dict[tuple[str, str], list[float]] = {}
    for _ in range(arguments.rounds):
        theirs, *ours = [run(side, arguments, corpus.path, cache) for side in sides]
        for side, result in zip(sides[1:], ours):
            if result["ids"] != theirs["ids"]:
                raise SystemExit(f"{corpus.name}: the ids differ")
            for when in WHEN:
                ratios.setdefault((side, when), []).append(theirs[when] / result[when])
    cells = [f"{statistics.median(found):.2f}" for found in ratios.values()]
    size = len(corpora.read(corpus.path).encode("utf-8")) / 1e6
    return f"| {corpus.name} | {size:.1f} | " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--encoding", default="o200k_base", help="an encoding of this package")
    parser.add_argument("--peer", default="gigatoken", help="the engine to compare with")
    parser.add_argument("--rounds", type=int, default=3, help="processes of each side")
    parser.add_argument("--megabytes", type=float, default=8, help="of the texts that are made")
    parser.add_argument("--corpora", type=Path, help="a folder of texts, in place of made ones")
    parser.add_argument("--worker", nargs=3, metavar=("SIDE", "FILE", "CACHE"), help="one side")
    arguments = parser.parse_args()
    if arguments.worker:
        side, path, cache = arguments.worker
        print(json.dumps(measure(side, arguments.encoding, Path(path), Path(cache))))
        return
    sides = [arguments.peer, *(f"bpe_engine, {size}" for size in SIZES)]
    corpora.DEFAULT_SIZE = int(arguments.megabytes * 1e6)
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder)
        prepare = PLANS[arguments.peer].prepare
        if prepare:
            prepare(spec_of(arguments.encoding), cache)
        found = corpora.find_corpora(arguments.corpora, cache)
        print(
            f"{arguments.encoding}, CPU time of {arguments.peer} divided by ours, {arguments.rounds} rounds\n"
        )
        print(
            "| text | MB | "
            + " | ".join(f"{size}, {when}" for size in SIZES for when in WHEN)
            + " |"
        )
        print("|---|---:|" + "---:|" * len(SIZES) * len(WHEN))
        for corpus in found:
            if corpus.name in TEXTS:
                print(row(corpus, sides, arguments, cache), flush=True)


if __name__ == "__main__":
    main()
