"""Reads input and writes output: raw bytes, or UTF-8 text, as a whole or in chunks."""

from __future__ import annotations

import codecs
import json
import sys
from collections.abc import Iterator, Sequence
from typing import BinaryIO

import click

from ..common.system import END_OF_INPUT
from ..texts.utf8 import decoded
from .printing import write

__all__ = [
    "print_json",
    "print_line",
    "print_note",
    "read_bytes",
    "read_text",
    "write",
]

_CHUNK = 1 << 16


def read_bytes(path: str | None) -> bytes:
    """Reads a file, or standard input for None and ``-``."""
    return b"".join(_chunks(path))


def read_text(words: Sequence[str], path: str | None, errors: str) -> str:
    """Reads the text of a command with `options.reads_text`."""
    chunks, source = _contents(words, path)
    return "".join(decoded(chunks, source, errors))


def _contents(words: Sequence[str], path: str | None) -> tuple[Iterator[bytes], str]:
    if words and path is not None:
        raise click.UsageError("Give TEXT or --file, not both.")
    if words:
        # Python decodes invalid UTF-8 bytes in arguments to surrogates.
        contents = " ".join(words).encode("utf-8", "surrogateescape")
        return _noticed(iter([contents]), "TEXT"), "TEXT"
    source = "standard input" if path in (None, "-") else str(path)
    return _noticed(_chunks(path), source), source


def _noticed(chunks: Iterator[bytes], source: str) -> Iterator[bytes]:
    first = next(chunks, b"")
    if first.startswith(codecs.BOM_UTF8):
        print_note(
            f"{source} begins with a byte order mark, which counts as text; to remove it, save the "
            "text as UTF-8 without one"
        )
    yield first
    yield from chunks


def _chunks(path: str | None) -> Iterator[bytes]:
    if path not in (None, "-"):
        with open(path, "rb") as file:
            yield from _read(file)
        return
    if sys.stdin is None:
        raise click.ClickException("standard input: it is closed")
    if sys.stdin.isatty():
        print_note(f"reading from the terminal; {END_OF_INPUT} ends the input")
    try:
        yield from _read(sys.stdin.buffer)
    except OSError as error:
        raise click.ClickException(f"standard input: {error.strerror or error}") from None


def _read(file: BinaryIO) -> Iterator[bytes]:
    # `read1` returns before a chunk is full.
    read = getattr(file, "read1", file.read)
    while chunk := read(_CHUNK):
        yield chunk


def print_note(message: str) -> None:
    """Prints a one-line remark to standard error."""
    print("bpe-engine:", message, file=sys.stderr)


def print_line(line: str) -> None:
    """Writes a line in UTF-8, with surrogates as escapes."""
    write(line.encode("utf-8", "backslashreplace") + b"\n")


def print_json(value: object) -> None:
    """Writes a value as one line of JSON."""
    print_line(json.dumps(value, ensure_ascii=False))
