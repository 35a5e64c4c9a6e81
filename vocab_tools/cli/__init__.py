"""The command line ``vocab-tools``: a module for each command, and shared options.

:func:`main` handles Ctrl-C before it imports anything else.
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
    """Ends the process with one line of output, while there is nothing to clean up."""
    os.write(2, b"vocab-tools: interrupted\n")
    os._exit(INTERRUPTED)


try:
    import signal
except KeyboardInterrupt:
    _end_now()


def main() -> None:
    """Runs the command and exits: with 0 for success; 1 for a failure or errors found; 2 for a
    wrong command line or a missing file; 130 after Ctrl-C; 141 after a closed pipe."""
    # A shell script's background process ignores Ctrl-C from the start; keep that.
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
