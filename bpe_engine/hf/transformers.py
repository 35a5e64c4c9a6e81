"""Runs tokenizer files under transformers 5. Needs the extra ``bpe-engine[transformers]``."""

from __future__ import annotations

import functools
import logging
import os
import sys
import threading
from contextvars import ContextVar
from typing import Any, Callable, Iterable

from .._core import UnsupportedTokenizer
from ..common.system import after_fork
from .batches import with_plain_calls, with_rows
from .component import component_of_tokenizers
from .masks import with_masks
from .models import restore_scores
from .stream import DecodeStream
from .tokenizers import Tokenizer

try:
    import tokenizers
    import transformers
except ImportError as _error:
    raise ImportError(
        'this needs transformers; install it with: pip install "bpe-engine[transformers]"'
    ) from _error

__all__ = ["as_transformers", "patch_transformers", "unpatch_transformers"]

# Typed `Any`, because attributes of these modules are replaced.
_decoders: Any = tokenizers.decoders
_backend: Any = transformers.TokenizersBackend
_backends: Any = sys.modules[_backend.__module__]

_logger = logging.getLogger(__name__)
_lock = threading.RLock()
# Attributes replaced by `patch_transformers`.
_replaced: dict[str, Any] = {}


class _Backend(Tokenizer):
    """A tokenizer inside a transformers tokenizer.

    Its added tokens are `tokenizers` objects, and `tokenizers.decoders.DecodeStream` accepts it.
    """

    # Number of changes that affect decoding; the twin records the number at its creation.
    _changes = 0
    _twin: tuple[int, Any] | None = None

    def add_tokens(self, tokens: Iterable[Any]) -> int:
        added = super().add_tokens(tokens)
        self._changes += 1
        return added

    def add_special_tokens(self, tokens: Iterable[Any]) -> int:
        added = super().add_special_tokens(tokens)
        self._changes += 1
        return added

    def _set_component(self, name: str, json: str | None) -> None:
        super()._set_component(name, json)
        self._changes += 1

    def decoding_twin(self) -> Any:
        """Returns a `tokenizers.Tokenizer` with the same decoding and no merges."""
        changes = self._changes
        if self._twin is None or self._twin[0] != changes:
            twin = tokenizers.Tokenizer(
                tokenizers.models.BPE(vocab=self.get_vocab(with_added_tokens=False), merges=[])
            )
            for kind in ("normalizer", "decoder"):
                if (spec := self._component(kind)) is not None:
                    setattr(twin, kind, component_of_tokenizers(kind, spec))
            twin.add_tokens(list(self.get_added_tokens_decoder().values()))
            self._twin = changes, twin
        return self._twin[1]

    def get_added_tokens_decoder(self) -> dict[int, Any]:
        flags = ("single_word", "lstrip", "rstrip", "normalized", "special")
        return {
            id: tokenizers.AddedToken(content, **dict(zip(flags, values)))
            for id, (content, *values) in self._added_tokens()
        }


_step = _decoders.DecodeStream.step


@functools.wraps(_step)
def _step_of_both(self: Any, tokenizer: Any, id: Any) -> str | None:
    if isinstance(tokenizer, _Backend):
        tokenizer = tokenizer.decoding_twin()
    step: str | None = _step(self, tokenizer, id)
    return step


# Remains after `unpatch_transformers`: tokenizers of this module may still be in use.
_decoders.DecodeStream.step = _step_of_both


# These replacements remain for the same reason, and do not affect other tokenizers.
_backend.apply_chat_template = with_masks(_backend.apply_chat_template, _Backend)
_backend._encode_plus = with_rows(_backend, transformers.BatchEncoding, _Backend)
_backend.__call__ = with_plain_calls(_backend, _Backend)


