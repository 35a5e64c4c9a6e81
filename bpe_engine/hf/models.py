"""The models of tokenizers, with the names and fields of `tokenizers.models`."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, TypeVar

from .._core import Pipeline
from ..common.atomic_write import write_at_once
from ..common.values import checked, describe, listed, with_text
from ..read.gpt2_files import read_merges, read_vocab
from ..read.text_files import read_text
from .components import Token
from .trainers import Trainer, trainer_of

__all__ = [
    "BPE",
    "Model",
    "SentencePiece",
    "Unigram",
    "WordLevel",
    "WordPiece",
    "class_of",
    "model_json",
    "restore_scores",
]

#: Characters that `tokenizers` strips from the end of each line in a ``vocab.txt``.
_WHITE = (
    "\t\n\x0b\x0c\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009"
    "\u200a\u2028\u2029\u202f\u205f\u3000"
)
#: Fields with floating-point values, and the allowed values.
_NUMBERS = {"dropout": "from 0 to 1", "alpha": "finite"}
_MOST_ID = 2**32 - 1
#: Prefix of errors about JSON.
_NO_FILE = "not a tokenizer file: "

_Own = TypeVar("_Own", bound="Model")


class Model:
    """A standalone model, or a live view of a tokenizer's model.

    `BPE`, `WordPiece`, `WordLevel` and `Unigram` are its subclasses. ``seed`` applies to BPE with
    ``dropout`` and to Unigram with ``alpha``: with a seed, tokenization is deterministic.
    """

    _tokenizer: Pipeline
    #: Settable fields.
    _FIELDS: ClassVar[tuple[str, ...]] = ()
    #: Maximum number of tokens and of merges in a repr.
    _MOST_SHOWN: ClassVar[int] = 5

    # Lets `isinstance` also accept the class of `tokenizers`, if imported.
    @property  # type: ignore[misc]
    def __class__(self) -> type:
        module = sys.modules.get("tokenizers.models")
        found: type = getattr(module, type(self).__name__, type(self))
        return found

    @classmethod
    def _of(cls: type[_Own], tokenizer: Pipeline) -> _Own:
        self = object.__new__(cls)
        object.__setattr__(self, "_tokenizer", tokenizer)
        return self

    def _make(self, fields: Mapping[str, Any], **lists: str) -> None:
        """Builds the model from fields, skipping None, and from lists in JSON."""
        later = {name: fields[name] for name in ("alpha", "nbest_size", "seed") if name in fields}
        given = {
            name: value
            for name, value in fields.items()
            if value is not None and name not in later or name == "unk_id"
        }
        parts = {"type": json.dumps(type(self).__name__)}
        parts |= {name: _field_json(name, value) for name, value in given.items()} | lists
        contents = ",".join(f'"{name}":{value}' for name, value in parts.items())
        try:
            tokenizer = Pipeline()
            tokenizer._read_json(f'{{"model":{{{contents}}}}}')
        except ValueError as error:
            # The original message would name a file.
            raise with_text(error, str(error).removeprefix(_NO_FILE)) from None
        object.__setattr__(self, "_tokenizer", tokenizer)
        for name, value in later.items():
            if value is not None:
                setattr(self, name, value)

    def tokenize(self, sequence: str) -> list[Token]:
        """Returns the tokens of a piece with their byte spans."""
        return [Token(*token) for token in self._tokenizer._tokenize(sequence)]

    def token_to_id(self, token: str) -> int | None:
        """Returns the id of a token in the model."""
        return self._tokenizer._model_token_to_id(token)

    def id_to_token(self, id: int) -> str | None:
        """Returns the token of the model with this id."""
        return self._tokenizer._model_id_to_token(id)

    def get_trainer(self) -> Trainer:
        """Returns the trainer for this type of model, with its defaults.

        Raises:
            TypeError: The type has no trainer.
        """
        return trainer_of(type(self).__name__)

    def save(self, folder: str | os.PathLike[str], prefix: str | None = None) -> list[str]:
        """Writes the model's files into a folder, and replaces files with the same names.

        Args:
            folder: An existing folder.
            prefix: Prefix of the file names, followed by a hyphen.

        Returns:
            The paths of the files.

        Raises:
            OSError: The folder does not exist, or a file cannot be written.
        """
        if not isinstance(prefix, (str, type(None))):
            raise TypeError(f"prefix must be a str, not {type(prefix).__name__}")
        start = "" if prefix is None else f"{prefix}-"
        paths = []
        for name, content in self._files().items():
            paths.append(os.path.join(folder, start + name))
            write_at_once(paths[-1], content.encode())
        return paths

    def _files(self) -> dict[str, str]:
        raise NotImplementedError

    def _contents(self) -> dict[str, Any]:
        contents: dict[str, Any] = json.loads(self._tokenizer._model_json(False))
        return contents

    def __getattr__(self, name: str) -> Any:
        if name in self._FIELDS:
            return json.loads(self._tokenizer._model_fields()).get(name)
        raise AttributeError(f"a {type(self).__name__} model has no attribute {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._FIELDS:
            raise AttributeError(
                f"a {type(self).__name__} model has no attribute {name!r} that can be set"
            )
        self._tokenizer._set_component(f"model.{name}", _field_json(name, value))

    def __getstate__(self) -> bytes:
        return self._tokenizer._model_json(False).encode()

    def __reduce__(self) -> tuple[Any, ...]:
        fields = json.loads(self._tokenizer._model_fields())
        later = {
            name: fields[name]
            for name in ("alpha", "nbest_size", "seed")
            if fields.get(name) is not None
        }
        return _restore, (type(self), self._tokenizer._model_json(False), later)

    def __repr__(self) -> str:
        shown = [
            f"{name}={_shown(value, self._MOST_SHOWN)}"
            for name, value in self._contents().items()
            if name != "type"
        ]
        return f"{type(self).__name__}({', '.join(shown)})"


class BPE(Model):
    """Byte pair encoding: a vocabulary and its merges.

    Args:
        vocab: The tokens and their ids, or the path of a ``vocab.json``.
        merges: The pairs of tokens to merge, by priority, or the path of a ``merges.txt``.
        cache_capacity: Ignored; `Tokenizer.set_cache_size` sets the size of the cache.
        dropout: The probability of skipping a merge.
        unk_token: Replaces characters that are not tokens.
        continuing_subword_prefix: Prefix of tokens inside a word.
        end_of_word_suffix: Suffix of tokens at the end of a word.
        fuse_unk: Fuse consecutive unknown characters into one token.
        byte_fallback: Whether unknown characters are encoded as byte tokens.
        ignore_merges: Whether a word that is a token is used without merging.
        seed: Makes ``dropout`` deterministic.

    Raises:
        ValueError: A merge names an unknown token, or a field has a wrong value.

    >>> from bpe_engine import hf
    >>> model = hf.BPE({"l": 0, "o": 1, "w</w>": 2, "lo": 3, "low</w>": 4},
    ...                [("l", "o"), ("lo", "w</w>")], end_of_word_suffix="</w>")
    >>> [token.value for token in model.tokenize("low")]
    ['low</w>']
    >>> tokenizer = hf.Tokenizer(model)
    >>> tokenizer.model.unk_token = "l"
    >>> tokenizer.encode("ox").tokens
    ['o', 'l']
    """

    _FIELDS = (
        "dropout",
        "unk_token",
        "continuing_subword_prefix",
        "end_of_word_suffix",
        "fuse_unk",
        "byte_fallback",
        "ignore_merges",
        "seed",
    )

    def __init__(
        self,
        vocab: Mapping[str, int] | str | None = None,
        merges: Iterable[tuple[str, str]] | str | None = None,
        cache_capacity: int | None = None,
        dropout: float | None = None,
        unk_token: str | None = None,
        continuing_subword_prefix: str | None = None,
        end_of_word_suffix: str | None = None,
        fuse_unk: bool | None = None,
        byte_fallback: bool = False,
        ignore_merges: bool = False,
        *,
        seed: int | None = None,
    ):
        fields = {
            "dropout": dropout,
            "unk_token": unk_token,
            "continuing_subword_prefix": continuing_subword_prefix,
            "end_of_word_suffix": end_of_word_suffix,
            "fuse_unk": fuse_unk,
            "byte_fallback": byte_fallback,
            "ignore_merges": ignore_merges,
            "seed": seed,
        }
        vocab = read_vocab(vocab) if isinstance(vocab, str) else vocab
        merges = read_merges(merges) if isinstance(merges, str) else merges
        merges_json = json.dumps(listed(merges or ()))
        self._make(fields, vocab=_vocab_json(vocab), merges=merges_json)

    @staticmethod
    def read_file(
        vocab: str | os.PathLike[str], merges: str | os.PathLike[str]
    ) -> tuple[dict[str, int], list[tuple[str, str]]]:
        """Reads the tokens and the merges of a ``vocab.json`` and a ``merges.txt``.

        Raises:
            OSError: A file cannot be read.
            ValueError: A file is malformed.
        """
        return read_vocab(vocab), read_merges(merges)

    @classmethod
    def from_file(
        cls, vocab: str | os.PathLike[str], merges: str | os.PathLike[str], **options: Any
    ) -> BPE:
        """Reads a ``vocab.json`` and a ``merges.txt``.

        Args:
            vocab, merges: The files.
            options: The other fields of the model, such as ``unk_token`` and ``ignore_merges``.

        Raises:
            OSError: A file cannot be read.
            ValueError: A file is malformed, or an option has a wrong value.
        """
        return cls(*cls.read_file(vocab, merges), **options)

    def _files(self) -> dict[str, str]:
        contents = self._contents()
        for token in (token for merge in contents["merges"] for token in merge):
            if not token or {*token} & {" ", "\n"} or token.startswith("#version"):
                raise ValueError(
                    f"merges.txt cannot hold the token {token!r}; Tokenizer.save writes a "
                    "tokenizer.json"
                )
        merges = [f"{left} {right}\n" for left, right in contents["merges"]]
        vocab = _compact(contents["vocab"])
        return {"vocab.json": vocab, "merges.txt": "".join(["#version: 0.2\n", *merges])}


class WordPiece(Model):
    """WordPiece, as in BERT: repeatedly takes the longest token that begins the rest of the word.

    Args:
        vocab: The tokens and their ids, or the path of a ``vocab.txt``.
        unk_token: Replaces a word that has no split.
        max_input_chars_per_word: Longer words are unknown.
        continuing_subword_prefix: Prefix of tokens inside a word.

    Raises:
        ValueError: A field has a wrong value.

    >>> from bpe_engine import hf
    >>> model = hf.WordPiece({"[UNK]": 0, "un": 1, "##seen": 2})
    >>> [token.value for token in model.tokenize("unseen")]
    ['un', '##seen']
    >>> [token.value for token in model.tokenize("uncle")]
    ['[UNK]']
    """

    _FIELDS = ("unk_token", "continuing_subword_prefix", "max_input_chars_per_word")

    def __init__(
        self,
        vocab: Mapping[str, int] | str | None = None,
        unk_token: str = "[UNK]",
        max_input_chars_per_word: int = 100,
        continuing_subword_prefix: str = "##",
    ):
        fields = {
            "unk_token": unk_token,
            "continuing_subword_prefix": continuing_subword_prefix,
            "max_input_chars_per_word": max_input_chars_per_word,
        }
        vocab = self.read_file(vocab) if isinstance(vocab, str) else vocab
        self._make(fields, vocab=_vocab_json(vocab))

    @staticmethod
    def read_file(vocab: str | os.PathLike[str]) -> dict[str, int]:
        """Reads the tokens of a ``vocab.txt``: one line per id. Trailing whitespace is ignored; of
        identical lines, the last counts.

        Raises:
            OSError: The file cannot be read.
            ValueError: The file is not UTF-8.
        """
        lines = read_text(vocab).split("\n")
        lines = lines if lines[-1] else lines[:-1]
        return {line.rstrip(_WHITE): id for id, line in enumerate(lines)}

    @classmethod
    def from_file(cls, vocab: str | os.PathLike[str], **options: Any) -> WordPiece:
        """Reads a ``vocab.txt``.

        Args:
            vocab: The file.
            options: The other fields of the model.

        Raises:
            OSError: The file cannot be read.
            ValueError: The file is not UTF-8, or an option has a wrong value.
        """
        return cls(cls.read_file(vocab), **options)

    def _files(self) -> dict[str, str]:
        vocab: dict[str, int] = self._contents()["vocab"]
        for line, (token, id) in enumerate(vocab.items()):
            if id != line or token != token.rstrip(_WHITE) or "\n" in token:
                raise ValueError(
                    f"vocab.txt cannot hold the token {token!r} with the id {id} in line {line + 1}; "
                    "Tokenizer.save writes a tokenizer.json"
                )
        return {"vocab.txt": "".join(f"{token}\n" for token in vocab)}


class WordLevel(Model):
    """Encodes each word as one token.

    Args:
        vocab: The words and their ids, or the path of a ``vocab.json``.
        unk_token: Replaces words that are not tokens.

    Raises:
        ValueError: A field has a wrong value.

    >>> from bpe_engine import hf
    >>> model = hf.WordLevel({"<unk>": 0, "word": 1})
    >>> [token.id for token in model.tokenize("word") + model.tokenize("other")]
    [1, 0]
    """

    _FIELDS = ("unk_token",)

    def __init__(self, vocab: Mapping[str, int] | str | None = None, unk_token: str | None = None):
        unk_token = "<unk>" if unk_token is None else unk_token
        vocab = read_vocab(vocab) if isinstance(vocab, str) else vocab
        self._make({"unk_token": unk_token}, vocab=_vocab_json(vocab))

    @staticmethod
    def read_file(vocab: str | os.PathLike[str]) -> dict[str, int]:
        """Reads a ``vocab.json``.

        Raises:
            OSError: The file cannot be read.
            ValueError: The file is malformed.
        """
        return read_vocab(vocab)

    @classmethod
    def from_file(cls, vocab: str | os.PathLike[str], unk_token: str | None = None) -> WordLevel:
        """Reads a ``vocab.json``. Raises as `read_file` does."""
        return cls(cls.read_file(vocab), unk_token)

    def _files(self) -> dict[str, str]:
        return {"vocab.json": _compact(self._contents()["vocab"])}


class Unigram(Model):
    """Unigram, as in SentencePiece: picks the segmentation with the highest sum of scores.

    Args:
        vocab: The tokens and their scores, by id.
        unk_id: The id for unknown characters.
        byte_fallback: Whether unknown characters are encoded as byte tokens.
        alpha: Samples a segmentation by its score times this number.
        nbest_size: The number of best segmentations to sample from.
        seed: Makes the choice deterministic.

    Raises:
        ValueError: ``unk_id`` is not an id, or a field has a wrong value.

    >>> from bpe_engine import hf
    >>> vocab = [("<unk>", 0.0), ("a", -1.0), ("b", -1.0), ("ab", -1.5)]
    >>> [token.value for token in hf.Unigram(vocab, 0).tokenize("abba")]
    ['ab', 'b', 'a']
    """

    _FIELDS = ("alpha", "nbest_size", "seed")
    _MOST_SHOWN = sys.maxsize

    def __init__(
        self,
        vocab: Iterable[tuple[str, float]] | None = None,
        unk_id: int | None = None,
        byte_fallback: bool | None = None,
        alpha: float | None = None,
        nbest_size: int | None = None,
        *,
        seed: int | None = None,
    ):
        if vocab is None and unk_id is None and byte_fallback is None:
            vocab, unk_id = [("<unk>", 0.0)], 0
        if vocab is None:
            raise ValueError("`vocab` and `unk_id` must be both specified")
        scores, tokens = [], []
        # A list or tuple per token would trigger garbage collections.
        quoted = json.encoder.encode_basestring_ascii
        item: Any = checked(vocab)
        try:
            for item in vocab:
                token, score = item
                scores.append(float(score))
                tokens.append(f"[{quoted(token)},0.0]")
        except (TypeError, ValueError):
            wrong = vocab if isinstance(vocab, (str, bytes, Mapping)) else item
            raise TypeError(
                f"vocab must be a list of tokens with their scores, not {describe(wrong)}; "
                f"hf.Tokenizer.from_file reads the file of a tokenizer"
            ) from None
        fields = {
            "unk_id": unk_id,
            "byte_fallback": bool(byte_fallback),
            "alpha": alpha,
            "nbest_size": nbest_size,
            "seed": seed,
        }
        # JSON rounds scores and lacks non-finite numbers.
        self._make(fields, vocab=f"[{','.join(tokens)}]")
        self._tokenizer._set_scores(scores)

    def _files(self) -> dict[str, str]:
        return {"unigram.json": self._tokenizer._model_json(True)}


class SentencePiece(Model):
    """The model in a ``.model`` file, which `bpe_engine.hf.Tokenizer.from_sentencepiece` reads.

    Attributes:
        algorithm: ``"Unigram"``, ``"BPE"``, ``"Word"`` or ``"Char"``.
        version: The emulated version of SentencePiece, ``"0.2.1"`` or ``"0.2.3"``.
        byte_fallback: Whether unknown characters are encoded as byte tokens.
        unk_id: The id for unknown characters.
    """

    _FIELDS = ("algorithm", "version", "byte_fallback", "unk_id")


_CLASSES: dict[str, type[Model]] = {
    kind.__name__: kind for kind in (BPE, WordPiece, WordLevel, Unigram, SentencePiece)
}


def class_of(tokenizer: Pipeline) -> type[Model]:
    """Returns the class of a tokenizer's model."""
    return _CLASSES[json.loads(tokenizer._model_fields())["type"]]


