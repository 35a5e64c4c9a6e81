"""The command ``vocab-tools compare``, and what it shares with ``stats``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from bpe_engine.cli.group import Command, complete_vocabulary
from bpe_engine.cli.outputs import OutputFiles
from bpe_engine.cli.printing import write
from bpe_engine.texts.listed import corpus_files

from ..compare import compare_tokenizers
from ..convert.formats import locate_source
from ..report import as_json as json_of
from ..report import page_of, render
from .console import console, print_report, progress_bar
from .options import Options, combined, errors_option, field_option, output_options

#: The most rows of a table on the screen.
ROWS_SHOWN = 12


#: The options that both commands have.
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
def compare(
    tokenizers: tuple[str, ...],
    corpus: tuple[str, ...],
    **output: Any,
) -> None:
    """Compare the tokenizers A, B and others on the same text.

    Each is the name of an encoding, a rank file, or a tokenizer.json (of any model).

    \b
      vocab-tools compare qwen o200k_base --corpus news.txt --report out.html
      vocab-tools compare bpe.json unigram.json --corpus held-out.txt
    """
    if len(tokenizers) < 2:
        raise click.UsageError("give two tokenizers or more; `stats` measures one")
    print_measured(tokenizers, corpus, **output)


def print_measured(
    tokenizers: Sequence[str],
    corpus: tuple[str, ...],
    field: str,
    errors: str,
    reports: tuple[str, ...],
    force: bool,
    as_json: bool,
) -> None:
    """Measures, writes the reports, and prints."""
    if not corpus:
        raise click.UsageError("give text to measure on: --corpus FILE")
    inputs = [file for name in tokenizers for file in locate_source(name).files]
    files = OutputFiles(reports, [*inputs, *corpus_files(corpus)], force=force)
    with progress_bar("measuring") as update:
        comparison = compare_tokenizers(
            tokenizers, corpus, field=field, errors=errors, progress=update
        )
    files.write({path: render(path, comparison).encode() for path in reports})
    if as_json:
        write(json_of(comparison).encode())
    else:
        print_report(console(), page_of(comparison), ROWS_SHOWN)
