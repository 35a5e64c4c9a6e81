"""The command `bpe-engine heal`: shows what may follow a prompt that ends inside a word."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from .._core import TokenTable
from ..abilities.healing import Healed
from ..core import Encoding
from . import options, streams
from .group import Command
from .tokens import described


@click.command(cls=Command, short_help="Show what may follow a prompt that ends inside a word.")
@options.takes_encoding
@options.allows_special
@options.reads_text
@click.option(
    "--most",
    type=click.IntRange(min=0),
    default=24,
    show_default=True,
    metavar="N",
    help="Show at most N allowed next tokens. JSON has all.",
)
@options.draws
@options.JSON
def heal(
    words: Sequence[str],
    path: str | None,
    errors: str,
    allow_special: Sequence[str],
    most: int,
    color: str,
    width: int | None,
    as_json: bool,
    **choice: Any,
) -> None:
    """Show what may follow a prompt that ends inside a word.

    Prints the tokens that stay whatever follows, the bytes that the next tokens begin with, and the
    tokens that may come next. The prompt may end inside a character.

    \b
    bpe-engine heal 'The link is <a href="http:'
    bpe-engine heal -e gpt2 --most 100 "say hello wor"
    bpe-engine heal --json -f prompt.txt | jq .ids
    """
    tokenizer = options.choose_tokenizer(**choice)
    allowed = options.choose_special(tokenizer, allow_special)
    prompt = streams.read_prompt(words, path, errors)
    healed = tokenizer.heal(prompt, allowed_special=allowed)
    if as_json:
        streams.print_json(_described(tokenizer, healed))
    else:
        from .display import show_healed

        show_healed(tokenizer, healed, most, color, width)


def _described(tokenizer: Encoding, healed: Healed) -> dict[str, object]:
    """Returns a prompt for JSON: `next` is None where any token may come next."""
    table = TokenTable(tokenizer)
    allowed = None if healed.done else healed.allowed_ids().tolist()
    following = allowed and [{"id": id, **described(table[id])} for id in allowed]
    return {
        "encoding": tokenizer._label,
        "ids": healed.ids,
        "rest": described(healed.rest),
        "rests": [described(rest) for rest in healed.rests],
        "next": following,
    }
