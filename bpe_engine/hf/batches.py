"""Encodes batches for transformers' tokenizers that wrap ours, without an object per text."""

from __future__ import annotations

import functools
import inspect
import sys
import threading
from collections.abc import Callable
from typing import Any

from .._core import RowEncoder
from ..common.system import after_fork
from ..common.tensors import matrix_as_tensor
from .tokenizers import Tokenizer

__all__ = ["with_plain_calls", "with_rows"]

#: Held while a tokenizer's truncation and padding are set; replaced in a forked process.
_lock = threading.Lock()


def _new_lock() -> None:
    global _lock
    _lock = threading.Lock()


after_fork(_new_lock)

#: Maximum number of encoders that a tokenizer keeps.
_MOST = 16
#: The key under which transformers records that a long text caused a warning.
_TOO_LONG = "sequence-length-is-longer-than-the-specified-maximum"

#: Consecutive parameters shared by both methods.
_SHARED = (
    "max_length",
    "stride",
    "is_split_into_words",
    "pad_to_multiple_of",
    "padding_side",
    "return_tensors",
    "return_token_type_ids",
    "return_attention_mask",
    "return_overflowing_tokens",
    "return_special_tokens_mask",
    "return_offsets_mapping",
    "return_length",
    "verbose",
)
#: Parameters of `_encode_plus` in known versions. Unknown versions stay unpatched.
_PARAMETERS = (
    *("self", "text", "text_pair", "add_special_tokens", "padding_strategy", "truncation_strategy"),
    *_SHARED,
    *("split_special_tokens", "kwargs"),
)
#: Parameters of `__call__` in known versions.
_PARAMETERS_OF_CALLS = (
    *("self", "text", "text_pair", "text_target", "text_pair_target"),
    *("add_special_tokens", "padding", "truncation"),
    *_SHARED,
    *("tokenizer_kwargs", "kwargs"),
)
#: Arguments that `_encode_plus` takes in a different form, and all of its arguments.
_STRATEGIES = frozenset(("padding", "truncation", "max_length"))
_OPTIONS = frozenset(_PARAMETERS_OF_CALLS[5:-2]) | {"split_special_tokens"}
#: Options handled by transformers.
_RARE = frozenset(
    (
        "is_split_into_words",
        "return_overflowing_tokens",
        "return_offsets_mapping",
        "sanitize_control_tokens",
    )
)
#: Tensor packages by their names in `return_tensors`.
_PACKAGES = {"np": "numpy", "pt": "torch"}


