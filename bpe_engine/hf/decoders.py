"""Decoders: the step of a tokenizer that turns tokens into text.

>>> from bpe_engine.hf import decoders
>>> decoders.WordPiece().decode(["I", "'m", "Jo", "##hn"])
"I'm John"
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from collections.abc import Sequence as Sequence_
from typing import Any

from .._core import UnsupportedTokenizer, hf_decode
from .component import (
    Component,
    Field,
    character_field,
    flag_field,
    length_field,
    pattern_field,
    prepend_scheme_field,
    text_field,
)
from .stream import DecodeStream

__all__ = [
    "BPEDecoder",
    "ByteFallback",
    "ByteLevel",
    "CTC",
    "DecodeStream",
    "Decoder",
    "Fuse",
    "Metaspace",
    "Replace",
    "SentencePiece",
    "Sequence",
    "Strip",
    "WordPiece",
]


class Decoder(Component):
    """The base of all decoders."""

    __slots__ = ()
    _kind = "decoder"

    def decode(self, tokens: Sequence_[str]) -> str:
        """Decodes tokens to text."""
        if isinstance(tokens, (str, Set, Mapping)):
            raise TypeError(f"expected a list of tokens, not a {type(tokens).__name__}")
        return hf_decode(self._spec, list(tokens))

    @staticmethod
    def custom(decoder: Any) -> Decoder:
        """Raises `UnsupportedTokenizer`: no step can be a Python object."""
        raise UnsupportedTokenizer("decoder: a decoder in Python is not supported")


class BPEDecoder(Decoder):
    """Makes the mark at the ends of words a space, and removes it at the end of the text.

    Args:
        suffix: The mark.
    """

    __slots__ = ()
    suffix: Field[str] = text_field()

    def __new__(cls, suffix: str = "</w>") -> BPEDecoder:
        return cls._made(suffix=suffix)


class ByteFallback(Decoder):
    """Joins tokens for bytes, such as ``<0xE2>``, to characters."""

    __slots__ = ()

    def __new__(cls) -> ByteFallback:
        return cls._made()


class ByteLevel(Decoder):
    """Replaces the characters that represent bytes by these."""

    __slots__ = ()
    add_prefix_space: Field[bool] = flag_field()
    trim_offsets: Field[bool] = flag_field()
    use_regex: Field[bool] = flag_field()

    def __new__(cls, **_others: Any) -> ByteLevel:
        return cls._made(add_prefix_space=True, trim_offsets=True, use_regex=True)


class CTC(Decoder):
    """Joins equal tokens beside each other, and removes the padding between others, as for speech.

    Args:
        pad_token: The padding.
        word_delimiter_token: The mark between words, which becomes a space if `cleanup` is set.
        cleanup: Whether spaces before punctuation and contractions are removed.
    """

    __slots__ = ()
    pad_token: Field[str] = text_field()
    word_delimiter_token: Field[str] = text_field()
    cleanup: Field[bool] = flag_field()

    def __new__(
        cls, pad_token: str = "<pad>", word_delimiter_token: str = "|", cleanup: bool = True
    ) -> CTC:
        return cls._made(
            pad_token=pad_token, word_delimiter_token=word_delimiter_token, cleanup=cleanup
        )


class Fuse(Decoder):
    """Joins all tokens to one, for the decoders after it."""

    __slots__ = ()

    def __new__(cls) -> Fuse:
        return cls._made()


class Metaspace(Decoder):
    """Replaces a mark by spaces, and removes it from the first token.

    Args:
        replacement: The mark.
        prepend_scheme: ``"first"``, ``"never"`` or ``"always"``; with ``"never"``, the first token
            keeps its space.
        split: Not used.
    """

    __slots__ = ()
    replacement: Field[str] = character_field()
    prepend_scheme: Field[str] = prepend_scheme_field()
    split: Field[bool] = flag_field()

    def __new__(
        cls, replacement: str = "▁", prepend_scheme: str = "always", split: bool = True
    ) -> Metaspace:
        return cls._made(replacement=replacement, prepend_scheme=prepend_scheme, split=split)


class Replace(Decoder):
    """Replaces the matches of a pattern in each token.

    Args:
        pattern: A text, or a `Regex`.
        content: The text in place of each match.

    Raises:
        ValueError: The pattern is malformed.
    """

    __slots__ = ()
    pattern: Field[Any] = pattern_field()
    content: Field[str] = text_field()

    def __new__(cls, pattern: Any, content: str) -> Replace:
        made = cls._made(pattern=pattern, content=content)
        made.decode([])
        return made


class SentencePiece(Decoder):
    """The decoder of a ``.model``. `bpe_engine.hf.Tokenizer.from_sentencepiece` makes it."""

    __slots__ = ()
    unk_surface: Field[str] = text_field()

    def __new__(cls, *arguments: object) -> SentencePiece:
        raise UnsupportedTokenizer("decoder: Tokenizer.from_sentencepiece makes this one")


class Strip(Decoder):
    """Removes a character from the ends of each token.

    Args:
        content: The character.
        left: How many of them are removed at the beginning, at most.
        right: How many at the end.
    """

    __slots__ = ()
    content: Field[str] = character_field()
    start: Field[int] = length_field()
    stop: Field[int] = length_field()

    def __new__(cls, content: str = " ", left: int = 0, right: int = 0) -> Strip:
        return cls._made(content=content, start=left, stop=right)


class WordPiece(Decoder):
    """Joins tokens with the prefix to those before them, and puts a space before others.

    Args:
        prefix: The prefix.
        cleanup: Whether spaces before punctuation and contractions are removed.
    """

    __slots__ = ()
    prefix: Field[str] = text_field()
    cleanup: Field[bool] = flag_field()

    def __new__(cls, prefix: str = "##", cleanup: bool = True) -> WordPiece:
        return cls._made(prefix=prefix, cleanup=cleanup)


class Sequence(Decoder):
    """Runs decoders one after the other.

    Args:
        decoders: The decoders.
    """

    __slots__ = ()

    def __new__(cls, decoders: list[Any]) -> Sequence:
        return cls._with_parts(decoders)
