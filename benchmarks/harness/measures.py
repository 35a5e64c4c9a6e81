"""Measures: each function times one kind of operation of an engine.

A measure takes a :class:`Run` and yields :class:`Value` objects. The time excludes making texts,
checking results and freeing memory; the garbage collector is off during timing.

This module imports little, and imports rare packages late: modules that the worker has already
imported would hide an engine's import cost, in time and in memory.
"""

from __future__ import annotations

import gc
import hashlib
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..cases import corpora
from ..cases.encodings import EncodingSpec
from ..cases.inputs import Inputs, Item
from ..peers.digest import Digest, digest_of
from ..peers.engines import OURS, Engine, Plan, Unsupported

AGAIN_PASSES = 7  # Maximum number of passes over a known text; the median is the result.
AGAIN_SECONDS = 0.5  # Seconds after which no further pass starts.


@dataclass
class Run:
    """Arguments of a measure. ``engine`` is None until loaded."""

    plan: Plan
    spec: EncodingSpec
    cache: Path
    inputs: Inputs
    field: str
    options: dict[str, Any]
    threads: int
    corpora: list[Path]
    engine: Engine | None = None

    def load(self) -> Engine:
        """Returns the engine, loaded on the first call."""
        if self.engine is None:
            self.plan.import_module()
            self.engine = self.plan.load(self.spec, self.cache)
        return self.engine

    def call(self) -> Callable[[Any], Any]:
        """Returns the operation of the case as a function of one argument."""
        operation = self.load().need(self.field)
        if self.field in ("batch_list", "batch_numpy", "numpy_threads", "column", "batch_count"):
            return lambda item: operation(item, self.threads)
        return operation

    def warmed(self) -> Callable[[Any], Any]:
        """Calls the operation on the warm-up inputs, and returns the operation."""
        call = self.call()
        for item in self.inputs.warm:
            call(item)
        return call


@dataclass
class Value:
    """One measured number. ``label`` names the input; ``digest`` is a hash of its ids."""

    key: str
    value: float
    unit: str
    label: str | None = None
    tokens: int | None = None
    digest: str | None = None
    correct: bool | None = None


#: Clocks in nanoseconds: wall time, or (for a shared machine) this process's CPU time.
CLOCKS = {"wall": time.perf_counter_ns, "cpu": time.process_time_ns}
_now = CLOCKS["wall"]


def use_clock(name: str) -> None:
    """Selects one of :data:`CLOCKS` for this process."""
    global _now
    _now = CLOCKS[name]


def timed(call: Callable[..., Any], *arguments: Any) -> tuple[float, Any]:
    """Returns the seconds and the result of a call. The caller frees the result later."""
    now = _now
    gc.collect()
    gc.disable()
    try:
        start = now()
        result = call(*arguments)
        return (now() - start) / 1e9, result
    finally:
        gc.enable()


