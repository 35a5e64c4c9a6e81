"""Compares `align_batch` with the alignment of TRL, as its trainer for distillation across tokenizers does it.

    pip install --no-deps trl
    python -m benchmarks.align --texts 1000 --tokens 2000

TRL's functions are read from the installed package without importing it, which would need torch. They
encode with `tokenizers`. Times are medians of three runs: from texts to groups, and from the places of
tokens to groups. Groups are compared text by text.
"""

from __future__ import annotations
import __future__

import argparse
import ast
import contextlib
import importlib.util
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import tokenizers

import bpe_engine
import vocab_tools

from .cases.corpora import find_corpora, read

#: The modules of TRL with the functions.
_MODULES = ("experimental/utils.py", "experimental/gold/gold_trainer.py")


def functions_of(package: Path) -> dict[str, Any]:
    """Returns the functions and constants of TRL that need no import, compiled from its sources."""
    found: dict[str, Any] = {}
    for file in _MODULES:
        tree = ast.parse((package / file).read_text(encoding="utf-8"))
        for part in ast.walk(tree):
            is_aligning = (
                isinstance(part, ast.FunctionDef) and part.name == "_align_by_byte_offsets"
            )
            if is_aligning or part in tree.body and isinstance(part, (ast.FunctionDef, ast.Assign)):
                if isinstance(part, ast.FunctionDef):
                    part.decorator_list = []
                module = ast.Module([cast(ast.stmt, part)], [])
                flags = __future__.annotations.compiler_flag
                with contextlib.suppress(NameError):
                    exec(compile(module, file, "exec", flags), found)
    return found


def clocked(work: Callable[[], Any]) -> tuple[float, Any]:
    """Returns the median time of three runs, and the result."""
    times, result = [], None
    for _ in range(3):
        start = time.perf_counter()
        result = work()
        times.append(time.perf_counter() - start)
    return statistics.median(times), result


def main(arguments: list[str] | None = None) -> None:
    """Measures, compares and prints."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--a", default="qwen2.5")
    parser.add_argument("--b", default="gpt2")
    parser.add_argument("--texts", type=int, default=1000)
    parser.add_argument("--tokens", type=int, default=2000, help="of a text")
    parser.add_argument("--corpora", type=Path, help="a folder of *.txt; small ones are made else")
    options = parser.parse_args(arguments)
    spec = importlib.util.find_spec("trl")
    if spec is None or spec.origin is None:
        parser.error("install trl first: pip install --no-deps trl")
    trl = functions_of(Path(spec.origin).parent)
    ours = [bpe_engine.get_encoding(name) for name in (options.a, options.b)]
    with tempfile.TemporaryDirectory() as folder:
        corpora = [read(corpus.path) for corpus in find_corpora(options.corpora, Path(folder))]
        theirs = []
        for name in (options.a, options.b):
            path = Path(folder) / f"{name}.json"
            vocab_tools.convert_tokenizer(name, str(path)).save()
            theirs.append(tokenizers.Tokenizer.from_file(str(path)))
    rng, texts = random.Random(1), []
    for _ in range(options.texts):
        corpus = rng.choice(corpora)
        start = rng.randrange(max(1, len(corpus) - 8 * options.tokens))
        texts.append(ours[0].truncate(corpus[start : start + 8 * options.tokens], options.tokens))

    def their_places() -> Any:
        return [trl["encode_with_byte_offsets"](backend, texts) for backend in theirs]

    def their_groups(places: Any) -> Any:
        pairs = zip(*places)
        return [trl["_align_by_byte_offsets"](a[1], b[1]) for a, b in pairs]

    all_of_theirs, _ = clocked(lambda: their_groups(their_places()))
    places = their_places()
    groups_of_theirs, groups = clocked(lambda: their_groups(places))
    all_of_ours, batch = clocked(lambda: bpe_engine.align_batch(*ours, texts))
    one_thread, _ = clocked(lambda: bpe_engine.align_batch(*ours, texts, num_threads=1))
    same = sum(
        [group[-1] + 1 for group in one] == found.a_splits[1:].tolist()
        and [group[-1] + 1 for group in other] == found.b_splits[1:].tolist()
        for found, (one, other) in zip(batch, groups)
    )
    print(f"{len(texts)} texts, {len(batch.a_ids):,} and {len(batch.b_ids):,} tokens")
    print(f"| from texts | TRL {all_of_theirs:.3f} s | ours {all_of_ours:.3f} s |", end="")
    print(f" {all_of_theirs / all_of_ours:.1f} times; one thread {one_thread:.3f} s |")
    print(f"| groups alone, TRL | {groups_of_theirs:.3f} s |")
    print(f"| texts with the same groups | {same} of {len(texts)} |")


if __name__ == "__main__":
    main()
