"""Options that several commands have, and what they are turned into."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import click

import bpe_engine

from ..corpus.reading import ERRORS
from ..patterns import is_regex, named_pattern, regex_pattern
from ..ranks import read_special_tokens
from ..report import check_ending

Command = TypeVar("Command", bound=Callable[..., Any])


class RankFile(click.Path):
    """A rank file; the name of an encoding is none."""

    def convert(self, value: Any, param: Any, context: Any) -> Any:
        if value in bpe_engine.list_encoding_names() and not os.path.exists(value):
            self.fail(
                f"{value} is an encoding, and a rank file is needed; write its ranks to one with "
                f"vocab-tools convert {value} {value}.tiktoken",
                param,
                context,
            )
        return super().convert(value, param, context)


#: A file of ranks that is read.
RANKS = RankFile(exists=True, dir_okay=False, readable=True)

#: A file that is read; ``-`` is none.
FILE = click.Path(exists=True, dir_okay=False, readable=True)
FILE_OR_STDIN = click.Path(exists=True, dir_okay=False, readable=True, allow_dash=True)


def pattern_options(
    default: str = "[default: the one whose published ranks BASE has or begins with, else qwen]",
) -> Callable[[Command], Command]:
    """``--pattern`` and ``--pattern-regex``; :func:`chosen_pattern` puts them together.

    ``default`` says for people what is taken without them.
    """

    def add(command: Command) -> Command:
        for option in (
            click.option(
                "--pattern-regex",
                metavar="REGEX",
                help="A regular expression: how text is cut into pieces before merging.",
            ),
            click.option(
                "--pattern",
                metavar="NAME",
                help=f"Name of an encoding: text is cut into pieces as it does. {default}",
            ),
        ):
            command = option(command)
        return command

    return add


def special_tokens_option(command: Command) -> Command:
    """``--special-tokens``; :func:`read_special_option` reads it."""
    return click.option(
        "--special-tokens",
        "specials",
        metavar="FILE",
        help="Names and ids that are taken: JSON, or 'name id' a line; 'none' for none. "
        "[default: those of the vocabulary, as the file says or as it is recognised; else those of "
        "the named encoding]",
    )(command)


def output_options(command: Command) -> Command:
    """``--report`` and ``--force``."""
    for option in (
        click.option("--force", is_flag=True, help="Overwrite files that exist."),
        click.option(
            "--report",
            "reports",
            multiple=True,
            callback=_check_reports,
            metavar="FILE",
            help="Write a report: .html, .json or .md; repeatable.",
        ),
    ):
        command = option(command)
    return command


def corpus_options(command: Command) -> Command:
    """``--corpus``, and how it is read."""
    return text_options(
        click.option(
            "--corpus",
            type=FILE_OR_STDIN,
            multiple=True,
            help="Compare base and extended vocabulary on this text; repeatable. "
            ".jsonl, .parquet and .gz are understood; - is standard input.",
        )(command)
    )


def field_option(command: Command) -> Command:
    """``--field``."""
    return click.option(
        "--field",
        default="text",
        show_default=True,
        help="The field of .jsonl lines, or the column of .parquet files, that has the text.",
    )(command)


def text_options(command: Command) -> Command:
    """``--field`` and ``--errors``: how files of text are read."""
    return errors_option(field_option(command))


def errors_option(command: Command) -> Command:
    """``--errors``."""
    return click.option(
        "--errors",
        type=click.Choice(ERRORS),
        default="strict",
        show_default=True,
        help="What to do with bytes that are no UTF-8.",
    )(command)


def learn_options(command: Command) -> Command:
    """What `learn` and `extend` share."""
    for option in (
        click.option(
            "--start-id",
            type=StartId(),
            metavar="ID|auto",
            default="auto",
            help="Id of the first new token. [default: auto, the first free id; with the pattern "
            "and the special tokens of qwen it is 151851 or above]",
        ),
        click.option(
            "--whole-characters",
            is_flag=True,
            help="Learn no token that cuts a character or crosses into one.",
        ),
        click.option(
            "--prune",
            is_flag=True,
            help="Leave out new tokens that no word needs in the end.",
        ),
        click.option(
            "--extra", type=FILE, multiple=True, help="More ranks that the base has; repeatable."
        ),
        click.option("--all", "show_all", is_flag=True, help="Show every warning."),
        click.option("-q", "--quiet", is_flag=True, help="Print warnings only."),
    ):
        command = option(command)
    return command


class StartId(click.ParamType):  # type: ignore[type-arg]
    """A whole number, or ``auto``, which is None."""

    name = "id|auto"

    def convert(self, value: Any, param: Any, context: Any) -> int | None:
        if value in (None, "auto"):
            return None
        try:
            return int(value)
        except ValueError:
            self.fail(f"{value!r} is no id; give a whole number, or auto", param, context)


def _check_reports(
    _context: click.Context, _option: click.Parameter, value: tuple[str, ...]
) -> tuple[str, ...]:
    """Refuses an unknown kind of report before any work is done."""
    for path in value:
        try:
            check_ending(path)
        except (ValueError, ImportError) as error:
            raise click.BadParameter(str(error)) from error
    return value


def chosen_pattern(pattern: str | None, regex: str | None) -> str | None:
    """What the two options ask for. Raises UsageError for a name that is no encoding."""
    if pattern is not None and regex is not None:
        raise click.UsageError("--pattern and --pattern-regex exclude each other; give one")
    try:
        if pattern == "":
            raise click.UsageError("--pattern is empty; give the name of an encoding")
        if regex == "":
            raise click.UsageError("--pattern-regex is empty, and would cut no text; give a regex")
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
    """The special tokens that ``--special-tokens`` names."""
    if path is None:
        return None
    return {} if path == "none" else read_special_tokens(path)
