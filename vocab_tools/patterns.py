"""Patterns that cut text into pieces before merging: patterns of encodings, or given regexes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import bpe_engine
from bpe_engine import vocabulary
from bpe_engine.common.values import describe
from bpe_engine.model import unknown_encoding
from bpe_engine.read.builtin import BUILTIN

#: Patterns of the published encodings; plugins' encodings may have other patterns.
_PUBLISHED = frozenset(encoding.pattern for encoding in BUILTIN.values())

#: Characters of regular expressions that never occur in names of encodings.
_REGEX_CHARACTERS = frozenset("\\^$*+?{}[]|()")


@dataclass(frozen=True)
class Pattern:
    """A pre-tokenization pattern, with the special tokens of its encoding."""

    #: Name of the encoding; None for a regular expression.
    name: str | None
    pat_str: str
    special_tokens: Mapping[str, int]
    #: True if the encoding normalizes text to NFC first.
    nfc: bool = False

    @property
    def label(self) -> str:
        """The name, or else the regular expression."""
        return self.name or self.pat_str

    def splitter(self) -> bpe_engine.Encoding:
        """Returns an encoding of single bytes whose ``split`` cuts text by this pattern."""
        return self.encoding({bytes([byte]): byte for byte in range(256)}, {})

    def encoding(
        self, ranks: Mapping[bytes, int], special_tokens: Mapping[str, int]
    ) -> bpe_engine.Encoding:
        """Returns an encoding of ``ranks`` with this pattern."""
        name = self.name or "extended"
        return vocabulary.make_encoding(name, ranks, self.pat_str, special_tokens)

    def cuts_alike(self, other: Pattern) -> bool:
        """Returns True if both patterns cut every text in the same way."""
        return (self.pat_str, self.nfc) == (other.pat_str, other.nfc)

    def named(self) -> Pattern:
        """Returns a copy named after the published encoding that cuts the same way, if any."""
        form = "NFC" if self.nfc else None
        for name, known in BUILTIN.items():
            if (known.pattern, known.normalization) == (self.pat_str, form):
                return replace(self, name=name)
        return self

    def without_taken_specials(self, ranks: Mapping[bytes, int]) -> Pattern:
        """Returns a copy without special tokens if ``ranks`` uses all of their ids: such ranks
        belong to a different encoding."""
        used = set(ranks.values())
        if all(number in used for number in self.special_tokens.values()):
            return replace(self, special_tokens={})
        return self


def is_published(pat_str: str) -> bool:
    """Returns True for the pattern of a published encoding, which always cuts after words.

    >>> is_published(named_pattern("gpt2").pat_str), is_published(r"\\w+")
    (True, False)
    """
    return pat_str in _PUBLISHED


def is_regex(pattern: str) -> bool:
    """Returns True for a regular expression, and False for a name.

    >>> is_regex("cl100k_base"), is_regex("gpt-4"), is_regex(r"\\w+"), is_regex(".")
    (False, False, True, True)
    """
    return not _REGEX_CHARACTERS.isdisjoint(pattern) or not pattern.strip(".")


def named_pattern(name: str) -> Pattern:
    """Returns the pattern and the special tokens of the encoding with this name.

    Raises a ValueError that suggests similar names if the name is unknown.

    >>> named_pattern("gpt2").special_tokens
    {'<|endoftext|>': 50256}
    """
    if name not in bpe_engine.list_encoding_names():
        raise ValueError(unknown_encoding(name))
    return encoding_pattern(bpe_engine.get_encoding(name))


def regex_pattern(regex: str) -> Pattern:
    """Compiles a regular expression. Raises ValueError if it does not compile."""
    pattern = Pattern(None, regex, {})
    pattern.splitter()
    return pattern


def find_pattern(pattern: str) -> Pattern:
    """Returns the pattern for the name of an encoding, or for a regular expression.

    Raises ValueError if the argument is neither a known name nor a valid regular expression.
    """
    if not isinstance(pattern, str):
        raise TypeError(
            f"pattern is {describe(pattern)}; give the name of an encoding or an expression"
        )
    return regex_pattern(pattern) if is_regex(pattern) else named_pattern(pattern)


def encoding_pattern(encoding: bpe_engine.Encoding) -> Pattern:
    """Returns the pattern of an encoding, with the encoding's special tokens.

    The name is None unless a registered encoding of this name cuts text in the same way.
    """
    own = Pattern(
        encoding.name,
        encoding.pattern,
        dict(encoding.special_tokens),
        nfc=encoding.normalization == "NFC",
    )
    if encoding.name not in bpe_engine.list_encoding_names():
        return replace(own, name=None)
    published = bpe_engine.get_encoding(encoding.name)
    known = published.pattern == own.pat_str
    return own if known else replace(own, name=None)


def leaves_out_marks(pattern: Pattern) -> bool:
    """Returns True if the pattern cuts between a letter and its combining mark, as ``\\p{L}+``
    does: Hindi and Thai words then become several pieces.

    >>> leaves_out_marks(named_pattern("qwen")), leaves_out_marks(named_pattern("o200k_base"))
    (True, False)
    """
    return len(pattern.splitter().split("\u0915\u093f")) > 1
