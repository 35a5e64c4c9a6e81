"""Prints reports to a terminal or pipe."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..abilities.visible import plural, shorten
from ..html_report.page import Page, Remark, TableView
from .printing import printable

#: Minimum line width of a long list.
NARROWEST = 40

#: Maximum number of rows of a printed table.
ROWS_SHOWN = 20


class PipedConsole(Console):
    """A console that ends the command when its pipe is closed."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def console(stderr: bool = False) -> Console:
    """Returns a console that writes text unchanged, and unwrapped in a pipe."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else 1 << 16
    return PipedConsole(file=stream, markup=False, highlight=False, emoji=False, width=width)


def say(to: Console, text: str) -> None:
    """Prints a line without wrapping, so that it can be copied."""
    to.print(Text(printable(text)), soft_wrap=True)


def say_wrapped(to: Console, text: str, most: int | None = None) -> None:
    """Prints a sentence, wrapped between words at the terminal's width, or at ``most``."""
    print_indented(to, Text(printable(text)), 0, most)


def print_indented(to: Console, text: Text, indent: int, most: int | None = None) -> None:
    """Prints colored text, wrapped between words; continuation lines are indented."""
    width = to.width if most is None else max(min(to.width, most), NARROWEST)
    for paragraph in text.split("\n", allow_blank=True):
        first = paragraph.wrap(to, width, overflow="fold")[0]
        end = len(first)
        # A full line ends before its last space.
        end += paragraph.plain[end : end + 1] == " "
        rest = paragraph[end:].wrap(to, width - indent, overflow="fold")
        others = [Text(" " * indent) + line for line in rest if line]
        for line in (first, *others):
            line.rstrip()
            to.print(line, soft_wrap=True)


def print_table(to: Console, table: Table) -> None:
    """Prints a table, without spaces at the ends of its lines."""
    with to.capture() as captured:
        to.print(table)
    to.file.write(re.sub(r" +$", "", captured.get(), flags=re.MULTILINE))


#: Maximum number of lines of a remark; a remark on a folder may take three lines per file.
LINES_SHOWN = 10

_COLORS = {"error": "bold red", "warning": "yellow", "info": "cyan"}

#: Colors of a text's tokens.
_CUT_COLORS = ("black on cyan", "black on yellow", "black on green", "black on magenta")


def print_report(
    to: Console, page: Page, most_rows: int = ROWS_SHOWN, left_out: Sequence[str] = ()
) -> None:
    """Prints a report: the conclusions, numbers, remarks and the first rows of tables.

    Args:
        to: the console.
        page: the report.
        most_rows: the maximum number of rows of a table.
        left_out: ids of parts to omit.
    """
    for sentence in page.conclusions:
        say_wrapped(to, sentence)
    for part in page.parts:
        if part.id in left_out or not (part.tiles or part.tables or part.remarks):
            continue
        say_wrapped(to, f"\n{part.title}: {part.text}".rstrip(": "))
        width = max((len(tile.value) for tile in part.tiles), default=0)
        for tile in part.tiles:
            print_indented(to, Text(printable(f"{tile.value:>{width}}  {tile.label}")), width + 2)
        print_remarks(to, part.remarks)
        for place, table in enumerate(part.tables):
            if place:
                say(to, "")
            _print_rows(to, table, most_rows)


def print_remarks(to: Console, remarks: Sequence[Remark], most: int = LINES_SHOWN) -> None:
    """Prints remarks, each with up to `most` lines."""
    for remark in remarks:
        line = Text(f"{remark.severity:<8}", style=_COLORS[remark.severity])
        code = f"{remark.code} ({remark.counted}): " if remark.code else ""
        line.append(printable(f"{code}{remark.text}"), style="default")
        print_indented(to, line, 8)
        for example in remark.examples[:most]:
            print_indented(to, Text(" " * 10 + printable(example)), 12)
        hidden = len(remark.examples) - most
        if hidden > 0:
            more = f"{' ' * 10}and {plural(hidden, 'more line')}: --json has them"
            print_indented(to, Text(more), 12)


def _print_rows(to: Console, view: TableView, most_rows: int) -> None:
    if not view.rows:
        return
    table = Table(box=None, pad_edge=False)
    # Long texts would crowd out the other columns.
    most = max(to.width // (3 if len(view.columns) > 2 else 2), 20)
    for column in view.columns:
        is_number = column.kind in ("number", "id")
        table.add_column(
            column.title,
            overflow="fold",
            justify="right" if is_number else "left",
            no_wrap=is_number,
        )
    for cells, row in zip(view.rows, view.plain_rows(most_rows)):
        *texts, last = map(printable, row)
        shown = [Text(shorten(text, most)) for text in texts]
        end = Text(shorten(last, 2 * to.width))
        if view.columns[-1].kind == "cut" and to.color_system is not None:
            end = Text()
            for place, token in enumerate(cells[-1]):
                end.append(printable(token), style=_CUT_COLORS[place % len(_CUT_COLORS)])
        table.add_row(*shown, end)
    print_table(to, table)
    if len(view.rows) > most_rows:
        say(to, f"and {len(view.rows) - most_rows:,} more; --report has them")