def with_rows(base: Any, result: Any, own: type[Tokenizer]) -> Callable[..., Any]:
    """Wraps `_encode_plus` of transformers' tokenizers, which creates an object per text and lists
    of numbers per tensor. Results are the same; row objects are created on access.

    Args:
        base: The transformers class.
        result: The class of the results.
        own: The class of our tokenizers inside transformers'.

    Returns:
        The method; transformers' own for an unknown version.
    """
    original: Callable[..., Any] = base._encode_plus
    names = inspect.signature(original).parameters
    if tuple(names) != _PARAMETERS:
        return original
    no_padding = names["padding_strategy"].default
    no_truncation = names["truncation_strategy"].default
    inherited = "_convert_encoding", "set_truncation_and_padding"
    methods = tuple(getattr(base, name) for name in inherited)
    lazy = _lazy(result)

    @functools.wraps(original)
    def _encode_plus(
        self: Any, text: Any, text_pair: Any = None, *others: Any, **options: Any
    ) -> Any:
        tokenizer = self._tokenizer
        inputs, is_batch = _inputs(text, text_pair)
        kind, get = type(self), options.get
        add_special_tokens = get("add_special_tokens", True)
        if (
            inputs is None
            or others
            or not isinstance(tokenizer, own)
            # `tokenizers` accepts only a bool here.
            or not isinstance(add_special_tokens, bool)
            or not _RARE.isdisjoint(options)
            and any(map(get, _RARE))
            or (kind._convert_encoding, kind.set_truncation_and_padding) != methods
        ):
            return original(self, text, text_pair, *others, **options)
        split_special_tokens = get("split_special_tokens")
        if split_special_tokens is None:
            split_special_tokens = self.split_special_tokens
        max_length = get("max_length")
        lengths = max_length, get("stride", 0), get("pad_to_multiple_of")
        strategies = get("padding_strategy", no_padding), get("truncation_strategy", no_truncation)
        padding_side = get("padding_side")
        arguments = (
            strategies,
            lengths,
            # Distinguishes equal numbers whose types differ.
            *map(type, lengths),
            padding_side,
            add_special_tokens,
            split_special_tokens,
            self.padding_side,
            self.truncation_side,
            str(self._special_tokens_map.get("pad_token")),
            self._pad_token_type_id,
        )
        encoders: dict[Any, RowEncoder] = vars(tokenizer).setdefault("_encoders", {})
        encoder = encoders.get(arguments)
        if encoder is None or not encoder.is_current(tokenizer):
            arrange = functools.partial(
                self.set_truncation_and_padding,
                padding_strategy=strategies[0],
                truncation_strategy=strategies[1],
                max_length=max_length,
                stride=lengths[1],
                pad_to_multiple_of=lengths[2],
                padding_side=padding_side,
            )
            # Another thread could change the settings before they are read.
            with _lock:
                arrange()
                if tokenizer.encode_special_tokens != split_special_tokens:
                    tokenizer.encode_special_tokens = split_special_tokens
                encoder = RowEncoder.of_settings(
                    tokenizer, add_special_tokens, bool(split_special_tokens)
                )
                # Restore the settings, which transformers' methods may have changed without the
                # lock.
                arrange()
                if encoder.is_current(tokenizer):
                    if len(encoders) >= _MOST:
                        encoders.clear()
                    encoders[arguments] = encoder
        fields = ["input_ids"]
        model_input_names = self.model_input_names
        for name in ("token_type_ids", "attention_mask"):
            is_asked = get(f"return_{name}")
            if name in model_input_names if is_asked is None else is_asked:
                fields.append(name)
        if get("return_special_tokens_mask"):
            fields.append("special_tokens_mask")
        if get("return_length"):
            fields.append("length")
        return_tensors, verbose = get("return_tensors"), get("verbose", True)
        are_lists = return_tensors is None
        package = (
            None
            if are_lists
            else _PACKAGES.get(str(getattr(return_tensors, "value", return_tensors)))
        )
        module = None if package is None else sys.modules.get(package)
        data, source, count, longest = encoder.answer(
            inputs, False, tuple(fields), is_batch or not are_lists, module is not None
        )
        is_told = self.deprecation_warnings.get(_TOO_LONG, False)
        if max_length is None and verbose and longest > self.model_max_length and not is_told:
            rows = encoder.encode(inputs, False).fields(("input_ids",), True)["input_ids"]
            for row in rows:
                self._eventual_warn_about_too_long_sequence(row, max_length, verbose)
        if are_lists:
            return lazy.of(data, source)
        are_tensors = True
        for name, value in data.items():
            if type(value) is tuple:
                data[name] = matrix_as_tensor(module, value[0], (count, value[1]))
            else:
                are_tensors = False
        batch = lazy.of(data, source)
        return batch if are_tensors else batch.convert_to_tensors(return_tensors)

    return _encode_plus


