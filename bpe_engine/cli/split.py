"""`bpe-engine split`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from . import options, streams
from .visible import visible

# Lines written in one go: few calls, and the first lines come soon.
_LINES_AT_ONCE = 4096


@click.command(short_help="Print the pieces that a text is cut into.")
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
    """Print the pieces that a text is cut into before tokens are looked for.

    One piece a line, with spaces as · and other characters that cannot be seen as escapes.

    \b
    bpe-engine split "It's 10 o'clock."
    bpe-engine split -e gpt2 --json -f code.py
    """
    encoding = options.choose_encoding(**choice)
    allowed = options.choose_special(encoding, allow_special)
    pieces = encoding.split(streams.read_text(words, path, errors), allowed_special=allowed)
    if as_json:
        streams.print_json(pieces)
    else:
        for start in range(0, len(pieces), _LINES_AT_ONCE):
            lines = pieces[start : start + _LINES_AT_ONCE]
            streams.write("".join(visible(piece) + "\n" for piece in lines).encode())
