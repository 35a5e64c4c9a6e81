"""Runs a command line in this process, with its own standard streams.

It saves starting Python and importing everything for each call. What is about the process itself
(signals, terminals, pipes that close, how Python starts) is tested with a real one.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import BinaryIO


def call(
    main: Callable[[], int | None],
    *,
    input: bytes | None = None,
    stdin: BinaryIO | None = None,
    cwd: Path | None = None,
) -> CompletedProcess[bytes]:
    """Calls ``main`` and returns what it printed, and its status: what it returns or exits with.

    Args:
        main: the command, which finds its arguments elsewhere.
        input: what a pipe on standard input holds; without it, and without ``stdin``, nothing.
        stdin: a file to be standard input.
        cwd: the directory to call it in.
    """
    with contextlib.ExitStack() as stack:
        out, err = (stack.enter_context(tempfile.TemporaryFile()) for _ in range(2))
        if stdin is None:
            stdin = stack.enter_context(_pipe(input) if input else open(os.devnull, "rb"))
        if cwd is not None:
            stack.callback(os.chdir, os.getcwd())
            os.chdir(cwd)
        with _standard_streams(stdin, out, err):
            try:
                status = main()
            except SystemExit as ended:
                status = ended.code  # type: ignore[assignment]
        assert status is None or isinstance(status, int), status
        out.seek(0)
        err.seek(0)
        return CompletedProcess([], status or 0, out.read(), err.read())


@contextlib.contextmanager
def _standard_streams(*files: BinaryIO) -> Iterator[None]:
    """Puts files in the place of standard input, output and errors: Python's objects, and the
    numbers under which the system knows them."""
    objects = sys.stdin, sys.stdout, sys.stderr
    for stream in objects[1:]:
        stream.flush()
    saved = [os.dup(number) for number in range(3)]
    try:
        for number, file in enumerate(files):
            os.dup2(file.fileno(), number)
        # As Python opens them at its start where the locale is one of UTF-8.
        sys.stdin = open(0, encoding="utf-8", closefd=False)
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)
        sys.stderr = open(
            2, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False
        )
        try:
            yield
        finally:
            for stream in (sys.stdin, sys.stdout, sys.stderr):
                stream.close()
    finally:
        sys.stdin, sys.stdout, sys.stderr = objects
        for number, kept in enumerate(saved):
            os.dup2(kept, number)
            os.close(kept)


@contextlib.contextmanager
def _pipe(contents: bytes) -> Iterator[BinaryIO]:
    """Makes a pipe with contents that need not be read to the end."""
    reader, writer = os.pipe()

    def write() -> None:
        with contextlib.suppress(BrokenPipeError), open(writer, "wb") as file:
            file.write(contents)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        with open(reader, "rb", buffering=0) as file:
            yield file
    finally:
        thread.join()
