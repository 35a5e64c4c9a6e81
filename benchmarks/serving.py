"""Compares the pieces for servers with what servers use today: `tokenizers` and the same tokenizer.json.

    python -m benchmarks.serving --tokenizer FILE.json --text FILE.txt

Everything runs in one process on one CPU, the sides of a row in turn. A figure is the median of the
ratios of CPU time, after the results of both sides were compared.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import tokenizers

from bpe_engine import hf

from .harness.sides import Row, arguments, begin_table, print_rows

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

    def early() -> list[int]:
        return ours.encode(whole).ids

    return [
        (f"{title} / encode of these tokens", early, lambda: ours.encode(short).ids),
        (f"{title}: tokenizers / ours", lambda: theirs.encode(other).ids, early),
    ]


def main() -> None:
    parser = arguments(__doc__, rounds=11)
    parser.add_argument("--tokenizer", required=True, metavar="FILE", help="a tokenizer.json")
    parser.add_argument("--text", type=Path, required=True, metavar="FILE", help="UTF-8, some MB")
    parser.add_argument("--tokens", type=int, default=8192, help="the tokens that are kept")
    options = parser.parse_args()
    text = options.text.read_text("utf-8")
    path = options.tokenizer
    begin_table()
    for row in (
        streams(path, text, []),
        streams(path, text, STOPS),
        *early_end(path, text.encode("ascii", "ignore").decode(), options.tokens),
        *early_end(path, text, options.tokens),
    ):
        print_rows(options.rounds if "tokenizers" not in row[0] else 3, [row])


if __name__ == "__main__":
    main()
