"""Draws on a terminal: tokens in color, and the table of encodings."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from rich.cells import cell_len
from rich.console import Console, JustifyMethod
from rich.style import Style
from rich.table import Table
from rich.text import Text

from .. import get_encoding
from ..abilities.visible import CONTINUED, plural, visible_bytes, whole_characters
from ..core import Encoding
from ..model import models_of
from ..read.builtin import BUILTIN, RANK_FILE_SHA256
from .report import PipedConsole
from .tokens import DecodedToken, tokens_of

# Light backgrounds for black letters, distinct for neighbors.
_COLORS = ["#a6cee3", "#fdbf6f", "#b2df8a", "#fb9a99", "#cab2d6", "#ffff99"]
_STYLES = [Style(color="#000000", bgcolor=color) for color in _COLORS]
_SPECIAL = Style(bold=True, reverse=True)
_ID = Style(dim=True)


def _console(color: str, width: int | None) -> Console:
    if color == "never":
        return PipedConsole(color_system=None, width=width, highlight=False)
    if color == "always":
        return PipedConsole(
            force_terminal=True, color_system="truecolor", width=width, highlight=False
        )
    return PipedConsole(width=width, highlight=False)


def show_tokens(
    tokenizer: Encoding,
    text: str,
    allowed_special: AbstractSet[str],
    color: str,
    width: int | None,
) -> None:
    """Draws the tokens of a text in rows as wide as the console: the text above, the ids below.

    Args:
        tokenizer: The tokenizer.
        text: The text.
        allowed_special: Special tokens to recognize; other names are text.
        color: ``"always"``, ``"never"`` or ``"auto"``.
        width: The width of the rows; None for the width of the console.
    """
    console = _console(color, width)
    tokens = list(tokens_of(tokenizer, text, allowed_special))
    _print_rows(console, tokens)
    counts = (
        (len(tokens), "token"),
        (len(text), "character"),
        (len(text.encode("utf-8", "replace")), "byte"),
    )
    size = ", ".join(plural(count, noun) for count, noun in counts)
    legend = "; * marks special tokens" if any(token.special for token in tokens) else ""
    _print_note(console, f"{size}, {tokenizer._label}{legend}")


def _print_note(console: Console, note: str) -> None:
    console.print(Text(note, _ID), soft_wrap=True)


def _print_rows(console: Console, tokens: Iterable[DecodedToken]) -> None:
    for row in _rows(tokens, console.width):
        above, below = Text(), Text()
        for cell in row:
            above.append(cell.shown, cell.style)
            above.append(" " * (cell.width - cell_len(cell.shown) + 1))
            below.append(f"{cell.id:<{cell.width + 1}}", _ID)
        above.rstrip()
        below.rstrip()
        both = Text("\n").join((above, below))
        console.print(both, no_wrap=True, overflow="ignore", crop=False, soft_wrap=True)


@dataclass(frozen=True)
class _Cell:
    shown: str
    id: str
    style: Style

    @property
    def width(self) -> int:
        return max(cell_len(self.shown), len(self.id))


def _rows(tokens: Iterable[DecodedToken], width: int) -> Iterator[list[_Cell]]:
    """Yields the cells of each row. A row ends when it is full and after a token with a newline."""
    row: list[_Cell] = []
    used = 0
    tokens, those = itertools.tee(tokens)
    whole = whole_characters(token.token for token in those)
    for place, (token, (continued, characters)) in enumerate(zip(tokens, whole)):
        style = _SPECIAL if token.special else _STYLES[place % len(_STYLES)]
        number = f"{token.id}*" if token.special else str(token.id)
        # A token wider than the console continues in the next row.
        for shown in _chop(CONTINUED * continued + visible_bytes(characters), width):
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
    parts = [""]
    for character in shown:
        if cell_len(parts[-1] + character) > width:
            parts.append("")
        parts[-1] += character
    return parts


def describe(name: str) -> dict[str, Any]:
    """Returns the rows of `encodings --json`: sizes, models, and the rank file's sha256."""
    encoding = get_encoding(name)
    built_in = BUILTIN.get(name)
    return {
        "name": name,
        "tokens": encoding._rank_count,
        "special_tokens": len(encoding.special_tokens_set),
        "max_id": encoding.max_token_value,
        "models": models_of(name),
        "sha256": RANK_FILE_SHA256[built_in.vocabulary] if built_in else None,
    }


def show_encodings(rows: Sequence[dict[str, Any]]) -> None:
    """Draws the table of encodings."""
    # One line per row: complete in a pipe, with truncated models on a narrow terminal.
    console = _console("auto", None if sys.stdout.isatty() else 1000)
    table = Table(box=None, pad_edge=False, header_style="bold")
    headers = ("name", "tokens", "special", "max id", "models")
    cells = [[*map(str, list(row.values())[:4]), " ".join(row["models"])] for row in rows]
    for header, *column in zip(headers, *cells):
        justify: JustifyMethod = "right" if header in headers[1:4] else "left"
        # Only the last column shrinks.
        width = None if header == headers[-1] else max(map(cell_len, (header, *column)))
        table.add_column(header, justify=justify, width=width, overflow="ellipsis")
    for row_cells in cells:
        # Each row takes one line: the last column is truncated at the terminal's width.
        *numbers, models = row_cells
        table.add_row(*numbers, Text(models, no_wrap=True, overflow="ellipsis"))
    with console.capture() as captured:
        console.print(table)
    for line in captured.get().splitlines():
        print(line.rstrip())
