"""The command `bpe-engine show`: prints tokens above their ids."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from typing import Any

import click

from . import options, streams
from .group import Command
from .tokens import DecodedToken, tokens_of

# Tokens written at once: few calls, and early first ones.
_TOKENS_AT_ONCE = 1024


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
    several tokens share is in the first, and ‥ stands for it in the others. Special tokens are
    inverse, their ids marked with *. Long input is shown as it is read.

    \b
    bpe-engine show "Tokenization isn't obvious."
    bpe-engine show -e qwen --allow-special all "<|im_start|>user"
    bpe-engine show --color always -f poem.txt | less -R
    bpe-engine show --json "a b" | jq '.[].id'
    """
    tokenizer = options.choose_tokenizer(**choice)
    allowed = options.choose_special(tokenizer, allow_special)
    chunks = streams.read_text_chunks(words, path, errors)
    if as_json:
        _print_json(tokens_of(tokenizer, chunks, allowed))
    else:
        from .display import show_tokens

        show_tokens(tokenizer, chunks, allowed, color, width)


def _print_json(tokens: Iterator[DecodedToken]) -> None:
    """Prints tokens as a JSON list in one line, as they come."""
    before = "["
    while some := list(itertools.islice(tokens, _TOKENS_AT_ONCE)):
        items = ", ".join(json.dumps(token.as_dict(), ensure_ascii=False) for token in some)
        streams.write((before + items).encode("utf-8", "backslashreplace"))
        before = ", "
    streams.write(b"[]\n" if before == "[" else b"]\n")
