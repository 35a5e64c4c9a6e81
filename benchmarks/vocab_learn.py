"""How long it takes to learn the merges of a word list.

    python -m benchmarks.vocab_learn

Words of one to three Qwen tokens and some rare characters, their frequencies spread as in text.
Our time is compared with that of the plain Python version of the same algorithm, on the lists that
it can do in a reasonable time; each of those rows says whether the output is the same, byte for
byte. Times are seconds of processor time, the best of three, without reading the base: of the
whole call, which goes on to follow every word through the extended vocabulary, and of learning
alone, which is what the plain version does.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))

import vocab_oracle  # noqa: E402

import vocab_tools  # noqa: E402
from bpe_engine import vocabulary  # noqa: E402

START_ID = 151851


def word_list(count: int, ranks: dict[bytes, int]) -> dict[str, int]:
    """Words that are no tokens yet, always the same ones."""
    chooser = random.Random(1)
    texts = [token.decode(errors="ignore") for token in ranks if len(token) >= 6]
    parts = [text for text in texts if all("\u4e00" <= letter <= "\u9fff" for letter in text)]
    words: dict[str, int] = {}
    while len(words) < count:
        word = "".join(chooser.choice(parts)[:2] for _ in range(chooser.randint(1, 3)))
        if chooser.random() < 0.3:
            word += chr(chooser.randint(0x4E00, 0x9FA0))
        if word and word.encode() not in ranks:
            words[word] = int(chooser.paretovariate(1))
    return words


def timed(work: Callable[[], object], runs: int) -> float:
    """Processor time of the best run."""
    best = float("inf")
    for _ in range(runs):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def measured(count: int, ranks: dict[bytes, int], with_plain: bool) -> list[str]:
    """The cells of the row for a list of ``count`` words."""
    words = word_list(count, ranks)
    result = vocab_tools.learn_merges(ranks, words)
    rows = [(word.encode(), frequency) for word, frequency in words.items()]
    whole = timed(lambda: vocab_tools.learn_merges(ranks, words), 3)
    ours = timed(lambda: vocabulary.learn_merges(ranks, rows), 3)
    row = [f"{count:,}", f"{len(result.steps):,}", f"{whole:.2f}", f"{ours:.2f}"]
    if not with_plain:
        return [*row, "", "", ""]
    plain = timed(lambda: vocab_oracle.extra_file(words, ranks, START_ID), 1)
    same = vocab_oracle.extra_file(words, ranks, START_ID) == result.dump()
    return [*row, f"{plain:.1f}", f"{plain / ours:.0f}", "yes" if same else "NO"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", type=Path, default=ROOT / "data" / "qwen.tiktoken")
    parser.add_argument("--both", type=int, nargs="*", default=[1000, 3000])
    parser.add_argument("--ours", type=int, nargs="*", default=[100_000])
    options = parser.parse_args()
    ranks = vocab_tools.load_ranks(options.base)
    print("| words | merges | whole call, s | learning, s | plain Python, s | ratio | same bytes |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: | --- |")
    for count in [*options.both, *options.ours]:
        print("| " + " | ".join(measured(count, ranks, count in options.both)) + " |", flush=True)


if __name__ == "__main__":
    main()
