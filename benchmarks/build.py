"""Building encodings: from a dict of ranks, and from a rank file.

    python -m benchmarks.build
    python -m benchmarks.build --only hex,o200k_base --rounds 9

tiktoken and bpe_engine take turns in one process. A figure is the median CPU time in milliseconds;
the last column is tiktoken's time divided by ours: above 1 we are faster. Both encodings must give
the same ids for a sample of text.
"""

from __future__ import annotations

import argparse
import base64
import gc
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

DATA = Path(__file__).resolve().parent.parent / "data"
PATTERN = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
    r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)
SAMPLE = "Hello, world! 0123456789abcdef " * 50 + "只猫" * 100
FILES = ("cl100k_base", "o200k_base", "qwen")


def numbers(form: str, prefix: bytes = b"") -> dict[bytes, int]:
    """Every byte, and ``prefix`` and each number below 200,000 in this form.

    >>> ranks = numbers("%x")
    >>> ranks[b"10"], ranks[b"30d3f"]
    (256, 200239)
    """
    ranks = {bytes([byte]): byte for byte in range(256)}
    for number in range(16, 200_000):
        ranks.setdefault(prefix + (form % number).encode(), len(ranks))
    return ranks


def read(name: str) -> dict[bytes, int]:
    """The ranks of a file in data/."""
    lines = (DATA / f"{name}.tiktoken").read_bytes().splitlines()
    return {base64.b64decode(token): int(rank) for token, rank in map(bytes.split, lines)}


#: Vocabularies by name.
RANKS: dict[str, Callable[[], dict[bytes, int]]] = {
    **{name: lambda name=name: read(name) for name in FILES},  # type: ignore[misc]
    "hex": lambda: numbers("%x"),
    "decimal": lambda: numbers("%d"),
    "hex, 256 bytes before": lambda: numbers("%x", b"q" * 256),
}


def cpu(work: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds, and what ``work`` returned."""
    gc.collect()
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def compare(title: str, rounds: int, works: dict[str, Callable[[], Any]]) -> str:
    """A row of the table. The last of ``works`` is ours."""
    times: dict[str, list[float]] = {name: [] for name in works}
    results = []
    for round in range(rounds):
        for name, work in works.items():
            seconds, result = cpu(work)
            times[name].append(seconds)
            if round == 0:
                results.append(result.encode(SAMPLE) if hasattr(result, "encode") else result)
            del result
    if any(result != results[0] for result in results):
        raise SystemExit(f"{title}: the results differ")
    theirs, ours = (statistics.median(seconds) * 1000 for seconds in times.values())
    return f"| {title} | {theirs:.0f} | {ours:.0f} | {theirs / ours:.2f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--only", help="names of vocabularies, separated by commas")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    names = arguments.only.split(",") if arguments.only else list(RANKS)

    import tiktoken
    import tiktoken.load

    import bpe_engine
    from bpe_engine import load

    print("| ms of CPU | tiktoken | bpe_engine | ratio |\n|---|---|---|---|")
    for name in names:
        kwargs: dict[str, Any] = {
            "pat_str": PATTERN,
            "mergeable_ranks": RANKS[name](),
            "special_tokens": {},
        }
        works: dict[str, Callable[[], Any]] = {
            "tiktoken": lambda kwargs=kwargs: tiktoken.Encoding("x", **kwargs),  # type: ignore[misc]
            "bpe_engine": lambda kwargs=kwargs: bpe_engine.Encoding("x", **kwargs),  # type: ignore[misc]
        }
        print(compare(f"{name}: Encoding", arguments.rounds, works), flush=True)
        if name in FILES:
            path = str(DATA / f"{name}.tiktoken")
            works = {
                "tiktoken": lambda path=path: tiktoken.load.load_tiktoken_bpe(path),  # type: ignore[misc]
                "bpe_engine": lambda path=path: load.load_tiktoken_bpe(path),  # type: ignore[misc]
            }
            print(compare(f"{name}: load_tiktoken_bpe", arguments.rounds, works), flush=True)


if __name__ == "__main__":
    main()
