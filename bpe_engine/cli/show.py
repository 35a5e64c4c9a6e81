"""The command `bpe-engine show`: prints tokens above their ids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from . import options, streams
from .group import Command
from .tokens import tokens_of


@click.command(cls=Command, short_help="Show the tokens of a text in color.")
@options.takes_encoding
@options.allows_special
@options.reads_text
@options.draws
@options.JSON
def show(
    words: Sequence[str],
    path: str | None,
    errors: str,
    allow_special: Sequence[str],
    color: str,
    width: int | None,
    as_json: bool,
    **choice: Any,
) -> None:
    """Show the tokens of a text, each in a color, with the ids under them.

    Spaces are shown as ·, other invisible characters as escapes such as \\n. A character that
    several tokens share is in the first token; the other tokens show ‥. Special tokens are
    inverse, their ids marked with *.

    \b
    bpe-engine show "Tokenization isn't obvious."
    bpe-engine show -e qwen --allow-special all "<|im_start|>user"
    bpe-engine show --color always -f poem.txt | less -R
    bpe-engine show --json "a b" | jq '.[].id'
    """
    tokenizer = options.choose_tokenizer(**choice)
    allowed = options.choose_special(tokenizer, allow_special)
    text = streams.read_text(words, path, errors)
    if as_json:
        streams.print_json([token.as_dict() for token in tokens_of(tokenizer, text, allowed)])
    else:
        from .display import show_tokens

        show_tokens(tokenizer, text, allowed, color, width)
