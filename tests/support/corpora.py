"""Small corpora, and readers for corpora that follow the documented file layouts."""

from __future__ import annotations

import csv
import gzip
import json
import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from seeds import seeded

WORDS = [
    "the", "cat", "Zürich", "東京", "naïve", "🙂", "x = 1\n", "\t", "don't", "12345", "<|endoftext|>",
]  # fmt: skip

#: Id of gpt2's end-of-document token.
EOD = 50256


def texts(count: int = 120, seed: int = 0) -> list[str]:
    """Returns documents of up to 40 words, some of them empty, some with control strings."""
    chance = seeded("corpora", seed)
    return [" ".join(chance.choices(WORDS, k=chance.choice([0, 1, 5, 40]))) for _ in range(count)]


def write_jsonl(path: Path, documents: Sequence[str], **fields: Sequence[object]) -> Path:
    """Writes documents as JSON lines with the given additional fields."""
    with open(path, "w", encoding="utf-8") as file:
        for number, text in enumerate(documents):
            row = {"text": text, **{name: values[number] for name, values in fields.items()}}
            file.write(json.dumps(row, ensure_ascii=number % 2 == 0) + "\n")
    return path


def written(folder: Path) -> dict[str, bytes]:
    """Returns the contents of all token files and manifests of a corpus."""
    kept = ("unfinished", "plan.json")
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not str(path.relative_to(folder)).startswith(kept)
    }


# ---- Readers: lists of ids for each document ----


def read_megatron(prefix: Path) -> list[list[int]]:
    index = Path(f"{prefix}.idx").read_bytes()
    assert index[:9] == b"MMIDIDX\x00\x00"
    version, code, count, documents = struct.unpack("<QBQQ", index[9:34])
    assert (version, documents) == (1, count + 1) and len(index) == 42 + 20 * count
    dtype = {4: np.dtype("<i4"), 8: np.dtype("<u2")}[code]
    lengths = np.frombuffer(index, "<i4", count, 34)
    starts = np.frombuffer(index, "<i8", count, 34 + 4 * count)
    numbers = np.frombuffer(index, "<i8", count + 1, 34 + 12 * count)
    assert numbers.tolist() == list(range(count + 1))
    data = Path(f"{prefix}.bin").read_bytes()
    assert len(data) == lengths.sum() * dtype.itemsize
    return [np.frombuffer(data, dtype, n, at).tolist() for n, at in zip(lengths, starts)]


def read_datatrove(stem: Path, width: int) -> list[list[int]]:
    data = np.fromfile(f"{stem}.ds", {2: "<u2", 4: "<u4"}[width])
    ends = np.fromfile(f"{stem}.ds.index", "<u8").astype(np.int64)
    first, count, _ = Path(f"{stem}.ds.metadata").read_text().split("\n")
    assert first.split("|")[1] == str(width) and int(count) == len(data)
    return [part.tolist() for part in np.split(data, ends)[:-1]]


def read_olmo(stem: Path, width: int) -> list[tuple[list[int], str, str, int]]:
    data = np.fromfile(f"{stem}.npy", {2: "<u2", 4: "<u4"}[width])
    with gzip.open(f"{stem}.csv.gz", "rt", encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    return [(data[int(s) : int(e)].tolist(), id, src, int(loc)) for s, e, id, src, loc in rows]


def read_llmc(path: Path) -> list[int]:
    data = path.read_bytes()
    header = np.frombuffer(data, "<i4", 256)
    dtype = {(20240520, 1): np.dtype("<u2"), (20240801, 7): np.dtype("<u4")}[tuple(header[:2])]
    assert len(data) == 1024 + header[2] * dtype.itemsize and not header[3:].any()
    return np.frombuffer(data, dtype, offset=1024).tolist()
