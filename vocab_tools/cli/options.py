"""Options that several commands share, and functions that read their values."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import click

from bpe_engine.cli.group import Existing, ParamType, complete_encoding
from bpe_engine.common.system import is_uri
from bpe_engine.texts.access import STANDARD
from bpe_engine.texts.reading import ERRORS

from ..patterns import is_regex, named_pattern, regex_pattern
from ..ranks import read_special_tokens
from ..report import check_ending

#: A decorator that adds options to a command.
Options = Callable[[Any], Any]


def combined(*options: Options) -> Options:
    """Returns a decorator that adds these options. The help lists the last option first."""

    def add(command: Any) -> Any:
        for option in options:
            command = option(command)
        return command

    return add


#: An input file. ``-`` is an ordinary name here.
FILE = Existing(dir_okay=False)
FILE_OR_STDIN = Existing(dir_okay=False, allow_dash=True)


class _Text(Existing):
    """A parameter type for a text file, standard input or a URI."""

    def convert(self, value: Any, param: Any, context: Any) -> Any:
        return value if is_uri(str(value)) else super().convert(value, param, context)


TEXT = _Text(dir_okay=False, allow_dash=True)


def pattern_options(
    default: str = "[default: the one whose published ranks BASE has or begins with, else qwen]",
) -> Options:
    """Returns ``--pattern`` and ``--pattern-regex``, which :func:`chosen_pattern` combines.

    ``default`` describes the default in the help text.
    """
    return combined(
        click.option(
            "--pattern-regex",
            metavar="REGEX",
            help="A regular expression that cuts text into pieces before merging.",
        ),
        click.option(
            "--pattern",
            metavar="NAME",
            shell_complete=complete_encoding,
            help=f"Name of an encoding whose pattern cuts text into pieces. {default}",
        ),
    )


class StartId(ParamType):
    """A parameter type for a whole number, or ``auto``, which becomes None."""

    name = "id|auto"

    def convert(self, value: Any, param: Any, context: Any) -> int | None:
        if value in (None, "auto"):
            return None
        try:
            return int(value)
        except ValueError:
            self.fail(f"{value!r} is not an id; give a whole number, or auto", param, context)


class Size(ParamType):
    """A number of tokens, such as 32000, 32_000, 32,000 or 32k."""

    name = "size"

    def convert(self, value: Any, param: Any, context: Any) -> int:
        digits = str(value).lower().replace("_", "").replace(",", "")
        found = re.fullmatch(r"([0-9]{1,9})(k?)", digits)
        if found is None or not int(found[1]):
            self.fail(f"{value!r} is not a number of tokens, such as 32000 or 32k", param, context)
        return int(found[1]) * (1000 if found[2] else 1)


def _check_reports(
    _context: click.Context, _option: click.Parameter, value: tuple[str, ...]
) -> tuple[str, ...]:
    """Raises BadParameter for an unknown kind of report before any work is done."""
    for path in value:
        try:
            check_ending(path)
        except (ValueError, ImportError) as error:
            raise click.BadParameter(str(error)) from error
    return value


#: ``--special-tokens``, whose value :func:`read_special_option` reads.
special_tokens_option: Options = click.option(
    "--special-tokens",
    "specials",
    metavar="FILE",
    help="Special tokens and their ids, as JSON or as lines of 'name id'; 'none' for none. "
    "[default: from the file or the recognized vocabulary, else from the named encoding]",
)

#: The options ``--report`` and ``--force``.
output_options: Options = combined(
    click.option("--force", is_flag=True, help="Overwrite files that exist."),
    click.option(
        "--report",
        "reports",
        multiple=True,
        callback=_check_reports,
        metavar="FILE",
        help="Write a report: .html, .json or .md; repeatable.",
    ),
)

#: The option ``--json``; :func:`refuse_mixed` prevents other output on the same stream.
json_option: Options = click.option(
    "--json", "as_json", is_flag=True, help="Print everything as JSON, for scripts."
)


def refuse_mixed(as_json: bool, *outputs: str | None) -> None:
    """Raises UsageError if ``--json`` and other output would share standard output."""
    if as_json and STANDARD in outputs:
        raise click.UsageError("--json and -o - both write to standard output; name a file")


#: The option ``--field``.
field_option: Options = click.option(
    "--field",
    default="text",
    show_default=True,
    help="The field of JSON lines, or the column of a table, that has the text.",
)

#: The option ``--errors``: how to treat bytes that are not UTF-8.
errors_option: Options = click.option(
    "--errors",
    type=click.Choice(ERRORS),
    default="strict",
    show_default=True,
    help="Handling of bytes that are not UTF-8: replace reads them as U+FFFD.",
)

#: Options for reading text files.
text_options: Options = combined(field_option, errors_option)


def _corpus_options(purpose: str) -> Options:
    """Returns ``--corpus`` and the options for reading the corpus."""
    return combined(
        click.option(
            "--corpus",
            type=TEXT,
            multiple=True,
            help=f"{purpose}, also JSON lines, tables and .gz; - is standard input; repeatable.",
        ),
        text_options,
    )


corpus_options: Options = _corpus_options("Text to compare base and extended vocabulary on")

#: Options for text on which the tokenizers of a folder are compared.
compared_corpus_options: Options = _corpus_options(
    "More text to compare tokenizers on, line by line"
)

#: Options shared by `learn` and `extend`.
learn_options: Options = combined(
    click.option(
        "--start-id",
        type=StartId(),
        metavar="ID|auto",
        default="auto",
        help="Id of the first new token. [default: auto, the first free id; 151851 or above with the "
        "pattern and special tokens of qwen]",
    ),
    click.option("--whole-characters", is_flag=True, help="Learn only tokens of whole characters."),
    click.option(
        "--extra",
        type=FILE,
        multiple=True,
        help="A file with further ranks of the base; repeatable.",
    ),
    click.option("--all", "show_all", is_flag=True, help="Show every warning."),
    click.option("-q", "--quiet", is_flag=True, help="Print warnings only."),
)


def chosen_pattern(pattern: str | None, regex: str | None) -> str | None:
    """Returns the pattern that either option selects. Raises UsageError for an unknown name."""
    if pattern is not None and regex is not None:
        raise click.UsageError("--pattern and --pattern-regex exclude each other; give one")
    try:
        if pattern == "":
            raise click.UsageError("--pattern is empty; give the name of an encoding")
        if regex == "":
            raise click.UsageError("--pattern-regex is empty; give a regular expression")
        if regex is not None:
            regex_pattern(regex)
            return regex if is_regex(regex) else f"(?:{regex})"
        if pattern is None:
            return None
        if is_regex(pattern):
            raise click.UsageError(
                f"--pattern {pattern!r} is a regular expression; give it as --pattern-regex"
            )
        named_pattern(pattern)
        return pattern
    except ValueError as error:
        raise click.UsageError(str(error)) from error


def read_special_option(path: str | None) -> dict[str, int] | None:
    """Reads special tokens from the file of ``--special-tokens``."""
    if path is None:
        return None
    return {} if path == "none" else read_special_tokens(path)
