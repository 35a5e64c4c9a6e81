"""Compares writing corpora with encoding alone, and with the scripts of others.

    python -m benchmarks.corpus --texts FOLDER --mb 256 [--scratch FOLDER]
    python -m benchmarks.corpus --texts FOLDER --mb 64 --tokenizer gpt2.json
    python -m benchmarks.corpus --texts FOLDER --big 10

The words of FOLDER's ``*.txt`` are shuffled and made to documents, so that caches do not lie. Each
side runs in a process of its own, in turn, on the cores that it is given; figures are medians of the
wall time of everything from loading the tokenizer to the files, also starting processes. With
`--tokenizer`, the scripts of others are the other sides; those whose package is not installed are
left out. `--big` measures the memory. Inputs stay in `--scratch` for the next time.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

KINDS = ("jsonl", "zst", "parquet")

CODE = "import sys; from benchmarks.corpus import side; side(*sys.argv[1:])"


def documents(folder: Path, size: int) -> Iterator[str]:
    """Yields documents of shuffled words, of 200 to 2,000 words each."""
    words = [path.read_text("utf-8").split(" ") for path in sorted(folder.glob("*.txt"))]
    chance = random.Random(0)
    done = 0
    while done < size:
        source = chance.choice(words)
        text = " ".join(chance.choices(source, k=chance.randrange(200, 2000)))
        done += len(text.encode())
        yield text


def make_inputs(texts: str, scratch: str, size: str) -> None:
    """Writes the inputs, and prints the bytes of their text."""
    import pyarrow as pa
    import pyarrow.parquet as parquet
    import zstandard

    folder = Path(scratch)
    made = list(documents(Path(texts), int(size)))
    with open(folder / "in.jsonl", "w", encoding="utf-8") as file:
        for number, text in enumerate(made):
            file.write(json.dumps({"text": text, "id": number}, ensure_ascii=False) + "\n")
    packer = zstandard.ZstdCompressor(3)
    quarter = len(made) // 4 + 1
    # Several files, as corpora have: a compressed file is a unit.
    lines = (folder / "in.jsonl").read_bytes().splitlines(keepends=True)
    for name in KINDS:
        (folder / name).mkdir()
    for part in range(4):
        some = slice(part * quarter, (part + 1) * quarter)
        data = b"".join(lines[some])
        (folder / "jsonl" / f"{part}.jsonl").write_bytes(data)
        (folder / "zst" / f"{part}.jsonl.zst").write_bytes(packer.compress(data))
        table = pa.table({"text": made[some]})
        parquet.write_table(table, folder / "parquet" / f"{part}.parquet", row_group_size=2000)
    print(sum(len(text.encode()) for text in made))


# ---- Sides: each writes files. ----


def ours(folder: Path, out: Path, tokenizer: str, kind: str, cores: int) -> None:
    """Plans, runs: everything included."""
    import pyarrow.json
    import pyarrow.parquet  # noqa: F401

    from bpe_engine.corpus import make_plan, run_plan

    start()
    eod = "auto" if not Path(tokenizer).exists() else None
    plan = make_plan([folder / kind], tokenizer, out, eod=eod, unit_bytes=1 << 26)
    run_plan(plan, processes=cores, num_threads=1)


def encoding_alone(folder: Path, out: Path, tokenizer: str, kind: str, cores: int) -> None:
    """Encodes the text in pieces of 4 MB, which are there already, and keeps nothing."""
    from bpe_engine import get_encoding, load_encoding

    load = load_encoding if Path(tokenizer).exists() else get_encoding
    encoding = load(tokenizer)
    texts = _pieces(folder)
    start()
    for text in texts:
        encoding.encode_to_numpy(text, disallowed_special=(), num_threads=cores)


def _pieces(folder: Path) -> list[str]:
    texts, pieces, size = [], [], 0
    with open(folder / "in.jsonl", encoding="utf-8") as file:
        for line in file:
            text = json.loads(line)["text"]
            texts.append(text)
            size += len(text)
            if size > 4 << 20:
                pieces.append("\n".join(texts))
                texts, size = [], 0
    return [*pieces, "\n".join(texts)]


def script(folder: Path, out: Path, tokenizer: str, kind: str, cores: int) -> None:
    """The loop of Megatron's preprocess_data.py: a line, its JSON, its ids, an array, a write."""
    from tokenizers import Tokenizer

    encode: Callable[[str], Any] = Tokenizer.from_file(tokenizer).encode
    _script(folder, out, lambda text: encode(text, add_special_tokens=False).ids)