def _with_training(original: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps `train_new_from_iterator`, which builds the tokenizer to train from JSON."""

    @functools.wraps(original)
    def train_new_from_iterator(self: Any, *args: Any, **kwargs: Any) -> Any:
        is_ours = isinstance(self._tokenizer, _Backend)
        if is_ours and not isinstance(_backends.TokenizerFast, _Reader):
            # Remains after `unpatch_transformers`, and does not affect other tokenizers.
            _backends.TokenizerFast = _Reader(_backends.TokenizerFast)
        token = _is_training.set(is_ours)
        try:
            return original(self, *args, **kwargs)
        finally:
            _is_training.reset(token)

    return train_new_from_iterator


_backend.train_new_from_iterator = _with_training(_backend.train_new_from_iterator)


def is_theirs(tokenizer: Any) -> bool:
    """Returns True for a `tokenizers.Tokenizer`; `isinstance` would also accept ours."""
    return issubclass(type(tokenizer), tokenizers.Tokenizer)


def _swap(tokenizer: Any) -> Any:
    """Replaces the `tokenizers.Tokenizer` of a transformers tokenizer with our object.

    Raises:
        UnsupportedTokenizer: The file requires an unsupported feature.
    """
    inner = tokenizer._tokenizer
    if is_theirs(inner):
        try:
            contents = inner.to_str()
        except Exception as error:  # `tokenizers` raises no narrower class.
            reason = f"it has a part that no file can hold ({error}); AutoTokenizer gives it"
            raise UnsupportedTokenizer(reason) from None
        own = _Backend.from_str(contents)
        own.encode_special_tokens = inner.encode_special_tokens
        restore_scores(own, contents)
        tokenizer._tokenizer = own
        # CLIP's class restores spaces at word ends through a wrapper around the swapped object.
        if wrap := getattr(tokenizer, "_wrap_decode_method_backend_tokenizer", None):
            wrap()
    return tokenizer


def as_transformers(tokenizer_or_folder: Any, **kwargs: Any) -> Any:
    """Wraps a tokenizer of this package in a transformers tokenizer.

    Args:
        tokenizer_or_folder: A `Tokenizer`, a transformers tokenizer (which is changed and
            returned), or the folder of a pretrained tokenizer.
        kwargs: For a `Tokenizer`, arguments of ``transformers.TokenizersBackend``, such as
            ``eos_token``; for a folder, arguments of ``AutoTokenizer.from_pretrained``.

    Returns:
        A ``transformers.PreTrainedTokenizerFast``.

    Raises:
        UnsupportedTokenizer: The file requires an unsupported feature.
        TypeError: The argument has another type.
        ImportError: transformers is not installed.
    """
    if isinstance(tokenizer_or_folder, Tokenizer):
        return _backend(tokenizer_object=_Backend(tokenizer_or_folder), **kwargs)
    if isinstance(tokenizer_or_folder, (str, os.PathLike)):
        token = _is_patched_call.set(True)
        try:
            load: Any = transformers.AutoTokenizer.from_pretrained
            tokenizer_or_folder = load(os.fspath(tokenizer_or_folder), **kwargs)
        finally:
            _is_patched_call.reset(token)
    if not hasattr(tokenizer_or_folder, "_tokenizer"):
        raise TypeError(
            "expected a Tokenizer, a transformers tokenizer with a tokenizer.json, or a folder, "
            f"not {type(tokenizer_or_folder).__name__}"
        )
    return _swap(tokenizer_or_folder)


_logged: set[str] = set()


def _log_once(name: str, reason: str) -> None:
    if reason not in _logged:
        _logged.add(reason)
        _logger.warning("%s keeps the tokenizer of transformers: %s", name, reason)


# Reasons why our tokenizer refuses a file, collected during a patched `from_pretrained`.
_loading: ContextVar[list[str] | None] = ContextVar("_loading", default=None)
# True during the outermost `from_pretrained`, whose result is checked.
_is_patched_call: ContextVar[bool] = ContextVar("_is_patched_call", default=False)
# True during `train_new_from_iterator` of our tokenizer.
_is_training: ContextVar[bool] = ContextVar("_is_training", default=False)


class _File:
    """A ``tokenizer.json`` that transformers asked `tokenizers` to read.

    The constructor of transformers' tokenizers replaces this object with ours; a class that builds
    a `tokenizers.Tokenizer` itself triggers the reading.
    """

    def __init__(self, path: str, original: Any):
        self.path = path
        self._original = original

    @functools.cached_property
    def whole(self) -> Any:
        """The `tokenizers.Tokenizer`, read on first use."""
        return self._original.from_file(self.path)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.whole, name)

    def __deepcopy__(self, memo: object) -> _File:
        return self


class _Reader:
    """Replaces `tokenizers.Tokenizer` in transformers, and reads files lazily."""

    def __init__(self, original: Any):
        self._original = original

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._original(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)

    def from_str(self, json: str) -> Any:
        """Reads the tokenizer that transformers trains: our object if the original tokenizer is
        ours."""
        return (_Backend if _is_training.get() else self._original).from_str(json)

    def from_file(self, path: str) -> Any:
        if _loading.get() is not None:
            return _File(path, self._original)
        return self._original.from_file(path)


def _read(path: str, refused: list[str]) -> Tokenizer | None:
    try:
        return _Backend.from_file(path)
    except ValueError as error:
        refused.append(_reason(error))
        return None


def _patched_init(original: Callable[..., None]) -> Callable[..., None]:
    """Wraps the constructor of transformers' tokenizers to pass our object instead of the file."""

    @functools.wraps(original)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        refused, path = _loading.get(), kwargs.get("tokenizer_file")
        given = kwargs.get("tokenizer_object")
        if isinstance(given, _File):
            # Versions up to 5.20 read the file earlier.
            ours = None if refused is None else _read(given.path, refused)
            kwargs["tokenizer_object"] = given.whole if ours is None else ours
        elif refused is not None and given is None and self._tokenizer is None:
            if path is not None and os.path.isfile(path):
                kwargs["tokenizer_object"] = _read(path, refused)
        # Until the reset, `tokenizers` reads files.
        token = _loading.set(None)
        try:
            original(self, *args, **kwargs)
        finally:
            _loading.reset(token)

    return init


def _reason(error: ValueError) -> str:
    if isinstance(error, UnsupportedTokenizer):
        return str(error)
    return f"it is malformed ({error})"


def _patched(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def from_pretrained(cls: type, *args: Any, **kwargs: Any) -> Any:
        if _is_patched_call.get():
            return original(cls, *args, **kwargs)
        inside = _is_patched_call.set(True)
        refused: list[str] = []
        token = _loading.set(refused)
        try:
            cls = _class_for(cls, args, kwargs)
            tokenizer = original(cls, *args, **kwargs)
        except (AttributeError, ImportError, NotImplementedError, TypeError):
            # Transformers repairs some files by changing parts of the object in place. Without
            # protobuf, 5.0 turns any other error into ImportError.
            _loading.set(None)
            tokenizer = original(cls, *args, **kwargs)
        finally:
            _loading.reset(token)
            _is_patched_call.reset(inside)
        if not is_theirs(getattr(tokenizer, "_tokenizer", None)):
            return tokenizer
        if not refused:
            try:
                return _swap(tokenizer)
            except ValueError as error:
                refused.append(f"as {type(tokenizer).__name__} makes it: {_reason(error)}")
        _log_once(str(getattr(tokenizer, "name_or_path", "") or type(tokenizer)), refused[0])
        return tokenizer

    return from_pretrained


def _class_for(cls: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> type:
    """Returns the class for a folder that `AutoTokenizer` loads.

    Up to 5.21, transformers uses `LlamaTokenizer`, which cuts only at spaces, for byte-level files
    that name this class, as DeepSeek's do; later versions use the class that reads the file as
    written.
    """
    is_old = not hasattr(_backend, "_tokenizer_json_has_byte_level")
    if not (is_old and kwargs.get("_from_auto") and cls.__name__ == "LlamaTokenizer" and args):
        return cls
    names = ("cache_dir", "force_download", "local_files_only", "revision", "subfolder", "token")
    options = {name: kwargs[name] for name in names if kwargs.get(name) is not None}
    hub: Any = transformers.utils.hub
    path = hub.cached_file(
        args[0],
        "tokenizer.json",
        _raise_exceptions_for_gated_repo=False,
        _raise_exceptions_for_missing_entries=False,
        _raise_exceptions_for_connection_errors=False,
        **options,
    )
    if path is None:
        return cls
    with open(path, encoding="utf-8") as file:
        if '"ByteLevel"' not in file.read():
            return cls
    _logger.warning(
        "%s has a byte-level tokenizer.json and names LlamaTokenizer, which gives other ids; the "
        "file itself is read, as by transformers 5.22 and later",
        args[0],
    )
    chosen: type = _backend
    return chosen


def patch_transformers() -> None:
    """Makes transformers' ``from_pretrained`` return tokenizers that wrap ours: on
    ``AutoTokenizer``, and on the classes that have a ``tokenizer.json``.

    For an unsupported file, transformers' tokenizer is returned, and the reason is logged once.
    ``tokenizers.decoders.DecodeStream`` becomes `bpe_engine.hf.DecodeStream`, which accepts both
    kinds of tokenizer; the `tokenizers` class also accepts both, but keeps a second vocabulary in
    memory for ours. Repeated calls do nothing. `is_ours` tells which tokenizers are ours.
    """
    with _lock:
        if _replaced:
            return
        _replaced["from_pretrained"] = vars(_backend).get("from_pretrained")
        _replaced["DecodeStream"] = _decoders.DecodeStream
        _replaced["__init__"] = _backend.__init__
        _backend.from_pretrained = classmethod(_patched(_backend.from_pretrained.__func__))
        _decoders.DecodeStream = DecodeStream
        _backend.__init__ = _patched_init(_replaced["__init__"])
        _replaced["TokenizerFast"] = _backends.TokenizerFast
        _backends.TokenizerFast = _Reader(_backends.TokenizerFast)


def unpatch_transformers() -> None:
    """Undoes `patch_transformers`; existing tokenizers are unaffected."""
    with _lock:
        if _replaced:
            inherited = _replaced.pop("from_pretrained")
            if inherited is None:
                del _backend.from_pretrained
            else:
                _backend.from_pretrained = inherited
            _decoders.DecodeStream = _replaced.pop("DecodeStream")
            _backend.__init__ = _replaced.pop("__init__")
            _backends.TokenizerFast = _replaced.pop("TokenizerFast")


# A fork waits for a running replacement: a child would inherit partial changes and the lock.
after_fork(_lock.release, before=_lock.acquire, in_parent=_lock.release)
