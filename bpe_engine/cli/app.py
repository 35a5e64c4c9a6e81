"""The group of commands, and the exit status of a run."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

import click

from .. import __version__
from .group import SuggestingGroup, complete, error_line
from .printing import escape_unencodable

# In the order of the help. Each is a module of this package with a function of that name, with _ for -.
_COMMANDS = (
    "encode",
    "decode",
    "count",
    "show",
    "split",
    "corpus",
    "check-template",
    "encodings",
    "playground",
)


class _Group(SuggestingGroup):
    """A group that imports a command when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        name = cmd_name.replace("-", "_")
        module = importlib.import_module(f".{name}", __package__)
        command: click.Command = getattr(module, name)
        return command


@click.group(
    cls=_Group,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, "-V", "--version", prog_name="bpe-engine")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Turn text into tokens and back, with exactly tiktoken's ids, offline.

    \b
    bpe-engine count -f report.txt             how many tokens a file has
    bpe-engine show "Hello, world!"            each token in its own color
    bpe-engine encode "Hello, world!"          13225 11 2375 0
    bpe-engine decode 13225 11 2375 0          Hello, world!
    bpe-engine check-template chat.jinja       whether it keeps earlier turns
    cat notes.md | bpe-engine count -m gpt-4   input from a pipe

    Text is taken from the arguments (joined by spaces), from --file, or else from standard
    input, and is used exactly as it is: a newline at the end is part of it. The names of special
    tokens in the text are ordinary text unless --allow-special says otherwise.

    `bpe-engine COMMAND --help` shows more examples.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help(), err=True)
        ctx.exit(2)


def run(arguments: Sequence[str] | None) -> NoReturn:
    """See `bpe_engine.cli.main`."""
    # Python sets a standard stream to None if it was closed at the start.
    if sys.stdout is None:
        sys.exit(_complain("cannot write: standard output is closed", 1))
    escape_unencodable()
    if (completed := complete(cli, "bpe-engine")) is not None:
        sys.exit(completed)
    try:
        # Not `cli.main`: it spreads messages over several lines and hides a closed pipe.
        words = sys.argv[1:] if arguments is None else arguments
        with cli.make_context("bpe-engine", list(words)) as context:
            cli.invoke(context)
        sys.stdout.flush()
        status = 0
    except click.exceptions.Exit as exit:
        status = exit.exit_code
    except click.ClickException as error:
        line = error_line("bpe-engine", error).removeprefix("bpe-engine: ")
        status = _complain(line, error.exit_code)
    except ValueError as error:
        status = _complain(str(error), 1)
    except MemoryError:
        status = _complain("the input needs more memory than is available", 1)
    except (KeyboardInterrupt, click.Abort):
        _drop_output()
        status = _complain("interrupted", 130)
    except BrokenPipeError:
        _drop_output()
        status = 141
    except OSError as error:
        # Errors of reading are ClickExceptions already.
        _drop_output()
        status = _complain(f"cannot write: {error.strerror or error}", 1)
    sys.exit(status)


def _complain(message: str, status: int) -> int:
    """Prints an error in one line."""
    # Without standard error, the status has to do. (print to None goes to standard output.)
    if sys.stderr is not None:
        with contextlib.suppress(OSError):
            print("bpe-engine:", " ".join(message.split()), file=sys.stderr)
    return status


def _drop_output() -> None:
    """Discards buffered output, so that closing the stream does not fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
