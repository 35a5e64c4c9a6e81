"""Folders for unfinished files, which are moved to their places when they are complete."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import socket
from collections.abc import Iterator

from ..common.atomic_write import published
from ..texts.errors import CorpusError

__all__ = ["move", "remove_leftovers", "scratch_folder"]


def _host() -> str:
    """Returns a name for the scope of process ids: a machine, or a container."""
    try:
        namespace = os.readlink("/proc/self/ns/pid").strip("pid:[]")
    except OSError:
        namespace = ""
    return f"{socket.gethostname()}{namespace}".replace("-", "_") or "host"


@contextlib.contextmanager
def scratch_folder(out: str, what: str) -> Iterator[str]:
    """Yields a new folder on the disk of the corpus, and removes it afterwards.

    Errors of writing, such as a full disk, become CorpusError with the path.
    """
    name = f"{what}-{_host()}-{os.getpid()}-{secrets.token_hex(8)}"
    folder = os.path.join(out, "unfinished", name)
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


def remove_leftovers(out: str, *, of_all: bool = False) -> None:
    """Removes temporary files of killed processes of this machine; with `of_all`, also the
    units of other machines. A process that is alive, and one that packs elsewhere, keep theirs."""
    with contextlib.suppress(FileNotFoundError):
        for name in os.listdir(os.path.join(out, "unfinished")):
            what, host, process, _ = [*name.rsplit("-", 3), "", "", ""][:4]
            is_ours = host == _host() and process.isdigit()
            if not _is_alive(int(process)) if is_ours else of_all and what != "pack":
                shutil.rmtree(os.path.join(out, "unfinished", name), ignore_errors=True)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
