"""The command ``vocab-tools extend``: proposes, learns and checks in one step."""

from __future__ import annotations

import contextlib
from dataclasses import asdict

import click

from bpe_engine.cli.group import VOCABULARY, Command
from bpe_engine.cli.outputs import OutputFiles
from bpe_engine.texts import STANDARD, readable_again

from ..bases import opened
from ..check import check_vocabulary
from ..extend import learn_merges
from ..extend.learn_result import to_plain
from ..report import render
from .check import print_findings
from .console import console, print_json, print_notes, progress_bar, say
from .inputs import base_inputs, refuse_repeated, special_inputs
from .learn import effect_on, explain
from .options import (
    TEXT,
    chosen_pattern,
    json_option,
    learn_options,
    output_options,
    pattern_options,
    read_special_option,
    refuse_mixed,
    special_tokens_option,
)
from .propose import check_corpus, no_words, print_proposal, propose_options, proposed

#: Kinds of notes about the spelling of a word list, which do not apply to proposed words.
OF_LISTS = ("spaced form", "repeated word")


@click.command(cls=Command)
@click.argument("base", type=VOCABULARY)
@click.argument("corpus", type=TEXT, nargs=-1, required=True)
@click.option("-o", "--output", required=True, help="The file for the new tokens; - for stdout.")
@click.option("-w", "--words", "word_file", help="Write the proposed words to this file, too.")
@propose_options
@pattern_options()
@special_tokens_option
@learn_options
@output_options
@json_option
@click.pass_context
def extend(
    context: click.Context,
    base: str,
    corpus: tuple[str, ...],
    output: str,
    word_file: str | None,
    new_ids: int,
    min_frequency: int,
    scripts: str,
    exclude: str | None,
    extra: tuple[str, ...],
    pattern: str | None,
    pattern_regex: str | None,
    specials: str | None,
    start_id: int | None,
    whole_characters: bool,
    prune: bool,
    field: str,
    errors: str,
    reports: tuple[str, ...],
    force: bool,
    show_all: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Extend BASE with words of CORPUS: propose, learn and check.

    The words are those that save the most tokens. CORPUS is text, JSON lines,
    Parquet, Arrow or CSV, plain or compressed; - is standard input.

    The report shows the gain on the corpus. If the check finds errors, nothing is written and the
    exit status is 1.

    \b
      vocab-tools extend qwen corpus.txt -n 2000 -o extra.tiktoken --report r.html
    """
    chosen = chosen_pattern(pattern, pattern_regex)
    refuse_mixed(as_json, output, word_file)
    with contextlib.ExitStack() as stack:
        check_corpus(base, corpus, extra, exclude)
        inputs = [*base_inputs(base), *corpus, *extra, *special_inputs(specials)]
        inputs += [exclude] if exclude else []
        refuse_repeated(inputs)
        outputs = [output, *([word_file] if word_file else []), *reports]
        files = OutputFiles(outputs, inputs, force=force)
        ranks = opened(base, extra)
        special_tokens = read_special_option(specials)
        # Read for the words, and again for the gain.
        text = tuple(stack.enter_context(readable_again(corpus)))
        proposal = proposed(
            ranks, text, new_ids, chosen, min_frequency, scripts, exclude, field, errors
        )
        if not proposal.words:
            raise click.ClickException(no_words(proposal, new_ids))
        with progress_bar("learning") as update:
            result = learn_merges(
                ranks,
                proposal.frequencies,
                pattern=chosen,
                special_tokens=special_tokens,
                start_id=start_id,
                whole_characters=whole_characters,
                prune=prune,
                progress=update,
            )
        result.notes = [note for note in result.notes if note.kind not in OF_LISTS]
        effect = effect_on(text, result, field, errors, corpus)
        with progress_bar("checking") as update:
            checked = check_vocabulary(
                ranks,
                result.tokens,
                pattern=chosen,
                special_tokens=special_tokens,
                words=proposal.frequencies,
                progress=update,
            )
        if checked.ok:
            contents = {output: result.dump()}
            if word_file:
                contents[word_file] = proposal.dump()
            contents.update({path: render(path, result, effect).encode() for path in reports})
            files.write(contents)
    to = console(stderr=output == STANDARD)
    print_notes(result.notes, show_all)
    if as_json:
        learned = {**to_plain(result), "corpus": asdict(effect)}
        found = {"proposal": proposal.to_plain(), "learned": learned, "check": checked.to_plain()}
        print_json(found)
    elif not quiet:
        print_proposal(proposal, to)
        explain(result, effect, to, output if checked.ok else STANDARD)
        say(to, "\nCheck of the extended vocabulary:")
        print_findings(checked, to)
    if not checked.ok:
        say(console(stderr=True), "nothing was written, since the check found errors")
        context.exit(1)
