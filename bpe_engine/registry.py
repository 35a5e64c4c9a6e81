"""Encodings by name: those of the package, and those of plugins.

A plugin is a module in the namespace package `tiktoken_ext` with a dict
``ENCODING_CONSTRUCTORS``: names, and functions that return the arguments of `Encoding`.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import threading
from typing import Any, Callable, Sequence

from ._suggest import did_you_mean
from .builtin import BUILTIN, BuiltIn
from .core import Encoding, name_encodings

__all__ = ["ENCODINGS", "ENCODING_CONSTRUCTORS", "get_encoding", "list_encoding_names"]

_Constructors = dict[str, Callable[[], dict[str, Any]]]

_lock = threading.RLock()

# Encodings made so far, by name.
ENCODINGS: dict[str, Encoding] = {}

# How to make each encoding. Programs read it, add to it and put another dict in its place. It is
# filled when somebody first reads it (see `__getattr__`): the plugins, which may be slow to import
# or broken, are not needed for the package's own encodings.
ENCODING_CONSTRUCTORS: _Constructors | None

# tiktoken's own plugin. The encodings of this package stand in for those it fetches from the
# network under the same names.
_REPLACED_PLUGIN = "tiktoken_ext.openai_public"


def __getattr__(name: str) -> Any:
    if name == "ENCODING_CONSTRUCTORS":
        return _find_constructors()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _known_constructors() -> _Constructors | None:
    """`ENCODING_CONSTRUCTORS`, or None as long as nobody has read or set it."""
    return globals().get("ENCODING_CONSTRUCTORS")


def _available_plugin_modules() -> Sequence[str]:
    """The names of the modules in `tiktoken_ext`, sorted."""
    try:
        import tiktoken_ext  # type: ignore[import-untyped,import-not-found,unused-ignore]
    except ImportError:
        return []
    prefix = tiktoken_ext.__name__ + "."
    return sorted(name for _, name, _ in pkgutil.iter_modules(tiktoken_ext.__path__, prefix))


def _find_constructors() -> _Constructors:
    """Fills `ENCODING_CONSTRUCTORS`, unless that has been done, and returns it."""
    global ENCODING_CONSTRUCTORS
    with _lock:
        constructors = _known_constructors()
        if constructors is None:
            constructors = dict(BUILTIN)
            for module_name in _available_plugin_modules():
                _add_plugin(module_name, constructors)
            ENCODING_CONSTRUCTORS = constructors
        return constructors


def _add_plugin(module_name: str, constructors: _Constructors) -> None:
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
    constructors = _known_constructors()
    if constructors is None:
        constructors = dict(BUILTIN) if name in BUILTIN else _find_constructors()
    # A program that empties the dict to put tiktoken's constructors into it still has the
    # package's own encodings, in place of those that would be fetched.
    constructor = constructors.get(name, BUILTIN.get(name))
    if name in BUILTIN and getattr(constructor, "__module__", None) == _REPLACED_PLUGIN:
        constructor = BUILTIN[name]
    if constructor is None:
        raise ValueError(_unknown(name))
    if isinstance(constructor, BuiltIn):
        return constructor.encoding()
    return Encoding(**constructor())


def _unknown(name: str) -> str:
    names = list_encoding_names()
    if name.endswith((".tiktoken", ".tiktoken.gz")):
        hint = " A file is read by load_encoding."
    else:
        hint = did_you_mean(name, names)
    return (
        f"Unknown encoding {name}.{hint} Known encodings: {', '.join(names)}.\n"
        f"Plugins found: {_available_plugin_modules()}"
    )


def list_encoding_names() -> list[str]:
    """The names that `get_encoding` takes: the package's own, then those of plugins.

    >>> list_encoding_names()[:3]
    ['gpt2', 'r50k_base', 'p50k_base']
    """
    return list({**_find_constructors(), **BUILTIN})


def _new_lock() -> None:
    global _lock
    _lock = threading.RLock()


# A forked child has none of the other threads: one of them may have held the lock.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_new_lock)

# Pickles of encodings that have a name hold the name alone.
name_encodings(ENCODINGS, get_encoding)
