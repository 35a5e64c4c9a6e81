"""Starts a process that prepares once, and forks a child for each program.

Each program finds itself in a process of its own, in which nothing has happened but the
preparation; what it does to that process reaches no other.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple, TextIO

# A line of JSON on standard input: first the preparation, then each program, with the pipe for what
# it prints. Answered by the process id, and at its end by the status as os.waitpid has it.
_SERVER = """
import json, os, signal, sys, traceback
names = {"__name__": "__main__"}
exec(json.loads(sys.stdin.readline()), names)
for line in sys.stdin:
    program, output = json.loads(line)
    child = os.fork()
    if child == 0:
        signal.alarm(500)
        pipe = os.open(output, os.O_WRONLY)
        os.dup2(pipe, 1)
        os.dup2(pipe, 2)
        os.close(pipe)
        status = 1
        try:
            exec(program, names)
            status = 0
        except SystemExit as ended:
            print(ended, file=sys.stderr)
        except BaseException:
            traceback.print_exc()
        sys.stdout.flush()
        os._exit(status)
    print(child, flush=True)
    print(os.waitpid(child, 0)[1], flush=True)
"""


class Ended(NamedTuple):
    """The status of a program (0, 1, or minus the number of a signal) and its output."""

    status: int
    output: str


class Prepared:
    """Runs programs, one at a time."""

    def __init__(self, preparation: str) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._pipe = Path(self._folder.name) / "output"
        os.mkfifo(self._pipe)
        self._server = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", _SERVER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._send(preparation)

    def start(self, program: str) -> tuple[int, TextIO]:
        """Starts a program; returns its process id, and its output to read as it comes."""
        self._send([program, os.fspath(self._pipe)])
        return self._receive(), open(self._pipe)

    def wait(self) -> int:
        """Waits for the last program, and returns its status."""
        return os.waitstatus_to_exitcode(self._receive())

    def run(self, program: str) -> Ended:
        """Runs a program and waits for its end."""
        _, output = self.start(program)
        with output:
            printed = output.read()
        return Ended(self.wait(), printed)

    def close(self) -> None:
        assert self._server.stdin and self._server.stdout
        self._server.stdin.close()
        self._server.wait()
        self._server.stdout.close()
        self._folder.cleanup()

    def _send(self, message: object) -> None:
        assert self._server.stdin
        self._server.stdin.write(json.dumps(message) + "\n")
        self._server.stdin.flush()

    def _receive(self) -> int:
        assert self._server.stdout
        return int(self._server.stdout.readline())