def with_plain_calls(base: Any, own: type[Tokenizer]) -> Callable[..., Any]:
    """Wraps `__call__` of transformers' tokenizers, which takes longer to pass on its arguments
    than the `_encode_plus` of `with_rows` takes to encode a sentence. Results are the same.

    Args:
        base: The transformers class, whose `_encode_plus` the calls reach.
        own: The class of our tokenizers inside transformers'.

    Returns:
        The method; transformers' own for an unknown version.
    """
    original: Callable[..., Any] = base.__call__
    if tuple(inspect.signature(original).parameters) != _PARAMETERS_OF_CALLS:
        return original
    encode_plus: Callable[..., Any] = base._encode_plus
    strategies: Any = base._get_padding_truncation_strategies

    @functools.wraps(original)
    def __call__(
        self: Any, text: Any = None, text_pair: Any = None, *others: Any, **options: Any
    ) -> Any:
        if (
            text is None
            or others
            or not _OPTIONS.issuperset(options)
            or not isinstance(self._tokenizer, own)
            or getattr(self._encode_plus, "__func__", None) is not encode_plus
            # Translation models choose the language of texts in these methods.
            or getattr(type(self), "_switch_to_input_mode", None) is not None
            or "_switch_to_input_mode" in self.__dict__
        ):
            return original(self, text, text_pair, *others, **options)
        choose = self._get_padding_truncation_strategies
        if getattr(choose, "__func__", None) is strategies and _STRATEGIES.isdisjoint(options):
            return encode_plus(self, text, text_pair, **options)
        padding_strategy, truncation_strategy, max_length, _ = choose(
            padding=options.pop("padding", False),
            truncation=options.pop("truncation", None),
            max_length=options.pop("max_length", None),
            pad_to_multiple_of=options.get("pad_to_multiple_of"),
            verbose=options.get("verbose", True),
        )
        return encode_plus(
            self,
            text,
            text_pair,
            padding_strategy=padding_strategy,
            truncation_strategy=truncation_strategy,
            max_length=max_length,
            **options,
        )

    return __call__


def _inputs(text: Any, text_pair: Any) -> tuple[list[Any] | None, bool]:
    """Returns the inputs of a call, and True for a batch. The inputs are None if they are not text
    or of a rare kind."""
    if isinstance(text, str):
        if text_pair is None or text_pair == "":
            return [text], False
        return ([(text, text_pair)] if isinstance(text_pair, str) else None), False
    if not isinstance(text, (list, tuple)) or not text:
        return None, True
    first = text[0]
    if text_pair is None:
        if isinstance(first, (list, tuple)):
            first = first[0] if len(first) == 2 and isinstance(first[1], str) else None
        pairs = [each.copy() if type(each) is list else each for each in text]
        return (pairs if isinstance(first, str) else None), True
    is_usual = isinstance(text_pair, (list, tuple)) and len(text_pair) == len(text)
    if is_usual and isinstance(first, str) and isinstance(text_pair[0], str):
        return list(zip(text, text_pair)), True
    return None, True


def _lazy(result: Any) -> Any:
    """Returns a subclass of transformers' `BatchEncoding` that makes row objects on access, and
    pickles as the base class."""

    class BatchEncoding(result):  # type: ignore[misc]
        __doc__ = result.__doc__

        @classmethod
        def of(cls, data: dict[str, Any], source: Callable[[], list[Any]]) -> Any:
            made = cls.__new__(cls)
            made.data, made._source = data, source
            return made

        @property
        def _encodings(self) -> list[Any] | None:
            made: list[Any] | None = self.__dict__.get("_rows")
            if made is None and "_source" in self.__dict__:
                made = self._rows = self._source()
            return made

        @_encodings.setter
        def _encodings(self, rows: list[Any] | None) -> None:
            self.__dict__.pop("_source", None)
            self._rows = rows

        @property
        def _n_sequences(self) -> int | None:
            number: int | None = self.__dict__.get("_number")
            if number is None and (rows := self._encodings):
                number = rows[0].n_sequences
            return number

        @_n_sequences.setter
        def _n_sequences(self, number: int | None) -> None:
            self._number = number

        @property
        def is_fast(self) -> bool:
            return "_source" in self.__dict__ or self._encodings is not None

        def __reduce_ex__(self, protocol: Any) -> Any:
            return result, (), self.__getstate__()

    BatchEncoding.__qualname__ = result.__qualname__
    return BatchEncoding
