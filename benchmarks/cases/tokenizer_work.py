"""What one process does with one engine and one tokenizer file; `benchmarks.hf` runs them."""

from __future__ import annotations

import hashlib
import json
import resource
import statistics
import time
from pathlib import Path
from typing import Any, Callable

from ..peers.tokenizer_engines import load, transformers_tokenizer
from . import tokenizer_calls

__all__ = ["CLASSES", "PATCHED", "UNPATCHED", "WORK"]

CORPORA = Path(__file__).resolve().parents[2].parent / "shared" / "corpora"
SIZE = 400_000

#: The "engines" of ``loading``.
UNPATCHED, PATCHED = "transformers", "after patch_transformers"

#: Classes of transformers that load a file, beside the general one.
CLASSES = {
    "dolma2": "GPT2Tokenizer",
    "gpt-neox-pii": "GPTNeoXTokenizer",
    "gpt2": "GPT2Tokenizer",
    "phi-2": "CodeGenTokenizer",
    "roberta-base": "RobertaTokenizer",
    "whisper-tiny": "WhisperTokenizer",
}

Clock = Callable[[], float]


def text(name: str, part: int) -> str:
    raw = (CORPORA / f"{name}.txt").read_bytes()
    return raw[part * SIZE : (part + 1) * SIZE].decode("utf-8", "ignore")


def resident() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def median_time(count: int, clock: Clock, call: Callable[[], Any]) -> float:
    """Milliseconds."""
    rounds = []
    for _ in range(count):
        start = clock()
        call()
        rounds.append((clock() - start) * 1000)
    return statistics.median(rounds)


def encoding(engine: str, path: str, clock: Clock) -> dict[str, Any]:
    """Loading, first calls, calls with new text, short texts. Milliseconds."""
    times: dict[str, float] = {}
    digest = hashlib.sha256()
    before = resident()

    def timed(row: str, work: Callable[[], Any]) -> Any:
        start = clock()
        result = work()
        times[row] = (clock() - start) * 1000
        return result

    encode = timed("load the file", lambda: load(engine, path))
    memory = resident() - before
    for kind, part in (("first call", 0), ("new text", 1)):
        for name, language in (("en", "English"), ("code", "code"), ("zh", "Chinese")):
            contents = text(name, part)
            ids = timed(f"{kind}, 400 KB of {language}", lambda: encode(contents))
            digest.update(json.dumps(list(map(int, ids))).encode())
    for row, contents in (("26 B", "The quick brown fox jumps!"), ("1 KB", text("en", 2)[:1000])):
        # The clock of CPU time is too slow for these.
        times[row] = median_time(3000, time.perf_counter, lambda: encode(contents))
        digest.update(json.dumps(list(map(int, encode(contents)))).encode())
    return {"times": times, "memory": memory / 2**20, "ids": digest.hexdigest()}


def transformers(engine: str, path: str, clock: Clock) -> dict[str, Any]:
    """Calls through transformers. Milliseconds."""
    tokenizer = transformers_tokenizer(engine, path)
    contents = text("en", 0)
    batch = [contents[at : at + 2000] for at in range(0, 300_000, 2000)] * 7
    calls = {
        "`tokenizer(text)`, 1 KB": (2000, lambda: tokenizer(contents[:1000])),
        "`tokenizer(text)`, 100 KB": (25, lambda: tokenizer(contents[:100_000])),
        "1,000 texts of 2 KB to padded arrays": (
            3,
            lambda: tokenizer(batch[:1000], padding=True, return_tensors="np"),
        ),
    }
    times = {}
    digest = hashlib.sha256()
    for row, (count, call) in calls.items():
        result = call()
        times[row] = median_time(count, time.perf_counter if count > 25 else clock, call)
        for name in ("input_ids", "attention_mask"):
            rows = [result[name]] if row.endswith("KB") else result[name]
            digest.update(json.dumps([list(map(int, ids)) for ids in rows]).encode())
    return {"times": times, "ids": digest.hexdigest()}


def loading(engine: str, folder: str, clock: Clock) -> dict[str, Any]:
    """``AutoTokenizer.from_pretrained``. Milliseconds."""
    from transformers import AutoTokenizer

    from bpe_engine.hf import patch_transformers

    if engine == PATCHED:
        patch_transformers()
    # The first imports what the others use.
    tokenizer = AutoTokenizer.from_pretrained(folder)
    times = {"load": median_time(5, clock, lambda: AutoTokenizer.from_pretrained(folder))}
    found = tokenizer([text("en", 0)[:20_000], "a  b日本"], return_offsets_mapping=True)
    own = type(tokenizer._tokenizer).__module__.startswith("bpe_engine")
    digest = hashlib.sha256(json.dumps(dict(found)).encode()).hexdigest()
    return {"times": times, "ids": digest, "ours": own}


def calls(engine: str, path: str, _: Clock) -> dict[str, Any]:
    """What calls through transformers return, as text."""
    return tokenizer_calls.answers(engine, path)


WORK = {work.__name__: work for work in (encoding, transformers, loading, calls)}
