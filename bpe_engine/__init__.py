"""BPE with the ids of tiktoken and Hugging Face: fast, offline, safe against special tokens in text.

`Encoding` has the interface of tiktoken (`get_encoding`), `hf.Tokenizer` the interface of
`tokenizers` (a ``tokenizer.json``), and `Tokenizer` the interface of transformers (batches,
tensors, a model's folder). All have the same abilities; `open_tokenizer` opens any tokenizer.

>>> import bpe_engine
>>> encoding = bpe_engine.get_encoding("o200k_base")
>>> encoding.decode(encoding.encode("hello world"))
'hello world'
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

try:
    from . import _core as _core
except ImportError as _error:
    from ._unbuilt import explained

    raise explained(_error) from None

from . import _tiktoken as _tiktoken
from . import core, model, registry
from ._alias import install, uninstall
from ._core import StreamPool, StreamStop, TokenTable
from .abilities.stream import StreamDecoder
from .core import Encoding
from .model import encoding_for_model, encoding_name_for_model
from .registry import get_encoding, list_encoding_names

__version__ = "0.1.0"

if TYPE_CHECKING:
    from . import hf, load, prompt
    from .abilities.alignment import align
    from .abilities.healing import TokenTrie
    from .load import load_encoding
    from .read.opening import open_tokenizer
    from .tokenizer import Tokenizer

# Most programs need only the published encodings; other modules are imported on first access.
_MODULES = {
    "TokenTrie": "abilities.healing",
    "Tokenizer": "tokenizer",
    "align": "abilities.alignment",
    "hf": "hf",
    "load": "load",
    "load_encoding": "load",
    "open_tokenizer": "read.opening",
    "prompt": "prompt",
}

__all__ = [
    "Encoding",
    "StreamDecoder",
    "StreamPool",
    "StreamStop",
    "TokenTable",
    "TokenTrie",
    "Tokenizer",
    "align",
    "core",
    "encoding_for_model",
    "encoding_name_for_model",
    "get_encoding",
    "hf",
    "install",
    "list_encoding_names",
    "load",
    "load_encoding",
    "model",
    "open_tokenizer",
    "prompt",
    "registry",
    "uninstall",
]


def _hf(encoding: Encoding) -> hf.Tokenizer:
    from .hf.tokenizers import Tokenizer

    made = Tokenizer(encoding, dict(encoding.special_tokens))
    made._set_label(encoding.name)
    return made


def _transformers(encoding: Encoding) -> Tokenizer:
    from .tokenizer import Tokenizer

    return Tokenizer(encoding)


core.name_interfaces(_hf, _transformers)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f".{_MODULES[name]}", __name__)
    return module if name == _MODULES[name] else getattr(module, name)


def __dir__() -> list[str]:
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])
