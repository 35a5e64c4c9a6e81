"""Rank files and patterns: what every command starts from.

A rank file holds one token a line: ``base64(token bytes) SPACE id``. Reading is split in two, so
that a linter can look at what a loader must refuse: :func:`read_rank_file` takes anything and
lists what is wrong, :func:`load_ranks` refuses it.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import os
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Union

import bpe_engine
from bpe_engine import _core
from bpe_engine.builtin import BUILTIN

from .words import shorten

#: A rank file, or ranks that are loaded already, or an encoding that has them.
RankSource = Union[str, "os.PathLike[str]", Mapping[bytes, int], "bpe_engine.Encoding"]

#: Ids are unsigned 32-bit numbers; the engine keeps the largest of them for "no token".
MAX_ID = 2**32 - 2

#: The published rank files, by the SHA-256 of their contents.
KNOWN_FILES = {
    "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930": "r50k_base",
    "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069": "p50k_base",
    "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7": "cl100k_base",
    "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d": "o200k_base",
    "b2b1b8dfb5cc5f024bafc373121c6aba3f66f9a5a0269e243470a1de16a33186": "qwen",
}

#: An id that all of those have, with different tokens in most: it rules out the others at once.
PROBE_ID = 50000


@dataclass
class RankFile:
    """The lines of a rank file as they stand, sound or not."""

    name: str
    #: (token, id, line number), in the order of the lines.
    tokens: list[tuple[bytes, int, int]] = field(default_factory=list)
    #: (line number, what is wrong with it).
    bad_lines: list[tuple[int, str]] = field(default_factory=list)
    #: The encoding whose published ranks these are, when they are.
    encoding_name: str | None = None


def show(token: bytes, limit: int = 60) -> str:
    """A token for people: its text in quotes, or its bytes when they are no text.

    >>> show("一只".encode()), show(b" \\xe4")
    ("'一只'", "b' \\\\xe4'")
    """
    try:
        text = repr(token.decode())
    except UnicodeDecodeError:
        text = repr(token)
    return shorten(text, limit)


def read_rank_file(path: str | os.PathLike[str]) -> RankFile:
    """Reads a rank file, gzip-compressed or not, and lists its bad lines instead of raising.

    Raises OSError when the file cannot be read, and ValueError when its compression is broken.
    """
    contents = Path(path).read_bytes()
    if contents[:2] == b"\x1f\x8b":
        try:
            contents = gzip.decompress(contents)
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(f"{path}: the gzip compression is broken: {error}") from error
    ranks = RankFile(os.fspath(path))
    ranks.encoding_name = KNOWN_FILES.get(hashlib.sha256(contents).hexdigest())
    ranks.tokens, ranks.bad_lines = _core.parse_rank_lines(contents)
    return ranks


def check_token(token: Any, number: Any) -> None:
    """Raises ValueError unless these are a token and an id that the engine takes."""
    if not isinstance(token, bytes):
        raise ValueError(f"{token!r} is no token: tokens are bytes")
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= MAX_ID:
        raise ValueError(f"{show(token)}: {number!r} is no id from 0 to {MAX_ID}")


def check_special_tokens(special_tokens: Mapping[str, int]) -> None:
    """Raises ValueError unless these are names and ids."""
    for name, number in special_tokens.items():
        if not isinstance(name, str):
            raise ValueError(f"{name!r} is no special token: their names are text")
        if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= MAX_ID:
            raise ValueError(f"special token {name!r}: {number!r} is no id from 0 to {MAX_ID}")


def as_sources(extra: RankSource | Iterable[RankSource]) -> list[RankSource]:
    """One source, or several, as a list.

    Raises TypeError for anything else.

    >>> as_sources({b"ab": 256}), as_sources(["a.tiktoken", "b.tiktoken"])
    ([{b'ab': 256}], ['a.tiktoken', 'b.tiktoken'])
    """
    kinds = (str, os.PathLike, Mapping, bpe_engine.Encoding)
    several = isinstance(extra, Iterable) and not isinstance(extra, (*kinds, bytes, bytearray))
    sources: list[Any] = list(extra) if several else [extra]  # type: ignore[arg-type]
    for source in sources:
        if not isinstance(source, kinds):
            raise TypeError(
                f"{shorten(repr(source))} is no source of ranks; give the path of a rank file, a "
                f"mapping of bytes to ids, an encoding, or a list of these"
            )
    return sources


def free_ranges(used: Iterable[int], start: int, end: int) -> list[tuple[int, int]]:
    """The ids from ``start`` up to, not including, ``end`` that are not used.

    They come as ranges of first and last id: there may be billions of them, but no more ranges
    than used ids.

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
    """How many ids the ranges hold."""
    return sum(last - first + 1 for first, last in ranges)


