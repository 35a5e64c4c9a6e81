"""Compares calls of a warm process: `Tokenizer`, and transformers with ours inside, with transformers.

    python -m benchmarks.calls [--files A.json,B.json]

One text of 12 tokens, and 64 sentences (and pairs of them) padded to numpy arrays. Then the shortest
call of `encode` beside splintr's, and counting a text seen before beside the length of gigatoken's array.
Everything runs in one process on one CPU, the sides of a row in turn. A figure is the median of the
ratios of CPU time, the other side's over ours, after the ids of both were compared.
"""

from __future__ import annotations

import copy
import json
import statistics
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import bpe_engine
from bpe_engine import hf

from .cases.encodings import spec_of, tokenizer_file
from .harness.sides import Call, arguments, on_one_cpu, ratio, seconds
from .prompts import WORDS

TEXT = "The quick brown fox jumps over the lazy dog and sleeps."
#: Sentences of 5 to 30 words.
SENTENCES = [" ".join(WORDS[place % 40 : place % 40 + 5 + place * 7 % 26]) for place in range(64)]


def microseconds(call: Call, rounds: int) -> float:
    """Returns the CPU time of a call: the median of the rounds."""
    call()
    repeat = max(1, int(0.002 / max(1e-7, seconds(call))))
    return statistics.median(seconds(call, repeat) for _ in range(rounds)) / repeat * 1e6


def plain(batch: Any) -> dict[str, Any]:
    """Returns fields as lists."""
    return {name: getattr(value, "tolist", lambda v=value: v)() for name, value in batch.items()}


def tokenizers_of(path: Path) -> dict[str, Any]:
    """Returns a tokenizer of transformers for a file, one with ours inside, and ours."""
    import transformers

    tokens = [token["content"] for token in json.loads(path.read_bytes())["added_tokens"]]
    pad = next((token for token in tokens if "pad" in token.lower()), None) or tokens[0]
    names = ["input_ids", "token_type_ids", "attention_mask"]
    names = names if "bert" in path.name else [names[0], names[2]]
    theirs = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(path), pad_token=pad, model_input_names=names
    )
    return {
        "transformers": theirs,
        "transformers, ours inside": hf.as_transformers(copy.deepcopy(theirs)),
        "bpe_engine.Tokenizer": bpe_engine.Tokenizer(
            hf.Tokenizer.from_file(path), pad_token=pad, model_input_names=names
        ),
    }


def rows_of(tokenizers: dict[str, Any]) -> Iterator[tuple[str, Callable[[Any], Any]]]:
    """Yields titles, and the call of each tokenizer."""
    first, second = SENTENCES, SENTENCES[::-1]
    cut = {"truncation": True, "max_length": 128}
    tensors = {"padding": True, "return_tensors": "np"}
    yield "one text", lambda it: it(TEXT)
    yield "one text, 128 tokens at most", lambda it: it(TEXT, **cut)
    yield "64 sentences, padded, numpy", lambda it: it(first, **tensors)
    yield "64 sentences, padded and cut, numpy", lambda it: it(first, **tensors, **cut)
    yield "64 sentences, lists", lambda it: it(first)
    yield "64 pairs, padded, numpy", lambda it: it(first, second, **tensors)


def compare(path: Path, rounds: int) -> None:
    """Prints the table of a file."""
    tokenizers = tokenizers_of(path)
    theirs = tokenizers.pop("transformers")
    print(f"\n| {path.stem} | transformers, us | " + " | ".join(tokenizers) + " |")
    print("|---|---:|" + "---:|" * len(tokenizers))
    for title, call in rows_of(tokenizers):
        figures = [f"{microseconds(lambda: call(theirs), rounds):.1f}"]
        for own in tokenizers.values():
            assert plain(call(own)) == plain(call(theirs)), title
            times = ratio(rounds, lambda: call(theirs), lambda: call(own))
            figures.append(f"{times:.1f} times, {microseconds(lambda: call(own), rounds):.2f} us")
        print(f"| {title} | " + " | ".join(figures) + " |", flush=True)


def many(call: Callable[[str], Any], text: str, times: int) -> Call:
    """Returns a function of many calls."""

    def calls() -> None:
        for _ in range(times):
            call(text)

    return calls


def length_of(array: Callable[[str], Any], text: str) -> int:
    """Returns the number of ids in an array."""
    return len(array(text))


def short(name: str, rounds: int, cache: Path) -> None:
    """Prints the rows beside splintr and gigatoken, where they are installed."""
    from .peers.engines import PLANS

    spec, enc = spec_of(name), bpe_engine.get_encoding(name)
    text = " ".join(SENTENCES) * 200

    print(f"\n| {name} | the other over ours | ours, us |\n|---|---:|---:|")
    for engine, title, operation, own, given, times in (
        ("splintr", '`encode("hello world")`', "encode_short", enc.encode, "hello world", 3000),
        ("gigatoken", f"count {len(text) / 1e6:.1f} MB seen before", "encode_numpy", enc.count, text, 1),
    ):  # fmt: skip
        plan = PLANS[engine]
        if not plan.installed():
            continue
        if plan.prepare:
            plan.prepare(spec, cache)
        plan.import_module()
        other = plan.load(spec, cache).need(operation)
        if own == enc.count:
            other = partial(length_of, other)
        assert own(given) == other(given)
        sides = many(other, given, times), many(own, given, times)
        cost = microseconds(sides[1], rounds) / times
        print(f"| {title}, beside {engine} | {ratio(rounds, *sides):.2f} | {cost:.3f} |")


def main() -> None:
    parser = arguments(__doc__, rounds=15)
    parser.add_argument("--files", metavar="A,B", help="tokenizer.json files")
    parser.add_argument("--encoding", default="o200k_base")
    given = parser.parse_args()
    on_one_cpu()
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder)
        short(given.encoding, given.rounds, cache)
        files = [Path(name) for name in (given.files or "").split(",") if name]
        for path in files or [tokenizer_file(spec_of(given.encoding), cache)]:
            compare(path, given.rounds)


if __name__ == "__main__":
    main()
