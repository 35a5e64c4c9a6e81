"""Writes files atomically, and computes their SHA-256."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil

from .system import replace, sync

__all__ = ["is_special", "published", "sha256", "write_at_once"]

_HASHED_AT_ONCE = 1 << 20


def sha256(path: str) -> str:
    """Returns the SHA-256 of a local file, in hexadecimal digits."""
    digest = hashlib.sha256()
    buffer = bytearray(_HASHED_AT_ONCE)
    view = memoryview(buffer)
    with open(path, "rb", buffering=0) as file:
        while count := file.readinto(buffer):
            digest.update(view[:count])
    return digest.hexdigest()


def published(source: str, target: str) -> None:
    """Publishes a complete file: syncs the file, then renames it."""
    sync(source)
    replace(source, target)


def is_special(path: str | os.PathLike[str]) -> bool:
    """Returns True for a device or a pipe, which is written to directly."""
    return os.path.exists(path) and not os.path.isfile(path)


def write_at_once(
    path: str | os.PathLike[str], contents: bytes, scratch: str | None = None
) -> None:
    """Writes a small file atomically: readers see the old or the new contents.

    Args:
        path: The file. A link is followed; a pipe or a device is written to.
        contents: The bytes to write.
        scratch: A folder on the same disk for the unfinished file; by default the folder of the
            file.

    Raises OSError if the file cannot be written; no partial file remains.
    """
    path = os.path.realpath(path)
    folder = os.path.dirname(path)
    name = f"{os.path.basename(path)}.{os.urandom(8).hex()}.tmp"
    unfinished = os.path.join(folder if scratch is None else scratch, name)
    try:
        if is_special(path):
            with open(path, "wb") as special:
                special.write(contents)
            return
        if os.path.exists(path) and not os.access(path, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        with open(unfinished, "xb") as file:
            file.write(contents)
        with contextlib.suppress(OSError):  # The file is new, or the system has no modes.
            shutil.copymode(path, unfinished)
        published(unfinished, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.remove(unfinished)
        if isinstance(error, OSError) and error.filename2 is None:
            error.filename = path
        raise
    with contextlib.suppress(OSError):  # Some systems cannot sync a folder.
        sync(folder or ".")
