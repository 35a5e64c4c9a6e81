"""Measures the first turn of a restarted server, with a store of conversations and without.

    python -m benchmarks.conversation_store --sessions 1000 --tokens 30000

A server encodes all conversations and ends. New processes then encode each once more, in arrays and in
lists. A figure is the mean CPU time of a prompt on the calling thread; ids are compared by their sum.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import bpe_engine
from bpe_engine.serving import ConversationCache

from .cases.corpora import find_corpora, read
from .conversations import Texts, conversation

_TURNS = 10


def prompts(options: argparse.Namespace) -> Iterator[str]:
    """Yields the prompt of each conversation."""
    with tempfile.TemporaryDirectory() as folder:
        found = [read(corpus.path) for corpus in find_corpora(options.corpora, Path(folder))]
    texts = Texts([(text, 4.0) for text in found])
    names = tuple(options.names)
    for session in range(options.sessions):
        rng = random.Random(session)
        *_, last = conversation("messages", _TURNS, options.tokens, rng, texts, names)
        yield last


def server(options: argparse.Namespace) -> None:
    """Encodes all conversations, and prints the mean time, the ids from the store and a sum."""
    tokenizer = bpe_engine.open_tokenizer(options.tokenizer)
    store = options.store if options.side != "without" else None
    cache = ConversationCache(
        tokenizer, allowed_special="all", disallowed_special=(), store=store, max_bytes=1 << 34
    )
    encode: Any = cache.encode if options.lists else cache.encode_to_numpy
    encode("a word")
    spent, total = 0.0, 0
    for prompt in prompts(options):
        start = time.thread_time()
        ids = encode(prompt)
        spent += time.thread_time() - start
        total += int(sum(ids) if options.lists else ids.sum(dtype="uint64"))
    cache.flush()
    stats = cache.stats()
    share = stats.stored_tokens / max(stats.tokens, 1)
    print(json.dumps([spent / options.sessions * 1e6, share, total]))


def run(arguments: list[str], count: int = 1) -> tuple[float, float]:
    """Runs servers at once. Returns the mean time of a prompt, and the share from the store."""
    command = [sys.executable, "-m", "benchmarks.conversation_store", *arguments]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(count)]
    found = [json.loads(process.communicate()[0]) for process in running]
    run.totals.add(found[0][2])  # type: ignore[attr-defined]
    assert len({total for *_, total in found} | run.totals) == 1  # type: ignore[attr-defined]
    return sum(spent for spent, *_ in found) / count, found[0][1]


run.totals = set()  # type: ignore[attr-defined]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--tokenizer", default="qwen3", help="a name, a file or a folder")
    parser.add_argument("--names", nargs=2, default=["<|im_start|>", "<|im_end|>"])
    parser.add_argument("--sessions", type=int, default=100)
    parser.add_argument("--tokens", type=int, default=30_000, help="of a conversation, about")
    parser.add_argument("--corpora", type=Path, help="a folder of *.txt; small ones are made else")
    parser.add_argument("--store", help=argparse.SUPPRESS)
    parser.add_argument("--side", choices=["fill", "with", "without"], help=argparse.SUPPRESS)
    parser.add_argument("--lists", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        server(options)
        return
    with tempfile.TemporaryDirectory() as folder:
        given = [*sys.argv[1:], "--store", f"{folder}/store"]
        filled, _ = run([*given, "--side", "fill"])
        print("| side | arrays, us a prompt | lists, us a prompt |\n|---|---:|---:|")
        print(f"| the server before, which fills the store | {filled:.0f} | |")
        for side, count in (("without", 1), ("with", 1), ("without", 4), ("with", 4)):
            base = [*given, "--side", side]
            arrays, share = run(base, count)
            lists, _ = run([*base, "--lists"], count)
            name = f"{side} the store" + (f", {count} processes at once" if count > 1 else "")
            print(f"| {name} | {arrays:.0f} | {lists:.0f} |", flush=True)
        print(f"\n{share:.1%} of the ids came from the store.")


if __name__ == "__main__":
    main()
