"""Trainers of models, with the names, arguments and defaults of `tokenizers.trainers`.

`bpe_engine.hf.Tokenizer.train` and ``train_from_iterator`` take a trainer. The result depends only
on the texts and the arguments, not on the order of files or the number of threads.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import repeat
from typing import Any, ClassVar

from .._arguments import whole_number
from .._core import PieceCounts
from ..common.system import cores
from ..common.values import describe, listed
from .components import AddedToken

__all__ = ["BpeTrainer", "Trainer", "UnigramTrainer", "WordLevelTrainer", "WordPieceTrainer"]

#: Arguments of type int, of type int or None, and of type str or None.
_COUNTS = ("vocab_size", "min_frequency", "max_piece_length", "n_sub_iterations", "seed_size")
_LIMITS = ("limit_alphabet", "max_token_length")
_AFFIXES = ("continuing_subword_prefix", "end_of_word_suffix", "unk_token")

_LARGEST = (1 << 63) - 1

#: Called with the work done and the total work of a step.
Progress = Callable[[int, int], object]


class Trainer:
    """The base class of all trainers. Arguments are settable attributes."""

    #: Type of the trained models.
    _MODEL: ClassVar[str]
    __dataclass_fields__: ClassVar[dict[str, Any]]
    show_progress: bool
    special_tokens: Iterable[str | AddedToken]

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self.__dataclass_fields__:
            raise AttributeError(f"a {type(self).__name__} has no attribute {name!r}")
        if name == "special_tokens":
            value = _special(value)
        elif name == "initial_alphabet":
            texts = map(_text, repeat(name), _items(name, value))
            value = sorted({text[0] for text in texts if text})
        elif name in _COUNTS or (name in _LIMITS and value is not None):
            value = whole_number(name, value)
            if value > _LARGEST:
                raise ValueError(f"{name} must be at most {_LARGEST}, but is {value}")
        elif name == "show_progress" and not isinstance(value, bool):
            raise TypeError(f"{name} must be a bool, not {describe(value)}")
        elif name in _AFFIXES and value is not None:
            value = _text(name, value)
        elif name == "shrinking_factor" and not isinstance(value, (int, float)):
            raise TypeError(f"{name} must be a number, not {describe(value)}")
        vars(self)[name] = value

    @property
    def _names(self) -> list[str]:
        return [str(token) for token in self.special_tokens]

    def _learn(self, counts: PieceCounts, model: dict[str, Any], progress: Progress) -> Any:
        """Inserts the lists of a trained model into its JSON. Returns scores that JSON would
        round."""
        raise NotImplementedError


@dataclass
class _OfWords(Trainer):
    vocab_size: int = 30000
    min_frequency: int = 0
    show_progress: bool = True
    special_tokens: Iterable[str | AddedToken] = ()


@dataclass
class _OfCharacters(_OfWords):
    """A trainer that merges pairs of characters."""

    limit_alphabet: int | None = None
    initial_alphabet: Iterable[str] = ()
    continuing_subword_prefix: str | None = None
    end_of_word_suffix: str | None = None

    def _merged(
        self, counts: PieceCounts, progress: Progress
    ) -> tuple[dict[str, int], list[list[str]]]:
        tokens, merges = counts.train_bpe(
            self.vocab_size,
            min_frequency=self.min_frequency,
            special_tokens=self._names,
            limit_alphabet=self.limit_alphabet,
            initial_alphabet=list(self.initial_alphabet),
            prefix=self.continuing_subword_prefix or "",
            suffix=self.end_of_word_suffix or "",
            max_token_length=getattr(self, "max_token_length", None),
            progress=progress,
        )
        vocab = {token: id for id, token in enumerate(tokens)}
        return vocab, [[tokens[left], tokens[right]] for left, right in merges]


@dataclass
class BpeTrainer(_OfCharacters):
    """Trains `BPE`: repeatedly merges the most frequent pair of tokens, starting from characters.

    Args:
        vocab_size: The number of tokens; at least the special tokens and the alphabet.
        min_frequency: Minimum frequency of a merged pair.
        show_progress: Show progress on a terminal.
        special_tokens: Tokens with the first ids.
        limit_alphabet: Maximum size of the alphabet, which keeps the most frequent characters.
        initial_alphabet: Characters of the alphabet that need not occur, such as
            `bpe_engine.hf.pre_tokenizers.ByteLevel.alphabet`.
        continuing_subword_prefix: Prefix of tokens inside a word.
        end_of_word_suffix: Suffix of tokens at the end of a word.
        max_token_length: Exclusive limit on the length of tokens of more than two characters.

    >>> from bpe_engine import hf
    >>> tokenizer = hf.Tokenizer(hf.BPE())
    >>> tokenizer.pre_tokenizer = hf.pre_tokenizers.Whitespace()
    >>> text = "hug " * 10 + "pug " * 5 + "pun " * 12 + "bun " * 4 + "hugs " * 5
    >>> tokenizer.train_from_iterator([text], BpeTrainer(vocab_size=10, show_progress=False))
    >>> tokenizer.encode("bug hugs").tokens
    ['b', 'ug', 'hug', 's']
    """

    _MODEL = "BPE"
    max_token_length: int | None = None

    def _learn(self, counts: PieceCounts, model: dict[str, Any], progress: Progress) -> None:
        model["vocab"], model["merges"] = self._merged(counts, progress)
        model["continuing_subword_prefix"] = self.continuing_subword_prefix
        model["end_of_word_suffix"] = self.end_of_word_suffix


@dataclass
class WordPieceTrainer(_OfCharacters):
    """Trains `WordPiece` as `BpeTrainer` trains BPE, with a prefix for tokens inside a word.

    Args:
        vocab_size, min_frequency, show_progress, special_tokens: As in `BpeTrainer`.
        limit_alphabet, initial_alphabet: As in `BpeTrainer`.
        continuing_subword_prefix, end_of_word_suffix: As in `BpeTrainer`.

    >>> from bpe_engine import hf
    >>> tokenizer = hf.Tokenizer(hf.WordPiece(unk_token="[UNK]"))
    >>> tokenizer.pre_tokenizer = hf.pre_tokenizers.Whitespace()
    >>> trainer = WordPieceTrainer(vocab_size=20, special_tokens=["[UNK]"], show_progress=False)
    >>> tokenizer.train_from_iterator(["low low lower newest newest"], trainer)
    >>> tokenizer.encode("lowest").tokens
    ['low', '##e', '##st']
    """

    _MODEL = "WordPiece"
    continuing_subword_prefix: str | None = "##"

    def _learn(self, counts: PieceCounts, model: dict[str, Any], progress: Progress) -> None:
        model["vocab"], _ = self._merged(counts, progress)
        if self.continuing_subword_prefix is not None:
            model["continuing_subword_prefix"] = self.continuing_subword_prefix


@dataclass
class WordLevelTrainer(_OfWords):
    """Trains `WordLevel`: keeps the most frequent words, ties in byte order.

    Args:
        vocab_size: Maximum number of tokens.
        min_frequency: Minimum frequency of a word.
        show_progress: Show progress on a terminal.
        special_tokens: Tokens with the first ids.
    """

    _MODEL = "WordLevel"

    def _learn(self, counts: PieceCounts, model: dict[str, Any], progress: Progress) -> None:
        tokens = counts.train_word_level(
            self.vocab_size, min_frequency=self.min_frequency, special_tokens=self._names
        )
        model["vocab"] = {token: id for id, token in enumerate(tokens)}


@dataclass
class UnigramTrainer(Trainer):
    """Trains `Unigram`: starts from many pieces, and drops the least valuable pieces.

    Args:
        vocab_size: The number of tokens.
        show_progress: Show progress on a terminal.
        special_tokens: Tokens with the first ids.
        initial_alphabet: Characters that become pieces even if they do not occur.
        shrinking_factor: The share of pieces kept in each round.
        unk_token: The token for unknown characters; the first token if it is not a special token.
        max_piece_length: Maximum length of a piece in characters, up to 255.
        n_sub_iterations: Number of score estimations per round.
        seed_size: The initial number of pieces.

    >>> from bpe_engine import hf
    >>> tokenizer = hf.Tokenizer(hf.Unigram())
    >>> tokenizer.pre_tokenizer = hf.pre_tokenizers.Whitespace()
    >>> text = "hug " * 10 + "pug " * 5 + "pun " * 12 + "bun " * 4 + "hugs " * 5
    >>> trainer = UnigramTrainer(10, unk_token="<unk>", show_progress=False)
    >>> tokenizer.train_from_iterator([text], trainer)
    >>> tokenizer.encode("hugs").tokens
    ['hug', 's']
    """

    _MODEL = "Unigram"
    vocab_size: int = 8000
    show_progress: bool = True
    special_tokens: Iterable[str | AddedToken] = ()
    initial_alphabet: Iterable[str] = ()
    shrinking_factor: float = 0.75
    unk_token: str | None = None
    max_piece_length: int = 16
    n_sub_iterations: int = 2
    seed_size: int = 1_000_000

    def _learn(self, counts: PieceCounts, model: dict[str, Any], progress: Progress) -> list[float]:
        special = self._names
        if self.unk_token is not None and self.unk_token not in special:
            special = [self.unk_token, *special]
        pieces = counts.train_unigram(
            self.vocab_size,
            special_tokens=len(special),
            initial_alphabet=list(self.initial_alphabet),
            shrinking_factor=self.shrinking_factor,
            n_sub_iterations=self.n_sub_iterations,
            max_piece_length=self.max_piece_length,
            seed_size=self.seed_size,
            num_threads=cores(),
            progress=progress,
        )
        pieces = [*((name, 0.0) for name in special), *pieces]
        model["vocab"] = pieces
        model["unk_id"] = None if self.unk_token is None else special.index(self.unk_token)
        return [score for _, score in pieces]


_TRAINERS: dict[str, type[Trainer]] = {
    trainer._MODEL: trainer
    for trainer in (BpeTrainer, WordPieceTrainer, WordLevelTrainer, UnigramTrainer)
}


def trainer_of(kind: str) -> Trainer:
    """Returns the trainer for a type of model."""
    found = _TRAINERS.get(kind)
    if found is None:
        raise TypeError(f"a {kind} model has no trainer; train a BPE or a Unigram model instead")
    return found()


def as_trainer(trainer: Any) -> Trainer:
    """Returns a trainer of this module unchanged; converts a `tokenizers` trainer."""
    if isinstance(trainer, Trainer):
        return trainer
    if isinstance(trainer, type):
        raise TypeError(f"trainer is the class {trainer.__name__}; make one: {trainer.__name__}()")
    state = getattr(trainer, "__getstate__", lambda: None)()
    if not isinstance(state, bytes):
        raise TypeError(f"trainer must be one of bpe_engine.hf.trainers, not {describe(trainer)}")
    [(name, fields)] = json.loads(state).items()
    fields = fields.get("bpe_trainer", fields)
    fields["special_tokens"] = [AddedToken(**token) for token in fields["special_tokens"]]
    kind = globals()[name]
    return kind(**{name: fields[name] for name in kind.__dataclass_fields__ if name in fields})  # type: ignore[no-any-return]


def _items(name: str, values: Any) -> list[Any]:
    """Returns the items of a list."""
    if isinstance(values, (bytes, Mapping)) or not isinstance(values, Iterable):
        raise TypeError(f"{name} must be a list of texts, not {describe(values)}")
    return listed(values)


def _text(name: str, value: Any) -> str:
    """Returns an argument after checking that UTF-8 can express it."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be text, not {describe(value)}")
    if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
        raise ValueError(f"{name} has {value!r} with a surrogate, which UTF-8 cannot express")
    return value


def _special(tokens: Any) -> list[AddedToken]:
    made = []
    for token in [tokens] if isinstance(tokens, str) else _items("special_tokens", tokens):
        if isinstance(token, str):
            content = _text("special_tokens", token)
            made.append(AddedToken(content, normalized=False, special=True))
        elif isinstance(token, AddedToken):
            names = ("content", "single_word", "lstrip", "rstrip")
            # None means False for a special token.
            fields = {"normalized": vars(token)["normalized"]}
            fields |= {name: getattr(token, name) for name in names}
            made.append(AddedToken(**fields, special=True))
        elif hasattr(token, "single_word"):
            from tokenizers.trainers import BpeTrainer as Theirs

            # Only a trainer shows whether `normalized` was given.
            state = json.loads(Theirs(special_tokens=[token]).__getstate__())
            made.append(AddedToken(**state["BpeTrainer"]["special_tokens"][0]))
        else:
            raise TypeError(f"special_tokens must be text or AddedToken, not {describe(token)}")
    return made
