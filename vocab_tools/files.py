"""Output files: nothing is overwritten unasked, and either all of them are written or none."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TextIO, TypeVar

Result = TypeVar("Result")

#: Standard input and standard output.
STANDARD = "-"


class OutputFiles:
    """The files that a command is going to write.

    Made before the work, so that what cannot be written is refused before hours are spent.
    """

    def __init__(
        self, outputs: Sequence[str], inputs: Sequence[str] = (), *, force: bool = False
    ) -> None:
        """Looks at every output.

        Args:
            outputs: paths; ``-`` is standard output.
            inputs: paths that are read.
            force: overwrite files that exist.

        Raises:
            ValueError: an output is also an input, or another output, by any spelling of the path.
            FileExistsError: an output exists, and ``force`` is not given.
            OSError: an output cannot be written.
        """
        self.outputs = list(outputs)
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
        """Writes outputs at once: when one cannot be written, none is changed."""
        assert contents.keys() <= set(self.outputs)
        outputs = [output for output in self.outputs if output in contents]
        with contextlib.ExitStack() as undo:
            ready = {}
            for output in outputs:
                if output != STANDARD and not is_special(output):
                    ready[output] = _write_beside(output, contents[output], undo)
            for output in outputs:
                if output == STANDARD:
                    write_standard(contents[output])
                elif output not in ready:
                    with _named(output):
                        Path(output).write_bytes(contents[output])
            for output, written in ready.items():
                _put_in_place(output, written, undo)
            undo.pop_all()
            for output in ready:
                _backup(output).unlink(missing_ok=True)

    def write_by(self, output: str, writer: Callable[[str], Result]) -> Result:
        """Has ``writer`` write the only output, under the name that it is given: for contents that
        memory may have no room for. Returns what it returns."""
        assert self.outputs == [output]
        if is_special(output):
            return writer(output)
        with contextlib.ExitStack() as undo:
            name = _write_beside(output, b"", undo)
            result = writer(name)
            _put_in_place(output, name, undo)
            undo.pop_all()
            _backup(output).unlink(missing_ok=True)
        return result


def write_standard(contents: bytes) -> None:
    """Writes all of the contents to standard output.

    Raises BrokenPipeError when it is closed, and OSError, which names it, when it takes no more.
    """
    with _named("standard output"):
        sys.stdout.flush()
        rest = memoryview(contents)
        while rest:
            # Under PYTHONUNBUFFERED a write may take only a part.
            rest = rest[sys.stdout.buffer.write(rest) :]
        sys.stdout.buffer.flush()


def _is_same(one: str, output: str, *, standard: TextIO | None) -> bool:
    """Whether they are one file; where ``one`` is ``-``, it is ``standard``."""
    if STANDARD in (one, output):
        if one == output and standard is sys.__stdout__:
            return True
        read, written = _opened(one, standard), _opened(output, sys.__stdout__)
        return read is not None and written is not None and os.path.samestat(read, written)
    if os.path.exists(one) and os.path.exists(output):
        return os.path.samefile(one, output)
    return os.path.realpath(one) == os.path.realpath(output)


def _opened(path: str, standard: TextIO | None) -> os.stat_result | None:
    """What is known of a regular file; None for anything else."""
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


def is_special(path: str) -> bool:
    """Whether it is a device or a pipe, which is written to as it stands."""
    return os.path.exists(path) and not os.path.isfile(path)


def _target(path: str) -> Path:
    """Where the bytes go: what a symbolic link leads to."""
    return Path(os.path.realpath(path))


def _backup(path: str) -> Path:
    target = _target(path)
    return target.parent / f".{target.name}.{os.getpid()}.old"


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
    with _named(path):
        if target.exists():
            with open(target, "ab"):
                pass
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:80]}.")
        os.close(handle)
        os.unlink(name)


@contextlib.contextmanager
def _named(path: str) -> Iterator[None]:
    """Errors name the file that the person gave, not the one beside it."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), path) from error


def _write_beside(path: str, contents: bytes, undo: contextlib.ExitStack) -> str:
    """Writes a new file in the directory of ``path``."""
    target = _target(path)
    with _named(path):
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:80]}.")
        undo.callback(Path(name).unlink, missing_ok=True)
        with os.fdopen(handle, "wb") as file:
            file.write(contents)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, _mode(target))
    return name


def _mode(target: Path) -> int:
    """The permissions of the file that is replaced, or those of a new one."""
    if target.exists():
        return target.stat().st_mode & 0o7777
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask


def _put_in_place(path: str, written: str, undo: contextlib.ExitStack) -> None:
    target = _target(path)
    with _named(path):
        if target.exists():
            backup = _backup(path)
            backup.unlink(missing_ok=True)
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
