"""Finds encodings by name, in this package and in plugins.

A plugin is a module in the namespace package `tiktoken_ext`. Its dict ``ENCODING_CONSTRUCTORS``
maps names to functions that return the arguments of `Encoding`.
"""

from __future__ import annotations

import importlib
import threading
from typing import Any, Callable, Sequence

from .common.suggest import did_you_mean
from .common.system import after_fork
from .core import Encoding, name_encodings
from .read.builtin import BUILTIN, BuiltIn

__all__ = ["ENCODINGS", "ENCODING_CONSTRUCTORS", "get_encoding", "list_encoding_names"]

_Constructors = dict[str, Callable[[], dict[str, Any]]]

_lock = threading.RLock()

# The encodings made so far, by name.
ENCODINGS: dict[str, Encoding] = {}

# The constructors of all encodings. Programs read, extend and replace this dict. It is filled on
# first access (see `__getattr__`): the package's own encodings do not need the plugins, which may
# be slow to import or broken.
ENCODING_CONSTRUCTORS: _Constructors | None

# tiktoken's own plugin, which fetches files from the network. This package's encodings of the same
# names replace the plugin's.
_REPLACED_PLUGIN = "tiktoken_ext.openai_public"


def __getattr__(name: str) -> Any:
    if name == "ENCODING_CONSTRUCTORS":
        return _find_constructors()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _known_constructors() -> _Constructors | None:
    return globals().get("ENCODING_CONSTRUCTORS")


def _available_plugin_modules() -> Sequence[str]:
    import pkgutil

    try:
        import tiktoken_ext  # type: ignore[import-untyped,import-not-found,unused-ignore]
    except ImportError:
        return []
    prefix = tiktoken_ext.__name__ + "."
    return sorted(name for _, name, _ in pkgutil.iter_modules(tiktoken_ext.__path__, prefix))


def _find_constructors() -> _Constructors:
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
    """Returns the encoding with this name, which is made once and then shared.

    Args:
        encoding_name: One of `list_encoding_names()`.

    Raises:
        ValueError: The name is unknown, or not a str.

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
    # A program that replaces the contents of the dict with tiktoken's constructors still gets the
    # package's own encodings, which need no network.
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
        hint = " To read a file, call load_encoding."
    else:
        hint = did_you_mean(name, names) or " For the name of a model, call encoding_for_model."
    return (
        f"Unknown encoding {name}.{hint} Known encodings: {', '.join(names)}.\n"
        f"Plugins found: {_available_plugin_modules()}"
    )


def list_encoding_names() -> list[str]:
    """Returns the names that `get_encoding` takes: the package's names, then the plugins'.

    >>> list_encoding_names()[:3]
    ['gpt2', 'r50k_base', 'p50k_base']
    """
    return list({**_find_constructors(), **BUILTIN})


def _new_lock() -> None:
    global _lock
    _lock = threading.RLock()


# In a forked child, the thread that held the lock does not exist.
after_fork(_new_lock)

# Encodings of the registry are pickled by name.
name_encodings(ENCODINGS, get_encoding)