def script_giga(folder: Path, out: Path, tokenizer: str, kind: str, cores: int) -> None:
    """Runs that loop with gigatoken."""
    import gigatoken

    _script(folder, out, gigatoken.Tokenizer(tokenizer).encode)


def _script(folder: Path, out: Path, encode: Callable[[str], Any]) -> None:
    out.mkdir()
    lengths = []
    with open(out / "x.bin", "wb") as binary:
        for path in sorted((folder / "jsonl").iterdir()):
            with open(path, encoding="utf-8") as file:
                for line in file:
                    ids = np.array(encode(json.loads(line)["text"]), dtype=np.int32)
                    binary.write(ids.tobytes(order="C"))
                    lengths.append(len(ids))
    with open(out / "x.idx", "wb") as index:
        index.write(np.array(lengths, np.int32).tobytes())


def datatrove(folder: Path, out: Path, tokenizer: str, kind: str, cores: int) -> None:
    """datatrove's reader and tokenizer step, with its default batches."""
    from datatrove.executor import LocalPipelineExecutor
    from datatrove.pipeline.readers import JsonlReader
    from datatrove.pipeline.tokens import DocumentTokenizer

    step = DocumentTokenizer(
        str(out), tokenizer_name_or_path=tokenizer, eos_token=None, shuffle_documents=False
    )
    pipeline = [JsonlReader(str(folder / "jsonl")), step]
    LocalPipelineExecutor(pipeline, tasks=1, workers=1, logging_dir=str(out) + "-logs").run()


def digest(out: Path) -> str:
    """Returns the SHA-256 of the ids that a side has written, as 32 bits each."""
    result = hashlib.sha256()
    for path in sorted([*out.rglob("*.bin"), *out.rglob("*.ds")]):
        kind = np.dtype("<i4")
        if path.suffix == ".ds":
            kind = np.dtype(
                f"<u{path.with_name(path.name + '.metadata').read_text()[:99].split()[0][-1]}"
            )
        elif (index := path.with_suffix(".idx").read_bytes()[:18]).startswith(b"MMIDIDX"):
            kind = np.dtype("<u2" if index[17] == 8 else "<i4")
        result.update(np.fromfile(path, kind).astype("<i4"))
    return result.hexdigest()


SIDES = {
    "ours": ours,
    "encode_to_numpy": encoding_alone,
    "Megatron-like script, tokenizers": script,
    "Megatron-like script, gigatoken": script_giga,
    "datatrove": datatrove,
}

STARTS = [0.0, 0.0]


def start() -> None:
    """Starts the clocks."""
    STARTS[:] = _clocks()


def _clocks() -> list[float]:
    """Returns the seconds of the wall, and those of the processor in this process and its children."""
    spent = [
        part
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
        for part in resource.getrusage(who)[:2]
    ]
    return [time.perf_counter(), sum(spent)]


