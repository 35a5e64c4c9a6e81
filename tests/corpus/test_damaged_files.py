"""Tests that damaged Arrow and Parquet files and columns raise errors, and never crash the process.

Cases run in child processes. A child prints the number of each case before the case runs, so the
last line names the case that crashed. ``make fuzz`` tries `FUZZ_CASES` cases of each kind.
"""

from __future__ import annotations

import io
import os
import random
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import seeds
from seeds import seeded

CASES = int(os.environ.get("FUZZ_CASES", "400"))

#: Cases of seed 0 that once crashed a process.
FOUND = {"stream": [10963]}

#: Values with which to replace offsets and lengths, in addition to values near the original.
_ODD = (0, -1, 1, 7, 2**15, 2**24, 0x7FFFFF00, 2**31 - 1, -(2**31))


def table(rng: random.Random) -> Any:
    """Returns a small table with random types that hold text, nested fields and objects."""
    import pyarrow as pa

    texts = [f"hello world {rng.randrange(999)}" * rng.randrange(1, 4) for _ in range(40)]
    texts[3] = None if rng.random() < 0.5 else texts[3]
    kind = rng.choice([pa.string(), pa.large_string(), pa.binary(), pa.string_view()])
    column = pa.array([it and it.encode() for it in texts], pa.binary()).cast(kind)
    if rng.random() < 0.2:
        column = pa.array(texts).dictionary_encode()
    messages = [[{"role": "user", "content": text or ""}] for text in texts]
    columns = {
        "text": column,
        "id": pa.array([str(at) for at in range(40)]),
        "meta": pa.array([{"text": text or ""} for text in texts]),
        "messages": pa.array(messages),
    }
    return pa.table(columns)


def written(kind: str, rng: random.Random) -> bytes:
    """Returns the contents of an undamaged file of the given kind."""
    import pyarrow as pa
    import pyarrow.parquet as parquet

    made, sink = table(rng), io.BytesIO()
    if kind == "parquet":
        compression = rng.choice(["zstd", "snappy", "none"])
        options = {
            "use_dictionary": rng.random() < 0.5,
            "data_page_version": rng.choice(["1.0", "2.0"]),
        }
        plain = pa.table({name: made[name] for name in made.schema.names if name != "text"})
        text = (
            made["text"].cast(pa.string())
            if pa.types.is_dictionary(made["text"].type)
            else made["text"]
        )
        plain = plain.append_column("text", text)
        parquet.write_table(plain, sink, 16, compression=compression, **options)
    else:
        make = pa.ipc.new_file if kind == "arrow" else pa.ipc.new_stream
        packing = rng.choice([None, "lz4", "zstd"])
        options = pa.ipc.IpcWriteOptions(compression=packing)
        with make(sink, made.schema, options=options) as writer:
            writer.write_table(made, max_chunksize=16)
    return sink.getvalue()


def damaged(contents: bytes, rng: random.Random) -> bytes:
    """Damages contents, mostly by a single change: flips bits, changes numbers, cuts or copies."""
    data = bytearray(contents)
    # Half of the cases damage only the end, because the metadata there is a small part of the file.
    low = rng.choice([0, max(0, len(data) - 600)])
    for _ in range(rng.choice([1, 1, 1, 3])):
        at = rng.randrange(min(low, len(data) - 1), len(data))
        way = rng.randrange(6)
        if way < 2:
            data[at] ^= 1 << rng.randrange(8)
        elif way < 4:
            at -= at % 4
            (number,) = struct.unpack("<i", bytes(data[at : at + 4]).ljust(4, b"\0"))
            number = rng.choice([*_ODD, number + rng.randrange(-40, 41)])
            data[at : at + 4] = struct.pack("<i", max(-(2**31), min(number, 2**31 - 1)))
        elif way == 4:
            del data[at : at + rng.choice([1, 4, 8, len(data)])]
        else:
            data[at : at + 8] = data[low : low + 8]
        if not data:
            break
    return bytes(data)


def lying_column(rng: random.Random) -> Any:
    """Returns a column with a damaged buffer."""
    import pyarrow as pa

    column = table(rng)["text"].chunk(0)
    buffers = column.buffers()
    at = rng.choice([at for at, buffer in enumerate(buffers) if buffer is not None])
    changed = pa.py_buffer(damaged(buffers[at].to_pybytes(), rng))
    if pa.types.is_dictionary(column.type):
        indices = pa.Array.from_buffers(
            column.type.index_type, len(column), [None, changed if at == 1 else buffers[1]]
        )
        return pa.DictionaryArray.from_arrays(indices, column.dictionary, safe=False)
    buffers[at] = changed
    length = len(column) + rng.choice([0, 0, 0, 5])
    return pa.Array.from_buffers(column.type, length, buffers)


def read_file(kind: str, rng: random.Random, folder: Path) -> None:
    """Reads a damaged file as corpora, counting and training do."""
    from bpe_engine.texts.errors import CorpusError
    from bpe_engine.texts.fields import Fields
    from bpe_engine.texts.inputs import blocks, found, parts_of_input
    from bpe_engine.texts.reading import read_rows

    path = folder / f"damaged.{'parquet' if kind == 'parquet' else 'arrow'}"
    path.write_bytes(damaged(written(kind, rng), rng))
    field = rng.choice(["text", "text", "meta.text", "messages"])
    try:
        if field == "text" and rng.random() < 0.3:
            list(read_rows(str(path), field))
            return
        fields = Fields(field, rng.choice([None, "id"]), field == "messages")
        source = found(str(path), None)
        for part, _ in parts_of_input(source, 0, 1 << 12, False):
            for block in blocks(source, part, fields, None):
                _ = block.texts if isinstance(block.texts, list) else block.texts.to_pylist()
    except CorpusError as error:
        assert str(path) in str(error), str(error)
    except ImportError as error:
        assert "lz4" in str(error) or "zstd" in str(error), str(error)


def read_column(kind: str, rng: random.Random, folder: Path) -> None:
    """Passes a damaged column to the calls that accept Arrow columns."""
    import pyarrow as pa

    import bpe_engine
    from bpe_engine.corpus import tokenize_batch
    from vocab_tools import count_pieces

    gpt2 = bpe_engine.get_encoding("gpt2")
    calls: list[Callable[[Any], Any]] = [
        lambda column: tokenize_batch(pa.table({"text": column}), gpt2),
        lambda column: count_pieces(pa.table({"text": column})),
        gpt2.encode_batch_to_numpy,
        gpt2.encode_batch,
    ]
    try:
        rng.choice(calls)(lying_column(rng))
    except (ValueError, TypeError) as error:
        assert str(error)


KINDS: dict[str, Callable[[str, random.Random, Path], None]] = {
    "arrow": read_file,
    "stream": read_file,
    "parquet": read_file,
    "column": read_column,
}


def try_cases(kind: str, count: int, folder: str) -> None:
    """Prints and tries the cases of a kind: all in `FOUND`, and `count` random cases."""
    for case in (*FOUND.get(kind, ()), *range(count)):
        print(case, flush=True)
        KINDS[kind](kind, seeded(kind, case), Path(folder))


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_data_are_errors(kind: str, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    folders = [str(Path(__file__).parent), str(Path(seeds.__file__).parent)]
    program = (
        f"import sys; sys.path += {folders!r}\n"
        f"from {Path(__file__).stem} import try_cases; try_cases({kind!r}, {CASES}, {str(tmp_path)!r})"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, encoding="utf-8"
    )
    case = done.stdout.splitlines()[-1:]
    assert done.returncode == 0, (done.returncode, case, done.stderr[-2000:])
