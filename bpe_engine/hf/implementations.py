"""Tokenizers with the pipelines of known models, as in `tokenizers.implementations`. Each is a
`bpe_engine.hf.Tokenizer` that trains with the defaults of its model.

>>> tokenizer = BertWordPieceTokenizer(lowercase=True)
>>> tokenizer.train_from_iterator(["Some words to learn"], min_frequency=1, show_progress=False)
>>> tokenizer.encode("some words").tokens
['some', 'words']
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, TypeVar, cast

from ..common.values import checked, safe_repr
from . import decoders, normalizers, pre_tokenizers, processors, trainers
from .fields import Regex
from .models import BPE, Model, Unigram, WordPiece
from .tokenizers import Tokenizer

__all__ = [
    "BertWordPieceTokenizer",
    "ByteLevelBPETokenizer",
    "CharBPETokenizer",
    "SentencePieceBPETokenizer",
    "SentencePieceUnigramTokenizer",
]

_Own = TypeVar("_Own", bound="_Implementation")
_Merges = Iterable[tuple[str, str]]


class _Implementation(Tokenizer):
    """A tokenizer with a built-in trainer."""

    #: The trainer, and the arguments of `train` with their defaults, in order.
    _TRAINER: ClassVar[type[trainers.Trainer]]
    _DEFAULTS: ClassVar[dict[str, Any]]

    @classmethod
    def _made(cls: type[_Own], model: Model, special_tokens: Iterable[Any] = ()) -> _Own:
        self = cast(_Own, Tokenizer.__new__(cls, model))
        names = map(str, map(checked, special_tokens))
        self.add_special_tokens([name for name in names if self.token_to_id(name) is not None])
        return self

    def __init__(self, *_: Any, **options: Any) -> None:
        pass

    @classmethod
    def _made_from(cls, source: Any) -> Tokenizer:
        return Tokenizer.__new__(cls, source)

    @property
    def _tokenizer(self) -> Tokenizer:
        # Programs for `tokenizers` set steps on this attribute.
        return self

    def _trainer(self, values: tuple[Any, ...], options: dict[str, Any]) -> trainers.Trainer:
        names = list(self._DEFAULTS)
        given = dict(zip(names, values)) | options
        unknown = [name for name in given if name not in names]
        if unknown or len(values) > len(names):
            what = unknown[0] if unknown else f"argument {len(values) + 1}"
            raise TypeError(f"train() has no {what}; it has {', '.join(names)}")
        renamed = {"suffix": "end_of_word_suffix", "wordpieces_prefix": "continuing_subword_prefix"}
        given = self._DEFAULTS | given
        # Where the trainer takes no None for an omitted list, passes an empty list.
        given |= {name: [] for name in names if given[name] is None and self._DEFAULTS[name] == []}
        return self._TRAINER(**{renamed.get(name, name): it for name, it in given.items()})

    def train(self, files: Any, *values: Any, **options: Any) -> None:
        """Trains on files. Takes the arguments of the `tokenizers` class of the same name."""
        super().train(files, self._trainer(values, options))

    def train_from_iterator(
        self, iterator: Iterable[Any], *values: Any, length: int | None = None, **options: Any
    ) -> None:
        """Trains on texts. Takes the arguments of the `tokenizers` class of the same name."""
        super().train_from_iterator(iterator, self._trainer(values, options), length)

    def save_model(self, directory: str | os.PathLike[str], prefix: str | None = None) -> list[str]:
        """Writes the model's files; see `bpe_engine.hf.Model.save`."""
        return self.model.save(directory, prefix)

    def normalize(self, sequence: str) -> str:
        """Returns the normalized text."""
        return sequence if self.normalizer is None else self.normalizer.normalize_str(sequence)


