"""Starts a process that runs a preparation once, and forks a child for each program.

Each program runs in a new process that has run only the preparation, so programs cannot affect each
other.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

# Reads lines of JSON: first the preparation, then programs. Replies to each program with its status
# and output.
_SERVER = """
import json, os, signal, sys, tempfile, traceback
names = {"__name__": "__main__"}
exec(json.loads(sys.stdin.readline()), names)
for line in sys.stdin:
    output = tempfile.TemporaryFile()
    child = os.fork()
    if child == 0:
        signal.alarm(500)
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
        status = 1
        try:
            exec(json.loads(line), names)
            status = 0
        except SystemExit as ended:
            print(ended, file=sys.stderr)
        except BaseException:
            traceback.print_exc()
        sys.stdout.flush()
        os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    output.seek(0)
    print(json.dumps([status, output.read().decode()]), flush=True)
"""


class Ended(NamedTuple):
    """The status of a program (0, 1, or minus the number of a signal) and its output."""

    status: int
    output: str


class Prepared:
    """Runs programs, each in a forked child, one at a time."""

    def __init__(self, preparation: str) -> None:
        self._server = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", _SERVER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._send(preparation)

    def run(self, program: str) -> Ended:
        """Runs a program, and waits until it ends."""
        self._send(program)
        assert self._server.stdout
        return Ended(*json.loads(self._server.stdout.readline()))

    def close(self) -> None:
        self._server.communicate()

    def _send(self, text: str) -> None:
        assert self._server.stdin
        self._server.stdin.write(json.dumps(text) + "\n")
        self._server.stdin.flush()


def prepared(preparation: str) -> Any:
    """Makes a fixture: a prepared process for the tests of a module."""

    @pytest.fixture(scope="module")
    def process() -> Iterator[Prepared]:
        process = Prepared(preparation)
        yield process
        process.close()

    return process


def with_room(call: str, kilobytes: int) -> str:
    """Returns a program that prints how a call ends with only so many kilobytes of memory left."""
    return f"""
import resource
with open("/proc/self/statm") as statm:
    used = int(statm.read().split()[0]) * resource.getpagesize()
limit = used + {kilobytes << 10}
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
try:
    result = {call}
except MemoryError:
    print("MemoryError")
else:
    print("done")
"""
