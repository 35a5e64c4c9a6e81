"""Reads JSON lines: whole files, also compressed, or ranges of bytes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from .block import AT_ONCE, LONGEST, Block, block_of
from .errors import CorpusError
from .fields import Fields, field_path
from .json_row import Refused, row_of

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["line_blocks", "lines_before"]

_OPEN, _CLOSE, _RETURN, _NEWLINE = b"{}\r\n"
_TOO_LONG = f"the line is longer than {LONGEST:,} bytes"


def lines_before(stream: Any, end: int) -> int:
    """Returns the number of lines that end before a byte offset."""
    count = position = 0
    while position < end:
        data = stream.read(min(AT_ONCE, end - position))
        if not data:
            break
        count += data.count(b"\n")
        position += len(data)
    return count


def line_blocks(
    stream: Any, uri: str, start: int, end: int | None, fields: Fields
) -> Iterator[Block]:
    """Yields the lines that begin in a byte range, without blank lines.

    Args:
        stream: The file at byte ``max(start - 1, 0)``.
        uri: The name of the file.
        start, end: The range; None is the end of the file.
        fields: The fields to read.
    """
    line, begins, rest = 1, start, b""
    if start > 0:
        # A line that begins before the range belongs to the previous part.
        begins, rest = _next_line(stream, start - 1)
    for lines in _whole_lines(stream, rest):
        if end is not None and begins >= end:
            return
        if lines.data is None:
            block = _too_long(line, fields)
        else:
            ends = lines.ends
            if end is not None and begins + lines.size > end:
                # The last line contains the byte before the end.
                ends = ends[: ends.searchsorted(end - begins - 1) + 1]
            has_mark = begins == 0 and lines.data[:3].to_pybytes() == b"\xef\xbb\xbf"
            block = _parsed(lines.data, 3 * has_mark, ends, line, uri, fields)
        begins += lines.size
        line += len(lines.ends)
        del lines
        yield block


class _Lines(NamedTuple):
    #: The bytes of the lines, as a ``pyarrow.Buffer``; None for one line that is too long.
    data: Any
    #: The end of each line.
    ends: npt.NDArray[np.int64]
    size: int


def _next_line(stream: Any, position: int) -> tuple[int, bytes]:
    while data := stream.read(AT_ONCE):
        found = data.find(b"\n")
        if found >= 0:
            return position + found + 1, data[found + 1 :]
        position += len(data)
    return position, b""


def _whole_lines(stream: Any, rest: bytes) -> Iterator[_Lines]:
    import numpy as np
    import pyarrow as pa

    dropped, count = 0, 1  # Bytes dropped from an oversized line, and bytes read.
    while count:
        # pyarrow reuses memory; a bytes object would request memory from the system each time.
        room = max(AT_ONCE, min(len(rest), LONGEST - len(rest)))
        buffer = pa.allocate_buffer(len(rest) + room)
        view = memoryview(buffer).cast("B")
        view[: len(rest)] = rest
        count = stream.readinto(view[len(rest) :])
        size = len(rest) + count
        ends = np.flatnonzero(np.frombuffer(buffer, np.uint8, size) == _NEWLINE)
        first = 0
        if dropped and len(ends):
            first = int(ends[0]) + 1
            yield _Lines(None, ends[:1], dropped + first)
            ends, dropped = ends[1:], 0
        cut = int(ends[-1]) + 1 if len(ends) else first
        whole = [_Lines(buffer.slice(first, cut - first), ends - first, cut - first)]
        rest = bytes(view[cut:size])
        if dropped or len(rest) > LONGEST:
            rest, dropped = b"", dropped + len(rest)
        del view, buffer  # The consumer may hold the last reference to the lines.
        if cut > first:
            yield whole.pop()
    last = np.array([len(rest)])
    if dropped:
        yield _Lines(None, last, dropped)
    elif rest:
        yield _Lines(pa.py_buffer(rest), last, len(rest))


def _too_long(line: int, fields: Fields) -> Block:
    import numpy as np
    import pyarrow as pa

    texts = [None] if fields.as_objects else pa.nulls(1, pa.large_string())
    names = None if fields.name is None else pa.nulls(1, pa.string())
    return Block(texts, names, np.array([line], np.int64), [(0, _TOO_LONG)])


def _parsed(
    data: Any, first: int, ends: npt.NDArray[np.int64], first_line: int, uri: str, fields: Fields
) -> Block:
    import numpy as np

    starts = np.empty_like(ends)
    starts[:1], starts[1:] = first, ends[:-1] + 1
    lines = np.arange(first_line, first_line + len(ends), dtype=np.int64)
    are_objects = _look_like_objects(data, starts, ends)
    if not are_objects.all():
        kept = _have_ink(data, starts, int(ends[-1]))
        starts, ends, lines = starts[kept], ends[kept], lines[kept]
        are_objects = are_objects[kept]
    spans = list(zip(starts.tolist(), ends.tolist()))
    if fields.as_objects:
        return _judged(data, spans, lines, uri, fields)
    if len(spans) and are_objects.all():
        part = data.slice(spans[0][0], spans[-1][1] - spans[0][0])
        columns = _arrow_columns(part, len(spans), fields)
        if columns is not None:
            return _explained(block_of(*columns, lines, uri, fields), data, spans, fields)
    return _judged(data, spans, lines, uri, fields)


def _look_like_objects(data: Any, starts: Any, ends: Any) -> npt.NDArray[np.bool_]:
    """Returns a mask of the lines that begin and end with a brace."""
    import numpy as np

    raw = np.frombuffer(data, np.uint8)
    last = ends - 1 - (raw[np.maximum(ends - 1, 0)] == _RETURN)
    found = (last > starts) & (raw[np.minimum(starts, len(raw) - 1)] == _OPEN)
    return found & (raw[np.maximum(last, 0)] == _CLOSE)  # type: ignore[no-any-return]


def _have_ink(data: Any, starts: Any, end: int) -> npt.NDArray[np.bool_]:
    """Returns a mask of the nonblank lines. A line ends where the next line starts."""
    import numpy as np

    has_ink = np.ones(256, bool)
    has_ink[list(b" \t\r\n")] = False
    # One extra byte for an empty last line.
    ink = np.append(has_ink[np.frombuffer(data, np.uint8, end)], False)
    return np.logical_or.reduceat(ink, starts)


def _arrow_columns(part: Any, count: int, fields: Fields) -> tuple[Any, Any] | None:
    """Returns the columns of texts and names, or None if pyarrow refuses a line."""
    import pyarrow as pa

    for kind in [None] if fields.name is None else [pa.string(), pa.int64()]:
        try:
            texts, names = _columns(part, fields, kind)
        except pa.ArrowInvalid:
            continue
        if len(texts) == count:
            return texts, names
    return None


def _explained(block: Block, data: Any, spans: list[tuple[int, int]], fields: Fields) -> Block:
    """Takes the reasons for bad rows, a missing or null field, from `_judge`."""
    view = memoryview(data)
    bad = [
        (row, _judge(bytes(view[slice(*spans[row])]), fields)[2] or reason)
        for row, reason in block.bad
    ]
    return block._replace(bad=bad)


def _columns(part: Any, fields: Fields, name_kind: Any | None) -> tuple[Any, Any]:
    import pyarrow as pa
    import pyarrow.json

    tree: dict[str, Any] = {}
    text, name = field_path(fields.text), field_path(fields.name or "")
    _put(tree, text, pa.large_string())
    if name_kind is not None:
        _put(tree, name, name_kind)
    table = pyarrow.json.read_json(
        pa.BufferReader(part),
        pyarrow.json.ReadOptions(use_threads=False, block_size=part.size + 1),
        pyarrow.json.ParseOptions(
            explicit_schema=pa.schema(_kind(tree)), unexpected_field_behavior="ignore"
        ),
    )
    texts = _column(table, text)
    return texts, None if name_kind is None else _column(table, name).cast(pa.string())


def _put(tree: dict[str, Any], path: list[str], kind: Any) -> None:
    for name in path[:-1]:
        tree = tree.setdefault(name, {})
        if not isinstance(tree, dict):
            raise CorpusError(f"the field {name!r} cannot be text and hold another field")
    if path[-1] in tree:
        raise CorpusError(f"the field {'.'.join(path)!r} is given twice")
    tree[path[-1]] = kind


def _kind(tree: dict[str, Any]) -> list[tuple[str, Any]]:
    import pyarrow as pa

    return [
        (name, pa.struct(_kind(kind)) if isinstance(kind, dict) else kind)
        for name, kind in tree.items()
    ]


def _column(table: Any, path: list[str]) -> Any:
    import pyarrow.compute as compute

    column = table.column(path[0]).combine_chunks()
    return compute.struct_field(column, path[1:]) if path[1:] else column


def _judged(data: Any, spans: list[tuple[int, int]], lines: Any, uri: str, fields: Fields) -> Block:
    import pyarrow as pa

    view = memoryview(data)
    rows = [_judge(bytes(view[start:end]), fields) for start, end in spans]
    bad = [(row, reason) for row, (_, _, reason) in enumerate(rows) if reason is not None]
    texts: Any = [text for text, _, _ in rows]
    names = None
    if fields.name is not None:
        names = pa.array([name for _, name, _ in rows], pa.string())
    if not fields.as_objects:
        texts = pa.array(texts, pa.large_string())
    return Block(texts, names, lines, bad)


def _judge(line: bytes, fields: Fields) -> tuple[Any, Any, str | None]:
    """Returns the value and name of a line and no reason, or None for both and the reason."""
    try:
        return (*row_of(line, fields), None)
    except Refused as error:
        reason = str(error)
    except RecursionError:
        reason = "broken JSON: it is nested too deeply"
    # pyarrow has no depth limit and accepts "Inf".
    if not fields.as_objects and (b"Inf" in line or "deeply" in reason):
        return _arrow_row(line, fields, reason)
    return None, None, reason


def _arrow_row(line: bytes, fields: Fields, reason: str) -> tuple[Any, Any, str | None]:
    import numpy as np
    import pyarrow as pa

    columns = _arrow_columns(pa.py_buffer(line), 1, fields)
    if columns is None:
        return None, None, reason
    texts, names, _, bad = block_of(*columns, np.ones(1, np.int64), "", fields)
    if bad:
        return None, None, bad[0][1]
    return texts[0].as_py(), None if names is None else names[0].as_py(), None
