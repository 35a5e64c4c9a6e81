"""Tokenizer files: time and memory beside other engines, and which calls each answers rightly.

    python -m benchmarks.hf FILE...              # the tables, each engine in processes of its own
    python -m benchmarks.hf --transformers FILE...  # calls through transformers
    python -m benchmarks.hf --calls FILE         # which calls give what `tokenizers` gives

FILE is a ``tokenizer.json``. ``--cpus 0`` holds each process to CPUs. Ids are compared with those of
`tokenizers`; an engine whose ids differ gets no figures.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Callable

ENGINES = ["bpe_engine", "tokenizers", "fastokens", "gigatoken"]
CORPORA = Path(__file__).resolve().parents[1].parent / "shared" / "corpora"
SIZE = 400_000


def load(engine: str, path: str) -> Callable[[str], list[int]]:
    """A function from text to ids, special tokens of post-processors left out."""
    if engine == "bpe_engine":
        from bpe_engine.hf import Tokenizer

        ours = Tokenizer.from_file(path)
        return lambda text: ours.encode(text, add_special_tokens=False).ids
    if engine == "tokenizers":
        import tokenizers

        theirs = tokenizers.Tokenizer.from_file(path)
        return lambda text: theirs.encode(text, add_special_tokens=False).ids
    if engine == "fastokens":
        import fastokens

        fast = fastokens.Tokenizer.from_file(path)
        return lambda text: fast.encode(text, add_special_tokens=False).ids
    import gigatoken

    giga = gigatoken.Tokenizer(path)
    return lambda text: list(giga.encode(text))


def text(name: str, part: int) -> str:
    raw = (CORPORA / f"{name}.txt").read_bytes()
    return raw[part * SIZE : (part + 1) * SIZE].decode("utf-8", "ignore")


def resident() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def measure(engine: str, path: str) -> dict[str, Any]:
    """One process: loading, first calls, calls with new text, short texts. Milliseconds of CPU."""
    __import__(engine if engine != "bpe_engine" else "bpe_engine.hf")
    times: dict[str, float] = {}
    digest = hashlib.sha256()
    before = resident()

    def timed(row: str, work: Callable[[], Any]) -> Any:
        start = time.process_time()
        result = work()
        times[row] = (time.process_time() - start) * 1000
        return result

    encode = timed("load", lambda: load(engine, path))
    memory = resident() - before
    for kind, part in (("first", 0), ("new", 1)):
        for name in ("en", "code", "zh"):
            contents = text(name, part)
            ids = timed(f"{kind} {name}", lambda: encode(contents))
            digest.update(json.dumps(list(map(int, ids))).encode())
    for row, contents in (("26 B", "The quick brown fox jumps!"), ("1 KB", text("en", 2)[:1000])):
        rounds = []
        for _ in range(200):
            start = time.perf_counter()
            ids = encode(contents)
            rounds.append((time.perf_counter() - start) * 1000)
        times[row] = statistics.median(rounds)
        digest.update(json.dumps(list(map(int, ids))).encode())
    return {"times": times, "memory": memory / 2**20, "ids": digest.hexdigest()}


def run(engine: str, path: str, cpus: str | None, mode: str) -> dict[str, Any] | None:
    command = [sys.executable, "-m", "benchmarks.hf", mode, engine, path]
    if cpus is not None:
        command = ["taskset", "-c", cpus, *command]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"{engine}: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        return None
    return json.loads(done.stdout.splitlines()[-1])


def tables(paths: list[str], cpus: str | None, rounds: int, mode: str) -> None:
    for path in paths:
        runs: dict[str, list[dict[str, Any]]] = {engine: [] for engine in ENGINES}
        for _ in range(rounds):
            for engine in ENGINES:
                result = run(engine, path, cpus, mode)
                if result is not None:
                    runs[engine].append(result)
        right = runs["tokenizers"][0]["ids"]
        shown = [e for e in ENGINES if runs[e] and all(r["ids"] == right for r in runs[e])]
        print(f"\n{Path(path).name}, milliseconds, median of {rounds}\n")
        print("| row | " + " | ".join(shown) + " |")
        print("|---|" + "---|" * len(shown))
        for row in runs["tokenizers"][0]["times"]:
            cells = [statistics.median(r["times"][row] for r in runs[e]) for e in shown]
            print(f"| {row} | " + " | ".join(f"{cell:.3g}" for cell in cells) + " |")
        if "memory" in runs["tokenizers"][0]:
            cells = [statistics.median(r["memory"] for r in runs[e]) for e in shown]
            print("| memory, MiB | " + " | ".join(f"{cell:.0f}" for cell in cells) + " |")
        for engine in set(ENGINES) - set(shown):
            print(f"\n{engine}: other ids, or it does not load the file")


def transformers_tokenizer(engine: str, path: str) -> Any:
    """A transformers tokenizer with this engine."""
    import transformers

    if engine == "gigatoken":
        import gigatoken

        return gigatoken.Tokenizer(path).as_hf()
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=path, pad_token="<pad>")
    if engine == "bpe_engine":
        from bpe_engine.hf import as_transformers

        return as_transformers(tokenizer)
    if engine == "fastokens":
        import fastokens

        fastokens._swap_backend(tokenizer, fastokens._TokenizerShim)
    return tokenizer


def measure_transformers(engine: str, path: str) -> dict[str, Any]:
    """One process: calls through transformers. Milliseconds, median."""
    tokenizer = transformers_tokenizer(engine, path)
    contents = text("en", 0)
    batch = [contents[at : at + 2000] for at in range(0, 300_000, 2000)] * 7
    calls = {
        "1 KB": (200, lambda: tokenizer(contents[:1000])),
        "100 KB": (5, lambda: tokenizer(contents[:100_000])),
        "1,000 texts of 2 KB, padded": (
            3,
            lambda: tokenizer(batch[:1000], padding=True, return_tensors="np"),
        ),
    }
    times = {}
    digest = hashlib.sha256()
    for row, (count, call) in calls.items():
        result = call()
        rounds = []
        for _ in range(count):
            start = time.perf_counter()
            result = call()
            rounds.append((time.perf_counter() - start) * 1000)
        times[row] = statistics.median(rounds)
        for name in ("input_ids", "attention_mask"):
            rows = [result[name]] if row.endswith("KB") else result[name]
            digest.update(json.dumps([list(map(int, ids)) for ids in rows]).encode())
    return {"times": times, "ids": digest.hexdigest()}


TEXT = "Hello, world! Der Fluß ist 12345 m lang 日本語 👩‍👩‍👧"
CALLS: dict[str, Callable[[Any], Any]] = {
    "ids": lambda t: t(TEXT)["input_ids"],
    "batch, padded": lambda t: dict(t([TEXT, "short"], padding=True)),
    "offsets": lambda t: list(map(tuple, t(TEXT, return_offsets_mapping=True)["offset_mapping"])),
    "pairs": lambda t: dict(t(TEXT, "second", return_token_type_ids=True)),
    "split words": lambda t: t(TEXT.split(), is_split_into_words=True)["input_ids"],
    "word_ids": lambda t: t(TEXT).word_ids(),
    "tokens()": lambda t: t(TEXT).tokens(),
    "char_to_token": lambda t: [t(TEXT).char_to_token(i) for i in range(len(TEXT))],
    "overflow": lambda t: t(
        TEXT, truncation=True, max_length=6, stride=1, return_overflowing_tokens=True
    )["input_ids"],
    "special tokens mask": lambda t: t(TEXT, return_special_tokens_mask=True)[
        "special_tokens_mask"
    ],
    "assistant masks": lambda t: dict(
        t.apply_chat_template(
            [{"role": "user", "content": "a"}, {"role": "assistant", "content": TEXT}],
            chat_template="{% for m in messages %}{% if m.role == 'assistant' %}{% generation %}"
            "{{ m.content }}{% endgeneration %}{% else %}{{ m.content }}{% endif %}{% endfor %}",
            return_dict=True,
            return_assistant_tokens_mask=True,
        )
    ),
    "decode": lambda t: t.decode(t(TEXT)["input_ids"]),
    "is a PreTrainedTokenizerBase": lambda t: (
        __import__("transformers").PreTrainedTokenizerBase in type(t).__mro__
    ),
}


def answers(engine: str, path: str) -> dict[str, str]:
    """What each call returns in a transformers tokenizer with this engine, as text."""
    tokenizer = transformers_tokenizer(engine, path)
    found = {}
    for name, call in CALLS.items():
        try:
            found[name] = repr(call(tokenizer))
        except BaseException as error:
            found[name] = f"raises {type(error).__name__}"
    return found


def calls(path: str) -> None:
    found = {}
    for engine in ENGINES:
        command = [sys.executable, "-m", "benchmarks.hf", "--answers", engine, path]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            found[engine] = json.loads(done.stdout.splitlines()[-1])
    shown = [engine for engine in ENGINES if engine in found and engine != "tokenizers"]
    print("| call | " + " | ".join(shown) + " |")
    print("|---|" + "---|" * len(shown))
    for name in CALLS:
        cells = []
        for engine in shown:
            value = found[engine][name]
            if value == found["tokenizers"][name]:
                cells.append("right")
            else:
                cells.append(value if value.startswith("raises") else "**wrong**")
        print(f"| {name} | " + " | ".join(cells) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("files", nargs="+", help="tokenizer.json files")
    parser.add_argument("--worker", choices=ENGINES, help="one engine, in this process")
    parser.add_argument("--answers", choices=ENGINES, help="the calls of one engine")
    parser.add_argument("--transformers-worker", choices=ENGINES, help="the same, transformers")
    parser.add_argument("--transformers", action="store_true", help="calls through transformers")
    parser.add_argument("--calls", action="store_true", help="which calls are answered rightly")
    parser.add_argument("--cpus", help="hold each process to these CPUs, as taskset -c")
    parser.add_argument("--rounds", type=int, default=3, help="processes of each engine")
    arguments = parser.parse_args()
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    if arguments.worker:
        print(json.dumps(measure(arguments.worker, arguments.files[0])))
    elif arguments.transformers_worker:
        engine = arguments.transformers_worker
        print(json.dumps(measure_transformers(engine, arguments.files[0])))
    elif arguments.answers:
        print(json.dumps(answers(arguments.answers, arguments.files[0])))
    elif arguments.calls:
        calls(arguments.files[0])
    else:
        mode = "--transformers-worker" if arguments.transformers else "--worker"
        tables(arguments.files, arguments.cpus, arguments.rounds, mode)


if __name__ == "__main__":
    main()
