"""Tokenizers under transformers 5. Needs the extra ``bpe-engine[transformers]``."""

from __future__ import annotations

import functools
import json
import logging
import os
import sys
import threading
from contextvars import ContextVar
from typing import Any, Callable

from .._core import UnsupportedTokenizer
from .deferred import Deferred, StandIns
from .stream import DecodeStream
from .tokenizer import Tokenizer

try:
    import tokenizers
    import transformers
except ImportError as error:
    raise ImportError(
        'this needs transformers; install it with: pip install "bpe-engine[transformers]"'
    ) from error

__all__ = ["as_transformers", "patch_transformers", "unpatch_transformers"]

# Their attributes are replaced, which the type checker would not have.
_decoders: Any = tokenizers.decoders
_auto_tokenizer: Any = transformers.AutoTokenizer
_backend: Any = transformers.TokenizersBackend
_backends: Any = sys.modules[_backend.__module__]

_logger = logging.getLogger(__name__)
_lock = threading.RLock()
# What `patch_transformers` replaced.
_replaced: dict[str, Any] = {}


class _Backend(Tokenizer):
    """A tokenizer whose added tokens are the objects that transformers knows."""

    def get_added_tokens_decoder(self) -> dict[int, Any]:
        return {
            id: tokenizers.AddedToken(
                content,
                single_word=single_word,
                lstrip=lstrip,
                rstrip=rstrip,
                normalized=normalized,
                special=special,
            )
            for id, (
                content,
                single_word,
                lstrip,
                rstrip,
                normalized,
                special,
            ) in self._added_tokens()
        }


def _swap(tokenizer: Any) -> Any:
    """Puts our object in the place of the `tokenizers.Tokenizer` of a transformers tokenizer.

    Raises:
        UnsupportedTokenizer: It asks for what cannot be done exactly.
    """
    inner = tokenizer._tokenizer
    if isinstance(inner, tokenizers.Tokenizer):
        own = _Backend.from_str(inner.to_str())
        own.encode_special_tokens = inner.encode_special_tokens
        tokenizer._tokenizer = own
    return tokenizer


def as_transformers(tokenizer_or_folder: Any, **kwargs: Any) -> Any:
    """A transformers tokenizer around ours.

    Args:
        tokenizer_or_folder: A `Tokenizer`, a transformers tokenizer (which is changed and
            returned), or the folder of a pretrained one.
        kwargs: For a `Tokenizer`, what ``transformers.TokenizersBackend`` takes, such as
            ``eos_token``; for a folder, what ``AutoTokenizer.from_pretrained`` takes.

    Returns:
        A ``transformers.PreTrainedTokenizerFast``.

    Raises:
        UnsupportedTokenizer: It asks for what cannot be done exactly.
        TypeError: It is something else.
        ImportError: transformers is not installed.
    """
    if isinstance(tokenizer_or_folder, Tokenizer):
        return _backend(tokenizer_object=_Backend(tokenizer_or_folder), **kwargs)
    if isinstance(tokenizer_or_folder, (str, os.PathLike)):
        original = _replaced.get("from_pretrained", _auto_tokenizer.from_pretrained)
        tokenizer_or_folder = original(os.fspath(tokenizer_or_folder), **kwargs)
    if not hasattr(tokenizer_or_folder, "_tokenizer"):
        raise TypeError(
            "expected a Tokenizer, a transformers tokenizer with a tokenizer.json, or a folder, "
            f"not {type(tokenizer_or_folder).__name__}"
        )
    return _swap(tokenizer_or_folder)


@functools.cache
def _log_once(name: str, reason: str) -> None:
    _logger.warning("%s keeps the tokenizer of transformers: %s", name, reason)


# While a patched `from_pretrained` runs: why ours does not read a file.
_loading: ContextVar[list[str] | None] = ContextVar("_loading", default=None)


def _patched_init(original: Callable[..., None]) -> Callable[..., None]:
    """The constructor of transformers' tokenizers, with our object out of the file that
    `tokenizers` would read."""

    @functools.wraps(original)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        if isinstance(self._tokenizer, Deferred):
            try:
                self._tokenizer = _Backend.from_str(self._tokenizer.to_str())
            except ValueError:
                self._tokenizer = self._tokenizer.build()
        refused, path = _loading.get(), kwargs.get("tokenizer_file")
        has_object = kwargs.get("tokenizer_object") is not None or self._tokenizer is not None
        if refused is not None and not has_object and path is not None and os.path.isfile(path):
            try:
                kwargs["tokenizer_object"] = _Backend.from_file(path)
            except ValueError as error:
                refused.append(_reason(error))
        # What is read from here on is read for all of it.
        token = _loading.set(None)
        try:
            original(self, *args, **kwargs)
        finally:
            _loading.reset(token)

    return init


