"""Ctrl-C ends long calls on the main thread."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest
from seeds import seeded

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals differ there")

CALLS = {
    "encode": "enc.encode(text)",
    "encode_ordinary": "enc.encode_ordinary(text)",
    "encode_to_numpy": "enc.encode_to_numpy(text)",
    "encode_with_unstable": "bpe_engine.get_encoding('gpt2').encode_with_unstable(' ' * 4000)",
    "encode_to_numpy on threads": "enc.encode_to_numpy(text, num_threads=2)",
    "encode_batch": "enc.encode_batch([text[:1_000_000]] * 100, num_threads=2)",
    "encode_batch of one": "enc.encode_batch([text, text], num_threads=2)",
    "encode_batch_to_numpy": "enc.encode_batch_to_numpy([text[:1_000_000]] * 100)",
    "encode_with_offsets": "enc.encode_with_offsets(text)",
    "encode_with_offsets, a list": "enc.encode_with_offsets('a b ' * 5_000_000)",
    "count": "enc.count(text)",
    "split": "enc.split(text)",
    "truncate": "enc.truncate(text, 10**9)",
    "truncate left": "enc.truncate(text, 10**9, side='left')",
    "chunk": "enc.chunk(text, 3)",
    "is_canonical": "enc.is_canonical(zeros)",
    "decode": "enc.decode(zeros)",
    "decode_bytes": "enc.decode_bytes(zeros)",
    "decode_batch": "enc.decode_batch([ids[:1_000_000]] * 300)",
    "decode_tokens_bytes": "enc.decode_tokens_bytes(zeros[:25_000_000])",
}

PROGRAM = """
import sys, time
import bpe_engine, numpy
enc = bpe_engine.get_encoding("cl100k_base")
enc.set_caching(False)
text = sys.stdin.read() * 60
ids = numpy.full(30_000_000, 11, dtype=numpy.uint32)
zeros = numpy.zeros(50_000_000, dtype=numpy.uint32)
print("ready", flush=True)
try:
    CALL
except KeyboardInterrupt:
    print(time.monotonic())
else:
    sys.exit("the call ended by itself")
"""


LETTERS = "".join(seeded("letters").choices("abcdefghijklmnop    ", k=1_000_000))


def interrupted(program: str, text: str, part: float) -> tuple[float, float, list[str]]:
    """When the program was ready, how long it ran on after a signal, and what it printed else.

    The signal is sent from outside, whatever holds the interpreter: ``part`` seconds after "ready",
    or of the seconds that the line names.
    """
    command = [sys.executable, "-c", program]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as run:
        run.stdin.write(text)
        run.stdin.close()
        ready, *seconds = run.stdout.readline().split() or ["not ready"]
        began = time.monotonic()
        time.sleep(part * float(seconds[0] if seconds else 1))
        sent = time.monotonic()
        run.send_signal(signal.SIGINT)
        ended, errors = run.stdout.read(), run.stderr.read()
    assert ready == "ready" and run.returncode == 0, errors
    return began, float(ended) - sent, seconds


@pytest.mark.parametrize("name", CALLS)
def test_ctrl_c_ends_it(name):
    _, after, _ = interrupted(PROGRAM.replace("CALL", CALLS[name]), LETTERS, 0.1)
    # Soon: far less than the call would take; the machine may be busy.
    assert after < 1.0


BUILDING = """
import base64, sys, tempfile, time
import bpe_engine
from bpe_engine import load
ranks = {bytes([byte]): byte for byte in range(256)}
ranks |= {b"%d" % number: 246 + number for number in range(10, 600_000)}
with tempfile.NamedTemporaryFile(suffix=".tiktoken") as file:
    file.writelines(base64.b64encode(token) + b" %d\\n" % rank for token, rank in ranks.items())
    file.flush()
    def build():
        CALL
    start = time.monotonic()
    build()
    print("ready", time.monotonic() - start, flush=True)
    try:
        build()
    except KeyboardInterrupt:
        print(time.monotonic())
    else:
        sys.exit("it ended by itself")
"""


@pytest.mark.parametrize(
    "call",
    [
        "bpe_engine.Encoding('x', pat_str='x|y', mergeable_ranks=ranks, special_tokens={})",
        "load.load_encoding(file.name, 'x|y')",
        "load.load_tiktoken_bpe(file.name)",
    ],
)
def test_ctrl_c_ends_building(call):
    _, after, (full,) = interrupted(BUILDING.replace("CALL", call), "", 0.3)
    assert after < 0.5 * float(full) + 0.05


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
