"""A group of commands that suggests a name for a misspelt one, and words its errors in one line."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from .. import list_encoding_names
from .._suggest import did_you_mean

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

__all__ = ["SuggestingGroup", "complete", "complete_vocabulary", "error_line"]


class SuggestingGroup(click.Group):
    """A group that keeps the order of its commands."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        names: Sequence[str] = self.list_commands(ctx)
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            ctx.fail(f"No such command {args[0]!r}.{did_you_mean(args[0], names)}")
        return super().resolve_command(ctx, args)


def error_line(program: str, error: click.ClickException) -> str:
    """Returns the message of an error: the program, what is wrong, and where help is."""
    message = error.format_message()
    if isinstance(error, click.UsageError):
        where = error.ctx.command_path if error.ctx else program
        message = f"{message.rstrip('.')} (`{where} --help` shows examples)"
    return f"{program}: {message}"


def complete(group: click.Group, program: str) -> int | None:
    """Answers a shell that asks for completion; returns the status, or None if none asks."""
    variable = f"_{program.replace('-', '_').upper()}_COMPLETE"
    instruction = os.environ.get(variable)
    if not instruction:
        return None
    from click.shell_completion import shell_complete

    return shell_complete(group, {}, program, variable, instruction)


def complete_vocabulary(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Completes the name of an encoding, or of a file."""
    from click.shell_completion import CompletionItem

    names = [name for name in list_encoding_names() if name.startswith(incomplete)]
    return [*map(CompletionItem, names), CompletionItem(incomplete, type="file")]
