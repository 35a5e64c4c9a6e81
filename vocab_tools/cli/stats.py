"""The command ``vocab-tools stats``: measures a tokenizer on text."""

from __future__ import annotations

from typing import Any

import click

from bpe_engine.cli.group import VOCABULARY, Command

from .compare import measure_options, measured, print_measured


@click.command(cls=Command)
@click.argument("tokenizer", metavar="A", type=VOCABULARY)
@click.argument("texts", metavar="[CORPUS]...", nargs=-1)
@measure_options
def stats(
    tokenizer: str,
    texts: tuple[str, ...],
    corpus: tuple[str, ...],
    field: str,
    errors: str,
    **output: Any,
) -> None:
    """Measure the tokenizer A on text.

    Prints the tokens per byte, character and word, and how much of the vocabulary the text uses.

    A is the name of an encoding, a rank file, or a tokenizer.json (of any model).

    \b
      vocab-tools stats o200k_base news.txt code.jsonl
      vocab-tools stats tokenizer.json --corpus news.txt --report stats.html
    """
    given = (*texts, *corpus)
    print_measured(
        lambda update: measured([tokenizer], given, update, field=field, errors=errors),
        [tokenizer],
        given,
        **output,
    )
