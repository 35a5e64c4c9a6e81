"""The command `bpe-engine split`: prints the pieces that a pattern cuts text into."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from ..abilities.visible import visible
from . import options, streams
from .group import Command


@click.command(cls=Command, short_help="Print the pieces of a text.")
@options.takes_encoding
@options.allows_special
@options.reads_text
@options.JSON
def split(
    words: Sequence[str],
    path: str | None,
    errors: str,
    allow_special: Sequence[str],
    as_json: bool,
    **choice: Any,
) -> None:
    """Print the pieces that the pattern cuts a text into.

    One piece per line, with spaces as · and other invisible characters as escapes.

    \b
    bpe-engine split "It's 10 o'clock."
    bpe-engine split -e gpt2 --json -f code.py
    """
    tokenizer = options.choose_tokenizer(**choice)
    allowed = options.choose_special(tokenizer, allow_special)
    pieces = tokenizer.split(streams.read_text(words, path, errors), allowed_special=allowed)
    if as_json:
        streams.print_json(pieces)
    else:
        streams.write("".join(visible(piece) + "\n" for piece in pieces).encode())
