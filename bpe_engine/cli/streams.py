"""Reads input and writes output: raw bytes, or UTF-8 text, as a whole or in chunks."""

from __future__ import annotations

import codecs
import json
import sys
from collections.abc import Iterator, Sequence
from typing import BinaryIO

import click

from .printing import write

__all__ = [
    "print_json",
    "print_line",
    "print_note",
    "read_bytes",
    "read_text",
    "read_text_chunks",
    "write",
]

_CHUNK = 1 << 16


def read_bytes(path: str | None) -> bytes:
    """Reads a file, or standard input for None and ``-``."""
    return b"".join(_chunks(path))


def read_text(words: Sequence[str], path: str | None, errors: str) -> str:
    """Reads the text of a command with `options.reads_text`."""
    return "".join(read_text_chunks(words, path, errors))


def read_text_chunks(words: Sequence[str], path: str | None, errors: str) -> Iterator[str]:
    """Yields the text of `read_text` in chunks, as the input arrives."""
    if words and path is not None:
        raise click.UsageError("Give TEXT or --file, not both.")
    if words:
        # Python decodes bytes in arguments that are not UTF-8 to surrogates.
        contents = " ".join(words).encode("utf-8", "surrogateescape")
        return _decoded(iter([contents]), "TEXT", errors)
    source = "standard input" if path in (None, "-") else str(path)
    return _decoded(_chunks(path), source, errors)


def _decoded(chunks: Iterator[bytes], source: str, errors: str) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8")(errors)
    position = 0  # of the chunk in the input, in bytes
    for chunk in chunks:
        if position == 0:
            _notice_other_encodings(chunk, source)
        pending = len(decoder.getstate()[0])
        try:
            yield decoder.decode(chunk)
        except UnicodeDecodeError as error:
            raise _not_utf8(error, position - pending, source) from None
        position += len(chunk)
    pending = len(decoder.getstate()[0])
    try:
        yield decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        raise _not_utf8(error, position - pending, source) from None


def _not_utf8(error: UnicodeDecodeError, position: int, source: str) -> click.ClickException:
    at, byte = position + error.start, error.object[error.start]
    if at == 0 and error.object[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return click.ClickException(
            f"{source} is UTF-16, not UTF-8; convert it: iconv -f utf-16 -t utf-8"
        )
    return click.ClickException(
        f"{source} is not UTF-8 at byte {at} (0x{byte:02x}); "
        "convert it, or pass --errors replace or --errors ignore"
    )


def _notice_other_encodings(start: bytes, source: str) -> None:
    """Prints a note about valid UTF-8 that is probably another encoding."""
    note = None
    if start.startswith(codecs.BOM_UTF8):
        note = (
            "begins with a byte order mark, which counts as text; to remove it, save the text as "
            "UTF-8 without one"
        )
    elif encoding := _likely_utf16(start[:1024]):
        note = (
            "has a zero byte beside nearly every other one, which counts as text; if it is "
            f"UTF-16, convert it: iconv -f {encoding} -t utf-8"
        )
    if note is not None:
        print_note(f"{source} {note}")


def _likely_utf16(start: bytes) -> str | None:
    """Returns the form of UTF-16 that a text without a byte order mark seems to have."""
    first, second = start[::2], start[1::2]
    mostly_zero = [half.count(0) * 4 > 3 * len(half) for half in (first, second)]
    is_marked = start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    if is_marked or len(second) < 2 or mostly_zero[0] == mostly_zero[1]:
        return None
    return "utf-16be" if mostly_zero[0] else "utf-16le"


def _chunks(path: str | None) -> Iterator[bytes]:
    if path not in (None, "-"):
        with open(path, "rb") as file:
            yield from _read(file)
        return
    if sys.stdin is None:
        raise click.ClickException("standard input: it is closed")
    if sys.stdin.isatty():
        print_note("reading from the terminal; Ctrl-D ends the input")
    try:
        yield from _read(sys.stdin.buffer)
    except OSError as error:
        raise click.ClickException(f"standard input: {error.strerror or error}") from None


def _read(file: BinaryIO) -> Iterator[bytes]:
    # Does not wait for a full chunk.
    read = getattr(file, "read1", file.read)
    while chunk := read(_CHUNK):
        yield chunk


def print_note(message: str) -> None:
    """Prints a remark to standard error, in one line."""
    print("bpe-engine:", message, file=sys.stderr)


def print_line(line: str) -> None:
    """Writes a line in UTF-8, with surrogates as escapes."""
    write(line.encode("utf-8", "backslashreplace") + b"\n")


def print_json(value: object) -> None:
    """Writes a value as one line of JSON."""
    print_line(json.dumps(value, ensure_ascii=False))
