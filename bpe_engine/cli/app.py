"""The group of commands, and how a run ends."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

import click

from .. import __version__

# Each is a module of this package with a function of that name, in the order of the help.
_COMMANDS = ("encode", "decode", "count", "show", "split", "encodings")


class _Group(click.Group):
    """Imports a command when it is called for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module = importlib.import_module(f".{cmd_name}", __package__)
        command: click.Command = getattr(module, cmd_name)
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
    bpe-engine show "Hello, world!"            each token in its own colour
    bpe-engine encode "Hello, world!"          13225 11 2375 0
    bpe-engine decode 13225 11 2375 0          Hello, world!
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
    """`bpe_engine.cli.main`."""
    # Python has no object for a standard stream that was closed before it started.
    if sys.stdout is None:
        sys.exit(_complain("cannot write: standard output is closed", 1))
    try:
        # Not `cli.main`: it spreads messages over several lines and hides a closed pipe.
        words = sys.argv[1:] if arguments is None else arguments
        with cli.make_context("bpe-engine", list(words)) as context:
            cli.invoke(context)
        sys.stdout.flush()
        status = 0
    except click.exceptions.Exit as exit:
        status = exit.exit_code
    except click.UsageError as error:
        where = error.ctx.command_path if error.ctx else "bpe-engine"
        message = error.format_message().rstrip(".")
        status = _complain(f"{message} (`{where} --help` shows examples)", 2)
    except click.ClickException as error:
        status = _complain(error.format_message(), error.exit_code)
    except ValueError as error:
        status = _complain(str(error), 1)
    except MemoryError:
        status = _complain("the input needs more memory than there is", 1)
    except (KeyboardInterrupt, click.Abort):
        _drop_output()
        status = _complain("interrupted", 130)
    except BrokenPipeError:
        _drop_output()
        status = 141
    except OSError as error:
        # What cannot be read is a ClickException already.
        _drop_output()
        status = _complain(f"cannot write: {error.strerror or error}", 1)
    sys.exit(status)


def _complain(message: str, status: int) -> int:
    """Prints an error in one line."""
    # With nowhere to print it, the status has to do. (None would be standard output.)
    if sys.stderr is not None:
        with contextlib.suppress(OSError):
            print("bpe-engine:", " ".join(message.split()), file=sys.stderr)
    return status


def _drop_output() -> None:
    """Sends what is still in a buffer nowhere, so that closing it does not fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