def again(call: Callable[..., Any], *arguments: Any) -> float:
    """Returns the median time in seconds of repeated calls with the same arguments."""
    seconds: list[float] = []
    while len(seconds) < AGAIN_PASSES and sum(seconds) < AGAIN_SECONDS:
        seconds.append(timed(call, *arguments)[0])
    return sorted(seconds)[len(seconds) // 2]


def size_of(item: Item) -> int:
    """Returns the size of an item in bytes of UTF-8."""
    texts = [item] if isinstance(item, str) else item
    return sum(len(text.encode("utf-8")) for text in texts)


def resident() -> dict[str, float]:
    """Returns the current and the peak resident memory in MB; only the peak without /proc."""
    try:
        with open("/proc/self/status") as status:
            fields = dict(line.split(":", 1) for line in status)
        return {
            "now": int(fields["VmRSS"].split()[0]) / 1024,
            "peak": int(fields["VmHWM"].split()[0]) / 1024,
        }
    except OSError:
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return {"peak": peak / (1024 * 1024 if sys.platform == "darwin" else 1024)}


def _judged(result: Any, item: Item) -> dict[str, Any]:
    """Returns the token count and the digest of a result."""
    if isinstance(result, int):
        return {"tokens": result}
    digest = digest_of(result, item)
    return {"tokens": digest.tokens, "digest": digest.hex()}


def throughput(run: Run) -> Iterator[Value]:
    """Yields the MB/s of each timed item, the first time and again.

    With ``warm`` False, the process is fresh: it has encoded only two words, so that the engine
    imports its lazy packages (numpy, awkward). The load case measures the cost of these imports.
    """
    call = run.call()
    for item in run.inputs.warm if run.options.get("warm", True) else ["hello world"]:
        call(item)
    for label, item in run.inputs.timed.items():
        size = size_of(item) / 1e6
        seconds, result = timed(call, item)
        judged = _judged(result, item)
        del result
        yield Value("first", size / seconds, "MB/s", label, **judged)
        if run.options.get("again", True):
            yield Value("again", size / again(call, item), "MB/s", label, **judged)


def calls(run: Run) -> Iterator[Value]:
    """Yields the microseconds per call for many different prompts, the first time and again."""
    call = run.warmed()

    def each(texts: list[str]) -> None:
        deque(map(call, texts), maxlen=0)

    for label, item in run.inputs.timed.items():
        texts = list(item)
        first, _ = timed(each, texts)
        seconds = again(each, texts)
        judged = _judged([call(text) for text in texts], texts)
        yield Value(f"{label}, first", first / len(texts) * 1e6, "us", label, **judged)
        yield Value(f"{label}, again", seconds / len(texts) * 1e6, "us", label, **judged)


def counting(run: Run) -> Iterator[Value]:
    """Yields the microseconds per text for counting a batch, the first time and again."""
    call = run.call()
    for item in run.inputs.warm:
        call([item] if isinstance(item, str) else list(item))
    for label, item in run.inputs.timed.items():
        texts = list(item)
        first, counts = timed(call, texts)
        seconds, tokens = again(call, texts), int(sum(counts))
        for key, value in (("first", first), ("again", seconds)):
            each = value / len(texts) * 1e6
            yield Value(f"{label}, {key}", each, "us", label, tokens=tokens)


def milliseconds(run: Run) -> Iterator[Value]:
    """Yields the milliseconds for each timed item, the first time."""
    call = run.warmed()
    for label, item in run.inputs.timed.items():
        seconds, result = timed(call, item)
        yield Value("first", seconds * 1e3, "ms", label, **_judged(result, item))


def decoding(run: Run) -> Iterator[Value]:
    """Yields the MB/s of decoding. The engine decodes its own ids, and must return the text."""
    engine = run.load()
    call = run.call()
    for label, item in run.inputs.timed.items():
        if not isinstance(item, str):
            raise ValueError("decoding takes single texts")
        ids: Any = engine.encode_list(item)
        tokens = len(ids)
        if run.field == "decode_numpy":
            import numpy

            ids = numpy.array(ids, dtype=numpy.uint32)
        correct = call(ids) == item
        seconds = again(call, ids)
        size = size_of(item) / 1e6
        yield Value("text", size / seconds, "MB/s", label, tokens=tokens, correct=correct)


def loading(run: Run) -> Iterator[Value]:
    """Yields the milliseconds for import, get_encoding and the first encode in a fresh process."""
    item = run.inputs.timed["text"]
    imported, _ = timed(run.plan.import_module)
    got, engine = timed(run.plan.load, run.spec, run.cache)
    encoded, result = timed(engine.need(run.field), item)
    judged = _judged(result, item)
    yield Value("import", imported * 1e3, "ms")
    yield Value("get_encoding", got * 1e3, "ms")
    yield Value("first encode", encoded * 1e3, "ms", "text", **judged)
    yield Value("get_encoding + first encode", (got + encoded) * 1e3, "ms", "text", **judged)


def memory(run: Run) -> Iterator[Value]:
    """Yields the resident MB after loading, and after encoding each corpus to a list and an array.

    Texts and results are freed before the last reading, so the remaining memory is kept by the
    engine or lost to fragmentation of the allocator.
    """
    before = resident()
    run.call()("hello world")
    gc.collect()
    loaded = resident()
    engine = run.load()
    for path in run.corpora:
        text = corpora.read(path)
        engine.encode_list(text)
        if engine.encode_numpy:
            engine.encode_numpy(text)
        del text
    gc.collect()
    end = resident()
    if "now" in end:
        yield Value("before import", before["now"], "MB")
        yield Value("loaded", loaded["now"], "MB")
        yield Value("at the end", end["now"], "MB")
    yield Value("peak", end["peak"], "MB")


def stream(run: Run) -> Iterator[Value]:
    """Yields the speed of encoding many distinct words, and the growth of resident memory."""
    encode = run.warmed()
    before = resident()
    highest = before.get("now", before["peak"])
    seconds = 0.0
    size = 0
    digest = Digest()
    for text in run.inputs.timed["stream"]:
        took, ids = timed(encode, text)
        seconds += took
        size += len(text)
        digest.add(ids)
        del ids
        now = resident()
        highest = max(highest, now.get("now", now["peak"]))
    judged: dict[str, Any] = {"tokens": digest.tokens, "digest": digest.hex()}
    yield Value("speed", size / 1e6 / seconds, "MB/s", "stream", **judged)
    growth = highest - before.get("now", before["peak"])
    yield Value("memory grown", growth, "MB", "stream", **judged)


def held(run: Run) -> Iterator[Value]:
    """Yields two numbers of bytes per byte of text: the result, and the peak beyond the result."""
    call = run.warmed()
    for label, item in run.inputs.timed.items():
        gc.collect()
        before = resident()
        result = call(item)
        after = resident()
        if "now" not in before:
            raise Unsupported("memory in use is known on Linux alone")
        del result
        per_byte = 2**20 / size_of(item)
        stays = max(0.0, after["now"] - before["now"])
        # The process may have peaked before this call.
        most = after["peak"] - before["now"] if after["peak"] > before["peak"] else 0.0
        yield Value("result", stays * per_byte, "B/B", label)
        yield Value("beside it", max(0.0, most - stays) * per_byte, "B/B", label)


def building(run: Run) -> Iterator[Value]:
    """Yields the milliseconds to build an encoding from ranks, and to read a rank file."""
    from ..cases import vocabularies

    name = run.options["vocabulary"]
    build = run.load().need("build")
    ranks = vocabularies.RANKS[name]()
    seconds, encoding = timed(build, ranks)
    ids = encoding.encode(vocabularies.SAMPLE)
    yield Value("build", seconds * 1e3, "ms", "sample", **_judged(ids, ""))
    if name in vocabularies.FILES:
        path = str(vocabularies.rank_file(name))
        seconds, found = timed(run.load().need("read_ranks"), path)
        yield Value("read the file", seconds * 1e3, "ms", correct=found == ranks)


def training(run: Run) -> Iterator[Value]:
    """Yields the seconds from a text file to the merges, excluding imports, and the memory peak.

    Trainers with the same label break ties alike, and must agree.
    """
    from ..cases.training_texts import text_file
    from ..peers.trainers import TRAINERS, merges_digest

    if run.plan.name not in TRAINERS:
        raise Unsupported("no trainer")
    path = text_file(run.options["text"], run.options["megabytes"], run.corpora, run.cache)
    label, prepare = TRAINERS[run.plan.name]
    train = prepare(str(path), run.options["size"])
    cpu = time.process_time()
    seconds, merges = timed(train)
    cpu = time.process_time() - cpu
    peak = resident()["peak"]
    judged = merges_digest(merges)
    yield Value("time", seconds, "s", label, **judged)
    yield Value("CPU", cpu, "s", label, **judged)
    yield Value("peak", peak, "MB")


#: One line in this many is held out.
HELD_OUT = 20


def models(run: Run) -> Iterator[Value]:
    """Yields the seconds from lines to a trained tokenizer, the memory peak, and for held-out lines
    the bytes per token and Unigram's likelihood. Trainers that return tokens must agree.
    """
    from ..cases.training_texts import text_file
    from ..peers.model_trainers import TRAINERS

    if run.plan.name not in TRAINERS:
        raise Unsupported("no trainer")
    path = text_file(run.options["text"], run.options["megabytes"], run.corpora, run.cache)
    lines = path.read_text(encoding="utf-8").splitlines()
    held_out = lines[HELD_OUT - 1 :: HELD_OUT]
    del lines[HELD_OUT - 1 :: HELD_OUT]
    train = TRAINERS[run.plan.name](run.options["model"])
    seconds, (tokens, encode, scores) = timed(train, lines, run.options["size"], run.threads)
    peak = resident()["peak"]
    judged = {} if tokens is None else {"tokens": len(tokens), **_digest(tokens)}
    yield Value("time", seconds, "s", "tokens", **judged)
    yield Value("peak", peak, "MB")
    total = sum(len(line.encode()) for line in held_out)
    rows = [encode(line) for line in held_out]
    yield Value("held out", total / sum(map(len, rows)), "bytes/token")
    if scores is not None and run.options["model"] == "unigram":
        likelihood = sum(scores[id] for row in rows for id in row) / total
        yield Value("likelihood, held out", likelihood, "nats/byte")


def _digest(tokens: list[str]) -> dict[str, str]:
    text = "\n".join(tokens).encode()
    return {"digest": hashlib.blake2b(text, digest_size=8).hexdigest()}


def growth(run: Run) -> Iterator[Value]:
    """Yields the milliseconds at one size and at eight times that size, and the ratio (linear:
    8)."""
    call = run.warmed()
    seconds: dict[str, float] = {}
    for label, item in run.inputs.timed.items():
        seconds[label], result = timed(call, item)
        yield Value(label, seconds[label] * 1e3, "ms", label, **_judged(result, item))
        del result
    yield Value("large / small", seconds["large"] / seconds["small"], "x")


def sides(run: Run) -> Iterator[Value]:
    """Yields the CPU time of each row's baseline, as a multiple of our CPU time."""
    from ..cases.sides import ROWS
    from .sides import ratio

    if run.plan.name != OURS:
        raise Unsupported("no rows")
    for title, other, ours in ROWS[run.options["rows"]](run):
        yield Value(title, ratio(run.options.get("rounds", 7), other, ours), "times")


MEASURES: dict[str, Callable[[Run], Iterator[Value]]] = {
    measure.__name__: measure
    for measure in (
        throughput, calls, counting, milliseconds, decoding, loading, memory, stream, growth,
        held, building, training, models, sides,
    )
}  # fmt: skip