def recognise(ranks: Mapping[bytes, int]) -> str | None:
    """The encoding whose published ranks these are, or begin with; None when there is none.

    >>> recognise(bpe_engine.get_encoding("p50k_base")._mergeable_ranks)
    'p50k_base'
    """
    found: tuple[int, str | None] = (0, None)
    for name in KNOWN_FILES.values():
        encoding = bpe_engine.get_encoding(name)
        if ranks.get(encoding.decode_single_token_bytes(PROBE_ID)) != PROBE_ID:
            continue
        published = encoding._mergeable_ranks
        # The longest counts: one published vocabulary begins with another.
        if len(published) > found[0] and published.items() <= ranks.items():
            found = (len(published), name)
    return found[1]


def load_ranks(*sources: RankSource) -> dict[bytes, int]:
    """The ranks of a base and of the files that extend it, as one mapping in the order of ids.

    Raises ValueError, naming the place, for a bad line, for a token with two ids and for an id
    with two tokens; and when there are no tokens at all.

    >>> load_ranks({b"a": 0, b"b": 1}, {b"ab": 5})
    {b'a': 0, b'b': 1, b'ab': 5}
    """
    ids: dict[bytes, int] = {}
    tokens: dict[int, bytes] = {}
    for source in sources:
        for token, number, where in _rows(source):
            if token in ids:
                raise ValueError(
                    f"{where}: the token {show(token)} has two ids, {ids[token]} and {number}; "
                    f"leave one of the lines out"
                )
            if number in tokens:
                raise ValueError(
                    f"{where}: the id {number} stands for two tokens, {show(tokens[number])} and "
                    f"{show(token)}; give one of them another id"
                )
            ids[token] = number
            tokens[number] = token
    if not ids:
        raise ValueError("there are no tokens; a base needs at least its single bytes")
    return dict(sorted(ids.items(), key=lambda row: row[1]))


def read_ranks_like_add_merges(source: RankSource) -> dict[bytes, int]:
    """The ranks as add_merges.py has them: of two lines with one token, the later one counts.

    Raises ValueError for a bad line.
    """
    return {token: number for token, number, _ in _rows(source)}


def _rows(source: RankSource) -> Iterable[tuple[bytes, int, str]]:
    """(token, id, where it stands)."""
    if isinstance(source, bpe_engine.Encoding):
        source = source._mergeable_ranks
    if isinstance(source, Mapping):
        for token, number in source.items():
            check_token(token, number)
            yield token, number, "the ranks"
        return
    ranks = read_rank_file(source)
    if ranks.bad_lines:
        line, reason = ranks.bad_lines[0]
        raise ValueError(f"{ranks.name}, line {line}: {reason}")
    for token, number, line in ranks.tokens:
        yield token, number, f"{ranks.name}, line {line}"


def dump_ranks(ids: Mapping[bytes, int]) -> bytes:
    """The contents of a rank file, in the order of ids.

    >>> dump_ranks({"一只".encode(): 7})
    b'5LiA5Y+q 7\\n'
    """
    rows = sorted(ids.items(), key=lambda row: row[1])
    return b"".join(base64.b64encode(token) + b" %d\n" % number for token, number in rows)


