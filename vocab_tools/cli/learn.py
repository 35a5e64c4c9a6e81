"""The command ``vocab-tools learn``: adds words to a vocabulary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import click
from rich.console import Console

from bpe_engine.cli.group import VOCABULARY, Command
from bpe_engine.cli.outputs import OutputFiles
from bpe_engine.cli.printing import write
from bpe_engine.texts.access import STANDARD

from ..bases import open_base
from ..corpus.effect import CorpusEffect
from ..extend.extension import effect_of
from ..extend.learn import learn_merges
from ..extend.learn_result import LearnResult
from ..notes import Note
from ..report import as_json as json_of
from ..report import page_of, render
from ..words import read_words
from .console import console, print_notes, print_report, progress_bar, say, say_base
from .inputs import base_inputs, expect, refuse_repeated, special_inputs, word_source
from .options import (
    FILE_OR_STDIN,
    chosen_pattern,
    corpus_options,
    json_option,
    learn_options,
    output_options,
    pattern_options,
    read_special_option,
    refuse_mixed,
    special_tokens_option,
)


@click.command(cls=Command)
@click.argument("base", type=VOCABULARY)
@click.argument("words", type=FILE_OR_STDIN)
@click.option("-o", "--output", required=True, help="The file for the new tokens; - for stdout.")
@pattern_options()
@special_tokens_option
@click.option("--lenient", is_flag=True, help="Take 1 for a frequency that is invalid or missing.")
@click.option(
    "--max-merges",
    type=click.IntRange(0),
    help="Learn at most this many tokens.",
)
@click.option("--min-frequency", type=click.IntRange(1), help="Do not merge rarer pairs.")
@learn_options
@output_options
@json_option
@corpus_options
def learn(
    base: str,
    words: str,
    output: str,
    pattern: str | None,
    pattern_regex: str | None,
    specials: str | None,
    extra: tuple[str, ...],
    lenient: bool,
    reports: tuple[str, ...],
    force: bool,
    corpus: tuple[str, ...],
    field: str,
    errors: str,
    show_all: bool,
    quiet: bool,
    as_json: bool,
    **limits: Any,
) -> None:
    """Learn merges on top of BASE that make each of WORDS one token.

    Each line of WORDS is a word, optionally followed by a tab and a frequency; - is standard input.
    A space before a word is part of the word. Only the new tokens are written, as lines of base64,
    a space and the id.

    \b
      vocab-tools learn qwen words.txt -o extra.tiktoken
      vocab-tools learn qwen words.txt -o extra.tiktoken --report report.html
    """
    chosen = chosen_pattern(pattern, pattern_regex)
    refuse_mixed(as_json, output)
    notes: list[Note] = []
    expect("ranks", "BASE", [base], "BASE comes first, and then WORDS")
    expect("words", "WORDS", [words], "BASE comes first, and then WORDS")
    expect("ranks", "--extra", extra, "WORDS comes after BASE")
    expect("text", "--corpus", corpus, "more ranks of the base are given with --extra")
    inputs = [*base_inputs(base), words, *extra, *corpus, *special_inputs(specials)]
    refuse_repeated(inputs)
    files = OutputFiles([output, *reports], inputs, force=force)
    listed = read_words(word_source(words), lenient=lenient, notes=notes)
    opened = open_base(base, chosen, read_special_option(specials), extra=extra)
    with progress_bar("learning") as update:
        result = learn_merges(opened, listed, progress=update, **limits)
    result.notes[:0] = notes
    effect = None
    if corpus:
        with progress_bar("reading the corpus") as update:
            effect = named_files(effect_of(result, corpus, field, errors, update), corpus)
    contents = {path: render(path, result, effect).encode() for path in reports}
    # Writes no empty file, which would look like a result.
    if result.tokens:
        contents[output] = result.dump()
    files.write(contents)
    print_notes(result.notes, show_all)
    if as_json:
        write(json_of(result, effect).encode())
    elif not quiet:
        explain(result, effect, console(stderr=output == STANDARD), output)
    if not result.tokens:
        raise click.ClickException(f"no new tokens; {output} is not written")


def named_files(effect: CorpusEffect, names: Sequence[str]) -> CorpusEffect:
    """Returns the effect with the file names that the user gave."""
    return replace(effect, files=[replace(f, name=n) for f, n in zip(effect.files, names)])


def explain(result: LearnResult, effect: CorpusEffect | None, to: Console, output: str) -> None:
    """Prints the result of learning."""
    say_base(to, result.pattern.label, result.recognized)
    page = page_of(result, effect)
    # Notes have been printed already.
    parts = [replace(part, remarks=()) for part in page.parts]
    print_report(to, replace(page, parts=parts))
    if result.tokens and output != STANDARD:
        say(to, f"\nwritten: {output}")
