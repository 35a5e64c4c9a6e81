"""``vocab-tools check``."""

from __future__ import annotations

import click
from rich.console import Console
from rich.text import Text

from ..check import CheckResult, check_vocabulary
from ..files import OutputFiles, write_standard
from ..report import render
from ..report.plain import check_json
from ..text import visible
from .console import (
    console,
    print_indented,
    progress_bar,
    readable_errors,
    say,
    say_base,
    say_wrapped,
)
from .inputs import (
    expect_ranks,
    expect_text,
    expect_words,
    refuse_repeated,
    special_inputs,
    word_source,
)
from .options import (
    FILE,
    FILE_OR_STDIN,
    RANKS,
    chosen_pattern,
    corpus_options,
    output_options,
    pattern_options,
    read_special_option,
    special_tokens_option,
)

#: Examples of a finding on the screen.
EXAMPLES_SHOWN = 3

_COLOURS = {"error": "bold red", "warning": "yellow", "info": "cyan"}


@click.command()
@click.argument("base", type=RANKS)
@click.argument("extra", type=FILE, nargs=-1)
@pattern_options()
@special_tokens_option
@click.option("--words", type=FILE_OR_STDIN, help="The words that were to become tokens.")
@click.option("--keep-space", is_flag=True, help="Keep the space that a word begins with.")
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
    keep_space: bool,
    corpus: tuple[str, ...],
    field: str,
    errors: str,
    as_json: bool,
    reports: tuple[str, ...],
    force: bool,
) -> None:
    """Look for what is wrong with the vocabulary BASE, or with what extends it.

    The exit status is 1 when there are errors, and 0 when there are only warnings.

    \b
      vocab-tools check o200k_base.tiktoken
      vocab-tools check qwen.tiktoken extra.tiktoken --words words.txt --json
    """
    chosen = chosen_pattern(pattern, pattern_regex)
    with readable_errors(), progress_bar("checking") as update:
        expect_ranks("BASE", [base], "check BASE [EXTRA...] --words WORDS")
        expect_ranks("EXTRA", extra, "a word list is given with --words")
        expect_words("--words", words, "new tokens come behind BASE: check BASE EXTRA")
        expect_text("--corpus", corpus, "new tokens come behind BASE: check BASE EXTRA")
        inputs = [base, *extra, *corpus, *special_inputs(specials), *([words] if words else [])]
        refuse_repeated(inputs)
        files = OutputFiles(reports, inputs, force=force)
        result = check_vocabulary(
            base,
            extra,
            pattern=chosen,
            special_tokens=read_special_option(specials),
            words=None if words is None else word_source(words),
            keep_space=keep_space,
            corpus=corpus or None,
            field=field,
            errors=errors,
            progress=update,
        )
        files.write({path: render(path, result).encode() for path in reports})
    if as_json:
        write_standard(check_json(result).encode())
    else:
        print_findings(result, console())
    if not result.ok:
        context.exit(1)


def print_findings(result: CheckResult, to: Console) -> None:
    """Prints what was found, with a few examples."""
    sizes = ", ".join(f"{name.replace('_', ' ')} {size:,}" for name, size in result.sizes.items())
    say_base(to, result.pattern, result.recognised)
    say_wrapped(to, sizes)
    for finding in result.findings:
        line = Text(f"{finding.severity:<8}", style=_COLOURS[finding.severity])
        line.append(f"{finding.code} ({finding.counted}): {finding.message}", style="default")
        print_indented(to, line, 8)
        for example in finding.examples[:EXAMPLES_SHOWN]:
            print_indented(to, Text(" " * 10 + visible(example)), 12)
    counts = ", ".join(f"{name} {count:,}" for name, count in result.round_trip_counts.items())
    say_wrapped(to, f"round trip: {counts}")
    say(to, "no errors" if result.ok else "there are errors")
