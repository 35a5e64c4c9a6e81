"""Makes our tokenizers from classes of transformers that build a tokenizer in their constructors.

Such a class calls ``Tokenizer(BPE(vocab=..., merges=...))`` and sets the parts of what it gets,
before the constructor of its base runs. The two names in the module of the class are replaced by
ones that keep what is asked for, while a patched ``from_pretrained`` runs in the same context, so
that the base builds our object out of it. Anything else that a class does with it before is an
AttributeError or a TypeError, after which the tokenizer is loaded as without the patch.
"""

from __future__ import annotations

import json
import sys
from typing import Any, Callable

from .component import component_json

__all__ = ["Deferred", "StandIns"]

_PARTS = ("normalizer", "pre_tokenizer", "post_processor", "decoder")
_DEFAULTS: dict[str, Any] = {
    "vocab": None,
    "merges": None,
    "dropout": None,
    "unk_token": None,
    "continuing_subword_prefix": None,
    "end_of_word_suffix": None,
    "fuse_unk": False,
    "byte_fallback": False,
    "ignore_merges": False,
}
_LARGE = ("vocab", "merges")
# Of these, ours does no other; such a model is built at once.
_PLAIN = ("dropout", "continuing_subword_prefix", "end_of_word_suffix")


class _Model:
    """The arguments of a `tokenizers.models.BPE`."""

    __slots__ = ("options",)

    def __init__(self, options: dict[str, Any]):
        self.options: dict[str, Any] = options


def _model_json(options: dict[str, Any]) -> str:
    vocab, merges = options["vocab"], options["merges"]
    if {*map(type, vocab.values())} - {int}:
        raise TypeError("ids must be integers")
    # Not `json.dumps` of the whole: it makes a tuple for each token, and so many of them start
    # collections of garbage which take as long as all else.
    quoted = json.encoder.encode_basestring
    others = {name: value for name, value in {**_DEFAULTS, **options}.items() if name not in _LARGE}
    return (
        f'{{"type":"BPE",{json.dumps(others)[1:-1]},"vocab":{{'
        + ",".join([f"{quoted(token)}:{id}" for token, id in vocab.items()])
        + '},"merges":['
        + ",".join([f"[{quoted(left)},{quoted(right)}]" for left, right in merges])
        + "]}"
    )


class Deferred:
    """A `tokenizers.Tokenizer` of which only the model and parts are known so far."""

    __slots__ = ("_build", "_model", *_PARTS)

    def __init__(self, model: _Model, build: Callable[[dict[str, Any]], Any]):
        self._model, self._build = model, build
        for part in _PARTS:
            setattr(self, part, None)

    def to_str(self) -> str:
        """As `tokenizers.Tokenizer.to_str`, but for the order of tokens.

        Raises:
            TypeError: A part does not belong to `tokenizers`.
        """
        parts = {part: component_json(getattr(self, part), part) for part in _PARTS}
        fields = [f'"{part}":{spec or "null"}' for part, spec in parts.items()]
        return f'{{"version":"1.0",{",".join(fields)},"model":{_model_json(self._model.options)}}}'

    def build(self) -> Any:
        """The object of `tokenizers`."""
        tokenizer = self._build(self._model.options)
        for part in _PARTS:
            if (value := getattr(self, part)) is not None:
                setattr(tokenizer, part, value)
        return tokenizer


class _Name:
    """A class of `tokenizers` as a module names it, some of whose calls are answered here."""

    def __init__(self, original: Any, call: Callable[..., Any]):
        self._original, self._call = original, call

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        result = self._call(*args, **kwargs)
        return self._original(*args, **kwargs) if result is None else result

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)


class StandIns:
    """The names that were replaced in modules of transformers.

    Args:
        tokenizer: `tokenizers.Tokenizer`.
        model: `tokenizers.models.BPE`.
        in_use: Whether the tokenizer that is being made may be ours.
    """

    def __init__(self, tokenizer: Any, model: Any, in_use: Callable[[], bool]):
        self._originals = {"Tokenizer": tokenizer, "BPE": model}
        self._in_use = in_use
        self._modules: dict[str, Any] = {}

    def put_into(self, tokenizer_class: type, base: type) -> None:
        """Replaces the names in the modules of a class and of those that it derives from."""
        for each in tokenizer_class.__mro__:
            if each is base:
                return
            name = each.__module__
            module: Any = sys.modules.get(name)
            if not name.startswith("transformers.models.") or module is None:
                continue
            names = vars(module)
            if name not in self._modules and all(
                names.get(key) is original for key, original in self._originals.items()
            ):
                self._modules[name] = module
                # No lock, which a fork could leave held: this `Tokenizer` takes models of
                # `tokenizers` too, so it may be there before the other name is.
                module.Tokenizer = _Name(self._originals["Tokenizer"], self._tokenizer)
                module.BPE = _Name(self._originals["BPE"], self._model)

    def remove(self) -> None:
        """Puts the names back."""
        while self._modules:
            _, module = self._modules.popitem()
            module.BPE = self._originals["BPE"]
            module.Tokenizer = self._originals["Tokenizer"]

    def _model(self, *args: Any, **options: Any) -> _Model | None:
        is_known = (
            not args
            and options.keys() <= _DEFAULTS.keys()
            and isinstance(options.get("vocab"), dict)
            and isinstance(options.get("merges"), list)
            and not any(options.get(name) for name in _PLAIN)
        )
        return _Model(options) if is_known and self._in_use() else None

    def _tokenizer(self, *args: Any, **kwargs: Any) -> Deferred | None:
        if kwargs or len(args) != 1 or not isinstance(args[0], _Model):
            return None

        def build(options: dict[str, Any]) -> Any:
            return self._originals["Tokenizer"](self._originals["BPE"](**options))

        return Deferred(args[0], build)
