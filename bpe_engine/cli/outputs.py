"""Writes output files atomically; overwrites existing files only on request."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from ..common.atomic_write import is_special, published
from ..common.system import SEPARATORS, made_by_umask
from ..texts.access import STANDARD, naming
from .printing import write

Result = TypeVar("Result")


class OutputFiles:
    """The files that a command will write.

    Create the object before the work, so that an unwritable file is refused before hours are spent.
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
                if STANDARD not in (given, output) and _is_same(given, output):
                    raise ValueError(f"{output} is an input; write to another file")
            for other in outputs[:number]:
                if _is_same(other, output):
                    raise ValueError(f"{output} is given for two outputs; write them to two files")
        for output in outputs:
            if output != STANDARD:
                _try(output, force)

    def write(self, contents: Mapping[str, bytes]) -> None:
        """Writes outputs: syncs all contents to disk before renaming any file into place."""
        assert contents.keys() <= set(self.outputs)
        outputs = [output for output in self.outputs if output in contents]
        with contextlib.ExitStack() as undo:
            ready = {}
            for output in outputs:
                if output != STANDARD:
                    ready[output] = output if is_special(output) else _new_file(output, undo)
                    with naming(output):
                        Path(ready[output]).write_bytes(contents[output])
            if STANDARD in outputs:
                write(contents[STANDARD])
            for output, written in ready.items():
                _put_in_place(output, written)

    def write_by(self, output: str, writer: Callable[[str], Result]) -> Result:
        """Writes the only output by calling ``writer`` with a path, and returns the result: for
        contents that may not fit into memory."""
        assert self.outputs == [output]
        if is_special(output):
            with naming(output):
                return writer(output)
        with contextlib.ExitStack() as undo:
            written = _new_file(output, undo)
            with naming(output):
                result = writer(written)
            _put_in_place(output, written)
        return result


def _is_same(one: str, output: str) -> bool:
    if os.path.exists(one) and os.path.exists(output):
        return os.path.samefile(one, output)
    return os.path.realpath(one) == os.path.realpath(output)


def _target(path: str) -> Path:
    return Path(os.path.realpath(path))


def _try(path: str, force: bool) -> None:
    """Raises OSError with the path as given, unless the path can be written."""
    if not path:
        raise ValueError("the name of an output is empty; give the name of a file, or -")
    if os.path.isdir(path) or path.endswith(SEPARATORS):
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
        with contextlib.ExitStack() as undo:
            _new_file(path, undo)


def _new_file(path: str, undo: contextlib.ExitStack) -> str:
    """Makes a new file in the folder of an output, to be deleted by ``undo``; returns its path."""
    target = _target(path)
    with naming(path):
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:80]}.")
        os.close(handle)
        undo.callback(Path(name).unlink, missing_ok=True)
        if target.exists():
            shutil.copymode(target, name)
        else:
            made_by_umask(name)
    return name


def _put_in_place(path: str, written: str) -> None:
    if written != path:
        with naming(path):
            published(written, os.path.realpath(path))
