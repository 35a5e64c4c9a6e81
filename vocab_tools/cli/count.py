"""The command ``vocab-tools count``, and options for counting shared with ``train``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import click

from bpe_engine.cli.group import Command, ParamType
from bpe_engine.cli.outputs import OutputFiles
from bpe_engine.texts.access import STANDARD
from bpe_engine.texts.listed import corpus_files

from ..corpus.cutting import DEFAULT_PATTERN, cutting
from ..corpus.piece_counts import count_corpus, dropped_note
from ..text import plural
from ..train.arrow import write_counts
from ..train.models import words_of
from .console import console, progress_bar, say
from .options import Options, chosen_pattern, combined, errors_option, field_option, pattern_options

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", re.IGNORECASE)


class MemorySize(ParamType):
    """A number of bytes, with K, M, G or T for powers of 1024."""

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
                f"{value!r} is not a size of 1M or more; give one such as 500M or 8G",
                param,
                context,
            )
        return size


#: Options for reading, cutting and counting a corpus.
counting_options: Options = combined(
    click.option(
        "--threads",
        "num_threads",
        type=click.IntRange(1),
        help="The number of threads. [default: one per processor]",
    ),
    click.option(
        "--drop-rare",
        type=click.IntRange(1),
        default=1,
        metavar="N",
        help="Leave out pieces that occur fewer than N times, and report how many.",
    ),
    click.option(
        "--max-memory",
        type=MemorySize(),
        help="Memory for counts, such as 4G; further counts go to temporary files. Each thread "
        "needs some megabytes more, for text.",
    ),
    errors_option,
    click.option(
        "--nfc/--no-nfc",
        default=None,
        help="Normalize text to Unicode NFC first. [default: as the named encoding does]",
    ),
    click.option(
        "--special-token",
        "special_tokens",
        multiple=True,
        metavar="NAME",
        help="A special token: cut out of the text, never merged; repeatable.",
    ),
    pattern_options(f"[default: the base's, else {DEFAULT_PATTERN}]"),
    field_option,
)


def expanded(corpus: Sequence[str]) -> list[str]:
    """Returns the files of a corpus, omitting standard input."""
    return [path for path in corpus_files(corpus) if path != STANDARD]


def count_files(corpus: Sequence[str]) -> list[str]:
    """Returns files of counts. Raises ValueError if there are none."""
    found = expanded(corpus)
    if not found:
        raise ValueError(f"{', '.join(corpus)} has no files of counts")
    return found


@click.command(cls=Command)
@click.argument("corpus", nargs=-1, required=True)
@click.option("-o", "--output", required=True, help="The Parquet file for the counts.")
@click.option(
    "--like",
    metavar="NAME",
    help="Count the words of another model's pipeline, as of `train`.",
)
@counting_options
@click.option("--force", is_flag=True, help="Overwrite files that exist.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing.")
def count(
    corpus: tuple[str, ...],
    output: str,
    like: str | None,
    pattern: str | None,
    pattern_regex: str | None,
    special_tokens: tuple[str, ...],
    nfc: bool | None,
    drop_rare: int,
    force: bool,
    quiet: bool,
    **reading: Any,
) -> None:
    """Count the pieces of CORPUS, for `vocab-tools train --counts`.

    CORPUS are files, folders, globs and URIs: text, JSON lines, Parquet, Arrow or CSV, plain or
    compressed; - is standard input. Several machines can each count a part of the text: training
    adds up the counts.

    \b
      vocab-tools count part1/ --pattern o200k_base -o 1.parquet
      vocab-tools train --counts 1.parquet 2.parquet --vocab-size 32k -o x.json
    """
    chosen = chosen_pattern(pattern, pattern_regex)
    if output == STANDARD:
        raise ValueError("Parquet cannot be written to standard output; name a file")
    inputs = expanded(corpus)
    files = OutputFiles([output], inputs, force=force)
    with progress_bar("counting") as update:
        if like is None:
            cut = cutting(chosen, special_tokens, nfc)
        elif chosen or special_tokens or nfc is not None:
            raise click.UsageError(
                "--like brings a pipeline; give no pattern, special tokens or form of Unicode"
            )
        else:
            cut = words_of(None, like)
        found = count_corpus(corpus, cut, progress=update, **reading)
    with found as counts:
        written = files.write_by(output, lambda name: write_counts(counts, name, drop_rare))
    if not quiet:
        to = console()
        text = plural(counts.characters, "character")
        say(to, f"{plural(written, 'distinct piece')} of {text} in {output}")
        lost = dropped_note(counts)
        if lost:
            say(to, lost)
