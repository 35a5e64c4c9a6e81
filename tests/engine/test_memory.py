"""Tests the peak memory of calls, and `MemoryError` when memory runs out."""

from __future__ import annotations

import subprocess
import sys

import pytest
from prepared import prepared as fixture_of
from prepared import with_room
from seeds import few

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="measured as Linux does")

PEAK = """
import resource, sys
import bpe_engine
enc = bpe_engine.get_encoding("cl100k_base")
size = int(sys.argv[1])
unit = "The quick brown fox jumps over the lazy dog, 1234 times; it's done.\\n"
text = unit * (size // len(unit))
wide = text + "的"
enc.encode(text[:1_000_000])
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
before = peak()
result = CALL
print((peak() - before) / len(text))
"""

# Maximum growth of memory, in bytes per byte of text.
PEAKS = {
    "count": ("enc.count(text)", 0.5),
    "count_till_limit": ("enc.count_till_limit(text, 10**9)", 0.5),
    "truncate": ("enc.truncate(text, len(text) // 8)", 2),
    "truncate to little": ("enc.truncate(text, 10)", 0.2),
    "truncate left": ("enc.truncate(text, len(text) // 8, side='left')", 2),
    "truncate left to little": ("enc.truncate(text, 10, side='left')", 0.2),
    "truncate a wide text to little": ("enc.truncate(wide, 10)", 0.2),
    "truncate a wide text left to little": ("enc.truncate(wide, 10, side='left')", 0.2),
    # The result is as large as the text.
    "chunk": ("enc.chunk(text, 1000)", 2.5),
}


def measure(call: str, size: int) -> float:
    run = subprocess.run(
        [sys.executable, "-c", PEAK.replace("CALL", call), str(size)],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    return float(run.stdout)


@pytest.mark.parametrize("size", few([24_000_000, 95_000_000]))
@pytest.mark.parametrize("name", PEAKS)
def test_peaks(name, size):
    call, limit = PEAKS[name]
    assert measure(call, size) < limit


STREAMS = """
import resource
import bpe_engine
pool = bpe_engine.StreamPool(bpe_engine.get_encoding("gpt2"))
ids = bpe_engine.get_encoding("gpt2").encode("hello world, 日本語 ") * 4
def serve(requests):
    slots = [pool.open(stop=["x" * 8192, "日" * 9], min_chars=count % 3) for count in range(8)]
    for count in range(requests):
        pool.step(slots, [ids[count % 20 : count % 20 + 3]] * 8)
        pool.close(slots.pop(0))
        slots.append(pool.open(ids, stop=["x" * 8192]))
    for slot in slots:
        pool.close(slot)
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
serve(100)
before = peak()
serve(3_000)
print(peak() - before, len(pool))
"""


def test_closed_streams_leave_no_memory():
    """Each stream takes about 300 KB for its stop strings; a leak would reach a gigabyte."""
    run = subprocess.run(
        [sys.executable, "-c", STREAMS], capture_output=True, text=True, timeout=300
    )
    assert run.returncode == 0, run.stderr
    grown, still_open = map(int, run.stdout.split())
    assert grown < 20_000_000 and still_open == 0


CALLS = {
    "encode": "enc.encode(text)",
    "encode_to_numpy": "enc.encode_to_numpy(text)",
    "encode_to_numpy on threads": "enc.encode_to_numpy(text, num_threads=2)",
    "encode_batch": "enc.encode_batch([text, text])",
    "encode_batch_to_numpy": "enc.encode_batch_to_numpy([text, text])",
    "count": "enc.count(text)",
    "decode": "enc.decode(ids)",
    "decode_bytes": "enc.decode_bytes(ids)",
    "decode_batch": "enc.decode_batch([ids, ids])",
    "decode a list": "enc.decode(ids.tolist())",
}

PREPARATION = """
import bpe_engine, numpy
text = ("Ein schöner Tag, 東京 12 e\\u0301 " * 400_000)
ids = numpy.full(3_000_000, 1000, dtype=numpy.uint32)
for name in ("cl100k_base", "qwen"):
    bpe_engine.get_encoding(name).encode("warm " * 100_000)
"""

prepared = fixture_of(PREPARATION)


@pytest.mark.parametrize("name", CALLS)
def test_failed_allocations_raise_memory_error(prepared, name):
    for encoding, megabytes in [("cl100k_base", 8), ("cl100k_base", 30), ("qwen", 75)]:
        program = f"enc = bpe_engine.get_encoding({encoding!r})\n"
        run = prepared.run(program + with_room(CALLS[name], megabytes << 10))
        assert run.status == 0, f"{encoding}, {megabytes} MB: {run.status} {run.output}"
        assert run.output in ("MemoryError\n", "done\n")
