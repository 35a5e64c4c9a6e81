"""The command ``vocab-tools compare``, and what it shares with ``stats``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from bpe_engine.cli.group import Command, complete_vocabulary
from bpe_engine.cli.outputs import OutputFiles
from bpe_engine.cli.printing import write
from bpe_engine.texts import corpus_files
from bpe_engine.visible import CONTINUED, whole_characters

from ..compare import Comparison, compare_tokenizers, load_subject
from ..compare.train import METHODS, compare_trained
from ..convert import locate_source
from ..report import render
from ..report.comparison_report import comparison_json, comparison_sections, readable
from .console import console, print_sections, progress_bar, say
from .options import Options, Size, combined, errors_option, field_option, output_options

#: The most rows of a table on the screen.
ROWS_SHOWN = 12

#: The most sentences that are shown cut by each tokenizer.
SENTENCES_SHOWN = 4

#: Colors of neighboring tokens.
COLORS = ("black on bright_blue", "black on bright_yellow", "black on bright_green")


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
@click.option(
    "--train",
    is_flag=True,
    help=f"Train the methods among the arguments ({', '.join(METHODS)}) on the text, and compare "
    f"them on held-out lines.",
)
@click.option(
    "--vocab-size",
    type=Size(),
    default=8000,
    show_default=True,
    help="Size of each vocabulary that --train trains.",
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

    Each is the name of an encoding, a rank file, or a tokenizer.json (of any model).

    \b
      vocab-tools compare qwen o200k_base --corpus news.txt --report out.html
      vocab-tools compare --train bpe wordpiece --vocab-size 8000 --corpus a.txt
    """
    methods = [name for name in tokenizers if train and name in METHODS]
    others = [name for name in tokenizers if name not in methods]
    if train and not methods:
        raise click.UsageError(f"--train needs methods: {', '.join(METHODS)}")
    if not train and len(tokenizers) < 2:
        raise click.UsageError("give two tokenizers or more; `stats` measures one")

    def work(update: Callable[[int, int], None]) -> Comparison:
        if not train:
            return compare_tokenizers(others, corpus, field=field, errors=errors, progress=update)
        return compare_trained(
            methods,
            corpus,
            vocab_size,
            others=[load_subject(name) for name in others],
            field=field,
            errors=errors,
            progress=update,
        )

    print_measured(work, others, corpus, **output)


def print_measured(
    work: Callable[[Callable[[int, int], None]], Comparison],
    tokenizers: Sequence[str],
    corpus: tuple[str, ...],
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
        comparison = work(update)
    files.write({path: render(path, comparison).encode() for path in reports})
    if as_json:
        write(comparison_json(comparison).encode())
    else:
        to = console()
        parts = comparison_sections(comparison, ROWS_SHOWN)
        print_sections(to, [part for part in parts if part.title != "Remarks"])
        _print_sentences(comparison, to)
        for remark in comparison.remarks:
            to.print(Text(f"\n{remark}"))


def _print_sentences(comparison: Comparison, to: Console) -> None:
    """Prints sentences as each tokenizer cuts them: in colors, or with bars between the tokens."""
    width = max(len(row.name) for row in comparison.rows)
    for sentence in comparison.sentences[:SENTENCES_SHOWN]:
        say(to, "")
        for row, cut in zip(comparison.rows, sentence.cuts):
            line = Text(f"{row.name:{width}}  ")
            for place, (continued, characters) in enumerate(whole_characters(cut)):
                if place and to.color_system is None:
                    line.append("|")
                line.append(
                    CONTINUED * continued + readable(characters), style=COLORS[place % len(COLORS)]
                )
            to.print(line, soft_wrap=True)