class BertWordPieceTokenizer(_Implementation):
    """WordPiece with BERT's normalizer and pre-tokenizer. Takes the arguments of
    `bpe_engine.hf.Tokenizer.from_wordpiece`; the vocabulary is optional.

    Raises:
        ValueError: A vocabulary lacks ``sep_token`` or ``cls_token``.
    """

    _TRAINER = trainers.WordPieceTrainer
    _DEFAULTS = {
        "vocab_size": 30000,
        "min_frequency": 2,
        "limit_alphabet": 1000,
        "initial_alphabet": [],
        "special_tokens": ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"],
        "show_progress": True,
        "wordpieces_prefix": "##",
    }

    def __new__(
        cls,
        vocab: str | Mapping[str, int] | None = None,
        unk_token: Any = "[UNK]",
        sep_token: Any = "[SEP]",
        cls_token: Any = "[CLS]",
        pad_token: Any = "[PAD]",
        mask_token: Any = "[MASK]",
        clean_text: bool = True,
        handle_chinese_chars: bool = True,
        strip_accents: bool | None = None,
        lowercase: bool = True,
        wordpieces_prefix: str = "##",
    ) -> BertWordPieceTokenizer:
        special = [unk_token, sep_token, cls_token, pad_token, mask_token]
        self = cls._made(WordPiece(vocab, unk_token=str(checked(unk_token))), special)
        self.normalizer = normalizers.BertNormalizer(
            clean_text, handle_chinese_chars, strip_accents, lowercase
        )
        self.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        if vocab is not None:
            ends: list[tuple[str, int]] = []
            for name in map(str, (sep_token, cls_token)):
                id = self.token_to_id(name)
                if id is None:
                    raise ValueError(
                        f"the vocabulary has no token {name!r}; add it, or name another"
                    )
                ends.append((name, id))
            self.post_processor = processors.BertProcessing(*ends)
        self.decoder = decoders.WordPiece(prefix=wordpieces_prefix)
        return self

    @classmethod
    def from_file(  # type: ignore[override]
        cls, vocab: Any, **options: Any
    ) -> BertWordPieceTokenizer:
        """Reads a ``vocab.txt``."""
        return cls(os.fspath(vocab), **options)


class _OfMerges(_Implementation):
    @classmethod
    def from_file(  # type: ignore[override]
        cls: type[_Own], vocab_filename: Any, merges_filename: Any, **options: Any
    ) -> _Own:
        """Reads a ``vocab.json`` and a ``merges.txt``."""
        return cls(os.fspath(vocab_filename), os.fspath(merges_filename), **options)


class ByteLevelBPETokenizer(_OfMerges):
    """Byte-level BPE with GPT-2's pattern.

    Args:
        vocab, merges: The lists of the model, or the paths of their files; both or neither.
        add_prefix_space: Whether to put a space before a text without a leading space.
        lowercase: Whether text is lowercased.
        dropout: The probability of skipping a merge.
        unicode_normalizer: ``"nfc"``, ``"nfd"``, ``"nfkc"`` or ``"nfkd"``.
        continuing_subword_prefix, end_of_word_suffix: Affixes of the lists.
        trim_offsets: Exclude whitespace from offsets.
    """

    _TRAINER = trainers.BpeTrainer
    _DEFAULTS = {
        "vocab_size": 30000,
        "min_frequency": 2,
        "show_progress": True,
        "special_tokens": [],
    }

    def __new__(
        cls,
        vocab: str | Mapping[str, int] | None = None,
        merges: str | _Merges | None = None,
        add_prefix_space: bool = False,
        lowercase: bool = False,
        dropout: float | None = None,
        unicode_normalizer: str | None = None,
        continuing_subword_prefix: str | None = None,
        end_of_word_suffix: str | None = None,
        trim_offsets: bool = False,
    ) -> ByteLevelBPETokenizer:
        fields: Any = {}
        if vocab is not None:
            fields["dropout"] = dropout
            fields["continuing_subword_prefix"] = continuing_subword_prefix or ""
            fields["end_of_word_suffix"] = end_of_word_suffix or ""
        self = cls._made(BPE(*_both(vocab, merges), **fields))
        self.normalizer = _normalizer(unicode_normalizer, False, lowercase)
        self.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=add_prefix_space)
        self.decoder = decoders.ByteLevel()
        self.post_processor = processors.ByteLevel(trim_offsets=trim_offsets)
        return self

    def _trainer(self, values: tuple[Any, ...], options: dict[str, Any]) -> trainers.Trainer:
        trainer: Any = super()._trainer(values, options)
        trainer.initial_alphabet = pre_tokenizers.ByteLevel.alphabet()
        return trainer  # type: ignore[no-any-return]


_OF_WORDS = {
    "vocab_size": 30000,
    "min_frequency": 2,
    "special_tokens": ["<unk>"],
    "limit_alphabet": 1000,
    "initial_alphabet": [],
}


