"""Tests pickling, copying, threads and processes."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
import subprocess
import sys
import threading
import time

import pytest
import tiktoken
from oracles import DATA
from pairs import Pair

from bpe_engine import Encoding, get_encoding, load_encoding

TEXT = "Hello, e\u0301 \u212a 世界 \ud83d\ude00 <|endoftext|> 12345\n\n  x"


def ids(encoding: Encoding) -> list[int]:
    return encoding.encode(TEXT, allowed_special="all")


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_by_name(both: Pair, protocol):
    packed = pickle.dumps(both.ours, protocol)
    assert len(packed) < 200
    assert ids(pickle.loads(packed)) == ids(both.ours)
    assert pickle.loads(packed)._core_bpe is both.ours._core_bpe


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_by_value(protocol):
    base = get_encoding("r50k_base")
    mine = Encoding(
        "mine",
        pat_str=base._pat_str,
        mergeable_ranks=base._mergeable_ranks,
        special_tokens={"<|pickle|>": 100_000},
    )
    again = pickle.loads(pickle.dumps(mine, protocol))
    assert again.name == "mine"
    for text in ("hello world", "a<|pickle|>b"):
        assert again.encode(text, allowed_special="all") == mine.encode(text, allowed_special="all")
    assert again.max_token_value == mine.max_token_value == 100_000
    assert again.special_tokens_set == {"<|pickle|>"}
    assert again._mergeable_ranks == base._mergeable_ranks


def test_pickle_of_a_loaded_encoding():
    loaded = load_encoding(DATA / "r50k_base.tiktoken", "gpt2", name="gpt2")
    again = pickle.loads(pickle.dumps(loaded))
    assert again.special_tokens_set == {"<|endoftext|>"}
    assert again.encode_ordinary(TEXT) == loaded.encode_ordinary(TEXT)


def test_normalization_travels():
    from bpe_engine.read.builtin import BUILTIN

    unregistered = BUILTIN["qwen"].encoding()
    again = pickle.loads(pickle.dumps(unregistered))
    assert again is not unregistered
    assert ids(again) == ids(get_encoding("qwen"))


def test_an_unknown_name():
    with pytest.raises(ValueError, match="Unknown encoding nope"):
        Encoding.__new__(Encoding).__setstate__("nope")


def test_copy(both: Pair):
    for again in (copy.copy(both.ours), copy.deepcopy(both.ours), copy.deepcopy([both.ours])[0]):
        assert ids(again) == ids(both.ours)
        assert again.name == both.ours.name


def test_states_are_tiktokens():
    """The state of an encoding pickled by value includes tiktoken's, and tiktoken's state loads."""
    arguments = {"pat_str": ".", "mergeable_ranks": {b"a": 0}, "special_tokens": {"<|x|>": 1}}
    theirs = tiktoken.Encoding("x", **arguments).__getstate__()
    ours = Encoding("x", **arguments).__getstate__()
    assert theirs.items() <= ours.items()
    again = Encoding.__new__(Encoding)
    again.__setstate__(theirs)
    assert again.encode("aa") == [0, 0]


def work(encoding: Encoding) -> tuple[list[int], list[list[int]]]:
    return ids(encoding), encoding.encode_ordinary_batch([TEXT * 300] * 8, num_threads=4)


def expected(encoding: Encoding) -> tuple[list[int], list[list[int]]]:
    return ids(encoding), [encoding.encode_ordinary(TEXT * 300)] * 8


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes(method):
    """A child process can encode batches after its parent did, although fork copies no threads."""
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {method} here")
    encodings = [get_encoding("o200k_base"), get_encoding("qwen")]
    before = [work(encoding) for encoding in encodings]
    assert before == [expected(encoding) for encoding in encodings]
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert pool.map_async(work, encodings).get(timeout=60) == before


def test_other_threads_run_meanwhile(gpt2):
    """Encoding a long text lets other Python threads run."""
    text = "the quick brown fox jumps over the lazy dog. " * 60_000
    turns = 0
    stop = False

    def take_turns() -> None:
        nonlocal turns
        while not stop:
            turns += 1
            time.sleep(0)

    def others_ran() -> bool:
        """Returns True if the other thread ran during a call in this thread."""
        before = turns
        gpt2.count(text)
        return turns > before

    thread = threading.Thread(target=take_turns)
    switch = sys.getswitchinterval()
    sys.setswitchinterval(1000)  # Prevents Python from switching threads.
    try:
        thread.start()
        # On a busy machine, the other thread may not run during a given call.
        assert any(others_ran() for _ in range(500))
    finally:
        stop = True
        sys.setswitchinterval(switch)
        thread.join()


def test_get_encoding_from_many_threads():
    """All threads get the same encoding."""
    program = """
import threading, bpe_engine
found = []
threads = [
    threading.Thread(target=lambda: found.append(bpe_engine.get_encoding("p50k_base")))
    for _ in range(8)
]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert len(found) == 8 and len(set(map(id, found))) == 1
"""
    subprocess.run([sys.executable, "-c", program], check=True)
