"""How much memory a call takes beside its result, on a long text.

    python -m benchmarks.peaks
    python -m benchmarks.peaks --megabytes 95 --calls count truncate split

Each call has a process of its own, which holds the text and has encoded another one before. The
result is what stays when the call has returned; the peak is what was held at most, less that. Both
are resident memory, by which the table divides the bytes of the text.
"""

from __future__ import annotations

import argparse
import gc
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .cases import corpora
from .harness.measures import resident

#: What is measured, by name.
CALLS: dict[str, Callable[[Any, str], Any]] = {
    "encode": lambda enc, text: enc.encode(text),
    "encode_to_numpy": lambda enc, text: enc.encode_to_numpy(text),
    "count": lambda enc, text: enc.count(text),
    "truncate to half": lambda enc, text: enc.truncate(text, len(text) // 8),
    "truncate left to half": lambda enc, text: enc.truncate(text, len(text) // 8, side="left"),
    "truncate to 10": lambda enc, text: enc.truncate(text, 10),
    "truncate left to 10": lambda enc, text: enc.truncate(text, 10, side="left"),
    "chunk by 1000": lambda enc, text: enc.chunk(text, 1000),
    "encode_with_offsets": lambda enc, text: enc.encode_with_offsets(text),
    "split": lambda enc, text: enc.split(text),
    "encode_with_unstable": lambda enc, text: enc.encode_with_unstable(text),
}


def long_text(path: Path, size: int) -> str:
    """The text of a file, over and over, of about ``size`` bytes."""
    text = corpora.read(path)
    return text * max(1, size // len(text.encode("utf-8")))


def measure(name: str, encoding: str, path: Path, size: int) -> dict[str, float]:
    """Bytes of the result, and of the peak beside it, for each byte of text; in this process."""
    import bpe_engine

    enc = bpe_engine.get_encoding(encoding)
    enc.encode(corpora.read(path)[:1_000_000])
    text = long_text(path, size)
    gc.collect()
    before = resident()
    result = CALLS[name](enc, text)
    after = resident()
    del result
    if "now" not in before:
        raise SystemExit("what a result takes is known on Linux alone")
    per_byte = 2**20 / len(text.encode("utf-8"))
    held = max(0.0, after["now"] - before["now"])
    # What was held before the text was made may be more than anything since.
    peak = max(after["peak"] - before["now"], held) if after["peak"] > before["peak"] else held
    return {"result": held * per_byte, "beside": (peak - held) * per_byte, "peak": peak}


def run(name: str, arguments: argparse.Namespace, path: Path) -> dict[str, float]:
    """The same in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.peaks", "--encoding", arguments.encoding]
    command += ["--megabytes", str(arguments.megabytes), "--worker", name, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{name}: {done.stderr.strip()}")
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--encoding", default="cl100k_base", help="an encoding of this package")
    parser.add_argument("--megabytes", type=float, default=95, help="the length of the text")
    parser.add_argument("--corpora", type=Path, help="a folder of texts, of which en.txt is taken")
    parser.add_argument("--calls", nargs="+", default=list(CALLS), choices=list(CALLS))
    parser.add_argument("--worker", nargs=2, metavar=("CALL", "FILE"), help="one, in this process")
    arguments = parser.parse_args()
    size = int(arguments.megabytes * 1e6)
    if arguments.worker:
        name, path = arguments.worker
        print(json.dumps(measure(name, arguments.encoding, Path(path), size)))
        return
    with tempfile.TemporaryDirectory() as folder:
        found = {
            corpus.name: corpus.path
            for corpus in corpora.find_corpora(arguments.corpora, Path(folder))
        }
        path = found.get("en") or next(iter(found.values()))
        print(f"{arguments.megabytes:g} MB of text, {arguments.encoding}\n")
        print("| call | result, bytes a byte | beside it, bytes a byte | peak, MB |")
        print("|---|---:|---:|---:|")
        for name in arguments.calls:
            row = run(name, arguments, path)
            print(
                f"| {name} | {row['result']:.2f} | {row['beside']:.2f} | {row['peak']:.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
