"""``vocab-tools extend``: propose, learn and check in one go."""

from __future__ import annotations

import click

from ..check import check_vocabulary
from ..extend import learn_merges
from ..files import STANDARD, OutputFiles
from ..ranks import load_ranks
from ..report import render
from .check import print_findings
from .console import console, print_notes, progress_bar, readable_errors, say
from .learn import effect_on, explain
from .options import (
    FILE,
    chosen_pattern,
    learn_options,
    output_options,
    pattern_options,
    read_special_option,
    special_inputs,
    special_tokens_option,
)
from .propose import print_proposal, propose_options, proposed


@click.command()
@click.argument("base", type=FILE)
@click.argument("corpus", type=FILE, nargs=-1, required=True)
@click.option("-o", "--output", required=True, help="The file for the new tokens; - for stdout.")
@click.option("-w", "--words", "word_file", help="Write the proposed words to this file, too.")
@propose_options
@pattern_options
@special_tokens_option
@learn_options
@output_options
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
    reports: tuple[str, ...],
    force: bool,
    show_all: bool,
    quiet: bool,
) -> None:
    """Extend BASE with the words of CORPUS that save most tokens: propose, learn and check.

    The report tells what was gained on the corpus. The exit status is 1 when the check finds
    errors; the tokens are then not written.

    \b
      vocab-tools extend qwen.tiktoken corpus.txt -n 2000 -o extra.tiktoken --report r.html
    """
    chosen = chosen_pattern(pattern, pattern_regex)
    with readable_errors():
        inputs = [base, *corpus, *extra, *special_inputs(specials)]
        inputs += [exclude] if exclude else []
        outputs = [output, *([word_file] if word_file else []), *reports]
        files = OutputFiles(outputs, inputs, force=force)
        ranks = load_ranks(base, *extra)
        special_tokens = read_special_option(specials)
        proposal = proposed(ranks, corpus, new_ids, chosen, min_frequency, scripts, exclude, field)
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
        effect = effect_on(corpus, result, field)
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
    if not quiet:
        print_proposal(proposal, output)
        explain(result, effect, to, output if checked.ok else STANDARD)
        say(to, "\nCheck of the extended vocabulary:")
        print_findings(checked, to)
    if not checked.ok:
        say(console(stderr=True), "nothing was written, since the check found errors")
        context.exit(1)
