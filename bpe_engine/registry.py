"""Encodings by name: those of the package, and those of plugins.

A plugin is a module in the namespace package `tiktoken_ext` with a dict
``ENCODING_CONSTRUCTORS``: names, and functions that return the arguments of `Encoding`.
"""

from __future__ import annotations

import importlib
import pkgutil
import threading
from typing import Any, Callable, Sequence

from .builtin import BUILTIN, BuiltIn
from .core import Encoding

__all__ = ["ENCODINGS", "ENCODING_CONSTRUCTORS", "get_encoding", "list_encoding_names"]

_lock = threading.RLock()

# Encodings made so far, by name.
ENCODINGS: dict[str, Encoding] = {}

# How to make each encoding; None until the plugins have been looked for.
ENCODING_CONSTRUCTORS: dict[str, Callable[[], dict[str, Any]]] | None = None

# tiktoken's own plugin. The encodings of this package stand in for those it fetches from the
# network under the same names.
_REPLACED_PLUGIN = "tiktoken_ext.openai_public"


def _available_plugin_modules() -> Sequence[str]:
    """The names of the modules in `tiktoken_ext`, sorted."""
    try:
        import tiktoken_ext
    except ImportError:
        return []
    prefix = tiktoken_ext.__name__ + "."
    return sorted(name for _, name, _ in pkgutil.iter_modules(tiktoken_ext.__path__, prefix))


def _find_constructors() -> dict[str, Callable[[], dict[str, Any]]]:
    """Fills `ENCODING_CONSTRUCTORS`, unless that has been done, and returns it."""
    global ENCODING_CONSTRUCTORS
    with _lock:
        if ENCODING_CONSTRUCTORS is None:
            constructors: dict[str, Callable[[], dict[str, Any]]] = dict(BUILTIN)
            for module_name in _available_plugin_modules():
                _add_plugin(module_name, constructors)
            ENCODING_CONSTRUCTORS = constructors
        return ENCODING_CONSTRUCTORS


def _add_plugin(module_name: str, constructors: dict[str, Callable[[], dict[str, Any]]]) -> None:
    module = importlib.import_module(module_name)
    try:
        found = module.ENCODING_CONSTRUCTORS
    except AttributeError as error:
        raise ValueError(
            f"tiktoken plugin {module_name} does not define ENCODING_CONSTRUCTORS"
        ) from error
    for name, constructor in found.items():
        if name not in constructors:
            constructors[name] = constructor
        elif not (module_name == _REPLACED_PLUGIN and name in BUILTIN):
            raise ValueError(f"Duplicate encoding name {name} in tiktoken plugin {module_name}")


def get_encoding(encoding_name: str) -> Encoding:
    """The encoding with this name. It is made once and then shared.

    Args:
        encoding_name: One of `list_encoding_names()`.

    Raises:
        ValueError: There is no such encoding, or the name is not a str.

    >>> get_encoding("cl100k_base").encode("hello world")
    [15339, 1917]
    """
    if not isinstance(encoding_name, str):
        raise ValueError(
            f"Expected a string in get_encoding, got {type(encoding_name)}; "
            "pass a name such as 'o200k_base'"
        )
    encoding = ENCODINGS.get(encoding_name)
    if encoding is not None:
        return encoding
    with _lock:
        if encoding_name not in ENCODINGS:
            ENCODINGS[encoding_name] = _make(encoding_name)
        return ENCODINGS[encoding_name]


def _make(name: str) -> Encoding:
    # The package's own encodings are made without a look at the plugins, which may be slow to
    # import, unless somebody has put another constructor in their place.
    constructors = ENCODING_CONSTRUCTORS
    if constructors is None:
        constructors = dict(BUILTIN) if name in BUILTIN else _find_constructors()
    constructor = constructors.get(name)
    if constructor is None:
        raise ValueError(
            f"Unknown encoding {name}. Known encodings: {', '.join(constructors)}.\n"
            f"Plugins found: {_available_plugin_modules()}"
        )
    if isinstance(constructor, BuiltIn):
        return constructor.encoding()
    return Encoding(**constructor())


def list_encoding_names() -> list[str]:
    """The names that `get_encoding` takes: the package's own, then those of plugins.

    >>> list_encoding_names()[:3]
    ['gpt2', 'r50k_base', 'p50k_base']
    """
    return list(_find_constructors())
