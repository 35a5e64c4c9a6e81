"""Prints text, tables, notes and progress to a terminal or pipe."""

from __future__ import annotations

import contextlib
import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence

from rich.console import Console
from rich.filesize import decimal
from rich.progress import Progress, TextColumn
from rich.table import Table
from rich.text import Text

from bpe_engine.cli.printing import printable, write
from bpe_engine.html_report.page import Page, Remark, TableView

from ..bases import Recognized
from ..notes import Note, grouped
from ..text import plural, shorten

#: The narrowest and widest lines of a long list where the width of the terminal is unknown.
NARROWEST, WIDEST = 40, 120

#: The most rows of a table on the screen.
ROWS_SHOWN = 20


class _Console(Console):
    """A console whose closed pipe ends the command."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def console(stderr: bool = False) -> Console:
    """Returns a console that writes text as it is, and does not wrap it in a pipe."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else 1 << 16
    return _Console(file=stream, markup=False, highlight=False, emoji=False, width=width)


def say(to: Console, text: str) -> None:
    """Prints a line without wrapping it, so that it can be copied."""
    to.print(Text(printable(text)), soft_wrap=True)


def say_wrapped(to: Console, text: str, most: int | None = None) -> None:
    """Prints a sentence, broken between its words where the terminal ends, or after ``most``."""
    print_indented(to, Text(printable(text)), 0, most)


def say_base(to: Console, pattern: str, recognized: Recognized | None) -> None:
    """Prints the pattern, and the vocabulary that the base was recognized as."""
    say(to, f"pattern: {shorten(pattern, 200)}")
    say(
        to,
        f"base: recognized as {recognized}" if recognized else "base: not a published vocabulary",
    )


def print_indented(to: Console, text: Text, indent: int, most: int | None = None) -> None:
    """Prints colored text, wrapped between words; continuation lines are indented."""
    width = to.width if most is None else max(min(to.width, most), NARROWEST)
    for paragraph in text.split("\n", allow_blank=True):
        first = paragraph.wrap(to, width, overflow="fold")[0]
        end = len(first)
        # The space at which a full line ends is not in it.
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


def print_json(value: object) -> None:
    """Prints a value as indented JSON."""
    write((json.dumps(value, ensure_ascii=False, indent=1) + "\n").encode())


@contextlib.contextmanager
def progress_bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """Shows a progress bar on a terminal, and nothing elsewhere."""
    with steps_bar(what) as update:
        yield lambda done, total: update(what, done, total)


@contextlib.contextmanager
def steps_bar(first: str = "reading") -> Iterator[Callable[[str, int, int], None]]:
    """Shows a progress bar for work in several steps of different speeds."""
    columns = (*Progress.get_default_columns(), TextColumn("{task.fields[amount]}"))
    to = console(stderr=True)
    with Progress(*columns, console=to, transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task(first, total=None, amount="")
        current = first

        def update(step: str, done: int, total: int) -> None:
            nonlocal current
            if step != current:
                current = step
                bar.reset(task, description=step)
            # What comes through a pipe has no size.
            bar.update(task, completed=done, total=total or None, amount=_amount(step, done, total))

        yield update


def _amount(step: str, done: int, total: int) -> str:
    """Returns progress as text, such as `1.5 MB of 2.0 MB`; empty for steps without a unit.

    >>> _amount("counting", 1_500_000, 2_000_000), _amount("merging", 300, 32_000)
    ('1.5 MB of 2.0 MB', '300 of 32,000 tokens')
    """
    if step == "merging":
        return f"{done:,} of {total:,} tokens"
    if step == "counting":
        return f"{decimal(done)} of {decimal(total)}" if total else decimal(done)
    return ""


def print_notes(notes: Sequence[Note], show_all: bool) -> None:
    """Prints notes by kind; for many of one kind, their number and a few examples."""
    to = console(stderr=True)
    hidden = 0
    for group in grouped(notes, None if show_all else 3):
        if group.hidden == 0:
            for note in group.shown:
                text = Text(printable(f"warning: {note.in_full}"))
                print_indented(to, text, 2, WIDEST if note.words else None)
            continue
        hidden += group.hidden
        say(to, f"warning: {group.title}:")
        for note in group.shown:
            print_indented(to, Text(printable(f"  {note}")), 4)
        say(to, f"  and {group.hidden:,} more")
    if hidden:
        say(to, f"{plural(hidden, 'more warning')} can be shown with --all, or in a --report")


#: Lines of a remark, of which a folder's may have three for each file.
LINES_SHOWN = 10

_COLORS = {"error": "bold red", "warning": "yellow", "info": "cyan"}

#: Colors of the tokens of a text.
_CUT_COLORS = ("black on cyan", "black on yellow", "black on green", "black on magenta")


def print_report(
    to: Console, page: Page, most_rows: int = ROWS_SHOWN, left_out: Sequence[str] = ()
) -> None:
    """Prints a report: the conclusions, numbers, remarks and the first rows of tables.

    Args:
        to: the console.
        page: the report.
        most_rows: the number of rows of a table.
        left_out: ids of parts that are not printed.
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
    """Prints remarks, each with a few examples."""
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
    # A long text would leave no room for the other columns.
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