def side(name: str, folder: str, out: str, tokenizer: str, kind: str, cores: str) -> None:
    """Runs one side in this process, and prints its seconds and its largest memory."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: int(cores)])
    start()
    SIDES[name](Path(folder), Path(out), tokenizer, kind, int(cores))
    spent = [now - before for now, before in zip(_clocks(), STARTS)]
    memory = max(
        resource.getrusage(who).ru_maxrss
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    print(json.dumps([*spent, memory / 1024, digest(Path(out))]))


def measured(
    name: str, folder: Path, tokenizer: str, kind: str = "jsonl", cores: int = 1
) -> list[Any] | None:
    """Runs a side. Returns seconds, those of processors, MB and a digest; None if it cannot run."""
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        command = [
            sys.executable,
            "-c",
            CODE,
            name,
            str(folder),
            f"{scratch}/out",
            tokenizer,
            kind,
            str(cores),
        ]
        result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        print(f"{name}: {result.stderr.strip().splitlines()[-1]}", file=sys.stderr)
        return None
    return list(json.loads(result.stdout.splitlines()[-1]))


def main() -> None:
    """Prints a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--texts", type=Path, required=True)
    parser.add_argument("--mb", type=int, default=256)
    parser.add_argument("--encoding", default="o200k_base")
    parser.add_argument("--tokenizer", help="a tokenizer.json, to compare with others")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--big", type=int, default=0, help="GB of an input to measure memory with")
    parser.add_argument("--scratch", type=Path, help="a folder for inputs, which stay there")
    arguments = parser.parse_args()
    with contextlib.ExitStack() as stack:
        root = arguments.scratch or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder = root / f"inputs-{arguments.mb}"
        size = _inputs(arguments.texts, folder, arguments.mb << 20)
        tokenizer = arguments.tokenizer or arguments.encoding
        if arguments.big:
            _memory(folder, tokenizer, arguments.big)
        elif arguments.tokenizer:
            rows = [(name, name, "jsonl", 1) for name in SIDES if name != "encode_to_numpy"]
            _table(folder, tokenizer, rows, size, arguments.rounds)
        else:
            sides = [("encode_to_numpy", "jsonl"), *(("ours", kind) for kind in KINDS)]
            rows = [
                (f"{name}, {kind}", name, kind, cores) for name, kind in sides for cores in (1, 2)
            ]
            _table(folder, tokenizer, rows, size, arguments.rounds)


def _inputs(texts: Path, folder: Path, size: int) -> int:
    """Makes inputs unless they are there. Returns the bytes of their text."""
    done = folder / "size"
    if not done.exists():
        folder.mkdir(parents=True)
        # In a process of its own: children inherit the largest memory of their parent.
        code = "import sys; from benchmarks.corpus import make_inputs; make_inputs(*sys.argv[1:])"
        command = [sys.executable, "-c", code, texts, folder, str(size)]
        done.write_bytes(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return int(done.read_text())


def _memory(folder: Path, tokenizer: str, gigabytes: int) -> None:
    """Prints the largest memory of a process for one large file of JSON lines."""
    with tempfile.TemporaryDirectory(dir=folder) as big:
        with open(f"{big}/big.jsonl", "wb") as file:
            data = (folder / "in.jsonl").read_bytes()
            while file.tell() < gigabytes << 30:
                file.write(data)
        found = measured("ours", folder, tokenizer, Path(big).name, 2)
    if found is not None:
        print(
            f"{gigabytes} GB of JSON lines, 2 cores: {found[0]:.0f} s, {found[2]:.0f} MB a process"
        )


def _table(folder: Path, tokenizer: str, rows: list[Any], size: int, rounds: int) -> None:
    found: dict[tuple[str, int], list[list[Any]]] = {}
    for _ in range(rounds):
        for title, name, kind, cores in rows:
            if found.get((title, cores)) != []:
                result = measured(name, folder, tokenizer, kind, cores)
                some = found.setdefault((title, cores), [])
                if result is not None:
                    some.append(result)
    wrote = {ids for (title, _), some in found.items() for *_, ids in some if "numpy" not in title}
    assert len(wrote) == 1, f"sides have other ids: {found}"
    print(f"{size / 1e6:.0f} MB of text, {Path(tokenizer).name}, {rounds} rounds\n")
    print("| what | cores | MB/s | MB a second of a processor | memory of a process, MB |")
    print("|---|---|---|---|---|")
    for (title, cores), results in found.items():
        if results:
            seconds, processors, memory, _ = zip(*results)
            rates = (size / statistics.median(spent) / 1e6 for spent in (seconds, processors))
            cells = [title, cores, *(f"{rate:.1f}" for rate in rates), f"{max(memory):.0f}"]
            print(f"| {' | '.join(map(str, cells))} |", flush=True)


if __name__ == "__main__":
    main()
