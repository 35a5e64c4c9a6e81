"""Options of the commands that count the pieces of a corpus, and ``vocab-tools count``."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Sequence
from typing import Any

import click

from ..corpus.reading import STANDARD, corpus_files
from ..files import OutputFiles
from ..text import plural
from ..train import count_corpus
from ..train.arrow import write_counts
from ..train.counting import dropped_note
from ..train.cutting import DEFAULT_PATTERN, cutting
from .console import console, progress_bar, readable_errors, say
from .options import Command, chosen_pattern, errors_option, field_option

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", re.IGNORECASE)


class MemorySize(click.ParamType):  # type: ignore[type-arg]
    """Bytes, with K, M, G or T for powers of 1024."""

    name = "size"

    def convert(self, value: Any, param: Any, context: Any) -> int:
        if isinstance(value, int):
            return value
        found = _SIZE.fullmatch(value.strip())
        size = 0
        if found:
            size = int(float(found[1]) * 1024 ** " KMGT".index(found[2].upper() or " "))
        if size < 1 << 20:
            self.fail(
                f"{value!r} is no size of 1M or more; give one such as 500M or 8G", param, context
            )
        return size


def counting_options(command: Command) -> Command:
    """How a corpus is read and cut, and what counting may use."""
    for option in (
        click.option(
            "--resume", is_flag=True, help="Go on from the checkpoint of a run that was stopped."
        ),
        click.option(
            "--checkpoint",
            metavar="FILE",
            help="Where the counts so far go. [default: the output's name and .checkpoint]",
        ),
        click.option(
            "--threads", type=click.IntRange(1), help="How many threads count. [default: all]"
        ),
        click.option(
            "--drop-rare",
            type=click.IntRange(1),
            default=1,
            metavar="N",
            help="Leave out pieces that occur less than N times, and say what was lost.",
        ),
        click.option(
            "--max-memory",
            type=MemorySize(),
            help="Memory for counts, such as 4G; beyond it they go to files.",
        ),
        errors_option,
        click.option(
            "--nfc/--no-nfc",
            default=None,
            help="Bring text into Unicode normalization form C first. [default: as the named "
            "encoding does]",
        ),
        click.option(
            "--special-token",
            "special_tokens",
            multiple=True,
            metavar="NAME",
            help="A special token: cut out of the text, never merged; repeatable.",
        ),
        click.option(
            "--pattern-regex",
            metavar="REGEX",
            help="A regular expression: how text is cut into pieces before merging.",
        ),
        click.option(
            "--pattern",
            metavar="NAME",
            help="Name of an encoding: text is cut into pieces as it does. [default: that of the "
            f"base, else {DEFAULT_PATTERN}]",
        ),
    ):
        command = option(command)
    return field_option(command)


@contextlib.contextmanager
def checkpointed(path: str | None, *, resume: bool, force: bool) -> Iterator[str | None]:
    """The file for the counts so far: refused when another run left it; gone when the work is
    done; and when it is stopped, people are told what to do with it.

    Raises FileExistsError when it is there, and neither ``resume`` nor ``force`` is given.
    """
    if path is not None and os.path.exists(path) and not (resume or force):
        raise FileExistsError(
            17, "is there already: --resume goes on from it, --force begins anew", path
        )
    was_there = path is not None and os.path.exists(path)
    try:
        yield path
    except KeyboardInterrupt:
        if path is not None and os.path.exists(path):
            say(
                console(stderr=True), f"the counts so far are in {path}; --resume goes on from them"
            )
        raise
    except ValueError:
        # What was counted will not do.
        if not was_there:
            _remove(path)
        raise
    _remove(path)


def _remove(path: str | None) -> None:
    """Deletes a checkpoint, and those of further corpora and of a second stage, which have an
    ending."""
    if path is None:
        return
    folder, name = os.path.split(path)
    for other in os.listdir(folder or "."):
        if re.fullmatch(re.escape(name) + r"(\.lines)?(-\d+)?", other):
            os.unlink(os.path.join(folder, other))


def checkpoint_path(given: str | None, outputs: Sequence[str]) -> str | None:
    """The file that is given, or one beside the first output; None for standard output."""
    if given is not None or outputs[0] == STANDARD:
        return given
    return f"{outputs[0]}.checkpoint"


def expanded(corpus: Sequence[str]) -> list[str]:
    """The files of a corpus, which no output may be."""
    return [path for path in corpus_files(corpus) if path != STANDARD]


@click.command()
@click.argument("corpus", nargs=-1, required=True)
@click.option("-o", "--output", required=True, help="The Parquet file for the counts.")
@counting_options
@click.option("--force", is_flag=True, help="Overwrite files that exist.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing.")
def count(
    corpus: tuple[str, ...],
    output: str,
    pattern: str | None,
    pattern_regex: str | None,
    special_tokens: tuple[str, ...],
    nfc: bool | None,
    drop_rare: int,
    checkpoint: str | None,
    resume: bool,
    force: bool,
    quiet: bool,
    **reading: Any,
) -> None:
    """Count the pieces of CORPUS, for `vocab-tools train --counts`.

    CORPUS is files, folders and globs: text, .jsonl or .parquet, packed with gzip or Zstandard or
    not; - is standard input. Counting can run on many machines, each with a part of the text:
    training adds the counts up.

    \b
      vocab-tools count part1/ --pattern o200k_base -o 1.parquet
      vocab-tools train --counts 1.parquet 2.parquet --vocab-size 32000 -o out.tiktoken
    """
    chosen = chosen_pattern(pattern, pattern_regex)
    with readable_errors():
        if output == STANDARD:
            raise ValueError("counts are Parquet, which cannot go to standard output; name a file")
        files = OutputFiles([output], expanded(corpus), force=force)
        cut = cutting(chosen, special_tokens, nfc)
        path = checkpoint_path(checkpoint, [output])
        with (
            checkpointed(path, resume=resume, force=force) as path,
            progress_bar("counting") as update,
        ):
            counts = count_corpus(
                corpus, cut, checkpoint=path, resume=resume, progress=update, **reading
            )
            with counts:
                written = files.write_by(output, lambda name: write_counts(counts, name, drop_rare))
    if not quiet:
        to = console()
        text = plural(counts.characters, "character")
        say(to, f"{plural(written, 'distinct piece')} of {text} in {output}")
        lost = dropped_note(counts)
        if lost:
            say(to, lost)
