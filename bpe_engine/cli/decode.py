"""The command `bpe-engine decode`: turns ids into text."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import click

from . import options, streams
from .group import Command


@click.command(cls=Command)
@options.takes_encoding
@click.argument("ids", metavar="[ID]...", nargs=-1)
@options.FILE
@click.option(
    "--errors",
    type=click.Choice(["replace", "ignore", "strict", "backslashreplace"]),
    default="replace",
    show_default=True,
    help="Handling of bytes that are not UTF-8.",
)
@click.option("--raw", is_flag=True, help="Write raw bytes, UTF-8 or not.")
@options.JSON
def decode(
    ids: Sequence[str], path: str | None, errors: str, raw: bool, as_json: bool, **choice: Any
) -> None:
    """Print the text of ids.

    Ids are separated by spaces, newlines or commas; a JSON list is understood. Nothing is added
    to the text, unless it goes to a terminal: then a newline.

    \b
    bpe-engine decode 13225 11 2375 0
    bpe-engine encode -f a.txt | bpe-engine decode > same-as-a.txt
    echo '[13225, 11, 2375, 0]' | bpe-engine decode
    bpe-engine decode -e qwen --errors backslashreplace 51461
    """
    if ids and path is not None:
        raise click.UsageError("Give ID or --file, not both.")
    tokenizer = options.choose_tokenizer(**choice)
    # The codec utf-8-sig skips a byte order mark.
    source = (
        " ".join(ids) if ids else streams.read_bytes(path).decode("utf-8-sig", "backslashreplace")
    )
    tokens = _parse_ids(source)
    try:
        if (file := tokenizer._unranked) is not None:
            # Unknown ids raise here: the file's decoder would drop them.
            for id in tokens:
                if file.id_to_token(id) is None:
                    raise KeyError(f"Invalid token for decoding: {id}")
        contents = tokenizer.decode_bytes(tokens)
        text = "" if raw else contents.decode("utf-8", errors)
    except (KeyError, OverflowError) as error:
        raise click.ClickException(f"{error.args[0]} ({tokenizer._label})") from None
    except UnicodeDecodeError as error:
        raise click.ClickException(
            f"the ids are not UTF-8 at byte {error.start} (0x{contents[error.start]:02x}); "
            "pass --errors replace, or --raw for the bytes themselves."
        ) from None
    if as_json and not raw:
        streams.print_json(text)
        return
    streams.write(contents if raw else text.encode("utf-8", "surrogatepass"))
    if sys.stdout.isatty():
        streams.write(b"\n")


def _parse_ids(source: str) -> list[int]:
    words = source.strip().removeprefix("[").removesuffix("]").replace(",", " ").split()
    for word in words:
        if not (word.isascii() and word.isdigit() and len(word) <= 10):
            raise click.UsageError(f"{word[:40]!r} is not an id; ids are whole numbers from 0 on.")
    return list(map(int, words))