@dataclass(frozen=True)
class Pattern:
    """A pre-tokenisation pattern, and the special tokens that come with its encoding."""

    #: The name of the encoding, or None for a pattern that was given as a regular expression.
    name: str | None
    pat_str: str
    special_tokens: Mapping[str, int]
    #: Whether the encoding brings text into Unicode normalization form C first.
    nfc: bool = False

    def splitter(self) -> bpe_engine.Encoding:
        """An encoding whose ``split`` cuts text by this pattern; its vocabulary is bare bytes."""
        return self.encoding({bytes([byte]): byte for byte in range(256)}, {})

    def encoding(
        self, ranks: Mapping[bytes, int], special_tokens: Mapping[str, int]
    ) -> bpe_engine.Encoding:
        """An encoding of ``ranks`` with this pattern."""
        return bpe_engine.Encoding(
            self.name or "extended",
            pat_str=self.pat_str,
            mergeable_ranks=dict(ranks),
            special_tokens=dict(special_tokens),
        )


def find_pattern(pattern: str, ranks: Mapping[bytes, int]) -> Pattern:
    """The pattern with this name of an encoding, or else this regular expression.

    The special tokens of the named encoding are taken along, unless ``ranks`` uses every one of
    their ids itself: then the ranks are not of that encoding.

    Raises ValueError when a regular expression does not compile.
    """
    if pattern in BUILTIN:
        builtin = BUILTIN[pattern]
        named = Pattern(
            pattern, builtin.pattern, builtin.special_tokens, nfc=builtin.normalization == "NFC"
        )
    elif pattern in bpe_engine.list_encoding_names():
        encoding = bpe_engine.get_encoding(pattern)
        named = Pattern(pattern, encoding._pat_str, encoding._special_tokens)
    else:
        named = Pattern(None, pattern, {})
        named.splitter()
    used = set(ranks.values())
    if all(number in used for number in named.special_tokens.values()):
        return replace(named, special_tokens={})
    return named


def encoding_pattern(encoding: bpe_engine.Encoding) -> str:
    """What :func:`find_pattern` takes for the pattern of this encoding: its name, if it can."""
    builtin = BUILTIN.get(encoding.name)
    if builtin is not None and builtin.pattern == encoding._pat_str:
        return encoding.name
    return encoding._pat_str


def read_special_tokens(path: str | os.PathLike[str]) -> dict[str, int]:
    """Reads special tokens: a JSON object of name and id, or one ``name id`` a line.

    Raises ValueError, naming the line or the value, for anything else.
    """
    text = Path(path).read_text(encoding="utf-8-sig")
    if text.lstrip().startswith("{"):
        try:
            pairs: list[tuple[Any, Any]] = json.loads(text, object_pairs_hook=list)
        except json.JSONDecodeError as error:
            raise ValueError(f"{path}: the JSON is broken: {error}") from error
        rows = [(name, number, repr(name)) for name, number in pairs]
    else:
        rows = []
        for line_number, line in enumerate(text.splitlines(), 1):
            if line.strip():
                name, _, digits = line.strip().rpartition("\t" if "\t" in line.strip() else " ")
                value: Any = int(digits) if digits.isdecimal() else digits
                rows.append((name.strip(), value, f"line {line_number}"))
    special_tokens: dict[str, int] = {}
    for name, number, where in rows:
        if not name or isinstance(number, bool) or not isinstance(number, int):
            raise ValueError(f"{path}, {where}: expected a name and its id")
        if not 0 <= number <= MAX_ID:
            raise ValueError(f"{path}, {where}: {number} is no id from 0 to {MAX_ID}")
        if name in special_tokens:
            raise ValueError(f"{path}, {where}: {name!r} is given twice")
        special_tokens[name] = number
    return special_tokens
