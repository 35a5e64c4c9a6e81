"""The command ``vocab-tools check``: finds problems in a vocabulary or a model's folder."""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Sequence

import click
from rich.console import Console
from rich.text import Text

from bpe_engine.cli.group import VOCABULARY, Command
from bpe_engine.cli.outputs import OutputFiles
from bpe_engine.cli.printing import printable
from bpe_engine.texts.reading import read_texts

from ..bases import NoRanksError, opened
from ..check import check_vocabulary
from ..check.check_result import CheckResult
from ..check.folder import check_folder
from ..check.folder.folder_result import FolderResult
from ..ranks import RankSource
from ..report import page_of
from ..text import plural
from .console import (
    LINES_SHOWN,
    finish,
    print_indented,
    print_remarks,
    progress_bar,
    say,
    say_base,
    say_wrapped,
)
from .inputs import base_inputs, expect, expect_ranks, refuse_repeated, special_inputs, word_source
from .options import (
    FILE,
    FILE_OR_STDIN,
    chosen_pattern,
    corpus_options,
    output_options,
    pattern_options,
    read_special_option,
    special_tokens_option,
)

#: Maximum number of examples to print for a finding.
EXAMPLES_SHOWN = 3


@click.command(cls=Command, short_help="Find problems in a vocabulary, or in a model's folder.")
@click.argument("base", type=VOCABULARY, metavar="BASE|MODEL_FOLDER")
@click.argument("extra", type=FILE, nargs=-1)
@pattern_options()
@special_tokens_option
@click.option("--words", type=FILE_OR_STDIN, help="The words that should have become tokens.")
@click.option(
    "--against",
    type=click.Path(exists=True),
    metavar="FOLDER",
    help="An earlier version of MODEL_FOLDER: show what has changed since.",
)
@corpus_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with every id that is not OK.")
@output_options
@click.pass_context
def check(
    context: click.Context,
    base: str,
    extra: tuple[str, ...],
    pattern: str | None,
    pattern_regex: str | None,
    specials: str | None,
    words: str | None,
    against: str | None,
    corpus: tuple[str, ...],
    field: str,
    errors: str,
    as_json: bool,
    reports: tuple[str, ...],
    force: bool,
) -> None:
    """Check the vocabulary BASE, or BASE extended by the tokens of EXTRA; or check the folder of a
    model that is about to be served.

    The exit status is 1 if there are errors, and 0 if there are only warnings.

    \b
      vocab-tools check o200k_base
      vocab-tools check qwen extra.tiktoken --words words.txt --json
      vocab-tools check models/qwen3
      vocab-tools check models/v2 --against models/v1 --corpus news.txt
    """
    if against is not None and not os.path.exists(base):
        raise click.UsageError(
            f"{base} is not a folder or a file; --against compares folders or files"
        )
    ranks = _ranks(base) if against is None else None
    if ranks is None:
        given = {
            "EXTRA": extra,
            "--pattern": pattern,
            "--pattern-regex": pattern_regex,
            "--special-tokens": specials,
            "--words": words,
        }
        unused = [name for name, value in given.items() if value]
        if unused:
            kind = "a folder" if os.path.isdir(base) else "a tokenizer file"
            raise click.UsageError(
                f"{base} is checked as {kind}, by what the files say; leave out "
                f"{', '.join(unused)}, or give a rank file"
            )
        context.exit(_check_folder(base, against, corpus, field, errors, as_json, reports, force))
    chosen = chosen_pattern(pattern, pattern_regex)
    # A base in a different format, such as a tokenizer.json, is already loaded.
    expect_ranks([base, *extra] if isinstance(ranks, (str, os.PathLike)) else extra)
    with progress_bar("checking") as update:
        expect("ranks", "BASE", [base], "check BASE [EXTRA...] --words WORDS")
        expect("ranks", "EXTRA", extra, "a word list is given with --words")
        expect(
            "words",
            "--words",
            [words] if words else [],
            "new tokens come after BASE: check BASE EXTRA",
        )
        expect("text", "--corpus", corpus, "new tokens come after BASE: check BASE EXTRA")
        inputs = [
            *base_inputs(base),
            *extra,
            *corpus,
            *special_inputs(specials),
            *([words] if words else []),
        ]
        refuse_repeated(inputs)
        files = OutputFiles(reports, inputs, force=force)
        result = check_vocabulary(
            ranks,
            extra,
            pattern=chosen,
            special_tokens=read_special_option(specials),
            words=None if words is None else word_source(words),
            corpus=corpus or None,
            field=field,
            errors=errors,
            progress=update,
        )
    finish(result, reports, files, as_json, functools.partial(print_findings, result))
    if not result.ok:
        context.exit(1)


def _ranks(base: str) -> RankSource | None:
    """Returns the base's ranks; None for a folder and for a tokenizer without ranks, which are
    checked as a model's files."""
    try:
        return None if os.path.isdir(base) else opened(base)
    except NoRanksError:
        return None


def print_findings(result: CheckResult, to: Console) -> None:
    """Prints the findings with a few examples of each."""
    sizes = ", ".join(f"{name.replace('_', ' ')} {size:,}" for name, size in result.sizes.items())
    say_base(to, result.pattern, result.recognized)
    say_wrapped(to, sizes)
    _print_findings(result, to, EXAMPLES_SHOWN)
    counts = ", ".join(f"{name} {count:,}" for name, count in result.round_trip_counts.items())
    say_wrapped(to, f"round trip: {counts}")
    say(to, "no errors" if result.ok else "there are errors")


def _print_findings(result: CheckResult | FolderResult, to: Console, most: int) -> None:
    for part in page_of(result).parts:
        print_remarks(to, part.remarks, most)


def _check_folder(
    folder: str,
    against: str | None,
    corpus: Sequence[str],
    field: str,
    errors: str,
    as_json: bool,
    reports: Sequence[str],
    force: bool,
) -> int:
    """Checks a model's folder, and returns the exit status."""
    expect("text", "--corpus", corpus, "it is text to compare the folder's tokenizers on")
    refuse_repeated(corpus)
    files = OutputFiles(reports, corpus, force=force)
    blocks = (read_texts(path, field, errors) for path in corpus)
    texts = itertools.chain.from_iterable(itertools.chain.from_iterable(blocks))
    result = check_folder(folder, texts, against=against)
    finish(result, reports, files, as_json, functools.partial(print_folder, result))
    return 0 if result.ok else 1


def print_folder(result: FolderResult, to: Console) -> None:
    """Prints the tokenizers of a folder, and the findings with a few examples of each."""
    say(to, f"{'folder' if os.path.isdir(result.path) else 'file'}: {result.path}")
    for source in result.sources:
        added = plural(source.added_tokens, "added token")
        line = f"{source.name}: {source.kind}, ids up to {source.size - 1}, {added}"
        if source.compared:
            alike = "none differ" if not source.differing else f"{source.differing:,} differ"
            line += f"; of {plural(source.compared, 'text')}, {alike}"
        if source.left_out:
            line += f"; {source.left_out:,} left out, with names of special tokens"
        print_indented(to, Text(printable(line)), 2)
    if result.fingerprint is not None:
        say(to, f"fingerprint: {result.fingerprint}")
    _print_findings(result, to, LINES_SHOWN)
    say(to, "no errors" if result.ok else "there are errors")
