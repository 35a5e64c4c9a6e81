"""The command ``vocab-tools drift``: compares ids with those of another folder, or of earlier."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from bpe_engine.cli.group import Command
from bpe_engine.cli.outputs import OutputFiles
from bpe_engine.cli.printing import write
from bpe_engine.texts import read_texts

from ..check.folder.drift import check_drift, freeze, read_frozen, with_lines
from ..check.folder.model_folder import ModelFolder
from ..report import render
from ..report.plain import check_json
from .check import print_folder
from .console import console
from .inputs import expect, refuse_repeated
from .options import FILE, compared_corpus_options, output_options


@click.command(
    cls=Command, short_help="Compare a folder's ids with another's, or with earlier ones."
)
@click.argument("before", metavar="BEFORE", type=click.Path(exists=True))
@click.argument("after", metavar="[AFTER]", type=click.Path(exists=True), required=False)
@click.option(
    "--freeze", "frozen", metavar="FILE", help="Write the texts and the ids of BEFORE, and stop."
)
@click.option("--against", type=FILE, help="Compare BEFORE with what --freeze has written.")
@compared_corpus_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@output_options
@click.pass_context
def drift(
    context: click.Context,
    before: str,
    after: str | None,
    frozen: str | None,
    against: str | None,
    corpus: tuple[str, ...],
    field: str,
    errors: str,
    as_json: bool,
    reports: tuple[str, ...],
    force: bool,
) -> None:
    """Compare the ids of the model folder AFTER with those of BEFORE, or those of BEFORE with what they
    were.

    Each may be a folder, a tokenizer file, or what --freeze has written. The exit status is 1 if ids,
    tokens, merges, settings or decoded texts have changed, and 2 if a file cannot be read.

    \b
      vocab-tools drift models/v1 models/v2 --corpus news.txt
      vocab-tools drift models/v1 --freeze ids.json
      vocab-tools drift models/v1 --against ids.json --json
    """
    given = [name for name in (after, frozen, against) if name is not None]
    if len(given) != 1:
        raise click.UsageError("give one of AFTER, --freeze and --against")
    expect("text", "--corpus", corpus, "it is text to compare the folders on")
    refuse_repeated(corpus)
    inputs = [*corpus, *([against] if against else [])]
    with _status_2():
        stored = [name for name in (before, after, against) if name and read_frozen(name)]
        if corpus and stored:
            raise click.UsageError(f"{stored[0]} has its own texts; leave out --corpus")
        if frozen is not None:
            if stored:
                raise click.UsageError(f"{stored[0]} is what --freeze has written; give the folder")
            files = OutputFiles([frozen], inputs, force=force)
            own = [text for block in ModelFolder(Path(before)).probes for text in block]
            texts = [*own, *with_lines(_texts(corpus, field, errors))]
            files.write({frozen: freeze(before, texts).to_json().encode()})
            return
        files = OutputFiles(reports, inputs, force=force)
        old, new = (against, before) if against is not None else (before, after)
        assert old is not None and new is not None
        result = check_drift(old, new, _texts(corpus, field, errors))
    files.write({path: render(path, result).encode() for path in reports})
    if as_json:
        write(check_json(result).encode())
    else:
        print_folder(result, console())
    if not result.ok:
        context.exit(1)


class _NotReadError(click.ClickException):
    """A file cannot be read. The exit status is not that of changed ids."""

    exit_code = 2


@contextlib.contextmanager
def _status_2() -> Iterator[None]:
    """Gives an error of a file another status than that of changed ids."""
    try:
        yield
    except ValueError as error:
        raise _NotReadError(str(error)) from error


def _texts(corpus: Sequence[str], field: str, errors: str) -> list[str]:
    blocks = (read_texts(path, field, errors) for path in corpus)
    return list(itertools.chain.from_iterable(itertools.chain.from_iterable(blocks)))
