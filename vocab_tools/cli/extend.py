"""The command ``vocab-tools extend``: proposes, learns and checks in one step."""

from __future__ import annotations

import contextlib
from typing import Any

import click

from bpe_engine.cli.group import VOCABULARY, Command
from bpe_engine.cli.outputs import OutputFiles
from bpe_engine.texts.access import STANDARD, readable_again

from ..bases import open_base
from ..extend.extension import extend_vocabulary
from ..report import page_of, render
from .check import print_findings
from .console import console, print_json, print_notes, print_report, say, steps_bar
from .inputs import base_inputs, refuse_repeated, special_inputs
from .learn import explain, named_files
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
from .propose import check_corpus, extend_options, propose_options


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
    /,
    base: str,
    corpus: tuple[str, ...],
    output: str,
    word_file: str | None,
    exclude: str | None,
    extra: tuple[str, ...],
    pattern: str | None,
    pattern_regex: str | None,
    specials: str | None,
    reports: tuple[str, ...],
    force: bool,
    show_all: bool,
    quiet: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Extend BASE with words of CORPUS: propose, learn and check.

    Adds the words that save the most tokens. CORPUS is text, JSON lines, Parquet, Arrow or CSV,
    plain or compressed; - is standard input.

    The report shows the gain on the corpus. If the check finds errors, nothing is written and the
    exit status is 1.

    \b
      vocab-tools extend qwen corpus.txt -n 2000 -o new.tiktoken --report r.html
    """
    chosen = chosen_pattern(pattern, pattern_regex)
    wanted = extend_options(exclude=exclude, **options)
    refuse_mixed(as_json, output, word_file)
    with contextlib.ExitStack() as stack:
        check_corpus(base, corpus, extra, exclude)
        inputs = [*base_inputs(base), *corpus, *extra, *special_inputs(specials)]
        inputs += [exclude] if exclude else []
        refuse_repeated(inputs)
        outputs = [output, *([word_file] if word_file else []), *reports]
        files = OutputFiles(outputs, inputs, force=force)
        opened = open_base(base, chosen, read_special_option(specials), extra=extra)
        # The first pass over the text finds words, and the second pass measures the gain.
        text = tuple(stack.enter_context(readable_again(corpus)))
        with steps_bar() as update:
            extension = extend_vocabulary(opened, text, wanted, progress=update)
        proposal, result = extension.proposal, extension.learned
        effect = extension.effect = named_files(extension.effect, corpus)
        if extension.ok:
            contents = {output: result.dump()}
            if word_file:
                contents[word_file] = proposal.dump()
            contents.update({path: render(path, result, effect).encode() for path in reports})
            files.write(contents)
    to = console(stderr=output == STANDARD)
    print_notes(result.notes, show_all)
    if as_json:
        print_json(extension.to_plain())
    elif not quiet:
        print_report(to, page_of(proposal))
        explain(result, effect, to, output if extension.ok else STANDARD)
        say(to, "\nCheck of the extended vocabulary:")
        print_findings(extension.checked, to)
    if not extension.ok:
        say(console(stderr=True), "nothing was written, since the check found errors")
        context.exit(1)
