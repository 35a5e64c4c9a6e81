"""What is read: files that were taken for each other, pipes given twice, and standard input."""

from __future__ import annotations

import base64
import binascii
import os
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

import click

from ..files import STANDARD
from ..words import WordSource

#: What a file is by its first line.
Kind = Literal["ranks", "words"]

_NAMES: dict[Kind, str] = {
    "ranks": "a rank file",
    "words": "a word list",
}


def word_source(path: str) -> WordSource:
    """A word list: a file, or standard input."""
    return sys.stdin.buffer if path == STANDARD else path


def special_inputs(path: str | None) -> list[str]:
    """The file that ``--special-tokens`` names, when it names one."""
    return [] if path in (None, "none") else [str(path)]


def refuse_repeated(paths: Iterable[str]) -> None:
    """Raises UsageError when a pipe, which can be read only once, is given twice."""
    pipes: list[str] = []
    for path in paths:
        if path != STANDARD and (os.path.isfile(path) or not os.path.exists(path)):
            continue
        for other in pipes:
            if path == other or (STANDARD not in (path, other) and os.path.samefile(path, other)):
                name = "standard input (-)" if path == STANDARD else path
                raise click.UsageError(f"{name} is given twice, and can be read only once")
        pipes.append(path)


def expect_ranks(role: str, paths: Sequence[str], usage: str) -> None:
    """Raises UsageError when one of the files is a word list, and so no rank file.

    Args:
        role: what the files are on the command line, such as BASE.
        paths: the files.
        usage: what should be given where.
    """
    for path in paths:
        if kind_of(path) == "words":
            _refuse(path, "words", role, "ranks", usage)


def expect_words(role: str, path: str | None, usage: str) -> None:
    """Raises UsageError when the file is a rank file, and so no word list."""
    if path is not None and kind_of(path) == "ranks":
        _refuse(path, "ranks", role, "words", usage)


def expect_text(role: str, paths: Sequence[str], usage: str) -> None:
    """Raises UsageError when one of the files is a rank file, and so no text."""
    for path in paths:
        if kind_of(path) == "ranks":
            raise click.UsageError(f"{path} is a rank file, and {role} must be text: {usage}")


def _refuse(path: str, kind: Kind, role: str, wanted: Kind, usage: str) -> None:
    raise click.UsageError(
        f"{path} is {_NAMES[kind]}, and {role} must be {_NAMES[wanted]}: {usage}"
    )


def kind_of(path: str) -> Kind | None:
    """What a file is by its first lines; None where they do not tell, or it cannot be read twice."""
    if not os.path.isfile(path):
        # What is read from a pipe is gone.
        return None
    with open(path, "rb") as file:
        start = file.read(4096)
    # The last line may be cut off.
    lines = (start if len(start) < 4096 else start.rpartition(b"\n")[0]).splitlines()
    if any(lines) and all(
        re.fullmatch(rb"[^\t]+\t\s*\d+(\.0*)?\s*", line) for line in lines if line
    ):
        return "words"
    ids = [_rank(line) for line in lines]
    # Two lines of text may look like ranks, but hardly three with ids that grow.
    grow = all(
        one is not None and other is not None and one < other for one, other in zip(ids, ids[1:])
    )
    is_named = Path(path).name.endswith((".tiktoken", ".tiktoken.gz"))
    return "ranks" if is_named or (len(ids) > 2 and grow) else None


def _rank(line: bytes) -> int | None:
    """The id of a line of a rank file; None for any other line."""
    found = re.fullmatch(rb"([A-Za-z0-9+/]+=*) (\d{1,10})", line.strip())
    if found is None:
        return None
    try:
        base64.b64decode(found[1], validate=True)
    except binascii.Error:
        return None
    return int(found[2])
