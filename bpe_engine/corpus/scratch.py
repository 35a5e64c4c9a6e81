"""Folders for unfinished files, which are moved when complete."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator

from ..common.atomic_write import published
from ..texts.errors import CorpusError

__all__ = ["move", "scratch_folder"]


@contextlib.contextmanager
def scratch_folder(out: str, what: str) -> Iterator[str]:
    """Yields a new folder on the disk of the corpus, removed afterwards.

    Write errors, such as a full disk, become CorpusError with the path.
    """
    folder = os.path.join(out, "unfinished", f"{what}-{secrets.token_hex(8)}")
    try:
        os.makedirs(folder)
        yield folder
    except OSError as error:
        where = error.filename or out
        raise CorpusError(
            f"{where} cannot be written: {error.strerror or error}; complete units are kept, so "
            "run again"
        ) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def move(paths: list[str], folder: str) -> None:
    """Moves complete files to a folder."""
    os.makedirs(folder, exist_ok=True)
    for path in paths:
        published(path, os.path.join(folder, os.path.basename(path)))
