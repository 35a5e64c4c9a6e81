"""Normalizers: the first step of a tokenizer, which changes the text.

>>> from bpe_engine.hf import normalizers
>>> bert = normalizers.BertNormalizer(strip_accents=False)
>>> bert.normalize_str("Élan\\tvital 漢字")
'élan vital  漢  字 '
>>> normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents()]).normalize_str("é")
'e'
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable
from typing import Any

from .._core import UnsupportedTokenizer, hf_normalize
from .component import (
    Component,
    Field,
    flag_field,
    optional_flag_field,
    pattern_field,
    text_field,
)

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
    """The base of all normalizers."""

    __slots__ = ()
    _kind = "normalizer"

    def normalize_str(self, sequence: str) -> str:
        """Normalizes a text."""
        return hf_normalize(self._spec, sequence)

    def normalize(self, normalized: Any) -> None:
        """Normalizes a `tokenizers.NormalizedString` in place."""
        self.to_tokenizers().normalize(normalized)

    @staticmethod
    def custom(obj: Any) -> Normalizer:
        """Raises `UnsupportedTokenizer`: no step can be a Python object."""
        raise UnsupportedTokenizer("normalizer: a normalizer in Python is not supported")


class BertNormalizer(Normalizer):
    """Prepares text for BERT.

    Args:
        clean_text: Removes control characters, and makes each white space a space.
        handle_chinese_chars: Puts spaces around Chinese characters.
        strip_accents: Decomposes characters, and removes accents; by default as `lowercase`.
        lowercase: Lowers each character.
    """

    __slots__ = ()
    clean_text: Field[bool] = flag_field()
    handle_chinese_chars: Field[bool] = flag_field()
    strip_accents: Field[bool | None] = optional_flag_field()
    lowercase: Field[bool] = flag_field()

    def __new__(
        cls,
        clean_text: bool = True,
        handle_chinese_chars: bool = True,
        strip_accents: bool | None = None,
        lowercase: bool = True,
    ) -> BertNormalizer:
        return cls._made(
            clean_text=clean_text,
            handle_chinese_chars=handle_chinese_chars,
            strip_accents=strip_accents,
            lowercase=lowercase,
        )


class ByteLevel(Normalizer):
    """Replaces each byte by the character that represents it."""

    __slots__ = ()

    def __new__(cls) -> ByteLevel:
        return cls._made()


class Lowercase(Normalizer):
    """Lowers each character."""

    __slots__ = ()

    def __new__(cls) -> Lowercase:
        return cls._made()


class NFC(Normalizer):
    """Unicode's form C: composed."""

    __slots__ = ()

    def __new__(cls) -> NFC:
        return cls._made()


class NFD(Normalizer):
    """Unicode's form D: decomposed."""

    __slots__ = ()

    def __new__(cls) -> NFD:
        return cls._made()


class NFKC(Normalizer):
    """Unicode's form KC: composed, with compatible characters replaced."""

    __slots__ = ()

    def __new__(cls) -> NFKC:
        return cls._made()


class NFKD(Normalizer):
    """Unicode's form KD: decomposed, with compatible characters replaced."""

    __slots__ = ()

    def __new__(cls) -> NFKD:
        return cls._made()


class Nmt(Normalizer):
    """Removes control characters, and makes some others spaces, as SentencePiece's ``nmt`` does."""

    __slots__ = ()

    def __new__(cls) -> Nmt:
        return cls._made()


class Precompiled(Normalizer):
    """The rules of a SentencePiece model.

    Args:
        precompiled_charsmap: The rules, as in the model.

    Raises:
        ValueError: The rules are malformed.
    """

    __slots__ = ()
    _charsmap: Field[Iterable[int]] = Field(
        lambda rules: base64.b64encode(_bytes(rules)).decode(), name="precompiled_charsmap"
    )

    def __new__(cls, precompiled_charsmap: Iterable[int]) -> Precompiled:
        made = cls._made(_charsmap=precompiled_charsmap)
        made.normalize_str("")
        return made


def _bytes(rules: Iterable[int]) -> bytes:
    if isinstance(rules, (str, int)):
        raise TypeError(f"expected bytes, not {type(rules).__name__}")
    return bytes(rules)


class Prepend(Normalizer):
    """Puts a text before each text that is not empty.

    Args:
        prepend: The text.
    """

    __slots__ = ()
    prepend: Field[str] = text_field()

    def __new__(cls, prepend: str = "▁") -> Prepend:
        return cls._made(prepend=prepend)


class Replace(Normalizer):
    """Replaces the matches of a pattern.

    Args:
        pattern: A text, or a `Regex`.
        content: The text in place of each match.

    Raises:
        ValueError: The pattern is malformed, or cannot be replaced exactly.
    """

    __slots__ = ()
    pattern: Field[Any] = pattern_field()
    content: Field[str] = text_field()

    def __new__(cls, pattern: Any, content: str) -> Replace:
        made = cls._made(pattern=pattern, content=content)
        made.normalize_str("")
        return made


class SentencePiece(Normalizer):
    """The normalizer of a ``.model``: the longest rule, marks for spaces, and one before the text.

    `bpe_engine.hf.Tokenizer.from_sentencepiece` makes it. Its attributes are the fields of the file.
    """

    __slots__ = ()
    add_dummy_prefix: Field[bool] = flag_field()
    remove_extra_whitespaces: Field[bool] = flag_field()
    escape_whitespaces: Field[bool] = flag_field()
    treat_whitespace_as_suffix: Field[bool] = flag_field()

    def __new__(cls, *arguments: object) -> SentencePiece:
        raise UnsupportedTokenizer("normalizer: Tokenizer.from_sentencepiece makes this one")


class Strip(Normalizer):
    """Removes white space.

    Args:
        left: Whether it is removed at the beginning.
        right: Whether it is removed at the end.
    """

    __slots__ = ()
    left: Field[bool] = flag_field("strip_left")
    right: Field[bool] = flag_field("strip_right")

    def __new__(cls, left: bool = True, right: bool = True) -> Strip:
        return cls._made(left=left, right=right)


class StripAccents(Normalizer):
    """Removes combining marks. Characters must be decomposed before."""

    __slots__ = ()

    def __new__(cls) -> StripAccents:
        return cls._made()


class Sequence(Normalizer):
    """Runs normalizers one after the other.

    Args:
        normalizers: The normalizers.
    """

    __slots__ = ()

    def __new__(cls, normalizers: list[Any]) -> Sequence:
        return cls._with_parts(normalizers)


#: The normalizers of Unicode's forms.
NORMALIZERS: dict[str, Callable[[], Normalizer]] = {
    "nfc": NFC,
    "nfd": NFD,
    "nfkc": NFKC,
    "nfkd": NFKD,
}


def unicode_normalizer_from_str(normalizer: str) -> Normalizer:
    """Returns the normalizer of a form of Unicode.

    Args:
        normalizer: ``"nfc"``, ``"nfd"``, ``"nfkc"`` or ``"nfkd"``.

    Raises:
        ValueError: The form has another name.
    """
    if normalizer not in NORMALIZERS:
        raise ValueError(f"{normalizer!r} is not a form of Unicode: {', '.join(NORMALIZERS)}")
    return NORMALIZERS[normalizer]()
