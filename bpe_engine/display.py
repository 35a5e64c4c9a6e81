"""What the command line draws: tokens in colour, and the table of encodings."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console
from rich.style import Style
from rich.table import Table
from rich.text import Text

from . import Encoding, get_encoding
from .builtin import BUILTIN, RANK_FILE_SHA256

# Backgrounds that dark letters can be read on; neighbours differ.
_COLOURS = ["#a6cee3", "#fdbf6f", "#b2df8a", "#fb9a99", "#cab2d6", "#ffff99"]
_STYLES = [Style(color="#000000", bgcolor=colour) for colour in _COLOURS]
_SPECIAL = Style(bold=True, reverse=True)
_ID = Style(dim=True)

_ESCAPES = {" ": "·", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\\": "\\\\", "·": "\\u00b7"}


def visible(text: str) -> str:
    """`text` with everything made visible, and no two texts alike: a space is a middle dot, what
    cannot be seen is an escape, and a mark at the start sits on a dotted circle.

    >>> visible(" tab\\there")
    '·tab\\\\there'
    """
    shown = "".join(_visible_character(character) for character in text)
    return "◌" + shown if unicodedata.category(text[:1] or " ").startswith("M") else shown


def _visible_character(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character.isprintable():
        return character
    # Two hexadecimal digits are for the bytes of a character that a token cuts.
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def visible_bytes(token: bytes) -> str:
    """The bytes of a token made visible. Bytes of a character that is not whole are escapes.

    >>> visible_bytes("根".encode()[:2] + b" a")
    '\\\\xe6\\\\xa0·a'
    """
    shown = []
    while token:
        try:
            whole, rest = token.decode(), b""
            bad = b""
        except UnicodeDecodeError as error:
            whole = token[: error.start].decode()
            bad, rest = token[error.start : error.end], token[error.end :]
        shown.append(visible(whole) + "".join(f"\\x{byte:02x}" for byte in bad))
        token = rest
    return "".join(shown)


@dataclass(frozen=True)
class Token:
    """A token of a text, and the characters that it stands for."""

    id: int
    token: bytes
    special: bool
    start: int
    end: int

    def as_dict(self) -> dict[str, object]:
        """For JSON. `text` is None when the token is no UTF-8; `bytes` is hexadecimal."""
        try:
            text: str | None = self.token.decode()
        except UnicodeDecodeError:
            text = None
        return {
            "id": self.id,
            "text": text,
            "bytes": self.token.hex(),
            "special": self.special,
            "start": self.start,
            "end": self.end,
        }


def tokens_of(encoding: Encoding, text: str, allowed_special: AbstractSet[str]) -> list[Token]:
    """The tokens of `text`; names that are not allowed are ordinary text."""
    ids, spans = encoding.encode_with_offsets(
        text, allowed_special=allowed_special, disallowed_special=()
    )
    return [
        Token(id, token, encoding.is_special_token(id), *span)
        for id, token, span in zip(ids, encoding.decode_tokens_bytes(ids), spans)
    ]


class _Console(Console):
    """Leaves a closed pipe to the command, which ends quietly."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def _console(color: str, width: int | None) -> Console:
    if (sys.stdout.encoding or "").lower().replace("-", "") != "utf8":
        # Characters that the terminal does not know become escapes instead of errors.
        reconfigure = getattr(sys.stdout, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
    if color == "never":
        return _Console(color_system=None, width=width, highlight=False)
    if color == "always":
        return _Console(force_terminal=True, color_system="truecolor", width=width, highlight=False)
    return _Console(width=width, highlight=False)


def show_tokens(
    encoding: Encoding, text: str, tokens: Sequence[Token], color: str, width: int | None
) -> None:
    """Draws tokens in rows as wide as the console: the text above, the ids below."""
    console = _console(color, width)
    for row in _rows(tokens, console.width):
        above, below = Text(), Text()
        for cell in row:
            above.append(cell.shown, cell.style)
            above.append(" " * (cell.width - cell_len(cell.shown) + 1))
            below.append(f"{cell.id:<{cell.width + 1}}", _ID)
        for line in (above, below):
            line.rstrip()
            console.print(line, no_wrap=True, overflow="ignore", crop=False, soft_wrap=True)
    size = f"{_plural(len(tokens), 'token')}, {_plural(len(text), 'character')}"
    size += f", {_plural(len(text.encode('utf-8', 'replace')), 'byte')}, {encoding.name}"
    if any(token.special for token in tokens):
        size += "; * marks special tokens"
    console.print(Text(size, _ID), soft_wrap=True)


@dataclass(frozen=True)
class _Cell:
    shown: str
    id: str
    style: Style

    @property
    def width(self) -> int:
        return max(cell_len(self.shown), len(self.id))


def _rows(tokens: Sequence[Token], width: int) -> Iterator[list[_Cell]]:
    """Cells for each row. A row ends where it is full and after a token that ends a line."""
    row: list[_Cell] = []
    used = 0
    for place, token in enumerate(tokens):
        style = _SPECIAL if token.special else _STYLES[place % len(_STYLES)]
        number = f"{token.id}*" if token.special else str(token.id)
        # A token wider than the console goes on in the next row.
        for shown in _chop(visible_bytes(token.token), width):
            cell = _Cell(shown, number, style)
            if row and used + cell.width > width:
                yield row
                row, used = [], 0
            row.append(cell)
            used += cell.width + 1
            number = ""
        if b"\n" in token.token:
            yield row
            row, used = [], 0
    if row:
        yield row


def _chop(shown: str, width: int) -> list[str]:
    """`shown` in parts that are at most `width` cells wide."""
    parts = [""]
    for character in shown:
        if cell_len(parts[-1] + character) > width:
            parts.append("")
        parts[-1] += character
    return parts


def _plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def describe(name: str) -> dict[str, object]:
    """The row of an encoding in the table: sizes, and the sha256 of its rank file."""
    encoding = get_encoding(name)
    built_in = BUILTIN.get(name)
    return {
        "name": name,
        "tokens": encoding._core_bpe.rank_count,
        "special_tokens": len(encoding.special_tokens_set),
        "max_id": encoding.max_token_value,
        "sha256": RANK_FILE_SHA256[built_in.vocabulary] if built_in else None,
    }


def show_encodings(rows: Sequence[dict[str, object]]) -> None:
    """Draws the table of encodings."""
    # In a pipe nothing is wrapped: a line is a row.
    console = _console("auto", None if sys.stdout.isatty() else 200)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("name", "tokens", "specials", "max id", "sha256 of the rank file"):
        number = column in ("tokens", "specials", "max id")
        table.add_column(column, justify="right" if number else "left", overflow="fold")
    for row in rows:
        table.add_row(*(str(value if value is not None else "") for value in row.values()))
    console.print(table)
