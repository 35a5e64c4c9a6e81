"""Decoders: the step of a tokenizer that turns tokens into text.

>>> from bpe_engine.hf import decoders
>>> decoders.WordPiece().decode(["I", "'m", "Jo", "##hn"])
"I'm John"
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from collections.abc import Sequence as Sequence_
from typing import Any

from .._core import UnsupportedTokenizer
from . import fields
from .component import Component
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
    """The base class of all decoders."""

    _kind = "decoder"

    def decode(self, tokens: Sequence_[str]) -> str:
        """Decodes tokens to text."""
        if isinstance(tokens, (str, Set, Mapping)):
            raise TypeError(f"expected a list of tokens, not a {type(tokens).__name__}")
        return self._ready(list(tokens))  # type: ignore[no-any-return]

    @staticmethod
    def custom(decoder: Any) -> Decoder:
        """Raises `UnsupportedTokenizer`: decoders written in Python are not supported."""
        raise UnsupportedTokenizer("decoder: a decoder in Python is not supported")


class BPEDecoder(Decoder):
    """Turns the mark at the end of each word into a space, and drops the last mark.

    Args:
        suffix: The mark.
    """

    suffix: str = fields.text(default="</w>")


class ByteFallback(Decoder):
    """Joins byte tokens, such as ``<0xE2>``, into characters."""


class ByteLevel(Decoder):
    """Replaces characters that represent bytes with the bytes."""

    _takes_others = True
    add_prefix_space: bool = fields.flag(default=True, init=False)
    trim_offsets: bool = fields.flag(default=True, init=False)
    use_regex: bool = fields.flag(default=True, init=False)


class CTC(Decoder):
    """Collapses repeated tokens, and removes the padding between tokens, as for speech.

    Args:
        pad_token: The padding.
        word_delimiter_token: The mark between words, which becomes a space if `cleanup` is set.
        cleanup: Whether spaces before punctuation and contractions are removed.
    """

    pad_token: str = fields.text(default="<pad>")
    word_delimiter_token: str = fields.text(default="|")
    cleanup: bool = fields.flag(default=True)


class Fuse(Decoder):
    """Joins all tokens into one, for the decoders that follow."""


class Metaspace(Decoder):
    """Replaces a mark with spaces, and drops the mark of the first token.

    Args:
        replacement: The mark.
        prepend_scheme: ``"first"``, ``"never"`` or ``"always"``; with ``"never"``, the first token
            keeps its space.
        split: Not used.
    """

    replacement: str = fields.character(default="▁")
    prepend_scheme: str = fields.prepend_scheme(default="always")
    split: bool = fields.flag(default=True)


class Replace(Decoder):
    """Replaces the matches of a pattern in each token.

    Args:
        pattern: A text, or a `Regex`.
        content: The replacement of each match.

    Raises:
        ValueError: The pattern is malformed.
    """

    pattern: Any = fields.pattern()
    content: str = fields.text()

    def _check(self) -> None:
        self.decode([])


class SentencePiece(Decoder):
    """The decoder of a ``.model``, made by `bpe_engine.hf.Tokenizer.from_sentencepiece`."""

    unk_surface: str = fields.text(init=False)


class Strip(Decoder):
    """Removes a character from the ends of each token.

    Args:
        content: The character.
        left: Maximum number of characters removed at the beginning.
        right: Maximum number of characters removed at the end.
    """

    content: str = fields.character(default=" ")
    start: int = fields.length(default=0, alias="left")
    stop: int = fields.length(default=0, alias="right")


class WordPiece(Decoder):
    """Joins tokens with the prefix to the previous token, and puts a space before other tokens.

    Args:
        prefix: The prefix.
        cleanup: Whether spaces before punctuation and contractions are removed.
    """

    prefix: str = fields.text(default="##")
    cleanup: bool = fields.flag(default=True)


class Sequence(Decoder):
    """Runs decoders in sequence.

    Args:
        decoders: The decoders.
    """

    _list: list[Any] = fields.parts(alias="decoders")
