"""Runs a command line in this process, with separate standard streams.

This saves Python's startup and all imports for each call. The behavior of the process itself
(signals, terminals, closed pipes, Python's startup) is tested with a real process.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from subprocess import CompletedProcess
from typing import BinaryIO


def call(
    main: Callable[[], int | None], *, input: bytes = b"", stdin: BinaryIO | None = None
) -> CompletedProcess[bytes]:
    """Calls ``main``. Returns its output and its status: the return value or exit status.

    Args:
        main: the command; the caller sets ``sys.argv``.
        input: the contents of a pipe on standard input, up to 64 KB.
        stdin: a file to use as standard input.
    """
    with contextlib.ExitStack() as stack:
        out, err = (stack.enter_context(tempfile.TemporaryFile()) for _ in range(2))
        reader, writer = os.pipe()
        given = stack.enter_context(open(reader, "rb"))
        with open(writer, "wb") as pipe:
            pipe.write(input)
        with _stream(0, stdin or given), _stream(1, out), _stream(2, err):
            try:
                status = main()
            except SystemExit as ended:
                status = ended.code  # type: ignore[assignment]
        assert status is None or isinstance(status, int), status
        out.seek(0)
        err.seek(0)
        return CompletedProcess([], status or 0, out.read(), err.read())


@contextlib.contextmanager
def _stream(number: int, file: BinaryIO) -> Iterator[None]:
    """Replaces a standard stream with a file: both Python's object and the file descriptor."""
    name = ("stdin", "stdout", "stderr")[number]
    python, kept = getattr(sys, name), os.dup(number)
    os.dup2(file.fileno(), number)
    errors = "backslashreplace" if name == "stderr" else "strict"
    mode = "w" if number else "r"
    try:
        # Opens the stream as Python does at startup in a UTF-8 locale.
        with open(number, mode, encoding="utf-8", errors=errors, closefd=False) as stream:
            setattr(sys, name, stream)
            yield
    finally:
        setattr(sys, name, python)
        os.dup2(kept, number)
        os.close(kept)
