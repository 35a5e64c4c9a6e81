"""The command ``vocab-tools``: one file for each command, with the options they share.

Nothing is imported before :func:`main` has seen to Ctrl-C.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False

if TYPE_CHECKING:
    from types import FrameType

#: The exit status after Ctrl-C: 128 + SIGINT.
INTERRUPTED = 130

#: The exit status when whoever reads the output has gone away: 128 + SIGPIPE.
PIPE_CLOSED = 141


def _end_now(_signal: int = 0, _frame: FrameType | None = None) -> None:
    """Ends the process with one line. Before and after the work there is nothing to put right."""
    os.write(2, b"vocab-tools: interrupted\n")
    os._exit(INTERRUPTED)


try:
    import signal
except KeyboardInterrupt:
    _end_now()


def main() -> None:
    """Runs the command and exits: with 0; 1 when there are errors or something cannot be done; 2
    when the command line will not do; 130 after Ctrl-C; 141 when a pipe was closed early."""
    # A command in the background of a shell script ignores Ctrl-C, and goes on doing so.
    is_ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    if not is_ignored:
        signal.signal(signal.SIGINT, _end_now)
    from .app import run

    status: int | None = None
    try:
        if not is_ignored:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        status = run()
    except KeyboardInterrupt:
        pass
    finally:
        if not is_ignored:
            signal.signal(signal.SIGINT, _end_now)
    if status is None:
        _end_now()
    sys.exit(status)
