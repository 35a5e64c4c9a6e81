"""Opens local files, fsspec URIs and standard input, and decompresses them."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import re
import shutil
import stat
import sys
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from ..common.system import is_uri
from .errors import CorpusError

__all__ = [
    "STANDARD",
    "cannot_read",
    "filesystem",
    "label",
    "naming",
    "opened",
    "packing_of",
    "readable_again",
    "size_of",
    "size_or_zero",
    "unpacked",
]

#: Path of standard input and standard output.
STANDARD = "-"

#: First bytes by compression. A Zstandard file may begin with a skippable frame, as pzstd writes.
_MAGIC = {
    re.compile(rb"\x1f\x8b"): "gzip",
    re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18"): "zstd",
}

_BUFFER = 1 << 18


def filesystem(uri: str) -> tuple[Any, str]:
    """Returns the file system of a URI, and the path in it.

    Raises ImportError without fsspec.
    """
    try:
        import fsspec
    except ImportError as error:
        raise ImportError(
            f"reading {uri} needs the package fsspec; install it with pip install 'bpe-engine[corpus]'"
        ) from error
    found, path = fsspec.core.url_to_fs(uri)
    return found, path


def label(path: str | os.PathLike[str]) -> str:
    """Returns the name of a file for messages."""
    return "standard input" if os.fspath(path) == STANDARD else os.fspath(path)


def packing_of(start: bytes) -> str | None:
    """Returns the compression of a file, by its first four bytes: "gzip", "zstd" or None."""
    return next((name for magic, name in _MAGIC.items() if magic.match(start)), None)


def size_of(uri: str) -> int:
    """Returns the size of a file.

    Raises:
        CorpusError: The file cannot be found, or is not a file.
    """
    with cannot_read(uri):
        if not is_uri(uri):
            status = os.stat(uri)
            if not stat.S_ISREG(status.st_mode):
                raise CorpusError(f"{uri} is not a file whose size is known; write its text to one")
            return status.st_size
        system, path = filesystem(uri)
        size = system.size(path)
    if size is None:
        raise CorpusError(f"{uri}: the server does not tell the size; copy the file first")
    return int(size)


def size_or_zero(path: str | os.PathLike[str]) -> int:
    """Returns the size of a file in bytes, for progress; 0 for a pipe or standard input."""
    name = os.fspath(path)
    if name != STANDARD and (is_uri(name) or os.path.isfile(name)):
        return size_of(name)
    return 0


@contextlib.contextmanager
def cannot_read(uri: str) -> Iterator[None]:
    """Converts every reading error to a CorpusError that names the file."""
    try:
        yield
    except (CorpusError, ImportError):
        raise
    except MemoryError as error:
        if not type(error).__module__.startswith("pyarrow"):
            raise
        raise CorpusError(
            f"{uri} is damaged, or needs more memory than there is: {str(error).strip()}"
        ) from error
    except UnicodeDecodeError as error:
        raise CorpusError(f"{uri} is damaged: a name in it is not UTF-8 ({error})") from error
    except OSError as error:
        reason = error.strerror or str(error).strip()
        if str(error) == uri:  # fsspec's error for HTTP.
            reason = "the server does not have it, or does not answer"
        raise CorpusError(f"{uri} cannot be read: {reason}") from error
    except Exception as error:  # fsspec file systems raise errors of any class.
        if type(error).__module__.startswith("pyarrow"):
            raise CorpusError(f"{uri}: {str(error).strip()}") from error
        if not is_uri(uri):
            raise
        raise CorpusError(
            f"{uri} cannot be read: {type(error).__name__}: {error}; run again, or copy the file first"
        ) from error


def _pyarrow(name: str) -> Any:
    try:
        import pyarrow
    except ImportError as error:
        raise ImportError(
            f"reading {name} needs the package pyarrow; install it with "
            "pip install 'bpe-engine[arrays]'"
        ) from error
    return pyarrow


@contextlib.contextmanager
def opened(uri: str) -> Iterator[Any]:
    """Opens a file as a seekable pyarrow file. Read errors become CorpusError."""
    pa = _pyarrow(uri)
    with cannot_read(uri):
        if not is_uri(uri):
            with pa.OSFile(uri) as file:
                yield file
        else:
            with _remote(uri) as remote, pa.PythonFile(remote, "r") as file:
                yield file


def _remote(uri: str) -> Any:
    system, path = filesystem(uri)
    return system.open(path, "rb")


@contextlib.contextmanager
def unpacked(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Opens a file, a URI or standard input; gzip and Zstandard are decompressed while reading.

    Raises:
        CorpusError: The compressed data is damaged.
        ImportError: Zstandard or a URI needs a package.
        OSError: The file cannot be read; its name is in the error.
    """
    name = os.fspath(path)
    try:
        with contextlib.ExitStack() as stack:
            if name == STANDARD:
                file: Any = sys.stdin.buffer
            else:
                file = stack.enter_context(_remote(name) if is_uri(name) else open(path, "rb"))
            packing = packing_of(_start(file))
            if packing == "gzip":
                file = stack.enter_context(gzip.open(file))
            elif packing == "zstd":
                file = stack.enter_context(_zstandard(file, path))
            yield file
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise CorpusError(f"{label(path)}: the gzip compression is broken: {error}") from error
    except OSError as error:
        if error.filename is None:
            error.filename = label(path)
        raise


def _start(file: Any) -> bytes:
    if hasattr(file, "peek"):
        return bytes(file.peek(4)[:4])
    if not file.seekable():
        return b""
    start = file.read(4)
    file.seek(0)
    return bytes(start)


@contextlib.contextmanager
def _zstandard(file: BinaryIO, path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    pa = _pyarrow(label(path))
    try:
        with pa.PythonFile(file, "r") as packed, pa.CompressedInputStream(packed, "zstd") as stream:
            yield io.BufferedReader(stream, _BUFFER)
    except OSError as error:
        if error.errno is not None:
            raise
        reason = str(error).strip()
        raise CorpusError(
            f"{label(path)}: the Zstandard compression is broken: {reason}"
        ) from error


@contextlib.contextmanager
def naming(path: str) -> Iterator[None]:
    """Makes errors name ``path``, the file that the caller gave, instead of a temporary copy."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), path) from error


@contextlib.contextmanager
def readable_again(paths: Iterable[str]) -> Iterator[list[str]]:
    """Yields paths that can be read more than once: copies the contents of pipes to files.

    The paths keep their order and their endings. Raises OSError, which names the folder, if the
    disk has no room for the copies.
    """
    with contextlib.ExitStack() as stack:
        found: list[str] = []
        folder = ""
        for number, path in enumerate(paths):
            if os.path.isfile(path) or is_uri(path):
                found.append(path)
                continue
            folder = folder or stack.enter_context(tempfile.TemporaryDirectory(prefix="corpus-"))
            kept = os.path.join(folder, f"{number}-{Path(path).name}")
            with contextlib.ExitStack() as files:
                standard = path == STANDARD
                given = sys.stdin.buffer if standard else files.enter_context(open(path, "rb"))
                with naming(folder), open(kept, "xb") as file:
                    shutil.copyfileobj(given, file, _BUFFER)
            found.append(kept)
        yield found
