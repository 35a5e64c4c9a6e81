"""Ctrl-C ends long calls on the main thread."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from prepared import Prepared
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
    "chunk of special tokens": (
        "enc.chunk('<|endoftext|>' * 500_000, 1000, 999, allowed_special='all')"
    ),
    "count of marks": "bpe_engine.get_encoding('qwen').count('\\u0f72\\u0f71' * 9_000_000)",
    "is_canonical": "enc.is_canonical(zeros)",
    "decode": "enc.decode(zeros)",
    "decode_bytes": "enc.decode_bytes(zeros)",
    "decode_batch": "enc.decode_batch([ids[:1_000_000]] * 300)",
    "decode_tokens_bytes": "enc.decode_tokens_bytes(zeros[:25_000_000])",
}

LETTERS = "".join(seeded("letters").choices("abcdefghijklmnop    ", k=1_000_000))

PREPARATION = f"""
import sys, time
import bpe_engine, numpy
enc = bpe_engine.get_encoding("cl100k_base")
enc.set_caching(False)
text = {LETTERS!r} * 60
ids = numpy.full(30_000_000, 11, dtype=numpy.uint32)
zeros = numpy.zeros(50_000_000, dtype=numpy.uint32)
"""

PROGRAM = """
print("ready", flush=True)
try:
    CALL
except KeyboardInterrupt:
    print(time.monotonic())
else:
    sys.exit("the call ended by itself")
"""


def interrupted(prepared: Prepared, program: str, part: float) -> tuple[float, list[str]]:
    """How long the program ran on after a signal, and what it printed when it was ready.

    The signal is sent from outside, whatever holds the interpreter: ``part`` seconds after "ready",
    or of the seconds that the line names.
    """
    process, output = prepared.start(program)
    with output:
        ready, *seconds = output.readline().split() or ["not ready"]
        time.sleep(part * float(seconds[0] if seconds else 1))
        sent = time.monotonic()
        os.kill(process, signal.SIGINT)
        ended = output.read()
    assert prepared.wait() == 0 and ready == "ready", ended
    return float(ended) - sent, seconds


@pytest.fixture(scope="module")
def calling() -> Iterator[Prepared]:
    process = Prepared(PREPARATION)
    yield process
    process.close()


@pytest.mark.parametrize("name", CALLS)
def test_ctrl_c_ends_it(calling, name):
    # (The shortest takes 0.15 s.)
    delay = 0.03 if name == "decode_bytes" else 0.1
    after, _ = interrupted(calling, PROGRAM.replace("CALL", CALLS[name]), delay)
    # Soon: far less than the call would take; the machine may be busy.
    assert after < 1.0


RANK_FILE = """
import base64, sys, tempfile, time
import bpe_engine
from bpe_engine import load
ranks = {bytes([byte]): byte for byte in range(256)}
ranks |= {b"%d" % number: 246 + number for number in range(10, 600_000)}
file = tempfile.NamedTemporaryFile(suffix=".tiktoken")
file.writelines(base64.b64encode(token) + b" %d\\n" % rank for token, rank in ranks.items())
file.flush()
"""

BUILDING = """
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


@pytest.fixture(scope="module")
def building() -> Iterator[Prepared]:
    process = Prepared(RANK_FILE)
    yield process
    process.close()


@pytest.mark.parametrize(
    "call",
    [
        "bpe_engine.Encoding('x', pat_str='x|y', mergeable_ranks=ranks, special_tokens={})",
        "load.load_encoding(file.name, 'x|y')",
        "load.load_tiktoken_bpe(file.name)",
    ],
)
def test_ctrl_c_ends_building(building, call):
    after, (full,) = interrupted(building, BUILDING.replace("CALL", call), 0.3)
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
