"""`vocab-tools train` with ``--model`` or ``--like``: a tokenizer of any model."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import click

from bpe_engine.cli.outputs import OutputFiles
from bpe_engine.texts.access import STANDARD

from ..train.arrow import read_counts
from ..train.models import LIKE, TrainedModel, train_model, words_of
from .console import console, print_json, say, steps_bar
from .count import count_files, expanded
from .options import refuse_mixed

#: The options that other models have, too.
_SHARED = (
    "field",
    "errors",
    "num_threads",
    "min_frequency",
    "max_token_length",
    "limit_alphabet",
    "character_coverage",
    "user_defined",
)

#: The values of options that were not given.
_UNSET = (None, False, (), 0, 1, "lowest-ids")


def train_other_model(
    files: tuple[Sequence[str], ...],
    wanted: dict[str, Any],
    options: dict[str, Any],
    others: dict[str, Any],
    *,
    force: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Trains a tokenizer and writes it.

    Args:
        files: the corpus, outputs and reports.
        wanted: the size, the model, whose pipeline to take, and special tokens.
        options: options that were given, or their defaults.
        others: options that only byte-level BPE has.
        force: whether outputs replace files.
        quiet: whether only warnings are printed.
        as_json: whether the result is printed as JSON.
    """
    corpus, outputs, reports = files
    more = {name: value for name, value in options.items() if name not in (*_SHARED, "max_words")}
    for name, value in {**others, **more, "report": tuple(reports)}.items():
        if value not in _UNSET and name != "counts":
            name = name.replace("_", "-")
            raise click.UsageError(
                f"--{name} is an option of byte-level BPE, without --model and --like"
            )
    for path in outputs:
        if path != STANDARD and not path.lower().endswith((".json", ".model")):
            raise click.UsageError(f"{path}: give a name that ends in .json or .model")
    refuse_mixed(as_json, *outputs)
    start = time.perf_counter()
    like = wanted["like"]
    bases = [] if like is None or like in LIKE else [like]
    inputs = [*expanded(corpus), *bases]
    written = OutputFiles(list(outputs), inputs, force=force)
    shared = {name: options[name] for name in _SHARED}
    source: Any = corpus
    if others["counts"]:
        cut, _ = words_of(wanted["model"], like)
        source = read_counts(count_files(corpus), cut)
    with steps_bar("counting") as update:
        trained = train_model(source, progress=update, **wanted, **shared)
    contents = {path: _content(trained, path) for path in outputs}
    written.write(contents)
    found: dict[str, Any] = {
        "files": list(contents),
        "seconds": round(time.perf_counter() - start, 3),
        "size": trained.tokenizer.get_vocab_size(),
        "notes": trained.notes,
    }
    for note in trained.notes:
        say(console(stderr=True), f"note: {note}")
    if as_json:
        print_json(found)
    elif not quiet:
        to = console(stderr=STANDARD in outputs)
        say(to, f"{found['size']:,} tokens in {found['seconds']:,.1f} s")
        say(to, f"written: {', '.join(contents)}")


def _content(trained: TrainedModel, path: str) -> bytes:
    is_model = path.lower().endswith(".model")
    return trained.sentencepiece() if is_model else trained.tokenizer_json()
