"""The command `bpe-engine encode`: turns text into ids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from . import options, streams
from .group import Command


@click.command(cls=Command)
@options.takes_encoding
@options.allows_special
@options.reads_text
@options.JSON
def encode(
    words: Sequence[str],
    path: str | None,
    errors: str,
    allow_special: Sequence[str],
    as_json: bool,
    **choice: Any,
) -> None:
    """Print the ids of a text.

    \b
    bpe-engine encode "Hello, world!"
    bpe-engine encode -e cl100k_base --json -f prompt.txt
    bpe-engine encode --allow-special all "one<|endoftext|>two"
    echo -n "from a pipe" | bpe-engine encode
    """
    tokenizer = options.choose_tokenizer(**choice)
    allowed = options.choose_special(tokenizer, allow_special)
    text = streams.read_text(words, path, errors)
    ids = tokenizer.encode(text, allowed_special=allowed, disallowed_special=())
    if as_json:
        streams.print_json(ids)
    else:
        streams.print_line(" ".join(map(str, ids)))
