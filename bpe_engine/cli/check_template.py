"""The command `bpe-engine check-template`: checks whether a template suits multi-turn training."""

from __future__ import annotations

from dataclasses import asdict

import click

from . import streams
from .group import Command
from .options import JSON
from .templates import TEMPLATE, open_model, read_template, show, takes_tokenizer, template_errors


@click.command(
    "check-template", cls=Command, short_help="Check that a chat template keeps earlier turns."
)
@TEMPLATE
@takes_tokenizer("Compare the template's control tokens with this tokenizer's")
@JSON
def check_template(path: str, tokenizer_name: str | None, as_json: bool) -> None:
    """Check whether a chat template is suitable for training on multi-turn conversations.

    Prints whether the earlier part of a conversation stays as it grows, and exits with status 1
    if it does not, or if the tokenizer does not know a control token of the template.

    \b
    bpe-engine check-template chat_template.jinja
    bpe-engine check-template chat_template.jinja --tokenizer ./model
    """
    source = read_template(path)
    from ..prompt.lint import stable_prefix_check

    tokenizer = None if tokenizer_name is None else open_model(tokenizer_name)
    with template_errors():
        report = stable_prefix_check(source, tokenizer)
    if as_json:
        streams.print_json({"verdict": report.verdict, **asdict(report)})
    else:
        show(str(report))
    raise click.exceptions.Exit(0 if report.is_clean else 1)
