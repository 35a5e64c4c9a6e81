"""Command groups with help in sections, suggestions for misspelt names and shell completion."""

from __future__ import annotations

import errno
import glob
import importlib
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from .. import list_encoding_names
from ..common.suggest import did_you_mean
from ..common.system import is_uri
from ..read.sources import not_found

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    ParamType = click.ParamType[Any]
else:
    ParamType = click.ParamType  # Older versions of click lack the generic `ParamType`.

__all__ = [
    "VOCABULARY",
    "Command",
    "Existing",
    "Group",
    "ParamType",
    "complete",
    "complete_vocabulary",
]

#: Shared options by heading in the help. A command's own options come first, under "Options".
_SECTIONS = {
    "Vocabulary": "encoding model ranks tokenizer base extra pattern pattern-regex special-token "
    "special-tokens nfc from to",
    "Text": "file corpus counts held-out field errors id-field segments messages chat-template "
    "input-kind separator on-error allow-special",
    "Output": "output out words-to format plan report json color width force all quiet",
}
_HEADINGS = {name: heading for heading, names in _SECTIONS.items() for name in names.split()}


class Command(click.Command):
    """A command that lists its options in sections of the help."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows: dict[str, list[tuple[str, str]]] = {"Options": [], **{name: [] for name in _SECTIONS}}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record and isinstance(parameter, click.Option):
                names = [name.lstrip("-") for name in parameter.opts]
                found = [_HEADINGS[name] for name in names if name in _HEADINGS]
                syntax = record[0].replace("INTEGER RANGE", "N")
                rows[found[0] if found else "Options"].append((syntax, record[1]))
        for heading, records in rows.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)


class Group(click.Group):
    """A group that imports commands on use, and lists them in sections.

    Args:
        sections: The names of the commands, by heading and in the order of use. Each is a function
            in a module of that name in ``package``, with ``_`` for ``-``.
        package: The package of those modules.
    """

    command_class: type[click.Command] | None = Command

    def __init__(
        self, *args: Any, sections: Mapping[str, Sequence[str]], package: str, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.sections: Mapping[str, Sequence[str]] = sections
        self.package: str = package

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for names in self.sections.values() for name in names]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        name = cmd_name.replace("-", "_")
        command: click.Command = getattr(importlib.import_module(f"{self.package}.{name}"), name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        names = self.list_commands(ctx)
        if args and not args[0].startswith("-") and args[0] not in names:
            ctx.fail(f"No such command {args[0]!r}.{did_you_mean(args[0], names)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, self.list_commands(ctx)))
        for heading, names in self.sections.items():
            commands = [(name, self.get_command(ctx, name)) for name in names]
            limit = formatter.width - width - 6
            rows = [
                (name.ljust(width), each.get_short_help_str(limit))
                for name, each in commands
                if each
            ]
            with formatter.section(heading):
                formatter.write_dl(rows)


def complete(group: click.Group, program: str) -> int | None:
    """Answers a shell's completion request; returns the status, or None without a request."""
    variable = f"_{program.replace('-', '_').upper()}_COMPLETE"
    instruction = os.environ.get(variable)
    if not instruction:
        return None
    from click.shell_completion import shell_complete

    return shell_complete(group, {}, program, variable, instruction)


def complete_encoding(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Completes the name of an encoding."""
    from click.shell_completion import CompletionItem

    return [CompletionItem(name) for name in list_encoding_names() if name.startswith(incomplete)]


def complete_vocabulary(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Completes the name of an encoding or file."""
    from click.shell_completion import CompletionItem

    names = complete_encoding(context, parameter, incomplete)
    if not names:
        return [CompletionItem(incomplete, type="file")]
    # In bash, a completion item of type "file" would replace the names.
    return [*names, *map(CompletionItem, glob.glob(f"{glob.escape(incomplete)}*"))]


class _Vocabulary(ParamType):
    name = "vocabulary"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        is_file = os.path.exists(value) or is_uri(value)
        if not is_file and value not in list_encoding_names():
            raise not_found(value)
        return value

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        return complete_vocabulary(ctx, param, incomplete)


#: The parameter type for an argument of `bpe_engine.open_tokenizer`.
VOCABULARY = _Vocabulary()


class Existing(click.Path):
    """The path of an existing file or folder; a missing path raises the system's error."""

    def __init__(self, **options: Any) -> None:
        super().__init__(exists=True, **options)

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        is_stream = self.allow_dash and value == "-"
        if not is_stream and not os.path.exists(value):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), value)
        return super().convert(value, param, ctx)
