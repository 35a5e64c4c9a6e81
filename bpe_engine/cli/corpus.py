"""The command `bpe-engine corpus`: plans, runs, verifies, merges, packs and reports."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

import click

from ..abilities.visible import plural
from ..read.text_files import read_text
from . import options, streams
from .group import VOCABULARY, Command
from .printing import printable

#: Maximum number of rows per table of the report.
_MOST_ROWS = 10


class _Group(click.Group):
    """A group that treats its arguments as inputs unless the first argument names a command."""

    command_class: type[click.Command] | None = Command
    #: The nameless default command, whose options the group's help lists.
    one_step: click.Command | None = None

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)  # Commands, in the order of the steps.

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return self.commands.get(cmd_name) if cmd_name else self.one_step

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ("-h", "--help"):
            args = ["", *args]
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except ImportError as error:
            raise click.ClickException(
                f"{error}; bpe-engine corpus needs pip install 'bpe-engine[corpus]'"
            ) from None

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.format_commands(ctx, formatter)
        if self.one_step is not None:
            self.one_step.format_options(ctx, formatter)


@click.group(
    cls=_Group,
    short_help="Turn text into token files for training.",
    options_metavar="",
    subcommand_metavar="[COMMAND | INPUTS... -o FOLDER -e NAME [OPTIONS]]",
)
def corpus() -> None:
    """Turn text into token files for training: planned, resumable, verified.

    \b
    bpe-engine corpus texts/ -o out -e o200k_base --format megatron    all of it
    bpe-engine corpus input.txt -o out -e gpt2 --format nanogpt --held-out 0.01
    bpe-engine corpus plan texts/ -o out -e o200k_base      or step by step
    bpe-engine corpus run out                               again after a crash
    bpe-engine corpus verify out
    bpe-engine corpus merge out                             one file of many
    bpe-engine corpus pack out --length 4096
    bpe-engine corpus report out

    Inputs are text, JSON lines, both also as .gz and .zst, Parquet, Arrow and CSV: files, folders,
    globs, and URIs such as s3://bucket/folder.
    """


_OUT = click.argument("out", type=click.Path(exists=True, file_okay=False))

_PLAN = [
    click.argument("inputs", nargs=-1, required=True, metavar="INPUTS..."),
    click.option("-o", "--out", required=True, metavar="FOLDER", help="The folder of the corpus."),
    click.option(
        "-e",
        "--encoding",
        "--tokenizer",
        "encoding",
        required=True,
        metavar="NAME",
        type=VOCABULARY,
        help="An encoding by its name, or your own: a file or a folder.",
    ),
    click.option(
        "--format",
        "form",
        type=click.Choice(
            ["megatron", "datatrove", "olmo", "llm.c", "nanogpt", "parquet", "arrow"]
        ),
        default="megatron",
        show_default=True,
        help="The format of the token files.",
    ),
    click.option(
        "--eod", metavar="NAME", help="The token that ends documents; <|endoftext|> by default."
    ),
    click.option("--no-eod", is_flag=True, help="Documents end without a token."),
    click.option("--bos", metavar="NAME", help="A token before each document."),
    click.option(
        "--field",
        default="text",
        show_default=True,
        help="The field of the text, such as meta.text.",
    ),
    click.option(
        "--id-field", metavar="FIELD", help="A field to keep as the name of the document."
    ),
    click.option("--segments", metavar="FIELD", help="A field with segments instead of text."),
    click.option("--messages", metavar="FIELD", help="A field with chat messages instead of text."),
    click.option(
        "--chat-template",
        metavar="FILE",
        type=click.Path(exists=True, dir_okay=False),
        help="With --messages: the Jinja template; a mask is written, too: 1 for the text that the "
        "model must write in each turn of the assistant, up to the end token.",
    ),
    click.option(
        "--tools",
        metavar="FIELD",
        default="tools",
        show_default=True,
        help="With --messages: the field of the tools, a list or its JSON; '' for none.",
    ),
    click.option(
        "--template-field",
        "template_fields",
        metavar="NAME=FIELD",
        multiple=True,
        help="With --messages: a variable of the template, from a field. May be repeated.",
    ),
    click.option(
        "--template-variable",
        "template_variables",
        metavar="NAME=VALUE",
        multiple=True,
        help="With --messages: a variable of the template; the value is JSON, such as true, or text. "
        "May be repeated.",
    ),
    click.option(
        "--train-on",
        type=click.Choice(["every", "last"]),
        default="every",
        show_default=True,
        help="With --messages: which turns of the assistant are in the mask, every one whole.",
    ),
    click.option(
        "--weight-key",
        metavar="KEY",
        help="With --messages: a key of messages, such as weight; 0 or false omits the message from "
        "the mask.",
    ),
    click.option(
        "--input-kind",
        type=click.Choice(["jsonl", "text", "parquet", "arrow", "csv"]),
        help="Kind of all inputs, if the names do not determine it.",
    ),
    click.option(
        "--separator",
        metavar="TEXT",
        help=r"Plain text: the separator of documents; \n is a line end, also of Windows, and \r and \t "
        "are known; '' for a document a file. By "
        "default that, and empty lines in files of more than a megabyte.",
    ),
    click.option(
        "--on-error",
        type=click.Choice(["raise", "skip", "keep-empty"]),
        default="raise",
        show_default=True,
        help="Handling of rows that are not text.",
    ),
    click.option(
        "--allow-special",
        metavar="NAME",
        multiple=True,
        help="A token that text may hold. May be repeated.",
    ),
    click.option(
        "--held-out",
        type=click.FloatRange(0, 1, max_open=True),
        default=0.0,
        metavar="SHARE",
        help="Write this share of documents, such as 0.01, to files for validation when they are "
        "merged: the last, in the order of --shuffle.",
    ),
    click.option(
        "--shuffle", type=int, metavar="SEED", help="Shuffle documents when they are merged."
    ),
    click.option(
        "--unit-size",
        type=click.IntRange(min=1),
        default=128,
        show_default=True,
        metavar="MB",
        help="Input of a unit of work.",
    ),
]

_RUN = [
    click.option(
        "--processes",
        type=click.IntRange(min=1),
        metavar="N",
        help="Processes; by default one per core.",
    ),
    click.option(
        "--threads",
        "num_threads",
        type=click.IntRange(min=1),
        metavar="N",
        help="Threads in each process.",
    ),
]
_SAMPLE = click.option(
    "--sample",
    type=click.IntRange(min=0),
    default=64,
    show_default=True,
    help="Documents to compare with their source.",
)


def _planned(
    inputs: Sequence[str],
    out: str,
    encoding: str,
    form: str,
    eod: str | None,
    no_eod: bool,
    segments: str | None,
    messages: str | None,
    chat_template: str | None,
    separator: str | None,
    unit_size: int,
    tools: str,
    template_fields: Sequence[str],
    template_variables: Sequence[str],
    **choices: Any,
) -> Any:
    from ..corpus import make_plan

    if no_eod and eod is not None:
        raise click.UsageError("--eod and --no-eod exclude each other; give one.")
    if segments is not None and messages is not None:
        raise click.UsageError("--segments and --messages exclude each other; give one.")
    if segments is not None or messages is not None:
        choices["content"] = "segments" if messages is None else "messages"
        choices["field"] = segments or messages
    if chat_template is not None:
        choices["template"] = read_text(chat_template)
    if separator is not None:
        for escape, character in {"\\n": "\n", "\\r": "\r", "\\t": "\t"}.items():
            separator = separator.replace(escape, character)
        choices["separator"] = separator or None
    return make_plan(
        inputs,
        encoding,
        out,
        tools=tools or None,
        template_fields=_pairs("--template-field", template_fields),
        template_variables={
            name: _value(text)
            for name, text in _pairs("--template-variable", template_variables).items()
        },
        eod=None if no_eod else eod or "auto",
        format=form,
        unit_bytes=unit_size << 20,
        **choices,
    )


def _pairs(option: str, given: Sequence[str]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for pair in given:
        name, sign, value = pair.partition("=")
        if not sign:
            raise click.UsageError(f"{option} is {pair!r}; give NAME=VALUE.")
        if name in pairs:
            raise click.UsageError(f"{option} has {name!r} twice.")
        pairs[name] = value
    return pairs


def _value(text: str) -> Any:
    """Parses a string as JSON; returns a string that is not JSON unchanged."""
    try:
        return json.loads(text)
    except ValueError:
        return text


@corpus.command(short_help="Plan a corpus: inputs, tokenizer, units of work.")
@partial(options.with_options, _PLAN)
def plan(**choices: Any) -> None:
    """Write FOLDER/plan.json: inputs, the fingerprint of the tokenizer, options and units.

    \b
    bpe-engine corpus plan "data/*.jsonl.zst" -o out -e o200k_base
    bpe-engine corpus plan s3://bucket/part/ -o out -e qwen/ --format datatrove
    """
    made = _planned(**choices)
    size = sum(source.size for source in made.inputs)
    streams.print_line(
        f"{plural(len(made.inputs), 'input')}, {size:,} bytes, "
        f"{plural(len(made.units), 'unit')}: {made.path('plan.json')}"
    )


@corpus.command(short_help="Write the missing units.")
@_OUT
@partial(options.with_options, _RUN)
@click.option(
    "--rank", type=click.IntRange(min=0), default=0, help="Index of this machine, from 0."
)
@click.option("--world-size", type=click.IntRange(min=1), default=1, help="Number of machines.")
@click.option("--tokenizer", metavar="PATH", help="Path of the tokenizer on this machine.")
def run(out: str, **choices: Any) -> None:
    """Write the missing units. An interrupted run can be repeated, and gives the same bytes.

    \b
    bpe-engine corpus run out
    bpe-engine corpus run out --rank $SLURM_ARRAY_TASK_ID --world-size 64
    """
    from ..corpus import read_plan

    _run(read_plan(out), **choices)


def _run(plan: Any, rank: int = 0, world_size: int = 1, **choices: Any) -> None:
    from ..corpus import run_plan
    from ..corpus.manifest import MERGED, Manifest
    from ..corpus.notes import notes_of
    from ..corpus.run import units_of_rank

    total = len(units_of_rank(plan, rank, world_size))
    if not total:
        which = "all units" if world_size == 1 else f"rank {rank} of {world_size}: all its units"
        streams.print_note(f"{which} exist; nothing to do")
        return
    done = Manifest(plan.sha256, MERGED)
    with _progress("units", total) as advance:

        def progress(manifest: Manifest) -> None:
            done.add(manifest)
            advance(1, f"{done.tokens:,} tokens")

        written = run_plan(plan, rank=rank, world_size=world_size, progress=progress, **choices)
    streams.print_note(f"{plural(written, 'unit')} written, {done.tokens:,} tokens")
    for note in notes_of(plan, done):
        streams.print_note(printable(f"note: {note}"))


@corpus.command(short_help="Check the files against the plan and the source.")
@_OUT
@_SAMPLE
@click.option("--tokenizer", metavar="PATH", help="Path of the tokenizer on this machine.")
@options.JSON
def verify(out: str, as_json: bool, **choices: Any) -> None:
    """Check structure, sums, ids and ends of documents, and compare a sample with its source.

    The exit status is 1 if anything is wrong.
    """
    from ..corpus import read_plan

    _verify(read_plan(out), as_json, **choices)


def _verify(plan: Any, as_json: bool = False, **choices: Any) -> None:
    from ..corpus import verify_corpus

    with _documents() as progress:
        result = verify_corpus(plan, progress=progress, **choices)
    if as_json:
        streams.print_json({"ok": result.ok, **asdict(result)})
    else:
        for line in result.checks:
            streams.print_line(f"ok     {line}")
        for line in result.problems:
            streams.print_line(printable(f"wrong  {line}"))
    if not result.ok:
        raise click.exceptions.Exit(1)


@corpus.command(short_help="Make one file (pair) of the parts.")
@_OUT
def merge(out: str) -> None:
    """Merge the parts into one file (or pair), shuffled if the plan says so; remove the parts."""
    from ..corpus import read_plan

    _merge(read_plan(out))


def _merge(plan: Any) -> None:
    from ..corpus import merge_parts

    with _documents() as progress:
        merged = merge_parts(plan, progress=progress)
    for name in merged.files:
        streams.print_line(plan.path(name))


@corpus.command(short_help="Make an index of rows of a length.")
@_OUT
@click.option("--length", type=click.IntRange(min=1), required=True, help="Maximum ids per row.")
@click.option(
    "--method",
    type=click.Choice(["best-fit", "wrap"]),
    default="best-fit",
    show_default=True,
    help="Keep documents whole, or join and cut them.",
)
@click.option("--seed", type=int, help="Shuffle rows (best-fit) or documents (wrap).")
def pack(out: str, **choices: Any) -> None:
    """Make an index of rows without changing the token files. Read it with PackedRows."""
    from ..corpus import PackedRows, pack_rows

    path = pack_rows(out, **choices)
    rows = PackedRows(out, **choices)
    streams.print_line(f"{len(rows):,} rows of up to {rows.length:,} ids: {path}")


@corpus.command(short_help="Report the contents of a corpus.")
@_OUT
@options.JSON
def report(out: str, as_json: bool) -> None:
    """Report tokens per byte by source, longest documents and control strings."""
    from ..corpus import corpus_report
    from .report import console, print_report

    found = corpus_report(out)
    if as_json:
        streams.print_json(json.loads(found.to_json()))
    else:
        print_report(console(), found.page(), _MOST_ROWS)


@click.command(cls=Command)
@partial(options.with_options, [*_PLAN, *_RUN, _SAMPLE])
@click.option("--merge", "merges", is_flag=True, help="Make one file (pair) of the parts.")
def all_steps(
    processes: int | None, num_threads: int | None, sample: int, merges: bool, **choices: Any
) -> None:
    """Plan, run and verify; with --merge, --shuffle or --held-out, merge before verifying."""
    made = _planned(**choices)
    _run(made, processes=processes, num_threads=num_threads)
    if merges or made.needs_merge:
        _merge(made)
    _verify(made, sample=sample)


corpus.one_step = all_steps


@contextlib.contextmanager
def _progress(what: str, total: int | None) -> Iterator[Callable[..., None]]:
    """Yields a function that advances a progress bar with an estimate, on standard error."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda *_: None
        return
    columns = [
        TextColumn(what),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    ]
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(what, total=total, note="")

        def advance(steps: int, note: str = "", total: int | None = None) -> None:
            bar.update(task, advance=steps, note=note, total=total)

        yield advance


@contextlib.contextmanager
def _documents() -> Iterator[Callable[[int, int], None]]:
    with _progress("documents", None) as advance:
        done = 0

        def progress(now: int, total: int) -> None:
            nonlocal done
            advance(now - done, "", total)
            done = now

        yield progress
