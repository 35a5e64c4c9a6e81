"""Counts so far, in a file that a stopped run goes on from.

The file is a sorted file of counts, as the engine writes them, and behind it JSON that says what
was counted, with its length in the last eight bytes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from bpe_engine import vocabulary

from .cutting import Cutting


def checkpoint_of(path: str, corpus: int, stage: int) -> str:
    """The file for the counts of one corpus of several, and of the second stage with superwords.

    >>> checkpoint_of("out.checkpoint", 0, 0), checkpoint_of("out.checkpoint", 2, 1)
    ('out.checkpoint', 'out.checkpoint.lines-2')
    """
    return path + (".lines" if stage else "") + (f"-{corpus}" if corpus else "")


def write_checkpoint(
    path: str, counts: list[str] | vocabulary.PieceCounts, state: Mapping[str, Any]
) -> None:
    """Writes the sum of files of counts, or counts in memory, with a state. The file appears at
    once, and whole."""
    partial = f"{path}.{os.getpid()}"
    try:
        if isinstance(counts, list):
            vocabulary.merge_counts(counts, partial)
        else:
            counts.write(partial)
        contents = json.dumps(state).encode()
        with open(partial, "ab") as file:
            file.write(contents + len(contents).to_bytes(8, "little"))
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except BaseException:
        if os.path.exists(partial):
            os.unlink(partial)
        raise


def read_state(path: str) -> dict[str, Any]:
    """The state of a checkpoint. Raises ValueError when the file is none, or damaged."""
    if not os.path.isfile(path) and os.path.exists(path):
        raise ValueError(f"{path} is no regular file; name another for the checkpoint")
    try:
        with open(path, "rb") as file:
            file.seek(-8, os.SEEK_END)
            length = int.from_bytes(file.read(8), "little")
            file.seek(-8 - length, os.SEEK_END)
            state = json.loads(file.read(length))
    except (OSError, ValueError) as error:
        if isinstance(error, FileNotFoundError):
            raise
        raise ValueError(f"{path} is no checkpoint, or it is damaged; name another file") from error
    if not isinstance(state, dict) or not _is_state(state):
        raise ValueError(f"{path} is no checkpoint, or it is damaged; name another file")
    return state


def _is_state(state: Mapping[str, Any]) -> bool:
    files = state.get("files")
    numbers = [state.get(name) for name in ("file", "blocks", "characters")]
    return (
        isinstance(files, list)
        and all(isinstance(file, list) and len(file) == 3 for file in files)
        and all(isinstance(number, int) and number >= 0 for number in numbers)
    )


def describe(files: Sequence[str], cutting: Cutting, field: str, errors: str) -> dict[str, Any]:
    """What a checkpoint is of: it fits only a run of the same files and settings."""
    return {
        "cutting": json.loads(cutting.dump()),
        "field": field,
        "errors": errors,
        "files": [_file(path) for path in files],
    }


def _file(path: str) -> list[Any]:
    """The file, and what changes when its contents do."""
    if not os.path.isfile(path):
        return [path, None, None]
    found = os.stat(path)
    return [os.path.abspath(path), found.st_size, found.st_mtime_ns]


def check_fits(path: str, state: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """Raises ValueError, naming what differs, unless a checkpoint is of this run."""
    for name, value in wanted.items():
        if state.get(name) == value:
            continue
        what = name
        if name == "files":
            pairs = zip(state["files"], value)
            changed = [new[0] for old, new in pairs if old != new]
            what = f"the file {changed[0]}" if changed else "the list of files"
        raise ValueError(
            f"{path} is the checkpoint of another run: {what} differs; delete it, or give the "
            f"same corpus and options"
        )
