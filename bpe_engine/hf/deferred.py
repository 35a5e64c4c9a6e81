"""Makes our tokenizers from classes of transformers that build a tokenizer in their constructors.

Such a class calls ``Tokenizer(BPE(vocab=..., merges=...))``, or with another model, and sets the
parts of the object, before the constructor of its base runs. The names in the module of the class are
replaced by ones that keep what is asked for, while a patched ``from_pretrained`` runs in the same
context, so that the base builds our object out of it. Anything else that a class does with it before is
an AttributeError or a TypeError, after which the tokenizer is loaded as without the patch.
"""

from __future__ import annotations

import json
import sys
from typing import Any, Callable, TypeVar

from . import models
from .component import component_json
from .tokenizers import Tokenizer

__all__ = ["Deferred", "StandIns"]

_Own = TypeVar("_Own", bound=Tokenizer)

_PARTS = ("normalizer", "pre_tokenizer", "post_processor", "decoder")
#: The models that are kept, and their arguments.
_ARGUMENTS = {
    "BPE": (
        "vocab",
        "merges",
        "cache_capacity",
        "dropout",
        "unk_token",
        "continuing_subword_prefix",
        "end_of_word_suffix",
        "fuse_unk",
        "byte_fallback",
        "ignore_merges",
    ),
    "WordPiece": ("vocab", "unk_token", "max_input_chars_per_word", "continuing_subword_prefix"),
    "Unigram": ("vocab", "unk_id", "byte_fallback"),
}


class _Model:
    """The arguments of a model of `tokenizers`."""

    __slots__ = ("kind", "options")

    def __init__(self, kind: str, options: dict[str, Any]):
        self.kind: str = kind
        self.options: dict[str, Any] = options

    def token_to_id(self, token: str) -> int | None:
        vocab = self.options["vocab"]
        if isinstance(vocab, dict):
            id: int | None = vocab.get(token)
            return id
        # Of pieces that repeat, the last one counts.
        return next((id for id in reversed(range(len(vocab))) if vocab[id][0] == token), None)


def _bpe_json(options: dict[str, Any]) -> str:
    vocab, merges = options["vocab"], options["merges"]
    if {*map(type, vocab.values())} - {int}:
        raise TypeError("ids must be integers")
    # Not `json.dumps` of the whole: it makes a tuple for each token, and so many of them start
    # collections of garbage which take as long as all else.
    quoted = json.encoder.encode_basestring
    others = {
        name: options[name] for name in _ARGUMENTS["BPE"][3:] if options.get(name) is not None
    }
    fields = {"type": "BPE", **others}
    return (
        f'{json.dumps(fields)[:-1]},"vocab":{{'
        + ",".join([f"{quoted(token)}:{id}" for token, id in vocab.items()])
        + '},"merges":['
        + ",".join([f"[{quoted(left)},{quoted(right)}]" for left, right in merges])
        + "]}"
    )


class Deferred:
    """A `tokenizers.Tokenizer` of which only the model and parts are known so far."""

    __slots__ = ("_build", "_model", *_PARTS)

    def __init__(self, model: _Model, build: Callable[[_Model], Any]):
        self._model, self._build = model, build
        for part in _PARTS:
            setattr(self, part, None)

    def token_to_id(self, token: str) -> int | None:
        """The id of a token of the model."""
        return self._model.token_to_id(token)

    def ours(self, kind: type[_Own]) -> _Own:
        """Our object, of a class.

        Raises:
            TypeError: A part does not belong to `tokenizers`.
            ValueError: The model is malformed.
        """
        model = self._model
        if model.kind == "BPE":
            # Built once, for these parts.
            parts = {part: component_json(getattr(self, part), part) for part in _PARTS}
            fields = [f'"{part}":{spec or "null"}' for part, spec in parts.items()]
            return kind(f'{{{",".join(fields)},"model":{_bpe_json(model.options)}}}')
        return self._with_parts(kind(getattr(models, model.kind)(**model.options)))

    def build(self) -> Any:
        """The object of `tokenizers`."""
        made: Any = self._build(self._model)
        return self._with_parts(made)

    def _with_parts(self, tokenizer: _Own) -> _Own:
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
        tokenizers: The package.
        in_use: Whether the tokenizer that is being made may be ours.
    """

    def __init__(self, tokenizers: Any, in_use: Callable[[], bool]):
        self._tokenizer_class = tokenizers.Tokenizer
        self._models = {kind: getattr(tokenizers.models, kind) for kind in _ARGUMENTS}
        self._in_use = in_use
        self._modules: dict[str, tuple[Any, list[str]]] = {}

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
            kinds = [kind for kind, model in self._models.items() if names.get(kind) is model]
            is_theirs = names.get("Tokenizer") is self._tokenizer_class
            if name not in self._modules and is_theirs and kinds:
                self._modules[name] = module, kinds
                # No lock, which a fork could leave held: this `Tokenizer` takes models of
                # `tokenizers` too, so it may be there before the other name is.
                module.Tokenizer = _Name(self._tokenizer_class, self._tokenizer)
                for kind in kinds:
                    setattr(module, kind, _Name(self._models[kind], self._keeper(kind)))

    def remove(self) -> None:
        """Puts the names back."""
        while self._modules:
            _, (module, kinds) = self._modules.popitem()
            for kind in kinds:
                setattr(module, kind, self._models[kind])
            module.Tokenizer = self._tokenizer_class

    def _keeper(self, kind: str) -> Callable[..., _Model | None]:
        names = _ARGUMENTS[kind]

        def keep(*args: Any, **options: Any) -> _Model | None:
            given = dict(zip(names, args)) | options
            lists = [given.get("vocab"), *([given.get("merges")] if kind == "BPE" else [])]
            is_known = len(given) == len(args) + len(options) and given.keys() <= {*names}
            is_known = is_known and all(isinstance(each, (dict, list)) for each in lists)
            return _Model(kind, given) if is_known and self._in_use() else None

        return keep

    def _tokenizer(self, *args: Any, **kwargs: Any) -> Deferred | None:
        if kwargs or len(args) != 1 or not isinstance(args[0], _Model):
            return None

        def build(model: _Model) -> Any:
            return self._tokenizer_class(self._models[model.kind](**model.options))

        return Deferred(args[0], build)
