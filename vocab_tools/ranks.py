"""Reads rank files and lists of special tokens.

A rank file has one token per line: ``base64(token bytes) SPACE id``. :func:`read_rank_file` accepts
any file and lists its defects, for checks; :func:`load_ranks` raises an error for a defect.
"""

from __future__ import annotations

import base64
import codecs
import gzip
import itertools
import json
import operator
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn, Union

import bpe_engine
from bpe_engine.common.values import describe, listed, safe_repr
from bpe_engine.read.text_files import decode_file
from bpe_engine.vocabulary import parse_rank_lines

from .arguments import checked_path
from .brief import Brief
from .text import shorten, show

#: A rank file, loaded ranks, or an encoding that has ranks.
RankSource = Union[str, "os.PathLike[str]", Mapping[bytes, int], "bpe_engine.Encoding"]

#: Ids are unsigned 32-bit numbers; the engine reserves the largest number for "no token".
MAX_ID = 2**32 - 2


@dataclass(repr=False)
class RankFile(Brief):
    """The lines of a rank file, valid or not."""

    name: str
    #: Rows of (token, id, line number), in the order of the lines.
    tokens: list[tuple[bytes, int, int]] = field(default_factory=list)
    #: Rows of (line number, defect).
    bad_lines: list[tuple[int, str]] = field(default_factory=list)


def read_rank_file(path: str | os.PathLike[str]) -> RankFile:
    """Reads a rank file, gzip-compressed or not. Lists bad lines instead of raising an error.

    Raises OSError if the file cannot be read, and ValueError for damaged compression.
    """
    contents = Path(path).read_bytes()
    if contents[:2] == b"\x1f\x8b":
        try:
            contents = gzip.decompress(contents)
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(f"{path}: the gzip compression is broken: {error}") from error
    ranks = RankFile(os.fspath(path))
    ranks.tokens, ranks.bad_lines = parse_rank_lines(contents)
    return ranks


def check_token(token: Any, number: Any) -> None:
    """Raises ValueError unless the engine accepts this token with this id."""
    if not isinstance(token, bytes):
        raise ValueError(f"{safe_repr(token)} is not a token: tokens are bytes")
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= MAX_ID:
        raise ValueError(f"{show(token)}: {safe_repr(number)} is not an id from 0 to {MAX_ID}")


def check_special_tokens(special_tokens: Mapping[str, int]) -> None:
    """Raises ValueError unless the engine accepts these names and ids."""
    for name, number in special_tokens.items():
        if not isinstance(name, str):
            raise ValueError(
                f"{safe_repr(name)} is not the name of a special token: names are text"
            )
        if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= MAX_ID:
            raise ValueError(
                f"special token {safe_repr(name)}: {safe_repr(number)} is not an id from 0 to {MAX_ID}"
            )


#: Classes of objects from which ranks can be read.
_SOURCES = (str, os.PathLike, Mapping, bpe_engine.Encoding)


def check_source(source: Any) -> None:
    """Raises TypeError unless the argument is a source of ranks."""
    if isinstance(source, _SOURCES):
        return
    hint = ""
    if isinstance(getattr(source, "tokens", None), Mapping):
        hint = "; give its .tokens for the new tokens, or .extended for all"
    elif isinstance(source, Iterable):
        hint = "; give one base, and the others as what extends it"
    raise TypeError(
        f"{shorten(safe_repr(source))} is not a source of ranks; give the path of a rank file, a "
        f"mapping of bytes to ids, an encoding, or a list of these where several are taken{hint}"
    )


def as_sources(extra: RankSource | Iterable[RankSource]) -> list[RankSource]:
    """Returns one or more sources of ranks as a list.

    Raises TypeError for any other argument.

    >>> as_sources({b"ab": 256}), as_sources(["a.tiktoken", "b.tiktoken"])
    ([{b'ab': 256}], ['a.tiktoken', 'b.tiktoken'])
    """
    several = isinstance(extra, Iterable) and not isinstance(extra, (*_SOURCES, bytes, bytearray))
    sources: list[Any] = listed(extra) if several else [extra]  # type: ignore[arg-type]
    for source in sources:
        check_source(source)
    return sources


def free_ranges(used: Iterable[int], start: int, end: int) -> list[tuple[int, int]]:
    """Returns the unused ids from ``start`` up to ``end``, excluding ``end``.

    The ids are returned as ranges of first and last id: there may be billions of unused ids, but
    at most one more range than used ids.

    >>> free_ranges([3, 4, 9], 0, 4_000_000_000)
    [(0, 2), (5, 8), (10, 3999999999)]
    """
    ranges = []
    for number in sorted({number for number in used if start <= number < end}):
        if number > start:
            ranges.append((start, number - 1))
        start = number + 1
    if start < end:
        ranges.append((start, end - 1))
    return ranges


def count_ids(ranges: Iterable[tuple[int, int]]) -> int:
    """Returns the number of ids in the ranges."""
    return sum(last - first + 1 for first, last in ranges)


def load_ranks(*sources: RankSource) -> dict[bytes, int]:
    """Merges the ranks of a base and its extensions into one mapping in ascending order of ids.

    Raises a ValueError that names the file and line for a bad line, a token with two ids, or an id
    with two tokens; ValueError if there are no tokens; and TypeError for any other argument.

    >>> load_ranks({b"a": 0, b"b": 1}, {b"ab": 5})
    {b'a': 0, b'b': 1, b'ab': 5}
    """
    loaded = [_load(source) for source in sources]
    ids: dict[bytes, int] = {}
    for source in loaded:
        ids.update(_ids(source))
    if not ids:
        raise ValueError("the base has no tokens; it needs at least the single bytes")
    count = sum(len(source.tokens if isinstance(source, RankFile) else source) for source in loaded)
    if not len(ids) == len(set(ids.values())) == count:
        _refuse_repeats(loaded)
    return dict(sorted(ids.items(), key=operator.itemgetter(1)))


