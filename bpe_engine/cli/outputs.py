"""Writes output files: all of them or none, never overwriting unless asked to."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TextIO, TypeVar

from ..atomic_write import is_special
from ..texts.access import STANDARD, naming
from .printing import write

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

Result = TypeVar("Result")


class OutputFiles:
    """The files that a command will write.

    Create it before the work: a file that cannot be written is refused before hours are spent.
    """

    def __init__(
        self, outputs: Sequence[str], inputs: Sequence[str] = (), *, force: bool = False
    ) -> None:
        """Checks every output.

        Args:
            outputs: paths; ``-`` is standard output.
            inputs: paths that are read.
            force: overwrite files that exist.

        Raises:
            ValueError: an output is also an input, or another output, by any spelling of the path.
            FileExistsError: an output exists, and ``force`` is not given.
            OSError: an output cannot be written.
        """
        self.outputs: list[str] = list(outputs)
        for number, output in enumerate(outputs):
            for given in inputs:
                if _is_same(given, output, standard=sys.__stdin__):
                    raise ValueError(f"{output} is an input; write to another file")
            for other in outputs[:number]:
                if _is_same(other, output, standard=sys.__stdout__):
                    raise ValueError(f"{output} is given for two outputs; write them to two files")
        for output in outputs:
            if output != STANDARD:
                _try(output, force)

    def write(self, contents: Mapping[str, bytes]) -> None:
        """Writes outputs together: when one cannot be written, none is changed."""
        assert contents.keys() <= set(self.outputs)
        outputs = [output for output in self.outputs if output in contents]
        with contextlib.ExitStack() as locks, contextlib.ExitStack() as undo:
            ready = {}
            for output in outputs:
                if output != STANDARD and not is_special(output):
                    ready[output] = _write_beside(output, contents[output], undo, locks)
            for output in outputs:
                if output == STANDARD:
                    write(contents[output])
                elif output not in ready:
                    with naming(output):
                        Path(output).write_bytes(contents[output])
            for output, written in ready.items():
                _put_in_place(output, written, undo)
            undo.pop_all()
            for written in ready.values():
                _backup(written).unlink(missing_ok=True)

    def write_by(self, output: str, writer: Callable[[str], Result]) -> Result:
        """Calls ``writer`` with a path to write the only output to, and returns what it returns:
        for contents that may not fit into memory."""
        assert self.outputs == [output]
        if is_special(output):
            with naming(output):
                return writer(output)
        with contextlib.ExitStack() as locks, contextlib.ExitStack() as undo:
            written = _write_beside(output, b"", undo, locks)
            with naming(output):
                result = writer(written)
            _put_in_place(output, written, undo)
            undo.pop_all()
            _backup(written).unlink(missing_ok=True)
        return result


def _is_same(one: str, output: str, *, standard: TextIO | None) -> bool:
    """True if both are one file; ``-`` as ``one`` is ``standard``."""
    if STANDARD in (one, output):
        if one == output and standard is sys.__stdout__:
            return True
        read, written = _opened(one, standard), _opened(output, sys.__stdout__)
        return read is not None and written is not None and os.path.samestat(read, written)
    if os.path.exists(one) and os.path.exists(output):
        return os.path.samefile(one, output)
    return os.path.realpath(one) == os.path.realpath(output)


def _opened(path: str, standard: TextIO | None) -> os.stat_result | None:
    """Returns the status of a regular file; None for anything else."""
    try:
        if path != STANDARD:
            found = os.stat(path)
        elif standard is not None:
            found = os.fstat(standard.fileno())
        else:
            return None
    except (OSError, ValueError):
        return None
    return found if stat.S_ISREG(found.st_mode) else None


def _target(path: str) -> Path:
    """Returns the file that a symbolic link leads to."""
    return Path(os.path.realpath(path))


def _backup(written: str) -> Path:
    """Returns the path of the old contents while ``written`` is put in their place."""
    return Path(f"{written}.old")


def _try(path: str, force: bool) -> None:
    """Raises OSError, naming the path as given, unless it can be written."""
    if not path:
        raise ValueError("the name of an output is empty; give the name of a file, or -")
    if os.path.isdir(path) or path.endswith(("/", os.sep)):
        raise IsADirectoryError(21, "is a directory; give the name of a file", path)
    if is_special(path):
        return
    if os.path.lexists(path) and not force:
        raise FileExistsError(17, "exists already; --force overwrites it", path)
    target = _target(path)
    with naming(path):
        if target.exists():
            with open(target, "ab"):
                pass
        _remove_leftovers(target)
        handle, name = _new_file(target)
        os.close(handle)
        os.unlink(name)


def _prefix(target: Path) -> str:
    """Returns the prefix of the names of temporary files for ``target``."""
    return f".{target.name[:80]}.vocab-tools-"


def _new_file(target: Path) -> tuple[int, str]:
    """Creates a temporary file in the folder of ``target``, locked for as long as its handle is
    open."""
    while True:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=_prefix(target))
        if fcntl is not None:
            with contextlib.suppress(OSError):  # Not every file system has locks.
                fcntl.flock(handle, fcntl.LOCK_EX)
        if os.path.exists(name):
            return handle, name
        # Another run took it for a leftover before it was locked.
        os.close(handle)


def _remove_leftovers(target: Path) -> None:
    """Deletes the temporary files of runs that were killed: those that no process has locked.

    A run that was killed with ``NAME.old`` there was about to delete it: what it holds is in
    ``target`` still, or was to be overwritten.
    """
    if fcntl is None or not os.access(target.parent, os.R_OK):
        return
    is_leftover = re.compile(rf"{re.escape(_prefix(target))}\w{{8}}(\.old)?").fullmatch
    for path in list(target.parent.iterdir()):
        if is_leftover(path.name):
            # A run that is still going has a lock on its new file, under either of its names.
            new_names = path.parent / path.name.removesuffix(".old"), target
            with contextlib.suppress(OSError), contextlib.ExitStack() as handles:
                for name in filter(os.path.exists, new_names):
                    handle = os.open(name, os.O_RDONLY)
                    handles.callback(os.close, handle)
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()


def _write_beside(
    path: str, contents: bytes, undo: contextlib.ExitStack, locks: contextlib.ExitStack
) -> str:
    """Writes a new file in the directory of ``path``, which ``locks`` unlocks."""
    target = _target(path)
    with naming(path):
        handle, name = _new_file(target)
        undo.callback(Path(name).unlink, missing_ok=True)
        with contextlib.ExitStack() as closing:
            closing.callback(os.close, handle)
            with os.fdopen(os.dup(handle), "wb") as file:
                file.write(contents)
                file.flush()
                os.fsync(handle)
            if fcntl is not None:  # Windows replaces no file by one that is open.
                locks.push(closing.pop_all())
        os.chmod(name, _mode(target))
    return name


def _mode(target: Path) -> int:
    """Returns the permissions of the replaced file, or of a new one."""
    if target.exists():
        return target.stat().st_mode & 0o7777
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask


def _put_in_place(path: str, written: str, undo: contextlib.ExitStack) -> None:
    target = _target(path)
    with naming(path):
        if target.exists():
            backup = _backup(written)
            try:
                os.link(target, backup)
            except OSError:  # A file system without hard links.
                shutil.copy2(target, backup)
            undo.callback(_restore, backup, target)
        else:
            undo.callback(target.unlink, missing_ok=True)
        os.replace(written, target)


def _restore(backup: Path, target: Path) -> None:
    """Puts the backup back. While both are names of one file, renaming does nothing at all."""
    if os.path.exists(target) and os.path.samefile(backup, target):
        backup.unlink()
    else:
        os.replace(backup, target)
