"""Options that commands share: the encoding, special tokens and the input."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from .. import Encoding, encoding_for_model, load_encoding
from ..abilities.ordinary_text import unknown_special
from ..model import MODEL_PREFIX_TO_ENCODING, MODEL_TO_ENCODING
from ..read.opening import open_tokenizer
from . import streams
from .group import VOCABULARY, Existing, complete_encoding

_DEFAULT = "o200k_base"

# Suffixes of model names that need no remark: a date, a size, a published variant.
_VARIANT = re.compile(
    r"[-.]?(\d|(mini|nano|pro|preview|latest|audio|realtime|search|transcribe|codex|chat|vision)\b)"
    r"|(turbo|instruct)(-\d|-preview|$)|:",
)
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
    help="Handling of input bytes that are not UTF-8.",
)
_LOOK = [
    click.option(
        "--color",
        type=click.Choice(["auto", "always", "never"]),
        default="auto",
        show_default=True,
        help="Color the output; auto: on a terminal.",
    ),
    click.option(
        "--width",
        type=click.IntRange(min=8),
        metavar="N",
        help="Wrap at N columns; the terminal's width by default.",
    ),
]
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")


def _complete_model(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[str]:
    return [name for name in MODEL_TO_ENCODING if name.startswith(incomplete)]


_ENCODING = [
    click.option(
        "-e",
        "--encoding",
        "encoding_name",
        metavar="NAME",
        type=VOCABULARY,
        help=f"An encoding by its name (see `bpe-engine encodings`), or your own tokenizer: a "
        f"tokenizer.json, .tiktoken file or tekken.json, or a folder of one. {_DEFAULT} by default.",
    ),
    click.option(
        "-m",
        "--model",
        metavar="NAME",
        shell_complete=_complete_model,
        help="The encoding of a model, such as gpt-4o or Qwen/Qwen3-8B. For other models, give their "
        "tokenizer.json with -e.",
    ),
    click.option(
        "--ranks",
        metavar="FILE",
        type=Existing(),
        help="Your own encoding, as with -e; with --pattern and --special-token.",
    ),
    click.option(
        "--pattern",
        metavar="PATTERN",
        shell_complete=complete_encoding,
        help="With --ranks: the regular expression that splits text into pieces, or the name of"
        " an encoding that has it; by default the file's, else cl100k_base's.",
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
    help='A special token to recognize in the text; "all" for every one. May be repeated.',
)


def takes_encoding(command: _Command) -> _Command:
    """Adds the options for `choose_tokenizer` to a command."""
    return with_options(_ENCODING, command)


def allows_special(command: _Command) -> _Command:
    """Adds the option --allow-special to a command, which is called with `allow_special`."""
    return with_options([_ALLOW_SPECIAL], command)


def reads_text(command: _Command) -> _Command:
    """Adds options to a command that reads text from arguments, --file or standard input."""
    return with_options([TEXT, FILE, INPUT_ERRORS], command)


def draws(command: _Command) -> _Command:
    """Adds the drawing options to a command, which is called with `color` and `width`."""
    return with_options(_LOOK, command)


def with_options(options: Sequence[_Option], command: _Command) -> _Command:
    """Adds options and arguments to a command, in the given order."""
    for option in reversed(options):
        command = option(command)
    return command


def choose_tokenizer(
    encoding_name: str | None,
    model: str | None,
    ranks: str | None,
    pattern: str | None,
    special_tokens: Sequence[str],
) -> Encoding:
    """Returns the tokenizer that the options of `takes_encoding` choose."""
    if sum(choice is not None for choice in (encoding_name, model, ranks)) > 1:
        raise click.UsageError("--encoding, --model and --ranks exclude each other; give one.")
    if ranks is None and (pattern is not None or special_tokens):
        raise click.UsageError("--pattern and --special-token need --ranks.")
    if ranks is not None:
        return load_encoding(ranks, pattern, dict(map(_special_token, special_tokens)) or None)
    if model is not None:
        return _of_model(model)
    return open_tokenizer(encoding_name or _DEFAULT)


def _of_model(model: str) -> Encoding:
    try:
        encoding = encoding_for_model(model)
    except KeyError as error:
        raise click.UsageError(error.args[0]) from None
    prefix = next(filter(model.startswith, MODEL_PREFIX_TO_ENCODING), None)
    if prefix and model not in MODEL_TO_ENCODING and not _VARIANT.match(model[len(prefix) :]):
        streams.print_note(
            f"the model {model!r} is not known; names that begin with {prefix!r} have {encoding.name}"
        )
    return encoding


def _special_token(option: str) -> tuple[str, int]:
    name, equals, id = option.rpartition("=")
    if not (equals and name and id.isascii() and id.isdigit()):
        raise click.UsageError(f"--special-token {option!r} is not NAME=ID, such as '<|end|>=100'.")
    return name, int(id)


def choose_special(tokenizer: Encoding, names: Sequence[str]) -> set[str]:
    """Returns the special tokens that --allow-special names."""
    known = set(tokenizer.special_tokens_set)
    for name in names:
        if name not in {*known, "all"}:
            hint = ""
            if any(other in name for other in known):
                hint = " Before the text, give the name of a token, or all."
            unknown = unknown_special(tokenizer, name)
            raise click.UsageError(f"--allow-special {unknown}.{hint}")
    return known if "all" in names else set(names)
