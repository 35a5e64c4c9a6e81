"""This package under the name `tiktoken`.

Once ``sys.modules["tiktoken"]`` is this package, ``import tiktoken.load`` would have Python load
a second copy of `load` under the other name, with its own `Encoding` and its own registry. A
finder makes both names lead to the same module. Where tiktoken is not installed, a second finder,
last in line, answers for the rest of its distribution: the plugin `tiktoken_ext.openai_public`
and the version. Both do nothing while `tiktoken` is another package, or none.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import os
import sys
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any, Sequence

__all__ = ["install"]

_ALIAS = "tiktoken"
_PLUGINS = "tiktoken_ext"
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


class _PluginFolders:
    """The ``__path__`` of `tiktoken_ext`: the folders of that name on the path at the time."""

    def __iter__(self) -> Iterator[str]:
        folders = (os.path.join(entry or os.curdir, _PLUGINS) for entry in sys.path)
        return filter(os.path.isdir, folders)


class _NamespaceLoader(importlib.abc.Loader):
    """Loads `tiktoken_ext` where no plugin is installed."""

    def exec_module(self, module: ModuleType) -> None:
        module.__path__ = _PluginFolders()  # type: ignore[assignment]


class _DistributionFinder(importlib.abc.MetaPathFinder):
    """Finds what else is in tiktoken's distribution, when nobody else does."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if not _is_ours(sys.modules.get(_ALIAS)):
            return None
        if fullname == _PLUGINS:
            return importlib.machinery.ModuleSpec(fullname, _NamespaceLoader(), is_package=True)
        if fullname == f"{_PLUGINS}.openai_public":
            module = importlib.import_module(f"{_PACKAGE}._openai_public")
            return importlib.machinery.ModuleSpec(fullname, _Loader(module))
        return None

    def find_distributions(self, context: Any = None) -> Iterable[Any]:
        """As `importlib.metadata` asks, with a name or for all that there are."""
        if not _is_ours(sys.modules.get(_ALIAS)):
            return []
        # Costs more to import than the rest of the package; who asks has done it.
        from ._distribution import find

        return find(getattr(context, "name", None))


def _is_ours(module: ModuleType | None) -> bool:
    return module is not None and module is sys.modules.get(_PACKAGE)


def _is_watching(kind: type) -> bool:
    """Whether a finder of this class is in line, perhaps of a copy that was imported before."""
    return any(
        type(finder).__name__ == kind.__name__ and type(finder).__module__ == __name__
        for finder in sys.meta_path
    )


def watch() -> None:
    """Puts one finder first in line and the other last, once."""
    if not _is_watching(_Finder):
        sys.meta_path.insert(0, _Finder())
    if not _is_watching(_DistributionFinder):
        sys.meta_path.append(_DistributionFinder())


def install() -> None:
    """Makes ``import tiktoken`` give this package, in this process, from now on.

    Call it before the libraries that import tiktoken are imported. Modules that have imported
    the other package already keep what they have. Where tiktoken is not installed,
    ``import tiktoken_ext.openai_public`` and ``importlib.metadata.version("tiktoken")`` work too:
    the version is the one that this package is compatible with.

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
