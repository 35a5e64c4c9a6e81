"""How text is cut into pieces before merging: by the pattern of an encoding, or by a regex."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, replace

import bpe_engine
from bpe_engine import vocabulary
from bpe_engine.builtin import BUILTIN
from bpe_engine.model import MODEL_TO_ENCODING

from .text import shorten

#: The patterns of the published encodings. Plugins may bring others.
_PUBLISHED = frozenset(encoding.pattern for encoding in BUILTIN.values())

#: Characters that regular expressions have and names of encodings have not.
_REGEX_CHARACTERS = frozenset("\\^$*+?{}[]|()")


@dataclass(frozen=True)
class Pattern:
    """A pre-tokenisation pattern, and the special tokens that come with its encoding."""

    #: The name of the encoding, or None for a pattern that was given as a regular expression.
    name: str | None
    pat_str: str
    special_tokens: Mapping[str, int]
    #: Whether the encoding brings text into Unicode normalization form C first.
    nfc: bool = False

    @property
    def label(self) -> str:
        """The name, or else the regular expression."""
        return self.name or self.pat_str

    def splitter(self) -> bpe_engine.Encoding:
        """An encoding whose ``split`` cuts text by this pattern; its vocabulary is bare bytes."""
        return self.encoding({bytes([byte]): byte for byte in range(256)}, {})

    def encoding(
        self, ranks: Mapping[bytes, int], special_tokens: Mapping[str, int]
    ) -> bpe_engine.Encoding:
        """An encoding of ``ranks`` with this pattern."""
        return bpe_engine.Encoding(
            self.name or "extended",
            pat_str=self.pat_str,
            mergeable_ranks=dict(ranks),
            special_tokens=dict(special_tokens),
        )

    def cuts_alike(self, other: Pattern) -> bool:
        """Whether both cut every text in the same way."""
        return (self.pat_str, self.nfc) == (other.pat_str, other.nfc)

    def without_taken_specials(self, ranks: Mapping[bytes, int]) -> Pattern:
        """Without the special tokens when ``ranks`` uses every one of their ids itself: then the
        ranks are not those of this pattern's encoding."""
        used = set(ranks.values())
        if all(number in used for number in self.special_tokens.values()):
            return replace(self, special_tokens={})
        return self


def is_published(pat_str: str) -> bool:
    """Whether it is the pattern of a published encoding, and so known to cut behind words.

    >>> is_published(named_pattern("gpt2").pat_str), is_published(r"\\w+")
    (True, False)
    """
    return pat_str in _PUBLISHED


def is_regex(pattern: str) -> bool:
    """Whether a pattern has a regular expression's characters: then it is no name.

    >>> is_regex("cl100k_base"), is_regex("gpt-4"), is_regex(r"\\w+"), is_regex(".")
    (False, False, True, True)
    """
    return not _REGEX_CHARACTERS.isdisjoint(pattern) or not pattern.strip(".")


def named_pattern(name: str) -> Pattern:
    """The pattern of the encoding with this name, and its special tokens.

    Raises ValueError, with the names that are near, when there is no such encoding.

    >>> named_pattern("gpt2").special_tokens
    {'<|endoftext|>': 50256}
    """
    if name not in bpe_engine.list_encoding_names():
        raise ValueError(unknown_encoding(name))
    return encoding_pattern(bpe_engine.get_encoding(name))


def unknown_encoding(name: str) -> str:
    """The message for a name that is no encoding."""
    near = _near_names(name)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    known = ", ".join(bpe_engine.list_encoding_names())
    return f"there is no encoding {shorten(name)!r}{hint} (known: {known})"


def _near_names(name: str) -> list[str]:
    """Names of encodings that may be meant: that of the model with this name, or alike ones.

    >>> _near_names("gpt-4"), _near_names("gpt4o"), _near_names("Qwen"), _near_names("xyz")
    (['cl100k_base'], ['o200k_base'], ['qwen'], [])
    """
    known = bpe_engine.list_encoding_names()
    wanted = name.lower()
    if wanted in known:
        return [wanted]
    plain = _letters(wanted)
    models = [name for name in MODEL_TO_ENCODING if _letters(name) == plain]
    try:
        return [bpe_engine.encoding_name_for_model(models[0] if models else wanted)]
    except KeyError:
        pass
    begins = [other for other in known if other.startswith(wanted) or wanted.startswith(other)]
    return begins[:2] or difflib.get_close_matches(wanted, known, n=2, cutoff=0.5)


def _letters(name: str) -> str:
    """A name without the marks between its words."""
    return "".join(filter(str.isalnum, name.lower()))


def regex_pattern(regex: str) -> Pattern:
    """A regular expression as a pattern. Raises ValueError when it does not compile."""
    pattern = Pattern(None, regex, {})
    pattern.splitter()
    return pattern


def find_pattern(pattern: str) -> Pattern:
    """The pattern with this name of an encoding, or this regular expression.

    Raises ValueError when it is no name and no regular expression that compiles.
    """
    return regex_pattern(pattern) if is_regex(pattern) else named_pattern(pattern)


def encoding_pattern(encoding: bpe_engine.Encoding) -> Pattern:
    """The pattern of an encoding, with the encoding's own special tokens.

    Its name is None unless an encoding that is known by name cuts text in the same way.
    """
    own = Pattern(
        encoding.name,
        vocabulary.pattern(encoding),
        vocabulary.special_tokens(encoding),
        nfc=vocabulary.normalization(encoding) == "NFC",
    )
    if encoding.name not in bpe_engine.list_encoding_names():
        return replace(own, name=None)
    published = bpe_engine.get_encoding(encoding.name)
    known = vocabulary.pattern(published) == own.pat_str
    return own if known else replace(own, name=None)


def leaves_out_marks(pattern: Pattern) -> bool:
    """Whether the pattern cuts a letter from the combining mark that follows it, as ``\\p{L}+``
    does: words of Hindi or Thai are then several pieces.

    >>> leaves_out_marks(named_pattern("qwen")), leaves_out_marks(named_pattern("o200k_base"))
    (True, False)
    """
    return len(pattern.splitter().split("\u0915\u093f")) > 1
