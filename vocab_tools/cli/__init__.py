"""The command ``vocab-tools``: a module for each subcommand, and shared options.

:func:`main` handles Ctrl-C before other imports.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False

if TYPE_CHECKING:
    from types import FrameType

#: Exit status after Ctrl-C: 128 + SIGINT.
INTERRUPTED = 130


def _end_now(_signal: int = 0, _frame: FrameType | None = None) -> None:
    """Ends the process with one line of output, as long as nothing needs cleaning up."""
    os.write(2, b"vocab-tools: interrupted\n")
    os._exit(INTERRUPTED)


try:
    import signal
except KeyboardInterrupt:
    _end_now()


def main() -> None:
    """Runs the command and exits: 0 for success; 1 for a failure, or if errors were found; 2 for a
    wrong command line or a missing file; 130 after Ctrl-C; 141 after a closed pipe."""
    # A background process of a shell script ignores Ctrl-C from the start, and must continue to.
    is_ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    if not is_ignored:
        signal.signal(signal.SIGINT, _end_now)
    import contextlib

    from .app import import_command, run

    with contextlib.suppress(ImportError):
        import_command()
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
