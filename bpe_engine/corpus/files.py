"""Files on this machine and behind the URIs of fsspec: lists, sizes, streams, names in place."""

from __future__ import annotations

import contextlib
import glob
import hashlib
import os
import re
import stat
from collections.abc import Iterable, Iterator
from typing import Any

from .errors import CorpusError

__all__ = [
    "expanded",
    "file_size",
    "file_state",
    "opened",
    "published",
    "sha256",
    "sync",
    "synced_write",
]

_HASHED_AT_ONCE = 1 << 20

#: Plans are UTF-8, and olmo's index has lines.
_UNFIT = re.compile("[\r\n\ud800-\udfff]")


def _is_uri(path: str) -> bool:
    return "://" in path


def _filesystem(uri: str) -> tuple[Any, str]:
    try:
        import fsspec
    except ImportError as error:
        raise ImportError(
            f"reading {uri} needs the package fsspec; install it with pip install 'bpe-engine[corpus]'"
        ) from error
    filesystem, path = fsspec.core.url_to_fs(uri)
    return filesystem, path


def expanded(inputs: Iterable[str | os.PathLike[str]], without: str) -> list[str]:
    """Expands folders and globs to files, sorted within each input.

    A folder becomes all files in it and below it, also behind symbolic links, but for those whose
    names begin with a dot or an underscore. Local paths become absolute.

    Args:
        inputs: Files, folders, globs and URIs.
        without: A folder whose files are left out.

    Raises:
        CorpusError: An input has no files, a file occurs twice, or a name is not UTF-8.
    """
    files: list[str] = []
    for given in inputs:
        path = os.fspath(given)
        found = _expanded_uri(path) if _is_uri(path) else _expanded_path(path, without)
        if not found:
            raise CorpusError(f"{path}: there are no files; correct the name")
        files += found
    seen: set[str] = set()
    for path in files:
        if path in seen:
            raise CorpusError(f"{path} is given twice; its documents would be written twice")
        if _UNFIT.search(path):
            raise CorpusError(f"{path!r}: the name has a line end or is not UTF-8; rename the file")
        seen.add(path)
    return files


def _expanded_path(path: str, without: str) -> list[str]:
    if os.path.isdir(path):
        found = list(_below(path, os.path.realpath(without)))
    elif not os.path.exists(path) and glob.has_magic(path):
        found = [name for name in glob.glob(path, recursive=True) if os.path.isfile(name)]
    elif os.path.exists(path):
        found = [path]
    else:
        raise CorpusError(f"{path}: no such file")
    return sorted(os.path.abspath(name) for name in found)


def _below(folder: str, without: str, above: tuple[str, ...] = ()) -> Iterator[str]:
    """Yields the files in a folder and below it."""
    real = os.path.realpath(folder)
    if real in above:
        raise CorpusError(f"{folder} is a link to a folder above it; remove the link")
    try:
        entries = [] if real == without else list(os.scandir(folder))
    except OSError as error:
        raise CorpusError(f"{folder} cannot be read: {error.strerror}") from error
    for entry in entries:
        if entry.name.startswith((".", "_")):
            continue
        if entry.is_dir():
            yield from _below(entry.path, without, (*above, real))
        else:
            yield entry.path


def _expanded_uri(uri: str) -> list[str]:
    filesystem, path = _filesystem(uri)
    if filesystem.protocol in ("http", "https") or "http" in filesystem.protocol:
        return [uri]
    if glob.has_magic(path):
        found = [name for name in filesystem.glob(path) if not filesystem.isdir(name)]
    elif filesystem.isdir(path):
        found = [
            name
            for name in filesystem.find(path)
            if not any(part.startswith((".", "_")) for part in name[len(path) :].split("/"))
        ]
    else:
        found = [path]
    return sorted(filesystem.unstrip_protocol(name) for name in found)


def file_size(uri: str) -> int:
    """Returns the size of a file in bytes. Raises CorpusError if it cannot be found."""
    return file_state(uri)[0]


def file_state(uri: str) -> tuple[int, int | None]:
    """Returns the size of a file, and when it was changed: nanoseconds, or None behind a URI.

    Raises:
        CorpusError: The file cannot be found, or is not a file.
    """
    try:
        if not _is_uri(uri):
            status = os.stat(uri)
            if not stat.S_ISREG(status.st_mode):
                raise CorpusError(f"{uri} is not a file whose size is known; write its text to one")
            return status.st_size, status.st_mtime_ns
        filesystem, path = _filesystem(uri)
        size = filesystem.size(path)
    except OSError as error:
        reason = error.strerror or error
        if str(error) == uri:  # So fsspec says it of HTTP.
            reason = "the server does not have it, or does not answer"
        raise CorpusError(f"{uri} cannot be read: {reason}") from error
    if size is None:
        raise CorpusError(f"{uri}: the server does not tell the size; copy the file first")
    return int(size), None


@contextlib.contextmanager
def opened(uri: str) -> Iterator[Any]:
    """Opens a file as a seekable pyarrow file. Errors of reading name it."""
    import pyarrow as pa

    try:
        if not _is_uri(uri):
            with pa.OSFile(uri) as file:
                yield file
        else:
            filesystem, path = _filesystem(uri)
            with filesystem.open(path, "rb") as remote, pa.PythonFile(remote, "r") as file:
                yield file
    except pa.ArrowException as error:
        raise CorpusError(f"{uri}: {str(error).strip()}") from error
    except OSError as error:
        raise CorpusError(f"{uri} cannot be read: {str(error).strip()}") from error
    except (CorpusError, ImportError, MemoryError):
        raise
    except Exception as error:  # Each file system of fsspec has errors of its own.
        if not _is_uri(uri):
            raise
        raise CorpusError(
            f"{uri} cannot be read: {type(error).__name__}: {error}; run again, or copy the file first"
        ) from error


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


def synced_write(path: str, contents: str, scratch: str) -> None:
    """Writes a small text file in one step: it has the old contents or the new ones.

    Args:
        path: The file.
        contents: Its text.
        scratch: A folder on the same disk for the unfinished file.
    """
    temporary = os.path.join(scratch, f"{os.path.basename(path)}.{os.getpid()}")
    with open(temporary, "w", encoding="utf-8", newline="\n") as file:
        file.write(contents)
    published(temporary, path)
    with contextlib.suppress(OSError):  # Not every system can sync a folder.
        sync(os.path.dirname(path))
