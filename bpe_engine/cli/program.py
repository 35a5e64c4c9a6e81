"""Runs a command group as a program, with the same errors and exit statuses for each command."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Sequence

import click

from ..common.system import is_closed_pipe
from .group import complete
from .printing import escape_unencodable, for_terminal, printable

__all__ = ["BAD_COMMAND_LINE", "FAILED", "INTERRUPTED", "PIPE_CLOSED", "run_program"]

#: Exit statuses: 1 for bad input, for a check that finds errors, and for output that cannot be
#: written; 2 for a wrong command line and for a named file that cannot be opened; 128 plus the
#: signal's number after Ctrl-C and after the reader of the output is gone.
FAILED, BAD_COMMAND_LINE, INTERRUPTED, PIPE_CLOSED = 1, 2, 130, 141

#: Errors about a file named on the command line.
_NOT_OPENED = (
    FileNotFoundError,
    FileExistsError,
    PermissionError,
    IsADirectoryError,
    NotADirectoryError,
)

#: Error numbers if printing fails; such an error names no file.
_NOT_WRITTEN = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)


def run_program(group: click.Group, program: str, words: Sequence[str]) -> int:
    """Runs a command, and returns its exit status.

    An error that a user can fix is printed as one line on standard error, which begins with the
    name of the program; lines of an attached list are indented.
    """
    # Python sets a standard stream that was closed at the start to None.
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")
    if sys.stdout is None:
        return _complain(program, "standard output: it is closed")
    escape_unencodable()
    if (completed := complete(group, program)) is not None:
        return completed
    try:
        return _invoke(group, program, words)
    except (KeyboardInterrupt, click.Abort):
        _drop_output()
        return _complain(program, "interrupted", INTERRUPTED)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.ctx.get_help() if error.ctx else "", err=True)
        return error.exit_code
    except click.ClickException as error:
        return _complain(program, _worded(program, error), error.exit_code)
    except OSError as error:
        if is_closed_pipe(error):
            _drop_output()
            return PIPE_CLOSED
        name = error.filename
        if name is None and error.errno in _NOT_WRITTEN:
            _drop_output()
            name = "standard output"
        message = str(error) if name is None else f"{name or repr(name)}: {error.strerror}"
        is_named = error.filename is not None and isinstance(error, _NOT_OPENED)
        return _complain(program, message, BAD_COMMAND_LINE if is_named else FAILED)
    except MemoryError:
        return _complain(program, "the input needs more memory than is available")
    except (ValueError, ImportError) as error:
        return _complain(program, str(error))


def _invoke(group: click.Group, program: str, words: Sequence[str]) -> int:
    status = 0
    try:
        # `group.main` would spread messages over several lines and hide a closed pipe.
        with group.make_context(program, list(words)) as context:
            group.invoke(context)
    except click.exceptions.Exit as ended:
        status = ended.exit_code
    sys.stdout.flush()
    return status


def _worded(program: str, error: click.ClickException) -> str:
    """Returns the message of an error, with a hint to use --help after a wrong command line."""
    message = error.format_message().replace("a valid integer range", "a whole number")
    if isinstance(error, click.UsageError):
        where = error.ctx.command_path.rstrip() if error.ctx else program
        return f"{message.rstrip('.')} (`{where} --help` shows examples)"
    return message


def _complain(program: str, message: str, status: int = FAILED) -> int:
    with contextlib.suppress(OSError):
        words = message.replace("\n  ", "\0").split()
        text = printable(f"{program}: {' '.join(words)}".replace("\0", "\n  "))
        print(for_terminal(text, sys.stderr), file=sys.stderr)
    return status


def _drop_output() -> None:
    """Discards the remaining output, so that closing the stream at exit does not fail again."""
    with open(os.devnull, "wb") as nothing:
        os.dup2(nothing.fileno(), 1)
