"""Pre-tokenizers: the step of a tokenizer that cuts a text into pieces.

>>> from bpe_engine.hf import pre_tokenizers
>>> pre_tokenizers.BertPreTokenizer().pre_tokenize_str("Hey, you!")
[('Hey', (0, 3)), (',', (3, 4)), ('you', (5, 8)), ('!', (8, 9))]
"""

from __future__ import annotations

from typing import Any

from .._core import UnsupportedTokenizer, hf_pre_tokenize
from ..byte_level import text_of
from .component import (
    Component,
    Field,
    behavior_field,
    character_field,
    flag_field,
    length_field,
    pattern_field,
    prepend_scheme_field,
)

__all__ = [
    "BertPreTokenizer",
    "ByteLevel",
    "CharDelimiterSplit",
    "Digits",
    "FixedLength",
    "Metaspace",
    "PreTokenizer",
    "Punctuation",
    "Sequence",
    "Split",
    "UnicodeScripts",
    "Whitespace",
    "WhitespaceSplit",
]


class PreTokenizer(Component):
    """The base of all pre-tokenizers."""

    __slots__ = ()
    _kind = "pre_tokenizer"

    def pre_tokenize_str(self, sequence: str) -> list[tuple[str, tuple[int, int]]]:
        """Cuts a text into pieces, with their places in it."""
        return hf_pre_tokenize(self._spec, sequence)

    def pre_tokenize(self, pretok: Any) -> None:
        """Cuts a `tokenizers.PreTokenizedString` into pieces, in place."""
        self.to_tokenizers().pre_tokenize(pretok)

    @staticmethod
    def custom(pretok: Any) -> PreTokenizer:
        """Raises `UnsupportedTokenizer`: no step can be a Python object."""
        raise UnsupportedTokenizer("pre_tokenizer: a pre-tokenizer in Python is not supported")


class BertPreTokenizer(PreTokenizer):
    """Cuts at white space, and around each punctuation mark."""

    __slots__ = ()

    def __new__(cls) -> BertPreTokenizer:
        return cls._made()


class ByteLevel(PreTokenizer):
    """Cuts by GPT-2's pattern, and replaces each byte by the character that represents it.

    Args:
        add_prefix_space: Whether a space comes before a text that begins with none.
        trim_offsets: Whether places leave out white space, if a post-processor of this type asks.
        use_regex: Whether text is cut.
    """

    __slots__ = ()
    add_prefix_space: Field[bool] = flag_field()
    trim_offsets: Field[bool] = flag_field()
    use_regex: Field[bool] = flag_field()

    def __new__(
        cls,
        add_prefix_space: bool = True,
        trim_offsets: bool = True,
        use_regex: bool = True,
        **_others: Any,
    ) -> ByteLevel:
        return cls._made(
            add_prefix_space=add_prefix_space, trim_offsets=trim_offsets, use_regex=use_regex
        )

    @staticmethod
    def alphabet() -> list[str]:
        """Returns the 256 characters that represent bytes.

        >>> len(ByteLevel.alphabet())
        256
        """
        return list(text_of(bytes(range(256))))


class CharDelimiterSplit(PreTokenizer):
    """Cuts at each of one character, which is removed.

    Args:
        delimiter: The character.
    """

    __slots__ = ()
    delimiter: Field[str] = character_field()

    def __new__(cls, delimiter: str) -> CharDelimiterSplit:
        return cls._made(delimiter=delimiter)


class Digits(PreTokenizer):
    """Cuts around digits.

    Args:
        individual_digits: Whether each digit is a piece.
    """

    __slots__ = ()
    individual_digits: Field[bool] = flag_field()

    def __new__(cls, individual_digits: bool = False) -> Digits:
        return cls._made(individual_digits=individual_digits)


class FixedLength(PreTokenizer):
    """Cuts after each so many characters.

    Args:
        length: The number of characters.
    """

    __slots__ = ()
    length: Field[int] = length_field()

    def __new__(cls, length: int = 5) -> FixedLength:
        return cls._made(length=length)


class Metaspace(PreTokenizer):
    """Replaces spaces by a mark, and cuts before it.

    Args:
        replacement: The mark.
        prepend_scheme: The texts that get a mark before them: ``"first"``, ``"never"`` or
            ``"always"``.
        split: Whether text is cut.
    """

    __slots__ = ()
    replacement: Field[str] = character_field()
    prepend_scheme: Field[str] = prepend_scheme_field()
    split: Field[bool] = flag_field()

    def __new__(
        cls, replacement: str = "▁", prepend_scheme: str = "always", split: bool = True
    ) -> Metaspace:
        return cls._made(replacement=replacement, prepend_scheme=prepend_scheme, split=split)


class Punctuation(PreTokenizer):
    """Cuts at punctuation marks.

    Args:
        behavior: What becomes of them, as in `Split`.
    """

    __slots__ = ()
    behavior: Field[str] = behavior_field()

    def __new__(cls, behavior: str = "isolated") -> Punctuation:
        return cls._made(behavior=behavior)


class Split(PreTokenizer):
    """Cuts by a pattern.

    Args:
        pattern: A text, or a `Regex`.
        behavior: What becomes of the matches: ``"removed"``, ``"isolated"``,
            ``"merged_with_previous"``, ``"merged_with_next"`` or ``"contiguous"``.
        invert: Whether the text between matches takes their place.

    Raises:
        ValueError: The pattern is malformed.
    """

    __slots__ = ()
    pattern: Field[Any] = pattern_field()
    behavior: Field[str] = behavior_field()
    invert: Field[bool] = flag_field()

    def __new__(cls, pattern: Any, behavior: str, invert: bool = False) -> Split:
        made = cls._made(pattern=pattern, behavior=behavior, invert=invert)
        made.pre_tokenize_str("")
        return made


class UnicodeScripts(PreTokenizer):
    """Cuts where the script changes. Spaces belong to any script, and kana to the Han script."""

    __slots__ = ()

    def __new__(cls) -> UnicodeScripts:
        return cls._made()


class Whitespace(PreTokenizer):
    """Cuts at white space, and between words and other characters."""

    __slots__ = ()

    def __new__(cls) -> Whitespace:
        return cls._made()


class WhitespaceSplit(PreTokenizer):
    """Cuts at white space."""

    __slots__ = ()

    def __new__(cls) -> WhitespaceSplit:
        return cls._made()


class Sequence(PreTokenizer):
    """Runs pre-tokenizers one after the other, on each piece of the one before.

    Args:
        pre_tokenizers: The pre-tokenizers.
    """

    __slots__ = ()

    def __new__(cls, pre_tokenizers: list[Any]) -> Sequence:
        return cls._with_parts(pre_tokenizers)
