"""Hides the differences between operating systems; no other module checks the current system."""

from __future__ import annotations

import errno
import os
import sys
import threading
import time
from collections.abc import Callable

__all__ = [
    "END_OF_INPUT",
    "SEPARATORS",
    "after_fork",
    "base_name",
    "cores",
    "has_folder",
    "is_closed_pipe",
    "is_uri",
    "made_by_umask",
    "open_to_read",
    "peak_memory",
    "read_at",
    "replace",
    "shown_path",
    "sync",
]

_IS_WINDOWS = sys.platform == "win32"
#: Path separators.
SEPARATORS = tuple({os.sep, os.altsep or os.sep})
#: The keys that end input at a terminal.
END_OF_INPUT = "Ctrl-Z and Enter" if _IS_WINDOWS else "Ctrl-D"
#: Seconds between attempts to replace a file that another program has open on Windows.
_PAUSES = (0.01, 0.03, 0.1, 0.3, 1.0)
#: Held while a read moves the position of a shared descriptor.
_reading = threading.Lock()


# ---- File names ----


def is_uri(path: str | os.PathLike[str]) -> bool:
    """Returns True for a URI, such as ``s3://bucket/name``; a scheme of one letter is a drive.

    >>> is_uri("s3://bucket/name"), is_uri("C://texts"), is_uri("a/b")
    (True, False, False)
    """
    scheme, found, _ = os.fspath(path).partition("://")
    return bool(found) and not (len(scheme) == 1 and scheme.isalpha())


def has_folder(path: str) -> bool:
    """Returns True if a path has a folder part."""
    return os.path.split(path)[0] != ""


def base_name(path: str | os.PathLike[str]) -> str:
    """Returns the last name of a path, which may end with separators."""
    return os.path.basename(os.fspath(path).rstrip("".join(SEPARATORS)))


def shown_path(path: str) -> str:
    """Returns a path, or text with paths, that UTF-8 can encode: escapes bytes that the locale
    cannot decode, as JSON does.

    >>> shown_path("zw\\udcc3\\udcb6lf")
    'zw\\\\udcc3\\\\udcb6lf'
    """
    return path.encode("utf-8", "backslashreplace").decode()


# ---- Files ----


def open_to_read(path: str) -> int:
    """Returns a descriptor for `read_at`."""
    return os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))


def read_at(descriptor: int, size: int, position: int) -> bytes:
    """Returns at most `size` bytes from `position` on; threads can share a descriptor."""
    if hasattr(os, "pread"):
        data: bytes = os.pread(descriptor, size, position)
        return data
    with _reading:
        os.lseek(descriptor, position, os.SEEK_SET)
        return os.read(descriptor, size)


def sync(*paths: str) -> None:
    """Waits until files or folders are on disk; folders are skipped on Windows."""
    for path in paths:
        if _IS_WINDOWS and os.path.isdir(path):
            continue
        # Windows only syncs descriptors opened for writing.
        descriptor = os.open(path, os.O_RDWR if _IS_WINDOWS else os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def replace(source: str, target: str) -> None:
    """Renames a file atomically. Retries on Windows while another program, such as a virus scanner,
    has the target open; then raises PermissionError."""
    for pause in _PAUSES if _IS_WINDOWS else ():
        try:
            return os.replace(source, target)
        except PermissionError:
            time.sleep(pause)
    os.replace(source, target)


def made_by_umask(path: str) -> None:
    """Sets the mode of a file to the mode of new files under the umask."""
    umask = os.umask(0)
    os.umask(umask)
    os.chmod(path, 0o666 & ~umask)


def is_closed_pipe(error: OSError) -> bool:
    """Returns True if an error means that the output's reader has gone; EINVAL on Windows."""
    return isinstance(error, BrokenPipeError) or (
        _IS_WINDOWS and error.errno == errno.EINVAL and error.filename is None
    )


# ---- Processes ----


def after_fork(
    in_child: Callable[[], object],
    *,
    before: Callable[[], object] = lambda: None,
    in_parent: Callable[[], object] = lambda: None,
) -> None:
    """Registers functions to call around each fork; does nothing on systems without forks."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=before, after_in_child=in_child, after_in_parent=in_parent)


def cores() -> int:
    """Returns the number of cores that this process can use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def peak_memory() -> int | None:
    """Returns the peak memory of this process in bytes; None if unknown."""
    try:
        # On Linux, `getrusage` would start at the memory of the parent process.
        with open("/proc/self/status", encoding="ascii", errors="replace") as status:
            found = [line.split() for line in status if line.startswith("VmHWM:")]
            return int(found[0][1]) * 1024
    except (OSError, IndexError):
        pass
    if sys.platform == "win32":
        return None
    import resource

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024
