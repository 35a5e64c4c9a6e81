"""Writes files in one step, and sums them."""

from __future__ import annotations

import contextlib
import hashlib
import os

__all__ = ["published", "sha256", "sync", "write_at_once"]

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


def sync(*paths: str) -> None:
    """Waits until files, or folders, are on the disk."""
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def published(source: str, target: str) -> None:
    """Moves a complete file to its place: on the disk first, then under its name."""
    sync(source)
    os.replace(source, target)


def write_at_once(path: str, contents: bytes, scratch: str | None = None) -> None:
    """Writes a small file in one step: it has the old contents or the new ones.

    Args:
        path: The file.
        contents: Its bytes.
        scratch: A folder on the same disk for the unfinished file; by default that of the file.

    Raises OSError if the file cannot be written; nothing is left then.
    """
    folder = os.path.dirname(path)
    name = f"{os.path.basename(path)}.{os.urandom(8).hex()}.tmp"
    unfinished = os.path.join(folder if scratch is None else scratch, name)
    try:
        with open(unfinished, "xb") as file:
            file.write(contents)
        published(unfinished, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.remove(unfinished)
        raise
    with contextlib.suppress(OSError):  # Not every system can sync a folder.
        sync(folder or ".")
