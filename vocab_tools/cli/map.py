"""The command ``vocab-tools map``."""

from __future__ import annotations

import io

import click

from bpe_engine.cli.group import VOCABULARY, Command
from bpe_engine.cli.outputs import OutputFiles
from bpe_engine.cli.printing import write
from bpe_engine.texts import corpus_files

from ..convert import locate_source
from ..mapping import map_vocabularies
from ..report import as_json as json_of
from ..report import page_of, render
from .compare import ROWS_SHOWN
from .console import console, print_report, progress_bar
from .options import errors_option, field_option, output_options


@click.command(cls=Command, short_help="Map the ids of a vocabulary to another one.")
@click.argument("a", metavar="A", type=VOCABULARY)
@click.argument("b", metavar="B", type=VOCABULARY)
@click.option(
    "--corpus",
    metavar="FILE",
    multiple=True,
    help="Text in which to count the tokens that both have: a file, a folder, a glob or a URI; "
    "repeatable.",
)
@click.option("-o", "--output", metavar="FILE", help="Write the table of ids as Parquet.")
@field_option
@errors_option
@output_options
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
def map(
    a: str,
    b: str,
    corpus: tuple[str, ...],
    output: str | None,
    field: str,
    errors: str,
    reports: tuple[str, ...],
    force: bool,
    as_json: bool,
) -> None:
    """Map the ids of the tokenizer A to ids of B by the bytes of tokens.

    Prints how many tokens both have, and which tokens of B every other token of A becomes: for a
    draft model with another vocabulary, and for embeddings that are carried over to one.

    \b
      vocab-tools map qwen o200k_base
      vocab-tools map gpt2 qwen --corpus a.txt --report map.html -o map.parquet
    """
    outputs = [*reports, *([output] if output else [])]
    inputs = [file for name in (a, b) for file in locate_source(name).files]
    files = OutputFiles(outputs, [*inputs, *corpus_files(corpus)], force=force)
    with progress_bar("mapping") as update:
        found = map_vocabularies(a, b, corpus or None, field=field, errors=errors, progress=update)
    contents = {path: render(path, found).encode() for path in reports}
    if output:
        table = io.BytesIO()
        found.save(table)
        contents[output] = table.getvalue()
    files.write(contents)
    if as_json:
        write(json_of(found).encode())
    else:
        print_report(console(), page_of(found), ROWS_SHOWN)