def _refuse_repeats(loaded: Iterable[Mapping[bytes, int] | RankFile]) -> NoReturn:
    """Raises a ValueError that names the file and line of the first token with two ids, or of the
    first id with two tokens."""
    ids: dict[bytes, int] = {}
    tokens: dict[int, bytes] = {}
    for token, number, where in itertools.chain.from_iterable(map(_rows, loaded)):
        if ids.get(token) == number:
            raise ValueError(
                f"{where}: the token {show(token)} is there already, with the same id {number}; "
                f"is a file given twice?"
            )
        if token in ids:
            raise ValueError(
                f"{where}: the token {show(token)} has two ids, {ids[token]} and {number}; "
                f"leave one of the lines out"
            )
        if number in tokens:
            raise ValueError(
                f"{where}: two tokens have the id {number}, {show(tokens[number])} and "
                f"{show(token)}; give either another id"
            )
        ids[token] = number
        tokens[number] = token
    raise AssertionError("no token and no id comes twice")


def _load(source: RankSource) -> Mapping[bytes, int] | RankFile:
    """Reads the tokens of a source. Raises ValueError for a line that is not a token and an id."""
    if isinstance(source, bpe_engine.Encoding):
        source = dict(source.mergeable_ranks)
    if isinstance(source, Mapping):
        for token, number in source.items():
            # Handles the common case without a function call.
            if type(token) is not bytes or type(number) is not int or not 0 <= number <= MAX_ID:
                check_token(token, number)
        return source
    check_source(source)
    ranks = read_rank_file(source)
    if ranks.bad_lines:
        line, reason = ranks.bad_lines[0]
        raise ValueError(f"{ranks.name}, line {line}: {reason}")
    return ranks


def _ids(loaded: Mapping[bytes, int] | RankFile) -> Mapping[bytes, int]:
    """Returns the ids of the tokens; the last line of a repeated token counts."""
    if isinstance(loaded, RankFile):
        return {token: number for token, number, _ in loaded.tokens}
    return loaded


def _rows(loaded: Mapping[bytes, int] | RankFile) -> Iterator[tuple[bytes, int, str]]:
    """Yields rows of a token, its id, and a description of its place (file and line)."""
    if isinstance(loaded, RankFile):
        for token, number, line in loaded.tokens:
            yield token, number, f"{loaded.name}, line {line}"
    else:
        for token, number in loaded.items():
            yield token, number, "the ranks"


def dump_ranks(ids: Mapping[bytes, int]) -> bytes:
    """Formats ranks as a rank file in ascending order of ids; an empty token is written as ``=``.

    >>> dump_ranks({"一只".encode(): 7, b"": 8})
    b'5LiA5Y+q 7\\n= 8\\n'
    """
    if not isinstance(ids, Mapping):
        raise TypeError(f"ranks are a mapping of bytes to ids, not {describe(ids)}")
    rows = sorted(ids.items(), key=lambda row: row[1])
    return b"".join((base64.b64encode(token) or b"=") + b" %d\n" % number for token, number in rows)


def _listed_specials(pairs: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Returns the names and ids in a JSON object. All objects were parsed to lists of pairs."""
    fields = dict(pairs)
    if isinstance(fields.get("special_tokens"), list):
        return list(fields["special_tokens"])
    added = fields.get("added_tokens")
    if isinstance(added, list) and all(isinstance(token, list) for token in added):
        tokens = [dict(token) for token in added]
        return [(token.get("content"), token.get("id")) for token in tokens]
    return pairs


def read_special_tokens(path: str | os.PathLike[str]) -> dict[str, int]:
    """Reads special tokens from a JSON object of names and ids, from lines of ``name id``, from the
    added tokens of a ``tokenizer.json``, or from a rank file's sidecar.

    Raises a ValueError that names the line or the value for any other contents.
    """
    contents = Path(checked_path(path)).read_bytes().removeprefix(codecs.BOM_UTF8)
    text = decode_file(contents, os.fspath(path))
    if text.lstrip().startswith("{"):
        try:
            pairs: list[tuple[Any, Any]] = json.loads(text, object_pairs_hook=list)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path}: the JSON is broken: {error}") from error
        rows = [(name, number, repr(name)) for name, number in _listed_specials(pairs)]
    else:
        rows = []
        for line_number, line in enumerate(text.splitlines(), 1):
            if line.strip():
                name, _, digits = line.strip().rpartition("\t" if "\t" in line.strip() else " ")
                value: Any = int(digits) if digits.isdecimal() and len(digits) < 20 else digits
                rows.append((name.strip(), value, f"line {line_number}"))
    special_tokens: dict[str, int] = {}
    for name, number, where in rows:
        if not name or isinstance(number, bool) or not isinstance(number, int):
            raise ValueError(f"{path}, {where}: expected a name and its id")
        if not 0 <= number <= MAX_ID:
            raise ValueError(f"{path}, {where}: {number} is not an id from 0 to {MAX_ID}")
        if name in special_tokens:
            raise ValueError(f"{path}, {where}: {safe_repr(name)} is given twice")
        special_tokens[name] = number
    return special_tokens
