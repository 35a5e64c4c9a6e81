"""Tests that Ctrl-C ends long calls on the main thread."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from prepared import prepared as fixture_of
from seeds import seeded

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals differ there")

CALLS = {
    "encode": "enc.encode(text)",
    "encode_ordinary": "enc.encode_ordinary(text)",
    "encode_to_numpy": "enc.encode_to_numpy(text)",
    "encode_with_unstable": "gpt2.encode_with_unstable(spaces)",
    "encode_to_numpy on threads": "enc.encode_to_numpy(text, num_threads=2)",
    "encode_batch": "enc.encode_batch(texts, num_threads=2)",
    "encode_batch of one": "enc.encode_batch([text, text], num_threads=2)",
    "encode_batch_to_numpy": "enc.encode_batch_to_numpy(texts)",
    "encode_with_offsets": "enc.encode_with_offsets(text)",
    "encode_with_offsets, a list": "enc.encode_with_offsets(words)",
    "count": "enc.count(text)",
    "split": "enc.split(text)",
    "truncate": "enc.truncate(text, 10**9)",
    "truncate left": "enc.truncate(text, 10**9, side='left')",
    "chunk": "enc.chunk(text, 3)",
    "chunk of special tokens": "enc.chunk(names, 1000, 999, allowed_special='all')",
    "count of marks": "qwen.count(marks)",
    "is_canonical": "enc.is_canonical(zeros)",
    "decode": "enc.decode(zeros)",
    "decode_bytes": "enc.decode_bytes(zeros)",
    "decode_batch": "enc.decode_batch(rows)",
    "decode_tokens_bytes": "enc.decode_tokens_bytes(zeros)",
    "offsets of a tokenizer file": "encoded.offsets",
    "encode_segments of a tokenizer file": "file.encode_segments([(unknown, False)])",
}

# A character-level file with a normalized added token, so that segments go through every step.
NO_FLAGS = dict.fromkeys(("single_word", "lstrip", "rstrip", "special"), False)
FILE = {
    "normalizer": {"type": "Lowercase"},
    "added_tokens": [{"id": 2, "content": "b", "normalized": True, **NO_FLAGS}],
    "model": {"type": "BPE", "vocab": {"a": 0, "?": 1, "b": 2}, "merges": [], "unk_token": "?"},
}

LETTERS = "".join(seeded("letters").choices("abcdefghijklmnop    ", k=1_000_000))

PREPARATION = f"""
import signal, sys
import bpe_engine, numpy
from bpe_engine import hf
from bpe_engine._core import work_done
enc = bpe_engine.get_encoding("cl100k_base")
enc.set_caching(False)
gpt2, qwen = bpe_engine.get_encoding("gpt2"), bpe_engine.get_encoding("qwen")
text = {LETTERS!r} * 60
texts = [text[:1_000_000]] * 100
names, words, spaces = "<|endoftext|>" * 500_000, "a b " * 5_000_000, " " * 10_000
marks = "\u0f72\u0f71" * 9_000_000
ids = numpy.full(1_000_000, 11, dtype=numpy.uint32)
rows = [ids] * 300
zeros = numpy.zeros(50_000_000, dtype=numpy.uint32)
file = hf.Tokenizer.from_str({json.dumps(FILE)!r})
unknown = "a\ue000" * 1_000_000
encoded = file.encode(unknown)
signal.signal(signal.SIGVTALRM, signal.default_int_handler)
"""

# The timer counts CPU time, so the signal arrives during the call under any load.
PROGRAM = """
before = work_done()
try:
    signal.setitimer(signal.ITIMER_VIRTUAL, 0.01)
    CALL
except KeyboardInterrupt:
    print(work_done() - before)
else:
    sys.exit("the call ended by itself")
"""

# The engine checks for signals after every 4 MiB; the signal arrives after some work.
MOST_WORK = 24 << 20


calling = fixture_of(PREPARATION)


@pytest.mark.parametrize("name", CALLS)
def test_ctrl_c_ends_long_calls(calling, name):
    run = calling.run(PROGRAM.replace("CALL", CALLS[name]))
    assert run.status == 0, run.output
    assert int(run.output) <= MOST_WORK


RANK_FILE = """
import base64, signal, sys, tempfile
import bpe_engine
from bpe_engine import load
from bpe_engine._core import work_done
ranks = {bytes([byte]): byte for byte in range(256)}
ranks |= {b"%d" % number: 246 + number for number in range(10, 600_000)}
file = tempfile.NamedTemporaryFile(suffix=".tiktoken")
file.writelines(base64.b64encode(token) + b" %d\\n" % rank for token, rank in ranks.items())
file.flush()
signal.signal(signal.SIGVTALRM, signal.default_int_handler)
"""


building = fixture_of(RANK_FILE)


@pytest.mark.parametrize(
    "call",
    [
        "bpe_engine.Encoding('x', pat_str='x|y', mergeable_ranks=ranks, special_tokens={})",
        "load.load_encoding(file.name, 'x|y')",
        "load.load_tiktoken_bpe(file.name)",
    ],
)
def test_ctrl_c_ends_building(building, call):
    run = building.run(PROGRAM.replace("CALL", call))
    assert run.status == 0, run.output
    assert int(run.output) <= MOST_WORK


def test_a_handler_that_returns_lets_the_call_go_on():
    program = """
import signal, bpe_engine
enc = bpe_engine.get_encoding("gpt2")
text = "hello world " * 3_000_000
seen = []
signal.signal(signal.SIGVTALRM, lambda *_: seen.append(1))
signal.setitimer(signal.ITIMER_VIRTUAL, 0.01, 0.01)
count = enc.count(text)
signal.setitimer(signal.ITIMER_VIRTUAL, 0)
assert count == 2 * 3_000_000 + 1, count
assert seen
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=100)