def model_json(value: Any) -> str:
    """Returns the JSON of a model, from this package or from `tokenizers`."""
    state = getattr(value, "__getstate__", None)
    is_model = isinstance(value, Model) or any(
        base.__module__ == "tokenizers.models" for base in type(value).__mro__
    )
    state = state() if is_model and state is not None else None
    if not isinstance(state, bytes):
        raise TypeError(f"expected a model, not {type(value).__name__}")
    return state.decode()


def restore_scores(tokenizer: Pipeline, contents: str) -> None:
    """Sets the exact scores of a Unigram model. Reading a file rounds some scores, as `tokenizers`
    does; transformers' classes keep exact scores."""
    if json.loads(tokenizer._model_fields())["type"] != "Unigram":
        return
    scores: list[Any] = [score for _, score in json.loads(contents)["model"]["vocab"]]
    if None not in scores:
        tokenizer._set_scores(scores)


def _restore(kind: type[Model], contents: str, later: dict[str, Any]) -> Model:
    contents = f'{{"model":{contents}}}'
    tokenizer = Pipeline()
    tokenizer._read_json(contents)
    restore_scores(tokenizer, contents)
    model = kind._of(tokenizer)
    for name, value in later.items():
        setattr(model, name, value)
    return model


def _field_json(name: str, value: Any) -> str:
    """Returns the value of a field in JSON, which lacks non-finite numbers."""
    if name in ("max_input_chars_per_word", "nbest_size") and type(value) is int and value < 0:
        raise OverflowError(f"{name} must be at least 0, not {value}")
    if name in _NUMBERS and isinstance(value, (bool, int, float)):
        value = float(value)
        if not math.isfinite(value):
            raise ValueError(f"{name} must be {_NUMBERS[name]}, not {value}")
    return json.dumps(value)


def _vocab_json(vocab: Mapping[str, int] | None) -> str:
    """Returns tokens and their ids in JSON. Raises ValueError for an id that is too large."""
    vocab = dict(checked(vocab or {}))
    for token, id in vocab.items():
        if isinstance(id, int) and not 0 <= id <= _MOST_ID:
            raise ValueError(f"the id of {token!r} must be from 0 to {_MOST_ID:,}, not {id}")
    return json.dumps(vocab)


def _compact(vocab: dict[str, int]) -> str:
    return json.dumps(vocab, ensure_ascii=False, separators=(",", ":"))


def _shown(value: Any, most: int) -> str:
    if isinstance(value, dict):
        some = [f'"{token}":{id}' for token, id in list(value.items())[:most]]
        return f"{{{', '.join(some + ['...'] * (len(value) > most))}}}"
    if isinstance(value, list):
        some = [f"({', '.join(_shown(part, most) for part in entry)})" for entry in value[:most]]
        return f"[{', '.join(some + ['...'] * (len(value) > most))}]"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return f'"{value}"' if isinstance(value, str) else str(value)
