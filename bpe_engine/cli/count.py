"""The command `bpe-engine count`: counts tokens."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Sequence
from typing import Any

import click

from ..texts.access import STANDARD
from ..texts.reading import has_rows, read_rows
from . import options, streams
from .group import Command


@click.command(cls=Command)
@options.takes_encoding
@options.allows_special
@options.TEXT
@click.option(
    "-f",
    "--file",
    "paths",
    metavar="PATH",
    type=click.Path(allow_dash=True),
    multiple=True,
    help="Count the tokens of this file; - is standard input. More files may follow.",
)
@options.INPUT_ERRORS
@click.option(
    "--field",
    metavar="NAME",
    help="Count the text of this field only: of JSON lines, or of a column of Parquet, Arrow or CSV.",
)
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    metavar="N",
    help="Exit with status 1 if there are more than N tokens in all.",
)
@options.JSON
def count(
    words: Sequence[str],
    paths: Sequence[str],
    errors: str,
    field: str | None,
    limit: int | None,
    allow_special: Sequence[str],
    as_json: bool,
    **choice: Any,
) -> None:
    """Print how many tokens a text has.

    With several files: one line for each, and a last line for all. After -f every argument is a
    file.

    \b
    bpe-engine count "Hello, world!"
    bpe-engine count -m gpt-4o -f README.md
    bpe-engine count -f docs/*.md
    bpe-engine count -f chats.jsonl --field text
    bpe-engine count --limit 8000 -f prompt.txt || echo too long
    """
    if paths:
        paths, words = [*paths, *words], ()
    elif words and all(map(os.path.isfile, words)):
        named = f"{shlex.join(words[:3])}{' ...' if len(words) > 3 else ''}"
        raise click.UsageError(
            f"{words[0]!r} is the name of a file. To count the tokens of the file: bpe-engine count "
            f"-f {named}. To count the name itself: echo -n {named} | bpe-engine count"
        )
    tokenizer = options.choose_tokenizer(**choice)
    allowed = options.choose_special(tokenizer, allow_special)
    inputs: Sequence[str | None] = paths or [None]
    totals = []
    for path in inputs:
        if field is None:
            if path and has_rows(path):
                streams.print_note(
                    f"{path} is counted with its syntax; --field text counts a field"
                )
            texts: Iterable[str] = [streams.read_text(words, path, errors)]
        elif words:
            raise click.UsageError("--field is for files and standard input, not for TEXT.")
        else:
            texts = read_rows(path or STANDARD, field, errors)
        names: Any = {"allowed_special": allowed, "disallowed_special": ()}
        totals.append(sum(tokenizer.count(text, **names) for text in texts))
    total = sum(totals)
    if as_json and len(paths) > 1:
        listed = [{"file": path, "tokens": tokens} for path, tokens in zip(paths, totals)]
        streams.print_json({"encoding": tokenizer._label, "files": listed, "tokens": total})
    elif as_json:
        streams.print_json({"encoding": tokenizer._label, "tokens": total})
    elif len(paths) > 1:
        width = len(str(total))
        for tokens, path in zip([*totals, total], [*paths, "total"]):
            streams.print_line(f"{tokens:{width}} {path}")
    else:
        streams.print_line(str(total))
    if limit is not None and total > limit:
        raise click.exceptions.Exit(1)
