"""Patches transformers when a program imports it, and imports nothing of it before."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

__all__ = ["patch_transformers_on_import"]

#: The module of the classes that are patched. It is imported with the first tokenizer.
_MODULE = "transformers.tokenization_utils_tokenizers"

_logger = logging.getLogger(__name__)


def _patch() -> None:
    """Patches, or says why not: a program that only imports transformers must go on."""
    try:
        from .transformers import patch_transformers

        patch_transformers()
    except Exception as error:
        _logger.warning("transformers keeps its own tokenizers: %s", error)


class _Loader:
    """The loader of the module, which patches after it has run."""

    def __init__(self, loader: Any):
        self._loader = loader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def exec_module(self, module: ModuleType) -> None:
        spec = module.__spec__
        module.__loader__ = self._loader
        if spec is not None:
            spec.loader = self._loader
        self._loader.exec_module(module)
        _patch()


class _Finder:
    """Finds the module once, with `_Loader`; the other finders do the work."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != _MODULE:
            return None
        for finder in sys.meta_path:
            find_spec = getattr(finder, "find_spec", None)
            if finder is self or find_spec is None:
                continue
            spec: Any = find_spec(name, path, target)
            if spec is not None:
                if hasattr(spec.loader, "exec_module"):
                    spec.loader = _Loader(spec.loader)
                found: ModuleSpec = spec
                return found
        return None


_finder: Any = _Finder()


def patch_transformers_on_import() -> None:
    """Calls `patch_transformers` when the program imports the tokenizers of transformers, or now if
    it has.

    For code that runs in every process of a machine, such as ``sitecustomize``, and for programs that
    may not need transformers: nothing of it is imported here. Does nothing when it was done before.
    If patching fails then, the reason is logged, and transformers keeps its tokenizers.

    >>> from bpe_engine.hf import patch_transformers_on_import
    >>> patch_transformers_on_import()  # doctest: +SKIP
    """
    if _MODULE in sys.modules:
        _patch()
    elif _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
