"""`bpe-engine check-template`."""

from __future__ import annotations

import os
from dataclasses import asdict

import click

from . import streams
from .group import VOCABULARY, Command
from .options import JSON


@click.command(
    "check-template", cls=Command, short_help="Check that a chat template keeps earlier turns."
)
@click.argument("path", metavar="FILE", type=click.Path(allow_dash=True))
@click.option(
    "--tokenizer",
    "tokenizer_name",
    metavar="NAME",
    type=VOCABULARY,
    help="Compare the template's control tokens with those of this tokenizer: the name of an "
    "encoding, a file or a folder.",
)
@JSON
def check_template(path: str, tokenizer_name: str | None, as_json: bool) -> None:
    """Check whether a chat template is fit for training on several turns.

    Prints whether the earlier part of a conversation stays as it grows, and exits with status 1
    if it does not, or if the tokenizer does not know a control token of the template.

    \b
    bpe-engine check-template chat_template.jinja
    bpe-engine check-template chat_template.jinja --tokenizer ./model
    """
    # First, because it names what to install where jinja2 is missing.
    from ..prompt import template  # noqa: F401
    from ..prompt.lint import stable_prefix_check

    from jinja2 import TemplateError  # isort: skip

    from ..opening import open_tokenizer
    from ..tokenizer import Tokenizer

    source = streams.read_text((), path, "strict")
    tokenizer = None
    if tokenizer_name is not None:
        # The configuration in a folder names the roles of tokens.
        is_folder = os.path.isdir(tokenizer_name)
        opened = Tokenizer.from_pretrained if is_folder else open_tokenizer
        tokenizer = opened(tokenizer_name)
    try:
        report = stable_prefix_check(source, tokenizer)
    except TemplateError as error:
        raise click.ClickException(f"the template has errors: {error}") from None
    if as_json:
        streams.print_json({"verdict": report.verdict, **asdict(report)})
    else:
        click.echo(str(report))
    raise click.exceptions.Exit(0 if report.is_clean else 1)
