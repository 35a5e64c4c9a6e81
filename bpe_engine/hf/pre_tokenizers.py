"""Pre-tokenizers: the step of a tokenizer that cuts a text into pieces.

>>> from bpe_engine.hf import pre_tokenizers
>>> pre_tokenizers.BertPreTokenizer().pre_tokenize_str("Hey, you!")
[('Hey', (0, 3)), (',', (3, 4)), ('you', (5, 8)), ('!', (8, 9))]
"""

from __future__ import annotations

from typing import Any

from .._core import UnsupportedTokenizer
from ..read.byte_level import text_of
from . import fields
from .component import Component

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
    """The base class of all pre-tokenizers."""

    _kind = "pre_tokenizer"

    def pre_tokenize_str(self, sequence: str) -> list[tuple[str, tuple[int, int]]]:
        """Cuts a text into pieces with their offsets."""
        return self._ready(sequence)  # type: ignore[no-any-return]

    def pre_tokenize(self, pretok: Any) -> None:
        """Cuts a `tokenizers.PreTokenizedString` into pieces, in place."""
        self.to_tokenizers().pre_tokenize(pretok)

    @staticmethod
    def custom(pretok: Any) -> PreTokenizer:
        """Raises `UnsupportedTokenizer`: pre-tokenizers written in Python are not supported."""
        raise UnsupportedTokenizer("pre_tokenizer: a pre-tokenizer in Python is not supported")


class BertPreTokenizer(PreTokenizer):
    """Cuts at whitespace, and around each punctuation mark."""


class ByteLevel(PreTokenizer):
    """Cuts by GPT-2's pattern, and replaces each byte with the character that represents it.

    Args:
        add_prefix_space: Prepend a space to a text without one.
        trim_offsets: Exclude whitespace from offsets in a post-processor of this type.
        use_regex: Whether text is cut.
    """

    add_prefix_space: bool = fields.flag(default=True)
    trim_offsets: bool = fields.flag(default=True)
    use_regex: bool = fields.flag(default=True)

    _takes_others = True

    @staticmethod
    def alphabet() -> list[str]:
        """Returns the 256 characters that represent bytes.

        >>> len(ByteLevel.alphabet())
        256
        """
        return list(text_of(bytes(range(256))))


class CharDelimiterSplit(PreTokenizer):
    """Cuts at every occurrence of a character, which is removed.

    Args:
        delimiter: The character.
    """

    delimiter: str = fields.character()


class Digits(PreTokenizer):
    """Cuts around digits.

    Args:
        individual_digits: Whether each digit is a piece.
    """

    individual_digits: bool = fields.flag(default=False)


class FixedLength(PreTokenizer):
    """Cuts into pieces of a fixed length.

    Args:
        length: The number of characters.
    """

    length: int = fields.length(default=5)


class Metaspace(PreTokenizer):
    """Replaces spaces with a mark, and cuts before it.

    Args:
        replacement: The mark.
        prepend_scheme: Which texts get a mark in front: ``"first"``, ``"never"`` or ``"always"``.
        split: Whether text is cut.
    """

    replacement: str = fields.character(default="▁")
    prepend_scheme: str = fields.prepend_scheme(default="always")
    split: bool = fields.flag(default=True)


class Punctuation(PreTokenizer):
    """Cuts at punctuation marks.

    Args:
        behavior: The treatment of the marks, as in `Split`.
    """

    behavior: str = fields.behavior(default="isolated")


class Split(PreTokenizer):
    """Cuts by a pattern.

    Args:
        pattern: A text, or a `Regex`.
        behavior: The treatment of matches: ``"removed"``, ``"isolated"``,
            ``"merged_with_previous"``, ``"merged_with_next"`` or ``"contiguous"``.
        invert: Swap the roles of matches and the text between them.

    Raises:
        ValueError: The pattern is malformed.
    """

    pattern: Any = fields.pattern()
    behavior: str = fields.behavior()
    invert: bool = fields.flag(default=False)

    def _check(self) -> None:
        self.pre_tokenize_str("")


class UnicodeScripts(PreTokenizer):
    """Cuts where the script changes. Spaces belong to any script, and kana to the Han script."""


class Whitespace(PreTokenizer):
    """Cuts at whitespace, and between words and other characters."""


class WhitespaceSplit(PreTokenizer):
    """Cuts at whitespace."""


class Sequence(PreTokenizer):
    """Runs pre-tokenizers in sequence, each on the pieces of the previous one.

    Args:
        pre_tokenizers: The pre-tokenizers.
    """

    _list: list[Any] = fields.parts(alias="pre_tokenizers")
