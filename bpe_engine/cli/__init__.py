"""The command `bpe-engine`: turns text into tokens and back, and displays both.

`app` has the commands, `group` their help and completion, `program` errors and the exit status,
`options` the shared options, `streams` input and output, `printing` the encoding of output,
`display` drawing on a terminal, and `tokens` the tokens to draw. Every other module is a command.
`group`, `program` and `printing` also serve `vocab-tools`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Runs the command and exits.

    The status is 0; 1 for bad input, or output that cannot be written; 2 for a bad command line, or
    a missing file; 130 after Ctrl-C; 141 when the reader of the output has closed it.

    Args:
        arguments: The words after the command's name; by default `sys.argv`.
    """
    try:
        from .app import cli
        from .program import run_program
    except KeyboardInterrupt:
        os.write(2, b"bpe-engine: interrupted\n")
        os._exit(130)
    sys.exit(run_program(cli, "bpe-engine", sys.argv[1:] if arguments is None else arguments))
