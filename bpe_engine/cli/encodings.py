"""The command `bpe-engine encodings`: lists the built-in encodings."""

from __future__ import annotations

import click

from .. import list_encoding_names
from . import options, streams
from .group import Command


@click.command(cls=Command, short_help="List the encodings.")
@options.JSON
def encodings(as_json: bool) -> None:
    """List the encodings: tokens, special tokens, largest id, and models that use them.

    --json also has the sha256 of the rank file.

    \b
    bpe-engine encodings
    bpe-engine encodings --json | jq -r '.[].name'
    """
    from . import display

    rows = [display.describe(name) for name in list_encoding_names()]
    if as_json:
        streams.print_json(rows)
    else:
        display.show_encodings(rows)