class _Reader:
    """`tokenizers.Tokenizer`, where transformers reads a file only for its smaller parts.

    Classes that build the object out of tokens and merges themselves read the whole file first,
    for its post-processor, padding and truncation, where its model does not say of which type it
    is. What is read here has no tokens.
    """

    def __init__(self, original: Any):
        self._original = original

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._original(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)

    def from_file(self, path: str) -> Any:
        if _loading.get() is not None:
            with open(path, encoding="utf-8") as file:
                contents = json.load(file)
            model = contents.get("model")
            if isinstance(model, dict) and "type" not in model and "merges" in model:
                empty = {"type": "BPE", "vocab": {}, "merges": []}
                contents = {**contents, "model": empty, "added_tokens": []}
                return self._original.from_str(json.dumps(contents))
        return self._original.from_file(path)


def _patched_conversion(original: Callable[..., Any]) -> Callable[..., Any]:
    """Of a file to the arguments of a constructor: the class is known from here on."""

    def convert_to_native_format(cls: type, *args: Any, **kwargs: Any) -> Any:
        if _loading.get() is not None:
            _stand_ins.put_into(cls, _backend)
        return original(cls, *args, **kwargs)

    return convert_to_native_format


_stand_ins = StandIns(
    tokenizers.Tokenizer, tokenizers.models.BPE, lambda: _loading.get() is not None
)


def _reason(error: ValueError) -> str:
    if isinstance(error, UnsupportedTokenizer):
        return str(error)
    return f"its file is malformed ({error})"


def _patched(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def from_pretrained(*args: Any, **kwargs: Any) -> Any:
        refused: list[str] = []
        token = _loading.set(refused)
        try:
            tokenizer = original(*args, **kwargs)
        except (AttributeError, NotImplementedError, TypeError):
            # Transformers repairs some files by changing parts of the object in place.
            _loading.set(None)
            tokenizer = original(*args, **kwargs)
        finally:
            _loading.reset(token)
        if not isinstance(getattr(tokenizer, "_tokenizer", None), tokenizers.Tokenizer):
            return tokenizer
        if not refused:
            try:
                return _swap(tokenizer)
            except ValueError as error:
                refused.append(_reason(error))
        _log_once(str(getattr(tokenizer, "name_or_path", "") or type(tokenizer)), refused[0])
        return tokenizer

    return from_pretrained


def patch_transformers() -> None:
    """Makes ``AutoTokenizer.from_pretrained`` give tokenizers around ours.

    Where a file is not supported, the tokenizer is that of transformers, and the reason is logged
    once. ``tokenizers.decoders.DecodeStream`` becomes one that takes both kinds. Does nothing when
    it was done before. Code that imported the stream decoder by name keeps the old one, so call
    this first.
    """
    with _lock:
        if _replaced:
            return
        _replaced["from_pretrained"] = _auto_tokenizer.from_pretrained
        _replaced["DecodeStream"] = _decoders.DecodeStream
        _replaced["__init__"] = _backend.__init__
        patched = _patched(_replaced["from_pretrained"])
        _auto_tokenizer.from_pretrained = staticmethod(patched)
        _decoders.DecodeStream = DecodeStream
        _backend.__init__ = _patched_init(_replaced["__init__"])
        _replaced["conversion"] = vars(_backend)["convert_to_native_format"]
        conversion = _patched_conversion(_replaced["conversion"].__func__)
        _backend.convert_to_native_format = classmethod(conversion)
        _replaced["TokenizerFast"] = _backends.TokenizerFast
        _backends.TokenizerFast = _Reader(_backends.TokenizerFast)


def unpatch_transformers() -> None:
    """Undoes `patch_transformers`. Tokenizers that it gave stay as they are."""
    with _lock:
        if _replaced:
            _auto_tokenizer.from_pretrained = _replaced.pop("from_pretrained")
            _decoders.DecodeStream = _replaced.pop("DecodeStream")
            _backend.__init__ = _replaced.pop("__init__")
            _backend.convert_to_native_format = _replaced.pop("conversion")
            _stand_ins.remove()
            _backends.TokenizerFast = _replaced.pop("TokenizerFast")


# A fork waits for what another thread is replacing: its child would have a half of that, and a
# lock that nobody frees.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_lock.acquire, after_in_child=_lock.release, after_in_parent=_lock.release
    )
