"""The commands of `bpe-engine`, and their help."""

from __future__ import annotations

import click

from .. import __version__
from .group import Group

# Commands by section of the help, in the order of the help.
_SECTIONS = {
    "Text and tokens": ("count", "show", "encode", "decode", "split"),
    "Chat templates and training data": ("account", "check-template", "audit", "corpus"),
    "Encodings": ("encodings", "playground"),
}


@click.group(
    cls=Group,
    sections=_SECTIONS,
    package=__package__,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, "-V", "--version", prog_name="bpe-engine")
def cli() -> None:
    """Turn text into tokens and back, with exactly tiktoken's ids, offline.

    \b
    bpe-engine count -f report.txt             how many tokens a file has
    bpe-engine show "Hello, world!"            each token in a color
    bpe-engine encode "Hello, world!"          13225 11 2375 0
    bpe-engine decode 13225 11 2375 0          Hello, world!
    bpe-engine account chat.json -m gpt-4o     what each part of a prompt costs
    bpe-engine check-template chat.jinja       whether it keeps earlier turns
    bpe-engine audit t.jinja --tokenizer m/    whether messages forge tokens
    cat notes.md | bpe-engine count -m gpt-4   input from a pipe

    Text is taken from the arguments (joined by spaces), from --file, or else from standard
    input, and is used exactly as it is: a newline at the end is part of it. The names of special
    tokens in the text are ordinary text unless --allow-special says otherwise.

    The exit status is 0; 1 for bad input or a check that fails; 2 for a wrong command line or a
    file that is missing. `bpe-engine COMMAND --help` shows more examples, and vocab-tools is the
    command for vocabularies.
    """
