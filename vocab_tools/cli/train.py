"""``vocab-tools train``."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from ..convert.sidecar import beside
from ..corpus.reading import corpus_files, read_texts
from ..files import STANDARD, OutputFiles, is_special
from ..ranks import load_ranks
from ..text import plural, show
from ..train import TrainResult, train_vocabulary
from ..train.arrow import read_counts
from ..train.counting import CorpusCounts
from ..train.cutting import cutting
from ..train.superwords import MAX_WORDS
from ..train.training import TIES, UNITS, base_cutting
from .console import console, print_table, readable_errors, say, steps_bar
from .counting import (
    checkpoint_paths,
    checkpointed,
    count_files,
    counting_options,
    expanded,
    print_repeated,
)
from .options import RANKS, Command, chosen_pattern

#: The last tokens that were learned, on the screen.
TOKENS_SHOWN = 8


def training_options(command: Command) -> Command:
    """What is learned."""
    for option in (
        click.option(
            "--balance",
            type=click.Choice(UNITS),
            help="Each CORPUS is one of its own; the next merge serves the one with the fewest of "
            "these a token.",
        ),
        click.option(
            "--max-words",
            type=click.IntRange(1),
            default=MAX_WORDS,
            show_default=True,
            help="The most words of a superword.",
        ),
        click.option(
            "--superwords-from",
            type=click.IntRange(1),
            metavar="N",
            help="From N tokens on, merges may cross the pattern's borders inside a line.",
        ),
        click.option("--base", type=RANKS, help="Ranks to go on from: all of their ids stay."),
        click.option(
            "--ties",
            type=click.Choice(TIES),
            default="lowest-ids",
            show_default=True,
            help="Which of several pairs with the same count is merged first.",
        ),
        click.option(
            "--max-token-length", type=click.IntRange(1), help="The most bytes of a new token."
        ),
        click.option(
            "--min-frequency",
            type=click.IntRange(0),
            default=2,
            show_default=True,
            help="Pairs that occur less often are not merged.",
        ),
        click.option(
            "--vocab-size",
            type=int,
            required=True,
            metavar="N",
            help="How many tokens: single bytes, base and special tokens included.",
        ),
    ):
        command = option(command)
    return command


@click.command()
@click.argument("corpus", nargs=-1, required=True)
@click.option(
    "-o",
    "--output",
    "outputs",
    required=True,
    multiple=True,
    help="OUT.tiktoken; or a name that ends with .json, for a tokenizer.json; repeatable; - for "
    "the ranks on stdout.",
)
@training_options
@click.option("--counts", "as_counts", is_flag=True, help="CORPUS is files of `count`.")
@counting_options
@click.option(
    "--held-out",
    multiple=True,
    metavar="FILE",
    help="Text to measure the result on; repeatable. [default: the corpus itself]",
)
@click.option("--force", is_flag=True, help="Overwrite files that exist.")
@click.option("-q", "--quiet", is_flag=True, help="Print warnings only.")
def train(
    corpus: tuple[str, ...],
    outputs: tuple[str, ...],
    vocab_size: int,
    pattern: str | None,
    pattern_regex: str | None,
    special_tokens: tuple[str, ...],
    base: str | None,
    as_counts: bool,
    held_out: tuple[str, ...],
    checkpoint: str | None,
    resume: bool,
    force: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Learn a byte-level BPE vocabulary from CORPUS.

    CORPUS is files, folders and globs: text, .jsonl or .parquet, packed with gzip or Zstandard or
    not; - is standard input. The result does not depend on the number of threads or the order of
    files. Beside a .tiktoken file, NAME.encoding.json has the pattern and the special tokens.

    \b
      vocab-tools train texts/ --vocab-size 32000 --pattern o200k_base -o out.tiktoken
      vocab-tools train thai.txt --base cl100k_base.tiktoken --vocab-size 102000 -o thai.tiktoken
    """
    chosen = chosen_pattern(pattern, pattern_regex)
    start = time.perf_counter()
    with readable_errors():
        inputs = [*expanded(corpus), *expanded(held_out), *([base] if base else [])]
        all_outputs = _all_outputs(outputs)
        files = OutputFiles(all_outputs, inputs, force=force)
        _check_held_out(held_out, options)
        print_repeated(corpus)
        ranks = None if base is None else load_ranks(base)
        source: Any = corpus
        paths: list[str] = []
        if as_counts:
            source = _read_counts(corpus, ranks, chosen, special_tokens, options)
        else:
            paths = checkpoint_paths(
                checkpoint,
                outputs,
                corpus,
                resume=resume,
                parts=len(corpus) if options["balance"] else 1,
                superwords=options["superwords_from"] is not None,
            )
        with checkpointed(paths, inputs, all_outputs, resume=resume, force=force):
            with steps_bar("counting") as update:
                result = train_vocabulary(
                    source,
                    vocab_size,
                    pattern=chosen,
                    special_tokens=special_tokens,
                    base=ranks,
                    checkpoint=paths[0] if paths else None,
                    resume=resume,
                    progress=update,
                    **options,
                )
            files.write(_contents(result, outputs))
        measured = _measured(result, held_out, options)
    for note in result.notes:
        say(console(stderr=True), f"note: {note}")
    if not quiet:
        to = console(stderr=STANDARD in outputs)
        print_summary(result, measured, time.perf_counter() - start, to)


