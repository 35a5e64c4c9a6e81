"""Byte-level BPE with exactly tiktoken's ids: fast, offline, safe against special tokens in text.

>>> import bpe_engine
>>> encoding = bpe_engine.get_encoding("o200k_base")
>>> encoding.decode(encoding.encode("hello world"))
'hello world'
"""

from typing import TYPE_CHECKING, Any

from . import _core, core, load, model, registry
from ._alias import install
from .core import Encoding
from .load import load_encoding
from .model import encoding_for_model, encoding_name_for_model
from .registry import get_encoding, list_encoding_names
from .stream import StreamDecoder

# The native module's name in tiktoken, for `from tiktoken import _tiktoken`.
_tiktoken = _core

__version__ = "0.1.0"

if TYPE_CHECKING:
    from .tokenizer import Tokenizer

__all__ = [
    "Encoding",
    "StreamDecoder",
    "Tokenizer",
    "core",
    "encoding_for_model",
    "encoding_name_for_model",
    "get_encoding",
    "install",
    "list_encoding_names",
    "load",
    "load_encoding",
    "model",
    "registry",
]


def __getattr__(name: str) -> Any:
    # Imported when it is asked for: most programs need the encodings alone.
    if name == "Tokenizer":
        from .tokenizer import Tokenizer

        return Tokenizer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
