"""How long it takes to train a vocabulary, beside other trainers.

    python -m benchmarks.train
    python -m benchmarks.train --corpora FOLDER --texts en,zh --rounds 3
    python -m benchmarks.train --growth 10 25 50 100 200

Each trainer and round has a process of its own with two threads; trainers take turns. Time is that
from the text file to the merges, without imports; memory is the peak of the process, imports
included. All cut text as GPT-2 does and merge pairs that occur at all. Merges are compared with ours
where the rules for ties are the same: Hugging Face's and gigatoken's take the lowest ids in GPT-2's
order of bytes, rustbpe the lowest ids in the order of byte values, which ours does from a base of
these; bpeasy's rule is another.

A text is the corpus of that name; where that is shorter than asked for, the rest is a chain of
characters over it: every seven (Chinese: every three) characters in a row occur in the corpus.
`mixed` is all corpora, and such a rest.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from .cases.corpora import find_corpora

THREADS = "2"
GOALS = {"rustbpe": 2.5, "tokenizers": 5.0, "bpeasy": 5.0, "gigatoken": 5.0}

#: GPT-2's pattern, as tiktoken spells it.
PATTERN = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"


def text_file(name: str, megabytes: int, corpora: Path | None, cache: Path) -> Path:
    """A text of this size, made once."""
    found = {
        corpus.name: corpus.path.read_text(encoding="utf-8")
        for corpus in find_corpora(corpora, cache)
    }
    taken = found if name == "mixed" else {name: found[name]}
    parts = list(taken.values())
    key = hashlib.blake2b(repr(parts).encode() + Path(__file__).read_bytes(), digest_size=4)
    path = cache / "training" / f"{name}-{megabytes}-{key.hexdigest()}.txt"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(f".{os.getpid()}")
        with open(partial, "wb") as file:
            left = megabytes * 10**6
            for part in itertools.chain(parts, chained(taken)):
                data = part.encode()[:left].decode(errors="ignore").encode()
                file.write(data)
                left -= len(data)
                if left < 4:
                    break
        partial.replace(path)
    return path


def chained(texts: dict[str, str]) -> Iterator[str]:
    """Endless text in the manner of each of the texts, a hundred thousand characters at a time."""
    chains = [_chain(text, 2 if name == "zh" else 6) for name, text in texts.items()]
    while True:
        for chain in chains:
            yield next(chain)


def _chain(text: str, order: int) -> Iterator[str]:
    pick = random.Random(7).random
    followers: dict[str, list[str]] = {}
    for place in range(len(text) - order):
        followers.setdefault(text[place : place + order], []).append(text[place + order])
    state = text[:order]
    while True:
        out = []
        for _ in range(100_000):
            choices = followers.get(state) or [text[int(pick() * len(text))]]
            character = choices[int(pick() * len(choices))]
            out.append(character)
            state = state[1:] + character
        yield "".join(out)


def documents(path: str) -> list[str]:
    """The text in parts of some 64 KB, cut where GPT-2's pattern cuts: between a line end behind
    text and a letter."""
    text = Path(path).read_text(encoding="utf-8")
    parts, start = [], 0
    while start < len(text):
        end = start + 65536
        while end < len(text):
            end = text.find("\n", end) + 1 or len(text)
            if end >= len(text) or (text[end].isalpha() and not text[end - 2].isspace()):
                break
        parts.append(text[start:end])
        start = end
    return parts


Merges = list[tuple[bytes, bytes]] | list[bytes] | None


def _ours(path: str, size: int) -> Callable[[], Merges]:
    from vocab_tools import train_vocabulary

    def train() -> Merges:
        result = train_vocabulary(
            path, size, pattern=PATTERN, min_frequency=1, threads=int(THREADS)
        )
        return [(merge.left, merge.right) for merge in result.merges]

    return train


def _ours_from_bytes(path: str, size: int) -> Callable[[], Merges]:
    from vocab_tools import train_vocabulary

    base = {bytes([byte]): byte for byte in range(256)}

    def train() -> Merges:
        result = train_vocabulary(
            path, size, pattern=PATTERN, min_frequency=1, base=base, threads=int(THREADS)
        )
        return list(result.ranks)

    return train


def _rustbpe(path: str, size: int) -> Callable[[], Merges]:
    import rustbpe

    def train() -> Merges:
        tokenizer = rustbpe.Tokenizer()
        tokenizer.train_from_iterator(iter(documents(path)), size, pattern=PATTERN)
        ranks = tokenizer.get_mergeable_ranks()
        return [bytes(token) for token, _ in sorted(ranks, key=lambda row: row[1])]

    return train


def _tokenizers(path: str, size: int) -> Callable[[], Merges]:
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    def train() -> Merges:
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer = trainers.BpeTrainer(
            vocab_size=size, show_progress=False, initial_alphabet=alphabet
        )
        tokenizer.train_from_iterator(documents(path), trainer)
        return json.loads(tokenizer.to_str())["model"]["merges"]  # type: ignore[no-any-return]

    return train


def _bpeasy(path: str, size: int) -> Callable[[], Merges]:
    import bpeasy

    def train() -> Merges:
        bpeasy.train_bpe(iter(documents(path)), PATTERN, 1 << 20, size)
        return None

    return train


def _gigatoken(path: str, size: int) -> Callable[[], Merges]:
    from gigatoken import TextFileSource, gigatoken_rs

    def train() -> Merges:
        _, merges = gigatoken_rs.train_bpe(TextFileSource([path]), size, [])
        return list(merges)

    return train


TRAINERS = {
    "bpe_engine": _ours,
    "bpe_engine from byte values": _ours_from_bytes,
    "rustbpe": _rustbpe,
    "tokenizers": _tokenizers,
    "bpeasy": _bpeasy,
    "gigatoken": _gigatoken,
}


def work(trainer: str, path: str, size: int) -> dict[str, Any]:
    """Trains once in this process."""
    train = TRAINERS[trainer](path, size)
    wall, cpu = time.perf_counter(), time.process_time()
    merges = train()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = peak_memory() / 2**20
    digests: list[str] = []
    if merges is not None:
        # Those of tokenizers are spelled in GPT-2's characters.
        from vocab_tools.convert.alphabet import read

        rows = [
            row
            if isinstance(row, bytes)
            else tuple(read(p) if isinstance(p, str) else p for p in row)
            for row in merges
        ]
        digests = [hashlib.blake2b(repr(rows).encode(), digest_size=8).hexdigest()]
    return {"wall": wall, "cpu": cpu, "memory": peak, "merges": digests, "count": len(merges or [])}


def peak_memory() -> int:
    """The most memory that this process has had, in bytes."""
    try:
        # Not `getrusage`, which begins with the memory of the process that started this one.
        status = Path("/proc/self/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) * 1024
    except (OSError, IndexError):
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def run(trainer: str, path: Path, size: int) -> dict[str, Any] | None:
    """Trains once in a process of its own; None where the trainer is not installed."""
    module = [sys.executable, "-m", "benchmarks.train", "--work", trainer, str(path), str(size)]
    environment = {**os.environ, "RAYON_NUM_THREADS": THREADS, "TOKENIZERS_PARALLELISM": "true"}
    done = subprocess.run(module, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        print(done.stderr.strip().rpartition("\n")[2], file=sys.stderr)
        return None
    return json.loads(done.stdout.rpartition("\n@")[2])  # type: ignore[no-any-return]


def compare(name: str, path: Path, options: argparse.Namespace) -> None:
    """The rows of one text."""
    others = [trainer for trainer in TRAINERS if trainer in options.trainers]
    rows: dict[str, list[dict[str, Any]]] = {}
    for _ in range(options.rounds):
        for trainer in others:
            found = run(trainer, path, options.size)
            if found is not None:
                rows.setdefault(trainer, []).append(found)
    ours = rows["bpe_engine"]
    from_bytes = rows.get("bpe_engine from byte values", [])
    for trainer, found in rows.items():
        of = {key: [row[key] for row in found] for key in ("wall", "cpu", "memory")}
        ratios = [
            statistics.median(a[key] / b[key] for a, b in zip(found, ours))
            for key in ("wall", "cpu")
        ]
        mirror = from_bytes if trainer in ("rustbpe", "bpe_engine from byte values") else ours
        same = ""
        if found[0]["merges"] and mirror:
            same = "yes" if found[0]["merges"] == mirror[0]["merges"] else "no"
        cells = [
            name,
            trainer,
            f"{min(of['wall']):.2f}",
            f"{min(of['cpu']):.2f}",
            f"{ratios[0]:.1f}",
            f"{ratios[1]:.1f}",
            f"{statistics.median(of['memory']):.0f}",
            same,
        ]
        print("| " + " | ".join(cells) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--corpora", type=Path, help="a folder with the *.txt to take")
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "bpe_engine")
    parser.add_argument("--texts", default="en,zh,mixed")
    parser.add_argument("--trainers", default=",".join(TRAINERS))
    parser.add_argument("--size", type=int, default=32_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--growth", type=int, nargs="*", default=[], metavar="MB")
    parser.add_argument("--make", action="store_true", help="make the texts, and no more")
    parser.add_argument("--work", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        trainer, path, size = options.work
        print("\n@" + json.dumps(work(trainer, path, int(size))))
        return
    options.trainers = options.trainers.split(",")
    sizes = {"en": 10, "zh": 10, "mixed": 50}
    texts = [name for name in options.texts.split(",") if name and not options.growth]
    for name in texts:
        text_file(name, sizes.get(name, 10), options.corpora, options.cache)
    growth = [text_file("mixed", size, options.corpora, options.cache) for size in options.growth]
    if options.make:
        return
    if texts:
        print(
            "| text | trainer | s | CPU s | time over ours | CPU over ours | peak MiB | same merges |"
        )
        print("| --- | --- | ---: | ---: | ---: | ---: | ---: | --- |")
    for name in texts:
        megabytes = sizes.get(name, 10)
        path = text_file(name, megabytes, options.corpora, options.cache)
        compare(f"{name}, {megabytes} MB", path, options)
    if growth:
        print("| mixed text, MB | s | CPU s | CPU s per MB | peak MiB |")
        print("| ---: | ---: | ---: | ---: | ---: |")
    for size, path in zip(options.growth, growth):
        found = [run("bpe_engine", path, options.size) for _ in range(options.rounds)]
        rows = [row for row in found if row is not None]
        wall, cpu = (min(row[key] for row in rows) for key in ("wall", "cpu"))
        memory = statistics.median(row["memory"] for row in rows)
        print(f"| {size} | {wall:.2f} | {cpu:.2f} | {cpu / size:.4f} | {memory:.0f} |", flush=True)


if __name__ == "__main__":
    main()