def _all_outputs(outputs: Sequence[str]) -> list[str]:
    """The outputs, and what stands beside them."""
    return [*outputs, *(str(beside(path)) for path in outputs if _has_sidecar(path))]


def _has_sidecar(path: str) -> bool:
    """Whether it is a rank file, and no pipe or device."""
    return path not in (STANDARD, "") and not _is_json(path) and not is_special(path)


def _is_json(path: str) -> bool:
    return path.lower().endswith(".json")


def _contents(result: TrainResult, outputs: Sequence[str]) -> dict[str, bytes]:
    contents = {}
    for path in outputs:
        contents[path] = result.tokenizer_json() if _is_json(path) else result.dump()
        if _has_sidecar(path):
            contents[str(beside(path))] = result.dump_sidecar()
    return contents


def _read_counts(
    corpus: Sequence[str],
    ranks: dict[bytes, int] | None,
    pattern: str | None,
    special_tokens: Sequence[str],
    options: dict[str, Any],
) -> CorpusCounts | list[CorpusCounts]:
    """Files of counts: of one corpus, or one of each."""
    found, old_special = base_cutting(ranks, pattern)
    cut = cutting(found, [*old_special, *special_tokens], options["nfc"])
    most = options["max_memory"]
    if options["balance"]:
        return [read_counts(count_files([part]), cut, max_memory=most) for part in corpus]
    return read_counts(count_files(corpus), cut, max_memory=most)


def _measured(
    result: TrainResult, held_out: Sequence[str], options: dict[str, Any]
) -> tuple[int, int] | None:
    """Bytes and tokens of held-out text."""
    if not held_out:
        return None
    encoding = result.encoding()
    size = tokens = 0
    for text in _held_out_texts(held_out, options):
        size += len(text.encode())
        tokens += encoding.count(text, disallowed_special=())
    return size, tokens


def _held_out_texts(held_out: Sequence[str], options: dict[str, Any]) -> Iterator[str]:
    for path in corpus_files(held_out):
        for texts in read_texts(path, options["field"], options["errors"]):
            yield from texts


def _check_held_out(held_out: Sequence[str], options: dict[str, Any]) -> None:
    """Reads it before hours are spent. Raises ValueError when there is no text, or none that can be
    read again."""
    for path in corpus_files(held_out):
        if not os.path.isfile(path):
            raise ValueError(f"{path}: held-out text is read twice; give files")
    # All of it is read, for errors.
    sizes = [len(text) for text in _held_out_texts(held_out, options)]
    if held_out and not any(sizes):
        raise ValueError("the held-out text is empty; give more")


def print_summary(
    result: TrainResult, measured: tuple[int, int] | None, seconds: float, to: Console
) -> None:
    """What was learned, in a small table."""
    rows = [
        ("tokens", f"{result.size:,}"),
        ("learned", f"{len(result.new_tokens):,} in {plural(len(result.merges), 'merge')}"),
    ]
    if measured is None:
        rows.append(("bytes per token, training text", f"{result.bytes_per_token:.3f}"))
    else:
        rows.append(("bytes per token, held-out text", f"{measured[0] / measured[1]:.3f}"))
    if len(result.corpus_tokens) > 1:
        parts = zip(result.corpus_bytes, result.corpus_tokens, result.served())
        for number, (size, tokens, served) in enumerate(parts, 1):
            value = f"{size / tokens:.3f} bytes per token, {plural(served, 'merge')}"
            rows.append((f"corpus {number}", value))
    rows.append(("time", f"{seconds:,.1f} s"))
    memory = peak_memory()
    if memory is not None:
        rows.append(("peak memory", f"{memory / 2**20:,.0f} MiB"))
    last = list(result.new_tokens)[-TOKENS_SHOWN:]
    rows.append(("last tokens", " ".join(map(show, last)) or "none"))
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(name, value)
    print_table(to, table)


def peak_memory() -> int | None:
    """The most memory that this process has had, in bytes; None where the system does not say."""
    try:
        # Not `getrusage`, which on Linux begins with the memory of the process that started this one.
        with open("/proc/self/status", encoding="ascii", errors="replace") as status:
            found = [line.split() for line in status if line.startswith("VmHWM:")]
            return int(found[0][1]) * 1024
    except (OSError, IndexError):
        pass
    try:
        import resource
    except ImportError:
        return None
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024
