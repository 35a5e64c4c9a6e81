"""The command ``vocab-tools map``: maps the ids of one tokenizer to another tokenizer's ids."""

from __future__ import annotations

import click

from bpe_engine.cli.group import VOCABULARY, Command
from bpe_engine.cli.outputs import OutputFiles

from ..convert.formats import locate_source
from ..mapping import map_vocabularies
from .console import finish
from .options import json_option, output_options


@click.command(cls=Command, short_help="Map the ids of a vocabulary to another one.")
@click.argument("a", metavar="A", type=VOCABULARY)
@click.argument("b", metavar="B", type=VOCABULARY)
@output_options
@json_option
def map(a: str, b: str, reports: tuple[str, ...], force: bool, as_json: bool) -> None:
    """Map the ids of the tokenizer A to ids of B by the bytes of tokens.

    Prints how many tokens both have, and to which tokens of B every other token of A is cut: for a
    draft model with a different vocabulary, or for moving embeddings to a new vocabulary.

    \b
      vocab-tools map qwen o200k_base
      vocab-tools map gpt2 qwen --report map.html --report map.json
    """
    inputs = [file for name in (a, b) for file in locate_source(name).files]
    files = OutputFiles(reports, inputs, force=force)
    finish(map_vocabularies(a, b), reports, files, as_json)