class CharBPETokenizer(_OfMerges):
    """A character-level BPE tokenizer that marks the end of each word with a suffix, as in GPT-1.

    Args:
        vocab, merges: The lists of the model, or the paths of their files; both or neither.
        unk_token: Replaces characters that are not tokens.
        suffix: Marks the tokens at the end of a word.
        dropout: The probability of skipping a merge.
        lowercase: Whether text is lowercased.
        unicode_normalizer: ``"nfc"``, ``"nfd"``, ``"nfkc"`` or ``"nfkd"``.
        bert_normalizer: Whether text is cleaned as for BERT.
        split_on_whitespace_only: Whether punctuation stays in words.
    """

    _TRAINER = trainers.BpeTrainer
    _DEFAULTS = {**_OF_WORDS, "suffix": "</w>", "show_progress": True}

    def __new__(
        cls,
        vocab: str | Mapping[str, int] | None = None,
        merges: str | _Merges | None = None,
        unk_token: Any = "<unk>",
        suffix: str = "</w>",
        dropout: float | None = None,
        lowercase: bool = False,
        unicode_normalizer: str | None = None,
        bert_normalizer: bool = True,
        split_on_whitespace_only: bool = False,
    ) -> CharBPETokenizer:
        fields: Any = {"dropout": dropout, "unk_token": str(checked(unk_token))}
        fields["end_of_word_suffix"] = suffix
        self = cls._made(BPE(*_both(vocab, merges), **fields), [unk_token])
        self.normalizer = _normalizer(unicode_normalizer, bert_normalizer, lowercase)
        only_spaces = split_on_whitespace_only
        bert, space = pre_tokenizers.BertPreTokenizer, pre_tokenizers.WhitespaceSplit
        self.pre_tokenizer = space() if only_spaces else bert()
        self.decoder = decoders.BPEDecoder(suffix=suffix)
        return self


class SentencePieceBPETokenizer(_OfMerges):
    """A character-level BPE tokenizer that marks the space before each word.

    Args:
        vocab, merges: The lists of the model, or the paths of their files; both or neither.
        unk_token: Replaces characters that are not tokens.
        replacement: The mark.
        add_prefix_space: Whether a text begins with a mark.
        dropout: The probability of skipping a merge.
        fuse_unk: Fuse consecutive unknown characters into one token.
    """

    _TRAINER = trainers.BpeTrainer
    _DEFAULTS = {**_OF_WORDS, "show_progress": True}

    def __new__(
        cls,
        vocab: str | Mapping[str, int] | None = None,
        merges: str | _Merges | None = None,
        unk_token: Any = "<unk>",
        replacement: str = "▁",
        add_prefix_space: bool = True,
        dropout: float | None = None,
        fuse_unk: bool | None = False,
    ) -> SentencePieceBPETokenizer:
        fields: Any = {"dropout": dropout, "unk_token": str(checked(unk_token))}
        fields["fuse_unk"] = fuse_unk
        self = cls._made(BPE(*_both(vocab, merges), **fields), [unk_token])
        self.normalizer = normalizers.NFKC()
        _mark_spaces(self, replacement, add_prefix_space)
        return self


class SentencePieceUnigramTokenizer(_Implementation):
    """A Unigram tokenizer that marks the space before each word.

    Args:
        vocab: The pieces and their scores.
        replacement: The mark.
        add_prefix_space: Whether a text begins with a mark.
    """

    _TRAINER = trainers.UnigramTrainer
    _DEFAULTS = {
        "vocab_size": 8000,
        "show_progress": True,
        "special_tokens": [],
        "initial_alphabet": [],
        "unk_token": None,
    }

    def __new__(
        cls,
        vocab: Iterable[tuple[str, float]] | None = None,
        replacement: str = "▁",
        add_prefix_space: bool = True,
    ) -> SentencePieceUnigramTokenizer:
        self = cls._made(Unigram(vocab))
        spaces = normalizers.Replace(Regex(" {2,}"), " ")
        self.normalizer = normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC(), spaces])
        _mark_spaces(self, replacement, add_prefix_space)
        return self


def _both(vocab: Any, merges: Any) -> tuple[Any, ...]:
    """Returns the vocabulary and merges of a BPE model, or an empty tuple if both are None."""
    if (vocab is None) != (merges is None):
        missing = "merges" if merges is None else "vocab"
        raise ValueError(f"{missing} is missing; give vocab and merges, or neither to train")
    return () if vocab is None else (vocab, merges)


def _mark_spaces(tokenizer: Tokenizer, mark: str, is_first: bool) -> None:
    scheme = "always" if is_first else "never"
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement=mark, prepend_scheme=scheme)
    tokenizer.decoder = decoders.Metaspace(replacement=mark, prepend_scheme=scheme)


def _normalizer(form: str | None, is_bert: bool, lowercase: bool) -> Any:
    if form and form.upper() not in ("NFC", "NFD", "NFKC", "NFKD"):
        raise ValueError(
            f"{safe_repr(form)} is not a known unicode normalizer; take nfc, nfd, nfkc or nfkd"
        )
    parts: list[Any] = [getattr(normalizers, form.upper())()] if form else []
    parts += [normalizers.BertNormalizer(lowercase=False)] if is_bert else []
    parts += [normalizers.Lowercase()] if lowercase else []
    return normalizers.Sequence(parts) if len(parts) > 1 else parts[0] if parts else None
