"""The command `bpe-engine align`: prints the tokens of two tokenizers side by side."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import click

from ..abilities.alignment import Alignment
from ..abilities.alignment import align as align_text
from ..read.opening import open_tokenizer
from . import options, streams
from .group import VOCABULARY, Command
from .tokens import described


@click.command(cls=Command, short_help="Show the tokens of two tokenizers side by side.")
@click.argument("a", metavar="A", type=VOCABULARY)
@click.argument("b", metavar="B", type=VOCABULARY)
@options.allows_special
@options.reads_text
@options.draws
@options.JSON
def align(
    a: str,
    b: str,
    words: Sequence[str],
    path: str | None,
    errors: str,
    allow_special: Sequence[str],
    color: str,
    width: int | None,
    as_json: bool,
) -> None:
    """Show the tokens of the tokenizers A and B in groups that cover the same bytes of a text.

    A line is a group, with the tokens and ids of A and of B. A and B are names of encodings or
    your own tokenizers, as -e of other commands takes them.

    \b
    bpe-engine align gpt2 o200k_base "Tokenization isn't obvious."
    bpe-engine align qwen model/tokenizer.json -f poem.txt
    bpe-engine align --json gpt2 qwen "根本" | jq '.[].b'
    """
    tokenizers = open_tokenizer(a), open_tokenizer(b)
    text = streams.read_text(words, path, errors)
    names: Any = {"allowed_special": options.choose_special_of(tokenizers, allow_special)}
    aligned = align_text(*tokenizers, text, **names)
    if as_json:
        streams.print_json(_groups(aligned, text.encode()))
    else:
        from .display import show_alignment

        shown = [os.path.basename(name.rstrip("/")) for name in (a, b)]
        show_alignment(shown, tokenizers, aligned, color, width)


def _groups(aligned: Alignment, text: bytes) -> list[dict[str, object]]:
    sides = (aligned.a_ids, aligned.a_splits), (aligned.b_ids, aligned.b_splits)
    rows = [[part.tolist() for part in _rows(ids, splits)] for ids, splits in sides]
    return [
        {"start": start, "end": end, **described(text[start:end]), "a": of_a, "b": of_b}
        for (start, end), of_a, of_b in zip(aligned.spans.tolist(), *rows)
    ]


def _rows(ids: Any, splits: Any) -> Any:
    return (ids[start:end] for start, end in zip(splits.tolist(), splits[1:].tolist()))
