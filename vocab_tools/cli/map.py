"""The command ``vocab-tools map``."""

from __future__ import annotations

import click

from bpe_engine.cli.group import VOCABULARY, Command
from bpe_engine.cli.outputs import OutputFiles
from bpe_engine.cli.printing import write

from ..convert.formats import locate_source
from ..mapping import map_vocabularies
from ..report import as_json as json_of
from ..report import page_of, render
from .compare import ROWS_SHOWN
from .console import console, print_report
from .options import json_option, output_options


@click.command(cls=Command, short_help="Map the ids of a vocabulary to another one.")
@click.argument("a", metavar="A", type=VOCABULARY)
@click.argument("b", metavar="B", type=VOCABULARY)
@output_options
@json_option
def map(a: str, b: str, reports: tuple[str, ...], force: bool, as_json: bool) -> None:
    """Map the ids of the tokenizer A to those of B by the bytes of tokens.

    Prints how many tokens both have, and which tokens of B every other token of A becomes: for a
    draft model with another vocabulary, and for embeddings that are carried over to one.

    \b
      vocab-tools map qwen o200k_base
      vocab-tools map gpt2 qwen --report map.html --report map.json
    """
    inputs = [file for name in (a, b) for file in locate_source(name).files]
    files = OutputFiles(reports, inputs, force=force)
    found = map_vocabularies(a, b)
    files.write({path: render(path, found).encode() for path in reports})
    if as_json:
        write(json_of(found).encode())
    else:
        print_report(console(), page_of(found), ROWS_SHOWN)
