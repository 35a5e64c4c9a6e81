"""``vocab-tools learn``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click
from rich.console import Console

from ..corpus.effect import CorpusEffect, corpus_effect
from ..extend import LearnResult, learn_merges
from ..files import STANDARD, OutputFiles
from ..notes import Note
from ..ranks import load_ranks, read_ranks_like_add_merges
from ..report import render
from ..report.sections import sections
from ..words import read_words
from .console import (
    ROWS_SHOWN,
    console,
    print_notes,
    print_sections,
    progress_bar,
    readable_errors,
)
from .options import (
    FILE,
    FILE_OR_STDIN,
    chosen_pattern,
    corpus_options,
    learn_options,
    output_options,
    pattern_options,
    read_special_option,
    refuse_swapped,
    special_inputs,
    special_tokens_option,
    word_source,
)

#: Sections that are not printed when they have no rows.
OPTIONAL = ("Words", "By-products", "Conflicts")


@click.command()
@click.argument("base", type=FILE)
@click.argument("words", type=FILE_OR_STDIN)
@click.option("-o", "--output", required=True, help="The file for the new tokens; - for stdout.")
@pattern_options
@special_tokens_option
@click.option("--keep-space", is_flag=True, help="Keep the space that a word begins with.")
@click.option("--lenient", is_flag=True, help="Take 1 for a frequency that is bad or not there.")
@click.option(
    "--max-merges",
    type=click.IntRange(0),
    help="Learn at most so many tokens; what was learned until then is kept.",
)
@click.option("--min-frequency", type=click.IntRange(1), help="Leave rarer pairs alone.")
@learn_options
@click.option(
    "--like-add-merges",
    is_flag=True,
    help="Write what Qwen's add_merges.py writes even where that is a defective file.",
)
@output_options
@corpus_options
def learn(
    base: str,
    words: str,
    output: str,
    pattern: str | None,
    pattern_regex: str | None,
    specials: str | None,
    extra: tuple[str, ...],
    keep_space: bool,
    lenient: bool,
    like_add_merges: bool,
    reports: tuple[str, ...],
    force: bool,
    corpus: tuple[str, ...],
    field: str,
    show_all: bool,
    quiet: bool,
    **limits: Any,
) -> None:
    """Learn the merges that make each of WORDS one token of BASE.

    WORDS has one word and its frequency a line, separated by a tab; - is standard input. Only the
    new tokens are written, as lines of base64, a space and the id.

    \b
      vocab-tools learn qwen.tiktoken words.txt -o extra.tiktoken
      vocab-tools learn qwen.tiktoken words.txt -o extra.tiktoken --report report.html
    """
    chosen = chosen_pattern(pattern, pattern_regex)
    notes: list[Note] = []
    with readable_errors():
        refuse_swapped(base, words)
        inputs = [base, words, *extra, *corpus, *special_inputs(specials)]
        files = OutputFiles([output, *reports], inputs, force=force)
        listed = read_words(
            word_source(words),
            keep_space=keep_space,
            lenient=lenient,
            like_add_merges=like_add_merges,
            notes=notes,
        )
        read = read_ranks_like_add_merges if like_add_merges else load_ranks
        with progress_bar("learning") as update:
            result = learn_merges(
                read(base, *extra),
                listed,
                pattern=chosen,
                special_tokens=read_special_option(specials),
                like_add_merges=like_add_merges,
                progress=update,
                **limits,
            )
        result.notes[:0] = notes
        effect = effect_on(corpus, result, field) if corpus else None
        contents = {output: result.dump()}
        contents.update({path: render(path, result, effect).encode() for path in reports})
        files.write(contents)
    print_notes(result.notes, show_all)
    if not quiet:
        explain(result, effect, console(stderr=output == STANDARD), output)


def effect_on(corpus: tuple[str, ...], result: LearnResult, field: str) -> CorpusEffect:
    """What the new tokens do to a corpus."""
    base = result.pattern.encoding(result.base, {})
    extended = result.pattern.encoding(result.extended, {})
    new_words = [word.word for word in result.words if word.id is not None]
    with progress_bar("reading the corpus") as update:
        return corpus_effect(
            corpus,
            base,
            extended,
            new_words,
            nfc=result.pattern.nfc,
            field=field,
            progress=update,
        )


def explain(result: LearnResult, effect: CorpusEffect | None, to: Console, output: str) -> None:
    """Prints what was learned."""
    has = "has the new tokens" if result.tokens else "is empty"
    where = "" if output == STANDARD else f" {output} {has}."
    parts = sections(result, effect, ROWS_SHOWN)
    summary, *others = (part for part in parts if part.title != "Remarks")
    print_sections(to, [replace(summary, text=summary.text + where), *others], OPTIONAL)
