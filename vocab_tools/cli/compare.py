"""The command ``vocab-tools compare``, and code shared with ``stats``."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import click

from bpe_engine.cli.group import Command, complete_vocabulary
from bpe_engine.cli.outputs import OutputFiles
from bpe_engine.texts.listed import corpus_files

from ..compare import Comparison, compare_tokenizers, load_subject
from ..compare.train import compare_trained
from ..convert.formats import locate_source
from ..train.models import MODELS
from ..train.training import ProgressFunction
from .console import finish, steps_bar
from .options import Options, Size, combined, errors_option, field_option, output_options

#: Options of `compare` and `stats`.
measure_options: Options = combined(
    field_option,
    output_options,
    click.option("--json", "as_json", is_flag=True, help="Print everything as JSON."),
    errors_option,
    click.option(
        "--corpus",
        metavar="FILE",
        multiple=True,
        help="Text to measure on: a file, a folder, a glob or a URI; repeatable. JSON lines, "
        "Parquet, Arrow, CSV and packed files are understood.",
    ),
)


@click.command(cls=Command)
@click.argument("tokenizers", metavar="A B...", nargs=-1, shell_complete=complete_vocabulary)
@measure_options
@click.option(
    "--train",
    is_flag=True,
    help=f"Train the models among the arguments ({', '.join(MODELS)}) on nine lines of ten of the "
    "text, and compare them on the others.",
)
@click.option(
    "--vocab-size",
    type=Size(),
    default=8000,
    show_default=True,
    help="The number of tokens of each model that --train trains.",
)
def compare(
    tokenizers: tuple[str, ...],
    corpus: tuple[str, ...],
    field: str,
    errors: str,
    train: bool,
    vocab_size: int,
    **output: Any,
) -> None:
    """Compare the tokenizers A, B and others on the same text.

    Each tokenizer is the name of an encoding, a rank file, or a tokenizer.json (of any model).

    \b
      vocab-tools compare qwen o200k_base --corpus news.txt --report out.html
      vocab-tools compare --train bpe wordpiece gpt2 --corpus a.txt
    """
    models = [name for name in tokenizers if train and name in MODELS]
    others = [name for name in tokenizers if name not in models]
    if train and not models:
        raise click.UsageError(f"--train needs models: {', '.join(MODELS)}")
    if not train and len(tokenizers) < 2:
        raise click.UsageError("give two tokenizers or more; `stats` measures one")

    def measure(update: ProgressFunction) -> Comparison:
        reading: dict[str, Any] = {"field": field, "errors": errors}
        if not train:
            return measured(others, corpus, update, **reading)
        loaded = [load_subject(name) for name in others]
        return compare_trained(
            models, corpus, vocab_size, others=loaded, progress=update, **reading
        )

    print_measured(measure, others, corpus, **output)


def measured(
    tokenizers: Sequence[str], corpus: Sequence[str], update: ProgressFunction, **reading: Any
) -> Comparison:
    """Compares tokenizers, and shows progress."""
    progress = functools.partial(update, "measuring")
    return compare_tokenizers(tokenizers, corpus, progress=progress, **reading)


def print_measured(
    measure: Callable[[ProgressFunction], Comparison],
    tokenizers: Sequence[str],
    corpus: tuple[str, ...],
    reports: tuple[str, ...],
    force: bool,
    as_json: bool,
) -> None:
    """Measures the tokenizers, writes the reports, and prints the comparison."""
    if not corpus:
        raise click.UsageError("give text to measure on: --corpus FILE")
    inputs = [file for name in tokenizers for file in locate_source(name).files]
    files = OutputFiles(reports, [*inputs, *corpus_files(corpus)], force=force)
    with steps_bar("measuring") as update:
        comparison = measure(update)
    finish(comparison, reports, files, as_json)
