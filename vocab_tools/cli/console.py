"""Prints text, notes and progress to a terminal or a pipe."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Iterator, Sequence

from rich.console import Console
from rich.filesize import decimal
from rich.progress import Progress, TextColumn
from rich.text import Text

from bpe_engine.cli.outputs import OutputFiles
from bpe_engine.cli.printing import printable, write
from bpe_engine.cli.report import (
    LINES_SHOWN,
    console,
    print_indented,
    print_remarks,
    print_report,
    print_table,
    say,
    say_wrapped,
)
from bpe_engine.common.system import shown_path

from ..bases import Recognized
from ..notes import Note, grouped
from ..report import Result, page_of, render
from ..report import as_json as json_of
from ..text import plural, shorten

__all__ = [
    "LINES_SHOWN",
    "console",
    "finish",
    "print_indented",
    "print_json",
    "print_notes",
    "print_remarks",
    "print_report",
    "print_table",
    "progress_bar",
    "say",
    "say_base",
    "say_wrapped",
    "steps_bar",
]

#: Maximum number of table rows to print.
ROWS_SHOWN = 12

#: Maximum line width of a long list if the terminal's width is unknown.
WIDEST = 120


def say_base(to: Console, pattern: str, recognized: Recognized | None) -> None:
    """Prints the pattern, and the published vocabulary that the base equals or extends."""
    say(to, f"pattern: {shorten(pattern, 200)}")
    say(
        to,
        f"base: recognized as {recognized}" if recognized else "base: not a published vocabulary",
    )


def print_json(value: object) -> None:
    """Prints a value as indented JSON."""
    write((shown_path(json.dumps(value, ensure_ascii=False, indent=1)) + "\n").encode())


def finish(
    result: Result,
    reports: Sequence[str],
    files: OutputFiles,
    as_json: bool,
    show: Callable[[Console], None] | None = None,
) -> None:
    """Writes the reports on a result, and prints the result."""
    files.write({path: render(path, result).encode() for path in reports})
    if as_json:
        write(json_of(result).encode())
    elif show is not None:
        show(console())
    else:
        print_report(console(), page_of(result), ROWS_SHOWN)


@contextlib.contextmanager
def progress_bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """Shows a progress bar if standard error is a terminal."""
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
            # The size of a pipe is unknown.
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
    """Prints notes by kind; for many notes of one kind, prints the number and a few examples."""
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
