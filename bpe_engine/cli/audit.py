"""The command `bpe-engine audit`: tries to forge control tokens."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import click
from rich.console import Console

from . import streams
from .group import Command
from .options import JSON
from .templates import TEMPLATE, open_model, read_template, show, takes_tokenizer, template_errors


@click.command(
    "audit", cls=Command, short_help="Try to forge control tokens through a chat template."
)
@TEMPLATE
@takes_tokenizer("The model's tokenizer", required=True)
@click.option(
    "--path",
    "judged",
    type=click.Choice(["both", "naive", "segments"]),
    default="both",
    show_default=True,
    help="The path that decides the exit status: naive for prompts that are rendered to one text.",
)
@click.option(
    "--max-seconds",
    type=click.FloatRange(min=0, min_open=True),
    default=600,
    show_default=True,
    metavar="N",
    help="Time limit in seconds.",
)
@JSON
def audit(
    path: str,
    tokenizer_name: str,
    judged: str,
    max_seconds: float,
    as_json: bool,
) -> None:
    """Try to forge each control token from each field that a caller fills.

    Messages, names, tools, arguments, reasoning, documents and variables get the names of control
    tokens, by each trick: literal, split, normalized, and more. Prints the fields that forge a token
    where the prompt is rendered to one text, and where it is segments. The exit status is 1 if a
    token is forged on the path that decides, or if the template writes control tokens that the
    tokenizer does not know, and 2 if the template cannot be tried.

    \b
    bpe-engine audit chat_template.jinja --tokenizer ./model
    bpe-engine audit chat_template.jinja --tokenizer ./model --json > audit.json
    bpe-engine audit chat_template.jinja --tokenizer qwen3 --path segments
    """
    with _untried():
        source = read_template(path)
        from ..prompt.auditor import audit_template

        tokenizer = open_model(tokenizer_name)
        with template_errors(), Console(stderr=True).status("Trying to forge control tokens"):
            found = audit_template(source, tokenizer, max_seconds=max_seconds)
        if not any(field.is_shown for field in found.fields):
            raise ValueError("no field of a caller is in the prompt: there is nothing to try")
    if as_json:
        streams.print_line(found.to_json())
    else:
        show(str(found))
    paths = ("naive", "segments") if judged == "both" else (judged,)
    is_forged = any(found.lets_through(each) for each in paths)  # type: ignore[arg-type]
    raise click.exceptions.Exit(1 if is_forged or found.unknown else 0)


class _Untried(click.ClickException):
    """Raised if the template cannot be audited."""

    exit_code = 2


@contextlib.contextmanager
def _untried() -> Iterator[None]:
    try:
        yield
    except click.ClickException as error:
        raise _Untried(error.message) from None
    except (TimeoutError, ValueError) as error:
        raise _Untried(str(error)) from None
