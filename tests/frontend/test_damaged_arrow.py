"""Tests that Arrow arrays with invalid buffers raise an error, and never read foreign memory.

Each layout is tried in a child process, which an invalid buffer may crash.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

Cases = Iterable[tuple[str, Callable[[], Any]]]

FAR = 2**31 - 1
HIDDEN = b"neighboring bytes that belong to somebody else"


def array(type: Any, length: int, *buffers: Any, **more: Any) -> Any:
    """Makes an array from buffers without full validation; a list becomes a buffer of int32."""
    import numpy as np
    import pyarrow as pa

    memory = [
        pa.py_buffer(np.array(buffer, np.int32).tobytes()) if isinstance(buffer, list)
        else None if buffer is None else pa.py_buffer(buffer)
        for buffer in buffers
    ]  # fmt: skip
    return pa.Array.from_buffers(type, length, memory, **more)


def strings(large: bool) -> Cases:
    import numpy as np
    import pyarrow as pa

    size = np.int64 if large else np.int32
    type = pa.large_string() if large else pa.string()

    def of(offsets: list[int], text: bytes | None = b"ab", **more: Any) -> Any:
        length = more.pop("length", 2)
        validity = more.pop("validity", None)
        return array(type, length, validity, np.array(offsets, size).tobytes(), text, **more)

    yield "offset beyond the text", lambda: of([0, 1, 3])
    yield "offset far beyond the text", lambda: of([0, 1, FAR])
    yield "descending offsets", lambda: of([0, 2, 1])
    yield "negative offset", lambda: of([-5, 1, 2])
    yield "negative last offset", lambda: of([0, 1, -1])
    yield "too few offsets", lambda: of([0, 1])
    yield "too long", lambda: of([0, 1, 2], length=3)
    yield "far too long", lambda: of([0, 1, 2], length=2**40)
    yield "text missing", lambda: of([0, 1, 2], None)
    yield "offsets missing", lambda: array(type, 2, None, None, b"ab")
    yield "short validity", lambda: of([0] * 10, length=9, validity=b"\xff", null_count=1)
    yield "offset of the array", lambda: of([0, 1, 2], offset=2)
    yield "chunk", lambda: pa.chunked_array([of([0, 1, 2]), of([0, 1, 3])])


def views() -> Cases:
    import numpy as np
    import pyarrow as pa

    def of(size: int, buffer: int, offset: int, prefix: bytes = HIDDEN[:4]) -> Any:
        view = np.array([size], np.int32).tobytes() + prefix
        view += np.array([buffer, offset], np.int32).tobytes()
        return array(pa.string_view(), 1, None, view, HIDDEN)

    for number in (1, 5, -1, FAR, -(2**31)):
        yield f"buffer {number}", lambda number=number: of(20, number, 0)  # type: ignore[misc]
    for offset in (28, 47, 4000, FAR, -1, -(2**31)):
        yield f"offset {offset}", lambda offset=offset: of(20, 0, offset)  # type: ignore[misc]
    for size in (48, 4000, FAR, -1, -(2**31)):
        yield f"size {size}", lambda size=size: of(size, 0, 0)  # type: ignore[misc]
    yield "another prefix", lambda: of(20, 0, 0, b"xxxx")
    yield "too long", lambda: array(pa.string_view(), 2, None, bytes(16), HIDDEN)


def dictionaries() -> Cases:
    import pyarrow as pa

    def of(indices: Any, values: Any) -> Any:
        return pa.DictionaryArray.from_arrays(indices, values, safe=False)

    words = pa.array(["a", "b"])
    for kind in (pa.int8(), pa.uint8(), pa.int32(), pa.int64()):
        yield f"{kind} too large", lambda kind=kind: of(pa.array([0, 2], kind), words)  # type: ignore[misc]
    yield "negative", lambda: of(pa.array([-1]), words)
    yield "far", lambda: of(pa.array([2**62]), words)
    yield "no values", lambda: of(pa.array([0]), words[:0])
    yield "short indices", lambda: of(array(pa.int32(), 9, None, [0, 1]), words)
    for name, values in [*strings(False), *views()]:
        yield f"values: {name}", lambda values=values: of(pa.array([0, 0]), values())  # type: ignore[misc]


def run_ends() -> Cases:
    import pyarrow as pa

    def of(ends: Any, values: Any, length: int = 3) -> Any:
        kind = pa.run_end_encoded(pa.int32(), values.type)
        return pa.Array.from_buffers(
            kind, length, [None], children=[pa.array(ends, pa.int32()), values]
        )

    words = pa.array(["a", "b"])
    yield "descending", lambda: of([3, 2], words)
    yield "negative", lambda: of([-1, 3], words)
    yield "too short", lambda: of([1, 2], words)
    yield "too few values", lambda: of([1, 2, 3], words)
    yield "too long", lambda: of([2, 3], words, FAR)
    for name, values in [*strings(False), *views()]:
        yield f"values: {name}", lambda values=values: of([3], values())  # type: ignore[misc]


def lists() -> Cases:
    """Yields list arrays for `TokenBatch.from_arrow`."""
    import numpy as np
    import pyarrow as pa

    numbers = pa.array([1, 2], pa.uint32())

    def of(offsets: list[int], values: Any = numbers, length: int = 2, large: bool = False) -> Any:
        kind = pa.large_list(values.type) if large else pa.list_(values.type)
        memory = np.array(offsets, np.int64 if large else np.int32).tobytes()
        return array(kind, length, None, memory, children=[values])

    for large in (False, True):
        for offsets in ([0, 1, 3], [0, 1, FAR], [0, 2, 1], [-1, 1, 2], [0, 1]):
            yield f"{offsets} {large}", lambda o=offsets, large=large: of(o, large=large)  # type: ignore[misc]
        yield f"too long {large}", lambda large=large: of([0, 1, 2], length=3, large=large)  # type: ignore[misc]
    yield "fixed size", lambda: array(pa.list_(pa.uint32(), 2), 5, None, children=[numbers])
    yield "chunk", lambda: pa.chunked_array([of([0, 1, 2]), of([0, 1, 3])])
    yield (
        "list view",
        lambda: array(pa.list_view(pa.uint32()), 1, None, [9], [9], children=[numbers]),
    )
    yield (
        "dictionary",
        lambda: pa.DictionaryArray.from_arrays(pa.array([0, 9]), of([0, 1, 2]), safe=False),
    )


LAYOUTS: dict[str, Callable[[], Cases]] = {
    "string": lambda: strings(False),
    "large_string": lambda: strings(True),
    "string_view": views,
    "dictionary": dictionaries,
    "run-end encoded": run_ends,
    "lists": lists,
}


def try_cases(layout: str) -> None:
    """Prints each case before trying it, so that the last line names a case that crashes."""
    import bpe_engine
    from bpe_engine.abilities.ragged import TokenBatch

    gpt2 = bpe_engine.get_encoding("gpt2")
    read = TokenBatch.from_arrow if layout == "lists" else gpt2.encode_batch_to_numpy
    for name, make in LAYOUTS[layout]():
        print(name, end=": ", flush=True)
        try:
            # pyarrow itself refuses some invalid buffers, depending on its version.
            print(read(make()).to_lists())
        except (ValueError, TypeError, MemoryError) as error:
            print("refused:", type(error).__name__, str(error).splitlines()[0])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_lying_arrays_raise(layout: str) -> None:
    pytest.importorskip("pyarrow")
    program = (
        f"import sys; sys.path.append({str(Path(__file__).parent)!r})\n"
        f"from {Path(__file__).stem} import try_cases; try_cases({layout!r})"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, encoding="utf-8"
    )
    assert done.returncode == 0, (done.returncode, done.stdout[-300:], done.stderr[-2000:])
    lines = done.stdout.splitlines()
    assert lines
    for line in lines:
        assert ": refused: " in line, f"a lying array was read: {line}"
