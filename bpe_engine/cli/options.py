"""The options that commands share: which encoding, which special tokens, which input."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from .. import (
    Encoding,
    encoding_name_for_model,
    get_encoding,
    list_encoding_names,
    load_encoding,
)
from .._suggest import did_you_mean

_DEFAULT = "o200k_base"
_Command = TypeVar("_Command", bound=Callable[..., Any])
_Option = Callable[[Any], Any]

TEXT = click.argument("words", metavar="[TEXT]...", nargs=-1)
FILE = click.option(
    "-f",
    "--file",
    "path",
    metavar="PATH",
    type=click.Path(allow_dash=True),
    help="Read the input from this file; - is standard input.",
)
INPUT_ERRORS = click.option(
    "--errors",
    type=click.Choice(["strict", "replace", "ignore"]),
    default="strict",
    show_default=True,
    help="What to do with bytes in the input that are not UTF-8.",
)
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")

_ENCODING = [
    click.option(
        "-e",
        "--encoding",
        "encoding_name",
        metavar="NAME",
        help=f"An encoding by its name; {_DEFAULT} by default. See `bpe-engine encodings`.",
    ),
    click.option("-m", "--model", metavar="NAME", help="The encoding of a model, such as gpt-4o."),
    click.option(
        "--ranks",
        metavar="FILE",
        type=click.Path(exists=True, dir_okay=False),
        help="An encoding of your own: a .tiktoken file.",
    ),
    click.option(
        "--pattern",
        metavar="PATTERN",
        help="With --ranks: the regular expression that cuts text into pieces, or the"
        " name of an encoding to take its pattern; cl100k_base by default.",
    ),
    click.option(
        "--special-token",
        "special_tokens",
        metavar="NAME=ID",
        multiple=True,
        help="With --ranks: a special token. May be repeated.",
    ),
]
_ALLOW_SPECIAL = click.option(
    "--allow-special",
    metavar="NAME",
    multiple=True,
    help='A special token to be read as one; "all" for every one. May be repeated.',
)


def takes_encoding(command: _Command) -> _Command:
    """Gives a command the options that choose an encoding, for `choose_encoding`."""
    return _with(_ENCODING, command)


def allows_special(command: _Command) -> _Command:
    """Gives a command the option --allow-special; it is called with `allow_special`."""
    return _with([_ALLOW_SPECIAL], command)


def reads_text(command: _Command) -> _Command:
    """Gives a command its text: arguments, --file or standard input."""
    return _with([TEXT, FILE, INPUT_ERRORS], command)


def _with(options: list[_Option], command: _Command) -> _Command:
    for option in reversed(options):
        command = option(command)
    return command


def choose_encoding(
    encoding_name: str | None,
    model: str | None,
    ranks: str | None,
    pattern: str | None,
    special_tokens: Sequence[str],
) -> Encoding:
    """The encoding that the options of `takes_encoding` ask for."""
    if sum(choice is not None for choice in (encoding_name, model, ranks)) > 1:
        raise click.UsageError("--encoding, --model and --ranks exclude each other; give one.")
    if ranks is None and (pattern is not None or special_tokens):
        raise click.UsageError("--pattern and --special-token need --ranks.")
    try:
        if ranks is not None:
            specials = dict(map(_special_token, special_tokens))
            return load_encoding(ranks, pattern or "cl100k_base", specials)
        if model is not None:
            return get_encoding(encoding_name_for_model(model))
        if encoding_name is not None and encoding_name not in list_encoding_names():
            raise click.UsageError(_unknown_encoding(encoding_name))
        return get_encoding(encoding_name or _DEFAULT)
    except KeyError as error:
        raise click.UsageError(error.args[0]) from None
    except (ValueError, OSError) as error:
        raise click.ClickException(str(error)) from None


def _unknown_encoding(name: str) -> str:
    if name.endswith((".tiktoken", ".gz")) or os.sep in name or os.path.exists(name):
        return f"--encoding takes the name of an encoding; for the file {name!r} pass --ranks."
    names = list_encoding_names()
    return f"Unknown encoding {name!r}.{did_you_mean(name, names)} There are {', '.join(names)}."


def _special_token(option: str) -> tuple[str, int]:
    name, equals, id = option.rpartition("=")
    if not (equals and name and id.isascii() and id.isdigit()):
        raise click.UsageError(f"--special-token {option!r} is not NAME=ID, such as '<|end|>=100'.")
    return name, int(id)


def choose_special(encoding: Encoding, names: Sequence[str]) -> set[str]:
    """The special tokens that --allow-special names."""
    if "all" in names:
        return set(encoding.special_tokens_set)
    for name in names:
        if name not in encoding.special_tokens_set:
            known = sorted(encoding.special_tokens_set, key=encoding.encode_single_token)
            shown = ", ".join(known[:6]) + (", ..." if len(known) > 6 else "")
            raise click.UsageError(
                f"--allow-special {name!r} is no special token of {encoding.name};"
                f"{did_you_mean(name, known)} "
                + (f"there are {shown}." if known else "it has none.")
            )
    return set(names)
