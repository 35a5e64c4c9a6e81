"""Ctrl-C ends long calls on the main thread."""

from __future__ import annotations

import subprocess
import sys

import pytest
from seeds import seeded

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals differ there")

CALLS = {
    "encode": "enc.encode(text)",
    "encode_ordinary": "enc.encode_ordinary(text)",
    "encode_to_numpy": "enc.encode_to_numpy(text)",
    "encode_to_numpy on threads": "enc.encode_to_numpy(text, num_threads=2)",
    "encode_batch": "enc.encode_batch([text[:1_000_000]] * 100, num_threads=2)",
    "encode_batch of one": "enc.encode_batch([text, text], num_threads=2)",
    "encode_batch_to_numpy": "enc.encode_batch_to_numpy([text[:1_000_000]] * 100)",
    "encode_with_offsets": "enc.encode_with_offsets(text)",
    "count": "enc.count(text)",
    "split": "enc.split(text)",
    "truncate": "enc.truncate(text, 10**9)",
    "truncate left": "enc.truncate(text, 10**9, side='left')",
    "chunk": "enc.chunk(text, 3)",
    "is_canonical": "enc.is_canonical(ids)",
}

# The signal comes after 0.3 s. How long the call went on after it is printed.
PROGRAM = """
import os, signal, sys, threading, time
import bpe_engine, numpy
enc = bpe_engine.get_encoding("cl100k_base")
enc.set_caching(False)
text = sys.stdin.read() * 60
ids = numpy.full(30_000_000, 11, dtype=numpy.uint32)
sent = []
def send():
    time.sleep(0.3)
    sent.append(time.monotonic())
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=send, daemon=True).start()
try:
    CALL
except KeyboardInterrupt:
    print(time.monotonic() - sent[0])
else:
    sys.exit("the call ended by itself")
"""


LETTERS = "".join(seeded("letters").choices("abcdefghijklmnop    ", k=1_000_000))


@pytest.mark.parametrize("name", CALLS)
def test_ctrl_c_ends_it(name):
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM.replace("CALL", CALLS[name])],
        input=LETTERS, capture_output=True, text=True, timeout=100,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout + run.stderr
    # Soon: far less than the call would take; the machine may be busy.
    assert float(run.stdout) < 1.0


def test_a_handler_that_returns_lets_the_call_go_on():
    program = """
import signal, bpe_engine
enc = bpe_engine.get_encoding("gpt2")
text = "hello world " * 3_000_000
seen = []
signal.signal(signal.SIGALRM, lambda *_: seen.append(1))
signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
count = enc.count(text)
signal.setitimer(signal.ITIMER_REAL, 0)
assert count == 2 * 3_000_000 + 1, count
assert seen
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=100)
