"""The command ``vocab-tools propose``: finds the words of a corpus that are worth a token."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from bpe_engine.cli.group import VOCABULARY, Command
from bpe_engine.cli.outputs import OutputFiles
from bpe_engine.texts.access import STANDARD

from ..bases import open_base
from ..extend.extension import no_words
from ..extend.propose import ExtendOptions, propose_words
from ..report import page_of, render
from ..words import listed_words
from .console import console, print_json, print_report, say_base, steps_bar
from .inputs import base_inputs, expect, refuse_repeated
from .options import (
    FILE,
    TEXT,
    Options,
    chosen_pattern,
    combined,
    json_option,
    output_options,
    pattern_options,
    refuse_mixed,
    text_options,
)

#: Options that `propose` and `extend` share.
propose_options: Options = combined(
    click.option(
        "--exclude", type=FILE, help="Words not to propose, one per line, with their space."
    ),
    click.option(
        "--scripts",
        metavar="NAME,...",
        default="",
        help="Only words whose letters are of these scripts, such as Thai,Latin.",
    ),
    click.option(
        "--min-frequency",
        type=click.IntRange(1),
        default=ExtendOptions.min_frequency,
        show_default=True,
        help="Leave out words that occur less often.",
    ),
    click.option(
        "-n",
        "--new-ids",
        type=click.IntRange(1),
        default=ExtendOptions.new_ids,
        show_default=True,
        help="Maximum number of new ids, for words and their by-products.",
    ),
    text_options,
)


@click.command(cls=Command)
@click.argument("base", type=VOCABULARY)
@click.argument("corpus", type=TEXT, nargs=-1, required=True)
@click.option("-o", "--output", required=True, help="The file for the words; - for stdout.")
@propose_options
@click.option("--extra", type=FILE, multiple=True, help="More ranks that the base has; repeatable.")
@pattern_options()
@output_options
@json_option
@click.option("-q", "--quiet", is_flag=True, help="Print nothing.")
def propose(
    base: str,
    corpus: tuple[str, ...],
    output: str,
    exclude: str | None,
    extra: tuple[str, ...],
    pattern: str | None,
    pattern_regex: str | None,
    reports: tuple[str, ...],
    force: bool,
    quiet: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Find the words of CORPUS that save the most as tokens of BASE.

    CORPUS is text, JSON lines, Parquet, Arrow or CSV, plain or compressed; - is standard input. The
    words are written with their frequencies, in the format that `learn` reads and in the order in
    which they were chosen. `saved` is the number of tokens that a word and its by-products save in
    all words that contain them; these numbers add up to the total savings.

    \b
      vocab-tools propose qwen thai/*.txt -n 2000 --scripts Thai -o words.txt
      vocab-tools learn qwen words.txt -o extra.tiktoken
    """
    chosen = chosen_pattern(pattern, pattern_regex)
    wanted = extend_options(exclude=exclude, **options)
    refuse_mixed(as_json, output)
    check_corpus(base, corpus, extra, exclude)
    inputs = [*base_inputs(base), *corpus, *extra, *([exclude] if exclude else [])]
    refuse_repeated(inputs)
    files = OutputFiles([output, *reports], inputs, force=force)
    opened = open_base(base, chosen, extra=extra)
    with steps_bar() as update:
        proposal = propose_words(opened, corpus, wanted, progress=update)
    if proposal.words:
        written = {path: render(path, proposal).encode() for path in reports}
        files.write({output: proposal.dump(), **written})
    to = console(stderr=output == STANDARD)
    if as_json:
        print_json(proposal.to_plain())
    elif not quiet:
        assert proposal.pattern is not None
        say_base(to, proposal.pattern.label, proposal.recognized)
        print_report(to, page_of(proposal))
    if not proposal.words:
        raise click.ClickException(no_words(proposal, wanted.new_ids))


def check_corpus(
    base: str, corpus: Sequence[str], extra: Sequence[str], exclude: str | None
) -> None:
    """Raises UsageError for files in the wrong order."""
    expect("ranks", "BASE", [base], "BASE comes first, and then CORPUS")
    expect("text", "CORPUS", corpus, "BASE comes first, and then CORPUS; --extra has more ranks")
    expect("ranks", "--extra", extra, "words that are not to be proposed are given with --exclude")
    expect(
        "words",
        "--exclude",
        [exclude] if exclude else [],
        "more ranks of the base are given with --extra",
    )


def extend_options(*, scripts: str, exclude: str | None, **options: Any) -> ExtendOptions:
    """Makes an `ExtendOptions` from a command's arguments."""
    names = [name for name in scripts.split(",") if name.strip()]
    words = listed_words(exclude) if exclude else ()
    return ExtendOptions(scripts=names, exclude=words, **options)
