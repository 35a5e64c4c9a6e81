"""Lists the files of a corpus: paths, folders, globs and URIs."""

from __future__ import annotations

import errno
import glob
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from typing import Union

from ..common.system import has_folder, is_uri
from ..common.values import describe, is_arrow, listed
from .access import STANDARD, filesystem
from .errors import CorpusError

__all__ = ["Paths", "corpus_files", "given_paths", "looks_like_text"]

#: One path or several.
Paths = Union[str, "os.PathLike[str]", Iterable[Union[str, "os.PathLike[str]"]]]


def given_paths(paths: Paths) -> list[str]:
    """Returns one or more paths as a list.

    Raises:
        TypeError: The argument has another type, which the message names.

    >>> given_paths("a.txt"), given_paths(["a.txt", "b.txt"])
    (['a.txt'], ['a.txt', 'b.txt'])
    """
    if isinstance(paths, (str, os.PathLike)):
        paths = [paths]
    is_wrong = isinstance(paths, (bytes, Mapping)) or is_arrow(paths)
    if is_wrong or not isinstance(paths, Iterable):
        raise TypeError(
            f"a corpus is the path of a file, or a list of paths, not {describe(paths)}"
        )
    given = listed(paths)
    for path in given:
        if not isinstance(path, (str, os.PathLike)):
            raise TypeError(f"a corpus is a list of paths, and an item is {describe(path)}")
        if "\0" in os.fspath(path):
            raise ValueError(f"the path {os.fspath(path)!r} has a NUL, which no file name has")
    return [os.fspath(path) for path in given]


def looks_like_text(path: str) -> bool:
    """Returns True if a string is probably text rather than a file name.

    >>> looks_like_text("to be or not"), looks_like_text("to be.txt"), looks_like_text("a\\nb")
    (True, False, True)
    """
    is_line = any(map(str.isspace, path)) and not has_folder(path) and not os.path.splitext(path)[1]
    return "\n" in path or len(path) > 255 or is_line


def corpus_files(paths: Paths, *, without: str = "") -> list[str]:
    """Expands paths, folders, globs and URIs to files, in a fixed order.

    A folder becomes all regular files below it, also through symbolic links, except names that
    begin with a dot or an underscore. A path that does not exist and contains ``*``, ``?`` or ``[``
    becomes the files that match it; ``**`` matches any folders.

    Args:
        paths: Files, folders, globs, and fsspec URIs; ``-`` is standard input.
        without: A folder to exclude.

    Raises:
        FileNotFoundError: A file does not exist, or a glob matches no file.
        CorpusError: A folder has no files, cannot be read, or has a link to a folder above it.
        TypeError: An item is not a path.
        ImportError: A URI needs fsspec.
    """
    files: list[str] = []
    for path in given_paths(paths):
        if path == STANDARD:
            files.append(path)
        elif is_uri(path):
            files += _of_uri(path)
        else:
            files += _of_path(path, os.path.realpath(without) if without else "")
    return files


def _of_path(path: str, without: str) -> list[str]:
    if os.path.isdir(path):
        found = sorted(_below(path, without))
        if not found:
            raise CorpusError(f"{path}: the folder has no files; correct the name")
        return found
    if os.path.exists(path):
        return [path]
    if not glob.has_magic(path):
        hint = "; a corpus is files: write the text to one" if looks_like_text(path) else ""
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT) + hint, _short(path))
    return _matched(path, sorted(filter(_is_text_file, glob.glob(path, recursive=True))))


def _short(path: str) -> str:
    return f"{path[:59]}…" if looks_like_text(path) and len(path) > 60 else path


def _matched(pattern: str, found: list[str]) -> list[str]:
    if not found:
        raise FileNotFoundError(2, "matches no files", pattern)
    return found


def _below(folder: str, without: str, above: tuple[str, ...] = ()) -> Iterator[str]:
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
        elif _is_text_file(entry.path):
            yield entry.path


def _is_text_file(path: str) -> bool:
    """Returns True for a regular file and for a broken link, which fails on opening; False for a
    pipe, which may never end."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return True


def _of_uri(uri: str) -> list[str]:
    system, path = filesystem(uri)
    if system.protocol in ("http", "https") or "http" in system.protocol:
        return [uri]
    if glob.has_magic(path):
        found = _matched(uri, [name for name in system.glob(path) if not system.isdir(name)])
    elif system.isdir(path):
        found = [
            name
            for name in system.find(path)
            if not any(part.startswith((".", "_")) for part in name[len(path) :].split("/"))
        ]
        found = _matched(uri, found)
    else:
        found = [path]
    return sorted(system.unstrip_protocol(name) for name in found)
