"""Shared code of the chat template commands: reads templates, reports errors, opens tokenizers."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import click

from . import streams
from .group import VOCABULARY
from .printing import for_terminal, printable

if TYPE_CHECKING:
    from ..core import Encoding
    from ..tokenizer import Tokenizer

__all__ = ["TEMPLATE", "open_model", "read_template", "show", "takes_tokenizer", "template_errors"]

TEMPLATE = click.argument("path", metavar="FILE", type=click.Path(allow_dash=True))


def takes_tokenizer(what: str, required: bool = False) -> Callable[[Any], Any]:
    """Returns the option ``--tokenizer`` with its help."""
    return click.option(
        "--tokenizer",
        "tokenizer_name",
        metavar="NAME",
        type=VOCABULARY,
        required=required,
        help=f"{what}: the name of an encoding, a file or a folder.",
    )


def read_template(path: str) -> str:
    """Returns the text of a template. Raises ImportError if jinja2 is missing."""
    from ..prompt import template  # noqa: F401

    return streams.read_text((), path, "strict")


def open_model(name: str) -> Encoding | Tokenizer:
    """Opens a tokenizer; reads the token roles from the configuration if it is a folder."""
    from ..read.opening import open_tokenizer
    from ..tokenizer import Tokenizer

    return Tokenizer.from_pretrained(name) if os.path.isdir(name) else open_tokenizer(name)


def show(*lines: str) -> None:
    """Prints lines that may contain prompt text."""
    for line in lines:
        click.echo(for_terminal(printable(line), sys.stdout))


@contextlib.contextmanager
def template_errors() -> Iterator[None]:
    """Converts template errors to errors of the command."""
    from jinja2 import TemplateError

    try:
        yield
    except TemplateError as error:
        raise click.ClickException(f"the template has errors: {error}") from None
