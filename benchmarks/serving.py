"""Compares the pieces for servers with what servers use today: `tokenizers` and the same tokenizer.json.

    python -m benchmarks.serving --tokenizer FILE.json --text FILE.txt

Everything runs in one process on one CPU, the sides of a row in turn. A figure is the median of the
ratios of CPU time, after the results of both sides were compared.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers

from bpe_engine import hf

from .prompts import Row, ratio

#: The requests of a batch, and the ids that each of them gets, one a step.
REQUESTS, STEPS = 256, 256
#: The stop strings of a request in a row of its own.
STOPS = ["\n\nUser:", "</answer>", "<|im_end|>", "###"]


def streams(path: str, text: str, stop: list[str]) -> Row:
    """256 requests and one id for each in a step, beside a `DecodeStream` for each."""
    ours, theirs = hf.Tokenizer.from_file(path), tokenizers.Tokenizer.from_file(path)
    ids = np.array(ours.encode(text[: 40 * REQUESTS * STEPS], add_special_tokens=False).ids)
    count = len(ids) // (REQUESTS * STEPS) * REQUESTS * STEPS
    if not count:
        raise SystemExit(f"the text is too short: it has {len(ids)} of {REQUESTS * STEPS} tokens")
    steps = np.ascontiguousarray(ids[: REQUESTS * STEPS].reshape(REQUESTS, STEPS).T)
    pool = ours.stream_pool()

    def side() -> list[list[str]]:
        slots = [pool.open(stop=stop) for _ in range(REQUESTS)]
        texts = [pool.step(slots, step)[0] for step in steps]
        return [*texts, [pool.close(slot) for slot in slots]]

    def other() -> list[list[str]]:
        made = [tokenizers.decoders.DecodeStream() for _ in range(REQUESTS)]
        return [
            [stream.step(theirs, id) or "" for stream, id in zip(made, step)]
            for step in steps.tolist()
        ]

    # A DecodeStream never gives a token at the end that is not complete characters.
    for row, mine, expected in zip(steps.T.tolist(), zip(*side()), zip(*other()), strict=True):
        whole, complete = "".join(mine), "".join(expected)
        assert whole == ours.decode(row) and whole.startswith(complete)
        assert whole == complete or whole.endswith("\ufffd")
    stops = f", {len(stop)} stop strings" if stop else ""
    return (f"{REQUESTS} requests: DecodeStream / stream pool{stops}", other, side)


def early_end(path: str, text: str, tokens: int) -> list[Row]:
    """10 MB cut to some tokens, beside as much text as they are and beside `tokenizers`."""
    ours, theirs = hf.Tokenizer.from_file(path), tokenizers.Tokenizer.from_file(path)
    whole = (text * (10_000_000 // len(text) + 1))[:10_000_000]
    # `tokenizers` leaves UTF-8 in a str that is not ASCII, which then need not be converted.
    other = whole[:1] + whole[1:]
    for tokenizer in (ours, theirs):
        tokenizer.enable_truncation(tokens)
    made, expected = ours.encode(whole), theirs.encode(other)
    assert made.ids == expected.ids and made.offsets == expected.offsets
    short = whole[: made.offsets[-1][1]]
    assert ours.encode(short).ids == made.ids
    kind = " of ASCII" if whole.isascii() else ""
    title = f"{len(whole.encode()) / 1e6:.0f} MB{kind}, {tokens:,} tokens kept"
    calls: list[tuple[str, Callable[[], Any]]] = [
        (f"{title} / encode of these tokens", lambda: ours.encode(short).ids),
        (f"{title}: tokenizers / ours", lambda: theirs.encode(other).ids),
    ]
    return [
        (calls[0][0], lambda: ours.encode(whole).ids, calls[0][1]),
        (calls[1][0], calls[1][1], lambda: ours.encode(whole).ids),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--tokenizer", required=True, metavar="FILE", help="a tokenizer.json")
    parser.add_argument("--text", type=Path, required=True, metavar="FILE", help="UTF-8, some MB")
    parser.add_argument("--tokens", type=int, default=8192, help="the tokens that are kept")
    parser.add_argument("--rounds", type=int, default=11)
    arguments = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    text = arguments.text.read_text("utf-8")
    path = arguments.tokenizer
    print("| CPU time | ratio |\n|---|---:|")
    for title, side, other in (
        streams(path, text, []),
        streams(path, text, STOPS),
        *early_end(path, text.encode("ascii", "ignore").decode(), arguments.tokens),
        *early_end(path, text, arguments.tokens),
    ):
        rounds = arguments.rounds if "tokenizers" not in title else 3
        print(f"| {title} | {ratio(rounds, side, other):.2f} |", flush=True)


if __name__ == "__main__":
    main()
