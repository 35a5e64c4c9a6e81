"""This package under the name `tiktoken`.

Once ``sys.modules["tiktoken"]`` is this package, ``import tiktoken.load`` would have Python load
a second copy of `load` under the other name, with its own `Encoding` and its own registry. A
finder makes both names lead to the same module. It does nothing while `tiktoken` is another
package, or none.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
from types import ModuleType
from typing import Sequence

__all__ = ["install"]

_ALIAS = "tiktoken"
_PACKAGE = __name__.rpartition(".")[0]

# The native module has another name there.
_RENAMED = {"_tiktoken": "_core"}


class _Loader(importlib.abc.Loader):
    """Returns a module that is loaded already, and leaves it as it is."""

    def __init__(self, module: ModuleType):
        self._module = module
        self._spec = module.__spec__

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        # The import system has just overwritten it with the spec of the alias.
        module.__spec__ = self._spec


class _Finder(importlib.abc.MetaPathFinder):
    """Finds ``tiktoken.x`` as ``bpe_engine.x`` while `tiktoken` is `bpe_engine`."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        alias, _, name = fullname.partition(".")
        if alias != _ALIAS or not name or not _is_ours(sys.modules.get(_ALIAS)):
            return None
        real = f"{_PACKAGE}.{_RENAMED.get(name, name)}"
        try:
            module = importlib.import_module(real)
        except ModuleNotFoundError as error:
            if error.name == real:
                return None
            raise
        return importlib.machinery.ModuleSpec(fullname, _Loader(module))


def _is_ours(module: ModuleType | None) -> bool:
    return module is not None and module is sys.modules.get(_PACKAGE)


def watch() -> None:
    """Puts the finder first in line, once."""
    if not any(type(finder).__name__ == _Finder.__name__ and
               type(finder).__module__ == __name__ for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


def install() -> None:
    """Makes ``import tiktoken`` give this package, in this process, from now on.

    Call it before the libraries that import tiktoken are imported. Modules that have imported
    the other package already keep what they have.

    >>> import bpe_engine
    >>> bpe_engine.install()
    >>> import tiktoken
    >>> tiktoken is bpe_engine
    True
    """
    watch()
    if _is_ours(sys.modules.get(_ALIAS)):
        return
    for name in [name for name in sys.modules if name.startswith(f"{_ALIAS}.")]:
        del sys.modules[name]
    sys.modules[_ALIAS] = sys.modules[_PACKAGE]
    for name in ("core", "load", "model", "registry", "_tiktoken"):
        importlib.import_module(f"{_ALIAS}.{name}")


watch()
