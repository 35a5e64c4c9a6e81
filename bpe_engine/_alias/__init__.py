"""Makes this package importable as `tiktoken`.

Once ``sys.modules["tiktoken"]`` is this package, ``import tiktoken.load`` would load a second copy
of `load`, with its own `Encoding` and registry. A finder maps both names to the same module. If
tiktoken is not installed, a second finder, at the end of ``sys.meta_path``, provides the rest of
its distribution: the plugin `tiktoken_ext.openai_public` and the version. Both finders act only
while `tiktoken` is this package.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import os
import sys
import warnings
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any, Sequence

if TYPE_CHECKING:
    from importlib.abc import Loader, MetaPathFinder
else:
    # No base class is needed: importing `importlib.abc` would take 5 ms.
    Loader = MetaPathFinder = object

__all__ = ["install", "uninstall"]

_ALIAS = "tiktoken"
_PLUGINS = "tiktoken_ext"
_PACKAGE = __name__.rpartition(".")[0]


class _Loader(Loader):
    """Returns a loaded module unchanged."""

    def __init__(self, module: ModuleType):
        self._module = module
        self._spec = module.__spec__

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        # The import system has just overwritten `__spec__` with the alias's spec.
        module.__spec__ = self._spec


class _Finder(MetaPathFinder):
    """Finds ``tiktoken.x`` as ``bpe_engine.x`` while `tiktoken` is an alias of `bpe_engine`."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        alias, _, name = fullname.partition(".")
        if alias != _ALIAS or not name or not _is_ours(sys.modules.get(_ALIAS)):
            return None
        real = f"{_PACKAGE}.{name}"
        try:
            module = importlib.import_module(real)
        except ModuleNotFoundError as error:
            if error.name == real:
                return None
            raise
        return importlib.machinery.ModuleSpec(fullname, _Loader(module))


class _PluginFolders:
    """The ``__path__`` of `tiktoken_ext`: all folders of that name on ``sys.path``."""

    def __iter__(self) -> Iterator[str]:
        folders = (os.path.join(entry or os.curdir, _PLUGINS) for entry in sys.path)
        return filter(os.path.isdir, folders)


class _NamespaceLoader(Loader):
    """Loads `tiktoken_ext` if no plugin is installed."""

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> None:
        """Lets the import system create the module."""

    def exec_module(self, module: ModuleType) -> None:
        module.__path__ = _PluginFolders()  # type: ignore[assignment]


class _DistributionFinder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if not _is_ours(sys.modules.get(_ALIAS)):
            return None
        if fullname == _PLUGINS:
            return importlib.machinery.ModuleSpec(fullname, _NamespaceLoader(), is_package=True)
        if fullname == f"{_PLUGINS}.openai_public":
            module = importlib.import_module(f"{__name__}.openai_public")
            return importlib.machinery.ModuleSpec(fullname, _Loader(module))
        return None

    def find_distributions(self, context: Any = None) -> Iterable[Any]:
        """Finds tiktoken's distribution for `importlib.metadata`, by name or in a full listing."""
        if not _is_ours(sys.modules.get(_ALIAS)):
            return []
        # Importing importlib.metadata is slow, but the caller has already imported it.
        from .distribution import find

        return find(getattr(context, "name", None))


def _is_ours(module: ModuleType | None) -> bool:
    return module is not None and module is sys.modules.get(_PACKAGE)


def _is_watching(kind: type) -> bool:
    """Returns whether ``sys.meta_path`` has a finder of this class name."""
    return any(
        type(finder).__name__ == kind.__name__ and type(finder).__module__ == __name__
        for finder in sys.meta_path
    )


def watch() -> None:
    """Inserts one finder at the start of ``sys.meta_path`` and one at the end, if missing."""
    if not _is_watching(_Finder):
        sys.meta_path.insert(0, _Finder())
    if not _is_watching(_DistributionFinder):
        sys.meta_path.append(_DistributionFinder())


#: The modules of tiktoken that `install` replaced.
_replaced: dict[str, ModuleType] = {}


def _take_aliases() -> dict[str, ModuleType]:
    names = [name for name in [*sys.modules] if name.partition(".")[0] == _ALIAS]
    return {name: sys.modules.pop(name) for name in names}


def install() -> None:
    """Makes ``import tiktoken`` return this package for the rest of the process.

    Call it before importing libraries that import tiktoken: modules that have imported tiktoken
    keep it. If tiktoken is not installed, ``import tiktoken_ext.openai_public`` and
    ``importlib.metadata.version("tiktoken")`` work too: the version is the tiktoken version that
    this package is compatible with.

    Warns if tiktoken has been imported already: its encodings are then no longer instances of
    ``tiktoken.Encoding``, and cannot be pickled. `uninstall` undoes the replacement.

    `Encoding` then passes for tiktoken's class: its ``__module__`` is ``tiktoken.core``, which
    programs check. Pickles made later also have this name: tiktoken can read them unless the
    encoding normalizes text, and so can any process that calls `install`.

    >>> import bpe_engine
    >>> bpe_engine.install()
    >>> import tiktoken
    >>> tiktoken is bpe_engine
    True
    """
    watch()
    if _is_ours(sys.modules.get(_ALIAS)):
        return
    if _ALIAS in sys.modules:
        warnings.warn(
            "tiktoken was imported before bpe_engine.install(): encodings that it made are no "
            "instances of tiktoken.Encoding any more, and cannot be pickled; call install() first",
            RuntimeWarning,
            stacklevel=2,
        )
    _replaced.update(_take_aliases())
    sys.modules[_ALIAS] = sys.modules[_PACKAGE]
    for name in ("core", "load", "model", "registry", "_tiktoken"):
        importlib.import_module(f"{_ALIAS}.{name}")
    sys.modules[f"{_ALIAS}.core"].Encoding.__module__ = f"{_ALIAS}.core"


def uninstall() -> None:
    """Undoes `install`: ``import tiktoken`` returns tiktoken again. Modules that have imported this
    package as tiktoken keep it.

    >>> import bpe_engine
    >>> bpe_engine.uninstall()
    """
    if _is_ours(sys.modules.get(_ALIAS)):
        _take_aliases()
        sys.modules.update(_replaced)
        _replaced.clear()
        sys.modules[f"{_PACKAGE}.core"].Encoding.__module__ = f"{_PACKAGE}.core"


watch()
