"""Checks input files: arguments in the wrong order, pipes given twice, standard input."""

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

from bpe_engine.texts.access import STANDARD

from ..words import WordSource

#: The kind of a file.
Kind = Literal["ranks", "words"]

_NAMES = {"ranks": "a rank file", "words": "a word list", "text": "text"}


def word_source(path: str) -> WordSource:
    """Returns a word list: a path, or standard input."""
    return sys.stdin.buffer if path == STANDARD else path


def special_inputs(path: str | None) -> list[str]:
    """Returns the file that ``--special-tokens`` names, if any."""
    return [] if path in (None, "none") else [str(path)]


def refuse_repeated(paths: Iterable[str]) -> None:
    """Raises UsageError if a pipe is given twice, because a pipe can be read only once."""
    pipes: list[str] = []
    for path in paths:
        if path != STANDARD and (os.path.isfile(path) or not os.path.exists(path)):
            continue
        for other in pipes:
            if path == other or (STANDARD not in (path, other) and os.path.samefile(path, other)):
                name = "standard input (-)" if path == STANDARD else path
                raise click.UsageError(f"{name} is given twice, and can be read only once")
        pipes.append(path)


def expect(
    wanted: Literal["ranks", "words", "text"], role: str, paths: Sequence[str], usage: str
) -> None:
    """Raises UsageError if a file is of the wrong kind.

    Args:
        wanted: the required kind. Ranks are never a word list or text; a word list is never ranks.
        role: the argument on the command line, such as BASE.
        paths: the files.
        usage: the usage line for the message.
    """
    refused: Kind = "words" if wanted == "ranks" else "ranks"
    for path in paths:
        if kind_of(path) == refused:
            raise click.UsageError(
                f"{path} is {_NAMES[refused]}, and {role} must be {_NAMES[wanted]}: {usage}"
            )


def kind_of(path: str) -> Kind | None:
    """Returns the kind of a file, by its first lines; None for an unknown kind or a pipe."""
    if not os.path.isfile(path):
        # Looking at a pipe would consume its text.
        return None
    with open(path, "rb") as file:
        start = file.read(4096)
    # The last line may be incomplete.
    lines = (start if len(start) < 4096 else start.rpartition(b"\n")[0]).splitlines()
    if any(lines) and all(
        re.fullmatch(rb"[^\t]+\t\s*\d+(\.0*)?\s*", line) for line in lines if line
    ):
        return "words"
    ids = [_rank(line) for line in lines]
    # Two lines of text may look like ranks, but three lines with ascending ids hardly ever do.
    grow = all(
        one is not None and other is not None and one < other for one, other in zip(ids, ids[1:])
    )
    is_named = Path(path).name.endswith((".tiktoken", ".tiktoken.gz"))
    return "ranks" if is_named or (len(ids) > 2 and grow) else None


def expect_ranks(paths: Iterable[str]) -> None:
    """Raises UsageError for a text file, because a check would report each of its lines."""
    for path in paths:
        if kind_of(path) is not None or not os.path.isfile(path):
            continue
        with open(path, "rb") as file:
            lines = [line for line in file.read(4096).splitlines() if line.strip()][:-1]
        if len(lines) > 1 and not any(re.match(rb"[A-Za-z0-9+/=]+\s+-?\d+\s*$", x) for x in lines):
            raise click.UsageError(
                f"{path} is not a rank file, whose lines are a token in base64, a space and its id; "
                "text to compare on is given with --corpus"
            )


def _rank(line: bytes) -> int | None:
    """Returns the id in a line of a rank file; None if the line has a different form."""
    found = re.fullmatch(rb"([A-Za-z0-9+/]+=*) (\d{1,10})", line.strip())
    if found is None:
        return None
    try:
        base64.b64decode(found[1], validate=True)
    except binascii.Error:
        return None
    return int(found[2])


def base_inputs(base: str | None) -> list[str]:
    """Returns the file or folder of a base in a list; empty for the name of an encoding."""
    return [base] if base is not None and os.path.exists(base) else []
