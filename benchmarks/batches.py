"""Batches: from texts to matrices and flat arrays, beside other tokenizers.

    python -m benchmarks.batches                  # both tables
    python -m benchmarks.batches --rounds 7 --encoding o200k_base

Every side of a row runs in processes of its own, in turn with the others. A process encodes the batch once,
which is the time for text that it has not seen, and then again: the least of the next times. Figures are
medians over the rounds, those of ratios to the first side included. Ids are compared with those of ours; a
side whose ids differ gets no figure. "2 processes" is a half of the texts each for two processes that share
nothing, on one thread: what this machine gives two threads at most. It is far below twice one thread where
other programs are running, and then no figure of threads means anything.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import itertools
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .cases import corpora
from .cases.encodings import spec_of, write_tokenizer_json

# How often each process encodes the batch again.
AGAIN = 5

ROWS = {
    "padded": (
        "10,000 texts of 60 B -> padded matrix and mask",
        ["Tokenizer", "Tokenizer, file", "transformers"],
    ),
    "column": (
        "100,000 texts of 200 B, an Arrow column -> flat array",
        ["2 threads", "1 thread", "2 processes", "gigatoken", "gigatoken, 1 thread", "fastokens"],
    ),
}


def texts(row: str, cache: Path) -> list[str]:
    """The texts of a row: prose, code and other languages, cut into texts of one size."""
    count, size = (10_000, 60) if row == "padded" else (100_000, 200)
    pieces: list[str] = []
    for corpus in corpora.find_corpora(None, cache):
        if corpus.name in ("en", "code", "multi"):
            text = corpora.read(corpus.path)
            pieces += [text[at : at + size] for at in range(0, len(text) - size, size)]
    # As many as there are; then again, begun at other places.
    rotated = (piece[7 * turn :] + piece[: 7 * turn] for turn in range(count) for piece in pieces)
    return list(itertools.islice(rotated, count))


def padded(side: str, encoding: str, cache: Path) -> Callable[[list[str]], Any]:
    """What makes the matrix of ids, and the mask."""
    file = str(write_tokenizer_json(spec_of(encoding), cache))
    options: dict[str, Any] = {"padding": True, "return_tensors": "np"}
    if side == "transformers":
        import transformers

        theirs = transformers.PreTrainedTokenizerFast(
            tokenizer_file=file, pad_token="<|endoftext|>"
        )
        return lambda batch: theirs(batch, **options)
    import bpe_engine

    if side == "Tokenizer, file":
        from bpe_engine.hf import Tokenizer

        source: Any = Tokenizer.from_file(file)
    else:
        source = bpe_engine.get_encoding(encoding)
    ours = bpe_engine.Tokenizer(source, pad_token="<|endoftext|>")
    return lambda batch: ours(batch, **options)


def column(side: str, encoding: str, cache: Path) -> tuple[Callable[[Any], Any], bool]:
    """What makes the flat array, and whether it takes an Arrow column."""
    import numpy as np

    if side.startswith("gigatoken"):
        import gigatoken

        spec = spec_of(encoding)
        giga = gigatoken.Tokenizer.from_tiktoken(
            spec.ranks, pretokenizer=spec.gigatoken, special_tokens=spec.special_tokens
        )
        is_parallel = not side.endswith("1 thread")
        return lambda batch: giga.encode_batch(batch, parallel=is_parallel), False
    if side == "fastokens":
        import fastokens

        file = str(write_tokenizer_json(spec_of(encoding), cache))
        fast = fastokens.Tokenizer.from_file(file)

        def flat(batch: list[str]) -> Any:
            ids, offsets = fast.encode_batch_flat(batch)
            return np.frombuffer(ids, np.uint32), np.frombuffer(offsets, np.uint64)

        return flat, False
    import bpe_engine

    ours = bpe_engine.get_encoding(encoding)
    threads = 2 if side == "2 threads" else 1

    def encode(batch: Any) -> Any:
        return ours.encode_batch_ragged(batch, threads, disallowed_special=())

    return Processes(encode) if side == "2 processes" else encode, True


class Processes:
    """Encodes the first half of a batch in this process, and the second half in another one."""

    def __init__(self, encode: Callable[[Any], Any]):
        self.encode = encode
        self.batch: Any = None

    def __call__(self, batch: Any) -> Halves:
        half = len(batch) // 2
        if batch is not self.batch:
            # The texts reach the other process by fork, which takes some milliseconds once.
            self.batch = batch
            context = multiprocessing.get_context("fork")
            self.pipe, other = context.Pipe()
            context.Process(target=self.serve, args=(other, batch[half:]), daemon=True).start()
        self.pipe.send("encode")
        first = self.encode(batch[:half])
        self.pipe.recv()
        return Halves(first, self.pipe)

    def serve(self, pipe: Any, batch: Any) -> None:
        """The other process: encodes, or sends what it encoded last."""
        result = None
        while True:
            if pipe.recv() == "encode":
                result = self.encode(batch)
                pipe.send(None)
            else:
                pipe.send(result)


class Halves:
    """The result of two processes, put together when it is looked at."""

    def __init__(self, first: Any, pipe: Any):
        self.first, self.pipe = first, pipe

    @functools.cached_property
    def whole(self) -> Any:
        self.pipe.send("result")
        return self.first.concat([self.first, self.pipe.recv()])

    @property
    def values(self) -> Any:
        return self.whole.values

    @property
    def row_splits(self) -> Any:
        return self.whole.row_splits


def digest(result: Any) -> str:
    """The ids and lengths of a result, in short."""
    import numpy as np

    if hasattr(result, "row_splits"):
        arrays = [result.values, result.row_splits]
    elif isinstance(result, tuple):
        arrays = list(result)
    elif hasattr(result, "keys"):
        # The file has another id for padding, as ids without gaps want it.
        arrays = [result["input_ids"] * result["attention_mask"], result["attention_mask"]]
    else:
        import awkward

        lengths = awkward.to_numpy(awkward.num(result, axis=1))
        arrays = [
            awkward.to_numpy(awkward.flatten(result)),
            np.concatenate([[0], lengths.cumsum()]),
        ]
    short = hashlib.sha256()
    for array in arrays:
        short.update(np.ascontiguousarray(array).astype(np.int64).tobytes())
    return short.hexdigest()


def measure(row: str, side: str, encoding: str, cache: Path) -> dict[str, Any]:
    """One process: the first time, the least of the others, and the ids."""
    takes_column = False
    if row == "padded":
        call = padded(side, encoding, cache)
    else:
        call, takes_column = column(side, encoding, cache)
    batch: Any = texts(row, cache)
    if takes_column:
        import pyarrow

        batch = pyarrow.array(batch)
    call(batch[:1])
    times = []
    for _ in range(1 + AGAIN):
        start = time.perf_counter()
        result = call(batch)
        times.append(time.perf_counter() - start)
    return {"first": times[0], "again": min(times[1:]), "ids": digest(result)}


def run(row: str, side: str, encoding: str, cache: Path) -> dict[str, Any] | None:
    command = [sys.executable, "-m", "benchmarks.batches", "--encoding", encoding]
    command += ["--cache", str(cache), "--worker", row, side]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"{side}: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        return None
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def table(row: str, encoding: str, rounds: int, cache: Path) -> None:
    title, sides = ROWS[row]
    results: dict[str, list[dict[str, Any]]] = {side: [] for side in sides}
    for _ in range(rounds):
        made = {side: run(row, side, encoding, cache) for side in sides}
        for side, result in made.items():
            if result is not None:
                results[side].append(result)
    ours = results[sides[0]]
    print(f"\n{title}, {encoding}, median of {rounds}\n")
    print(f"| side | first, ms | x {sides[0]} | again, ms | x {sides[0]} | same ids |")
    print("|---|---|---|---|---|---|")
    for side in sides:
        found = results[side]
        if len(found) < rounds:
            print(f"| {side} | missing | | | | |")
            continue
        is_same = all(result["ids"] == ours[0]["ids"] for result in found)
        cells = []
        for kind in ("first", "again"):
            ratio = statistics.median(b[kind] / a[kind] for a, b in zip(ours, found))
            cells += [f"{1000 * statistics.median(r[kind] for r in found):.1f}", f"{ratio:.2f}"]
        shown = " | ".join(cells) if is_same else " | | | "
        print(f"| {side} | {shown} | {'yes' if is_same else '**no**'} |")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--encoding", default="cl100k_base", help="an encoding of this package")
    parser.add_argument("--rounds", type=int, default=5, help="processes of each side")
    parser.add_argument("--rows", nargs="+", default=list(ROWS), choices=list(ROWS))
    parser.add_argument("--cache", type=Path, help="a folder for tokenizer files")
    parser.add_argument(
        "--worker", nargs=2, metavar=("ROW", "SIDE"), help="one side, in this process"
    )
    arguments = parser.parse_args()
    if arguments.worker:
        print(json.dumps(measure(*arguments.worker, arguments.encoding, arguments.cache)))
        return
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
    with tempfile.TemporaryDirectory() as folder:
        cache = arguments.cache or Path(folder)
        write_tokenizer_json(spec_of(arguments.encoding), cache)
        corpora.find_corpora(None, cache)
        for row in arguments.rows:
            table(row, arguments.encoding, arguments.rounds, cache)


if __name__ == "__main__":
    main()
