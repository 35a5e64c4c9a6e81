"""The command `bpe-engine`: text to tokens and back, and a look at both.

`app` has the command group and how a run ends, `options` what commands share, `streams` input and
output, `display` what is drawn on a terminal. Every other module is a command.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Runs the command and exits.

    The status is 0; 1 when the input will not do or the output cannot be written; 2 when the
    command line will not do; 130 after Ctrl-C; 141 when the reader of the output has gone away.

    Args:
        arguments: The words after the command's name; by default those of the process.
    """
    from .app import run

    run(arguments)
