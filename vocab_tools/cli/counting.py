"""Options of the commands that count the pieces of a corpus, and ``vocab-tools count``."""

from __future__ import annotations

import contextlib
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import click

from ..corpus.reading import STANDARD, corpus_files
from ..files import OutputFiles, is_special
from ..text import plural
from ..train import count_corpus
from ..train.arrow import write_counts
from ..train.checkpoint import checkpoint_of, read_state
from ..train.counting import TooLittleMemory, dropped_note
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
            help="Where the counts so far go. [default: the output's name and .checkpoint; none for "
            "standard input]",
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
            help="Memory for counts, such as 4G; beyond it they go to files. The text that is being read "
            "comes on top, some megabytes for each thread.",
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
def checkpointed(
    paths: Sequence[str],
    inputs: Sequence[str],
    outputs: Sequence[str],
    *,
    resume: bool,
    force: bool,
) -> Iterator[None]:
    """The files for the counts so far: refused when another run left them; gone when the work is
    done; and when it is stopped, people are told what to do with them.

    Raises ValueError when one is an input, an output or anything but a checkpoint, and
    FileExistsError when it is there, and neither ``resume`` nor ``force`` is given.
    """
    OutputFiles([*outputs, *paths], inputs, force=True)
    there = [path for path in paths if os.path.lexists(path)]
    for path in there:
        if not (resume or force):
            reason = "is there already: --resume goes on from it, --force begins anew"
            raise FileExistsError(17, reason, path)
        read_state(path)
    if resume and paths and not there:
        say(
            console(stderr=True),
            f"note: there is no checkpoint {paths[0]}; counting from the start",
        )
    try:
        yield
    except (KeyboardInterrupt, TooLittleMemory):
        if any(map(os.path.exists, paths)):
            text = f"the counts so far are in {paths[0]}; --resume goes on from them"
            say(console(stderr=True), text)
        raise
    except ValueError:
        # What was counted will not do.
        _remove(path for path in paths if path not in there)
        raise
    _remove(paths)


def _remove(paths: Iterable[str]) -> None:
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)


def checkpoint_paths(
    given: str | None, outputs: Sequence[str], corpus: Sequence[str], *, resume: bool, parts: int = 1,
    superwords: bool = False,
) -> list[str]:  # fmt: skip
    """The files for the counts so far: the one that is given, or one beside the first output, and
    more of its name for ``parts`` corpora and for a second stage; none where there is no such
    output, or where standard input is read.

    Raises ValueError when a checkpoint is asked for that cannot be.
    """
    first = next((path for path in outputs if path != STANDARD and not is_special(path)), None)
    if STANDARD in corpus:
        if given is not None or resume:
            raise ValueError("standard input cannot be read again: --resume needs files")
        return []
    if given is None and first is None:
        if resume:
            raise ValueError("--resume needs --checkpoint FILE where no output is a file")
        return []
    path = given if given is not None else f"{first}.checkpoint"
    return [
        checkpoint_of(path, number, stage)
        for stage in range(1 + superwords)
        for number in range(parts)
    ]


def print_repeated(corpus: Sequence[str]) -> None:
    """Names the files of a corpus that are given more than once: they count as often."""
    given = [path for path in expanded(corpus) if not is_special(path)]
    names = {os.path.realpath(path): path for path in given}
    for path, times in Counter(map(os.path.realpath, given)).items():
        if times > 1:
            text = f"note: {names[path]} is given {times} times, and counted as often"
            say(console(stderr=True), text)


def expanded(corpus: Sequence[str]) -> list[str]:
    """The files of a corpus, which no output may be."""
    return [path for path in corpus_files(corpus) if path != STANDARD]


def count_files(corpus: Sequence[str]) -> list[str]:
    """Files of counts; those in folders whose names begin with ``_`` are the notes of the program
    that wrote them, as Spark's ``_SUCCESS``.

    Raises ValueError when a folder has no others.
    """
    found: list[str] = []
    for given in corpus:
        paths = expanded([given])
        if os.path.isdir(given):
            paths = [path for path in paths if not os.path.basename(path).startswith("_")]
        if not paths:
            raise ValueError(f"{given}: there are no files of counts")
        found += paths
    return found


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
        inputs = expanded(corpus)
        files = OutputFiles([output], inputs, force=force)
        cut = cutting(chosen, special_tokens, nfc)
        print_repeated(corpus)
        paths = checkpoint_paths(checkpoint, [output], corpus, resume=resume)
        with (
            checkpointed(paths, inputs, [output], resume=resume, force=force),
            progress_bar("counting") as update,
        ):
            counts = count_corpus(
                corpus,
                cut,
                checkpoint=paths[0] if paths else None,
                resume=resume,
                progress=update,
                **reading,
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
