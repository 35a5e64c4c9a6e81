"""Reads JSON lines: whole files, also compressed, or ranges of bytes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import CorpusError
from .block import AT_ONCE, LONGEST, Block, Fields, block_of, field_path

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["line_blocks", "lines_before"]

_OPEN, _CLOSE, _RETURN, _NEWLINE = b"{}\r\n"
_JSON_KINDS = {
    str: "text",
    bool: "true or false",
    int: "a number",
    float: "a floating-point number",
    list: "an array",
    dict: "an object",
}
_TOO_LONG = f"the line is longer than {LONGEST:,} bytes"


def lines_before(stream: Any, end: int) -> int:
    """Returns how many lines end before a byte of a file."""
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
    """Yields the lines that begin in a range of bytes. Lines of white space are no rows.

    Args:
        stream: The file, at byte ``start``, or one byte before it if that is not 0.
        uri: Its name.
        start, end: The range; None is the end of the file.
        fields: What to read.
    """
    line, begins, rest = 1, start, b""
    if start > 0:
        # A line that begins before the range is read by the part before.
        begins, rest = _next_line(stream, start - 1)
    for lines in _whole_lines(stream, rest):
        if end is not None and begins >= end:
            return
        if lines.data is None:
            block = _too_long(line, fields)
        else:
            ends = lines.ends
            if end is not None and begins + lines.size > end:
                # The last line is the one that holds the byte before the end.
                ends = ends[: ends.searchsorted(end - begins - 1) + 1]
            has_mark = begins == 0 and lines.data[:3].to_pybytes() == b"\xef\xbb\xbf"
            block = _parsed(lines.data, 3 * has_mark, ends, line, uri, fields)
        begins += lines.size
        line += len(lines.ends)
        del lines
        yield block


class _Lines(NamedTuple):
    """Whole lines of a file."""

    #: Their bytes, a ``pyarrow.Buffer``; None for one line that is too long.
    data: Any
    #: Where each of them ends.
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
    """Yields all lines, those of about `AT_ONCE` bytes at a time."""
    import numpy as np
    import pyarrow as pa

    dropped, count = 0, 1  # Bytes of a line that is too long, and bytes read.
    while count:
        # pyarrow uses its memory again; that of bytes would come from the system each time.
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
        del view, buffer  # Who gets the lines may be the last one that holds them.
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
    data: Any,
    first: int,
    ends: npt.NDArray[np.int64],
    first_line: int,
    uri: str,
    fields: Fields,
) -> Block:
    """Parses the lines that begin at `first` and after each of the ends."""
    import numpy as np

    raw = np.frombuffer(data, np.uint8)
    starts = np.empty_like(ends)
    starts[:1], starts[1:] = first, ends[:-1] + 1
    lines = np.arange(first_line, first_line + len(ends), dtype=np.int64)
    # An object a line: where its first and last bytes are not those of one, look closer.
    last = ends - 1 - (raw[np.maximum(ends - 1, 0)] == _RETURN)
    plain = (last > starts) & (raw[np.minimum(starts, len(raw) - 1)] == _OPEN)
    plain &= raw[np.maximum(last, 0)] == _CLOSE
    if not plain.all():
        kept = np.ones(len(ends), bool)
        for place in np.flatnonzero(~plain).tolist():
            line = data[starts[place] : ends[place]].to_pybytes().strip(b" \t\r")
            kept[place] = bool(line)
            plain[place] = line.startswith(b"{") and line.endswith(b"}")
        starts, ends, lines, plain = starts[kept], ends[kept], lines[kept], plain[kept]
    if fields.as_objects:
        return _objects(data, starts.tolist(), ends.tolist(), lines, fields)
    parser = _Parser(data, starts, ends, plain, fields)
    texts, names = parser.columns()
    block = block_of(texts, names, lines, uri, fields)
    known = dict(parser.bad)
    # Null here is what the parser refused, a missing field or null: look closer at these lines.
    bad = [(row, known.get(row) or parser.reason(row, reason)) for row, reason in block.bad]
    return block._replace(bad=bad)


class _Parser:
    """Parses lines together. Where that fails, finds those that are broken and parses the others."""

    def __init__(self, data: Any, starts: Any, ends: Any, plain: Any, fields: Fields):
        self.data, self.starts, self.ends, self.plain = data, starts, ends, plain
        self.fields = fields
        self.bad: list[tuple[int, str]] = []
        #: The names of lines that `json` has read.
        self.names: dict[int, str | None] = {}
        self.text, self.name = field_path(fields.text), field_path(fields.name or "")

    def columns(self, is_searched: bool = False) -> tuple[Any, Any]:
        import pyarrow as pa

        parts = self._parse(0, len(self.starts), is_searched) if len(self.starts) else []
        if len(parts) == 1:
            return parts[0]
        texts = [texts for texts, _ in parts] or [pa.nulls(0, pa.large_string())]
        names = [names for _, names in parts] or [pa.nulls(0, pa.string())]
        has_names = self.fields.name is not None
        return pa.concat_arrays(texts), pa.concat_arrays(names) if has_names else None

    def _parse(self, first: int, last: int, is_searched: bool = False) -> list[tuple[Any, Any]]:
        import pyarrow as pa

        reason = "it is not a JSON object"
        if self.plain[first:last].all():
            start = int(self.starts[first])
            part = self.data.slice(start, int(self.ends[last - 1]) - start)
            kinds = [pa.string(), pa.int64()] if self.fields.name is not None else [None]
            if is_searched and all(row in self.names for row in range(first, last)):
                kinds = [None]
            for kind in kinds:
                try:
                    found = self._columns(part, kind)
                    if len(found[0]) == last - first:
                        if kind is None and self.fields.name is not None:
                            known = [self.names[row] for row in range(first, last)]
                            found = found[0], pa.array(known, pa.string())
                        return [found]
                    reason = "it has more than one JSON value"
                except pa.ArrowInvalid as error:
                    reason = str(error).removeprefix("JSON parse error: ").split(" in row ")[0]
        if not is_searched:
            return self._parse_around_broken(first, last)
        if last - first > 1:
            middle = (first + last) // 2
            return self._parse(first, middle, True) + self._parse(middle, last, True)
        self.bad.append((first, f"broken JSON: {reason}"))
        return [(pa.nulls(1, pa.large_string()), pa.nulls(1, pa.string()))]

    def _parse_around_broken(self, first: int, last: int) -> list[tuple[Any, Any]]:
        """Parses the lines that `json` does not refuse, put together, and leaves null for the others.

        A call of pyarrow for each broken line, or each good one between them, would take much longer.
        """
        import numpy as np
        import pyarrow as pa

        broken = [(row, reason) for row in range(first, last) if (reason := self._broken(row))]
        if not broken:
            return self._parse(first, last, True)
        self.bad += broken
        is_good = np.ones(last - first, bool)
        is_good[[row - first for row, _ in broken]] = False
        rows = (np.flatnonzero(is_good) + first).tolist()
        lines = [self._line(row) for row in rows]
        ends = np.cumsum([len(line) + 1 for line in lines], dtype=np.int64) - 1
        starts = np.concatenate([np.zeros(1, np.int64), ends + 1])[: len(rows)]
        data = pa.py_buffer(b"\n".join(lines))
        others = _Parser(data, starts, ends, self.plain[rows], self.fields)
        others.names = {at: self.names[row] for at, row in enumerate(rows) if row in self.names}
        columns = others.columns(is_searched=True)
        self.bad += [(rows[at], reason) for at, reason in others.bad]
        places = pa.array(np.cumsum(is_good) - 1, mask=~is_good)
        return [tuple(it if it is None else it.take(places) for it in columns)]  # type: ignore[list-item]

    def _broken(self, row: int) -> str | None:
        """Returns why a line is not an object with text, or None if that is for pyarrow to say."""
        if not self.plain[row]:
            return "broken JSON: it is not a JSON object"
        try:
            line = _loaded(self._line(row))
            if self.fields.name is not None:
                self.names[row] = _name(line, self.name)
            value = _dug(line, self.text)
            if value is not None:
                _check_text(value, self.text, "text")
        except _Missing:
            return None
        except _Refused as error:
            return str(error)
        except (ValueError, RecursionError):
            return None
        return None

    def _columns(self, part: Any, name_kind: Any | None) -> tuple[Any, Any]:
        import pyarrow as pa
        import pyarrow.json

        tree: dict[str, Any] = {}
        _put(tree, self.text, pa.large_string())
        if name_kind is not None:
            _put(tree, self.name, name_kind)
        table = pyarrow.json.read_json(
            pa.BufferReader(part),
            pyarrow.json.ReadOptions(use_threads=False, block_size=part.size + 1),
            pyarrow.json.ParseOptions(
                explicit_schema=pa.schema(_kind(tree)), unexpected_field_behavior="ignore"
            ),
        )
        texts = _column(table, self.text)
        if name_kind is None:
            return texts, None
        return texts, _column(table, self.name).cast(pa.string())

    def _line(self, row: int) -> bytes:
        start = int(self.starts[row])
        line: bytes = self.data.slice(start, int(self.ends[row]) - start).to_pybytes()
        return line

    def reason(self, row: int, otherwise: str) -> str:
        """Says whether a field is missing or null."""
        try:
            _dug(_loaded(self._line(row)), self.text)
        except _Refused as error:
            return str(error)
        except (ValueError, RecursionError):
            pass
        return otherwise


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


class _Refused(Exception):
    """A line of which no row can be made, and why."""


class _Missing(_Refused):
    """A field is not there, or what holds it is null: null for pyarrow."""


def _loaded(line: bytes) -> Any:
    """Reads a line. Raises ValueError and RecursionError for what `json` cannot say."""
    try:
        return json.loads(line.decode())
    except json.JSONDecodeError as error:
        reason = f"{error.msg.removesuffix(' at')} at column {error.colno}"
        if error.msg == "Extra data":
            reason = "it has more than one JSON value"
        raise _Refused(f"broken JSON: {reason}") from None


def _dug(row: Any, path: list[str]) -> Any:
    """Returns a nested field."""
    for place, name in enumerate(path):
        above, here = ".".join(path[:place]), ".".join(path[: place + 1])
        if row is None and place:
            raise _Missing(f"the field {above!r} is null")
        if not isinstance(row, dict):
            raise _Refused(
                f"the field {above!r} is {_JSON_KINDS[type(row)]}, not an object"
                if place
                else "broken JSON: it is not a JSON object"
            )
        if name not in row:
            has = ", ".join(map(repr, list(row)[:8])) or "nothing"
            raise _Missing(f"the field {here!r} is missing; there is {has}")
        row = row[name]
    return row


def _name(row: Any, path: list[str]) -> str | None:
    """Returns the name of a row: text or a whole number. A row may have none."""
    try:
        name = _dug(row, path)
    except _Missing:
        return None
    if name is None:
        return None
    if type(name) is int:
        return str(name)
    _check_text(name, path, "a name")
    return str(name)


def _check_text(value: Any, path: list[str], wanted: str) -> None:
    if not isinstance(value, str):
        kind = _JSON_KINDS[type(value)]
        raise _Refused(f"the field {'.'.join(path)!r} is {kind}, not {wanted}")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise _Refused(f"broken JSON: a lone surrogate, {value[error.start]!a}") from None


def _objects(data: Any, starts: list[int], ends: list[int], lines: Any, fields: Fields) -> Block:
    import pyarrow as pa

    rows: list[Any] = []
    names: list[str | None] = []
    bad = []
    for place, (start, end) in enumerate(zip(starts, ends)):
        value = name = None
        try:
            row = _loaded(data[start:end].to_pybytes())
            value = _dug(row, field_path(fields.text))
            if fields.name is not None:
                name = _name(row, field_path(fields.name))
            if value is None:
                bad.append((place, f"the field {fields.text!r} is null"))
        except _Refused as error:
            bad.append((place, str(error)))
        except UnicodeDecodeError as error:
            bad.append((place, f"invalid UTF-8: byte 0x{error.object[error.start]:02x}"))
        except (ValueError, RecursionError) as error:
            bad.append((place, f"broken JSON: {error}"))
        rows.append(value)
        names.append(name)
    arrow_names = None if fields.name is None else pa.array(names, pa.string())
    return Block(rows, arrow_names, lines, bad)
