"""Normalizers: the first step of a tokenizer, which changes the text.

>>> from bpe_engine.hf import normalizers
>>> bert = normalizers.BertNormalizer(strip_accents=False)
>>> bert.normalize_str("Élan\\tvital 漢字")
'élan vital  漢  字 '
>>> normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents()]).normalize_str("é")
'e'
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from .._core import UnsupportedTokenizer
from ..common.values import check_choice
from . import fields
from .component import Component

__all__ = [
    "BertNormalizer",
    "ByteLevel",
    "Lowercase",
    "NFC",
    "NFD",
    "NFKC",
    "NFKD",
    "Nmt",
    "Normalizer",
    "Precompiled",
    "Prepend",
    "Replace",
    "SentencePiece",
    "Sequence",
    "Strip",
    "StripAccents",
    "unicode_normalizer_from_str",
]


class Normalizer(Component):
    """The base class of all normalizers."""

    _kind = "normalizer"

    def normalize_str(self, sequence: str) -> str:
        """Normalizes a text."""
        return self._ready(sequence)  # type: ignore[no-any-return]

    def normalize(self, normalized: Any) -> None:
        """Normalizes a `tokenizers.NormalizedString` in place."""
        self.to_tokenizers().normalize(normalized)

    @staticmethod
    def custom(obj: Any) -> Normalizer:
        """Raises `UnsupportedTokenizer`: normalizers written in Python are not supported."""
        raise UnsupportedTokenizer("normalizer: a normalizer in Python is not supported")


class BertNormalizer(Normalizer):
    """Prepares text for BERT.

    Args:
        clean_text: Removes control characters, and turns each whitespace character into a space.
        handle_chinese_chars: Puts spaces around Chinese characters.
        strip_accents: Decomposes characters, and removes accents; by default if `lowercase` is set.
        lowercase: Lowercases each character.
    """

    clean_text: bool = fields.flag(default=True)
    handle_chinese_chars: bool = fields.flag(default=True)
    strip_accents: bool | None = fields.optional_flag(default=None)
    lowercase: bool = fields.flag(default=True)


class ByteLevel(Normalizer):
    """Replaces each byte with the character that represents it."""


class Lowercase(Normalizer):
    """Lowercases each character."""


class NFC(Normalizer):
    """Unicode normalization form C: composes characters."""


class NFD(Normalizer):
    """Unicode normalization form D: decomposes characters."""


class NFKC(Normalizer):
    """Unicode normalization form KC: replaces compatibility characters, and composes."""


class NFKD(Normalizer):
    """Unicode normalization form KD: replaces compatibility characters, and decomposes."""


class Nmt(Normalizer):
    """Removes control characters, and turns some other characters into spaces, as SentencePiece's
    ``nmt`` does."""


class Precompiled(Normalizer):
    """Applies the normalization rules of a SentencePiece model.

    Args:
        precompiled_charsmap: The rules, as in the model.

    Raises:
        ValueError: The rules are malformed.
    """

    precompiled_charsmap: Iterable[int] = fields.charsmap()

    def _check(self) -> None:
        self.normalize_str("")


class Prepend(Normalizer):
    """Prepends a text to each nonempty text.

    Args:
        prepend: The text.
    """

    prepend: str = fields.text(default="▁")


class Replace(Normalizer):
    """Replaces the matches of a pattern.

    Args:
        pattern: A text, or a `Regex`.
        content: The replacement of each match.

    Raises:
        ValueError: The pattern is malformed, or its replacement cannot be exact.
    """

    pattern: Any = fields.pattern()
    content: str = fields.text()

    def _check(self) -> None:
        self.normalize_str("")


class SentencePiece(Normalizer):
    """The normalizer of a ``.model``: longest-match rules, marks for spaces, and a mark before the
    text.

    Made by `bpe_engine.hf.Tokenizer.from_sentencepiece`. Attributes are the fields of the file.
    """

    add_dummy_prefix: bool = fields.flag(init=False)
    remove_extra_whitespaces: bool = fields.flag(init=False)
    escape_whitespaces: bool = fields.flag(init=False)
    treat_whitespace_as_suffix: bool = fields.flag(init=False)


class Strip(Normalizer):
    """Removes whitespace.

    Args:
        left: Whether to strip the beginning.
        right: Whether to strip the end.
    """

    left: bool = fields.flag(default=True, name="strip_left")
    right: bool = fields.flag(default=True, name="strip_right")


class StripAccents(Normalizer):
    """Removes combining marks. Characters must already be decomposed."""


class Sequence(Normalizer):
    """Runs normalizers in sequence.

    Args:
        normalizers: The normalizers.
    """

    _list: list[Any] = fields.parts(alias="normalizers")


#: Normalizers by normalization form.
NORMALIZERS: dict[str, Callable[[], Normalizer]] = {
    "nfc": NFC,
    "nfd": NFD,
    "nfkc": NFKC,
    "nfkd": NFKD,
}


def unicode_normalizer_from_str(normalizer: str) -> Normalizer:
    """Returns the normalizer of a normalization form.

    Args:
        normalizer: ``"nfc"``, ``"nfd"``, ``"nfkc"`` or ``"nfkd"``.

    Raises:
        ValueError: The form is unknown.
    """
    check_choice("the form of Unicode", normalizer, NORMALIZERS)
    return NORMALIZERS[normalizer]()
