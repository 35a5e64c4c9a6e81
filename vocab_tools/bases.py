"""Which vocabulary a base is: that decides its pattern and its special tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import bpe_engine
from bpe_engine.vocabulary import mergeable_ranks

from .patterns import Pattern, encoding_pattern, find_pattern, named_pattern
from .text import plural, shorten

#: The encodings whose published ranks are recognised.
PUBLISHED = ("r50k_base", "p50k_base", "cl100k_base", "o200k_base", "qwen")

#: The pattern for a base that is none of them.
DEFAULT_PATTERN = "qwen"

#: An id that all of them have, with different tokens in most: it rules out the others at once.
_PROBE_ID = 50000


@dataclass(frozen=True)
class Recognised:
    """The published vocabulary that a base is, or begins with."""

    name: str
    #: How many tokens the base has beside those of the published vocabulary.
    more: int

    def __str__(self) -> str:
        """For people.

        >>> str(Recognised("r50k_base", 3)), str(Recognised("qwen", 0))
        ('r50k_base and 3 more tokens', 'qwen')
        """
        more = f" and {plural(self.more, 'more token', 'more tokens')}" if self.more else ""
        return self.name + more


@dataclass(frozen=True)
class Base:
    """The pattern and the special tokens to use with a base."""

    pattern: Pattern
    special_tokens: Mapping[str, int]
    #: The published vocabulary that it is, when it is one.
    recognised: Recognised | None
    #: Whether the pattern is the one that belongs to the base.
    own_pattern: bool
    #: The name of the encoding, recognised or given; None for an unknown base.
    name: str | None

    @property
    def is_qwen(self) -> bool:
        """Whether the pattern and the special tokens are those of ``qwen``."""
        specials = self.special_tokens == named_pattern("qwen").special_tokens
        return self.pattern.name == "qwen" and specials


def recognise(ranks: Mapping[bytes, int]) -> Recognised | None:
    """The published vocabulary whose ranks these are, or begin with.

    >>> recognise(mergeable_ranks(bpe_engine.get_encoding("p50k_base")))
    Recognised(name='p50k_base', more=0)
    """
    found: tuple[int, str] | None = None
    for name in PUBLISHED:
        encoding = bpe_engine.get_encoding(name)
        if ranks.get(encoding.decode_single_token_bytes(_PROBE_ID)) != _PROBE_ID:
            continue
        published = mergeable_ranks(encoding)
        # The longest counts: one published vocabulary begins with another.
        longer = found is None or len(published) > found[0]
        if longer and published.items() <= ranks.items():
            found = (len(published), name)
    return None if found is None else Recognised(found[1], len(ranks) - found[0])


def identify(
    ranks: Mapping[bytes, int],
    encoding: bpe_engine.Encoding | None = None,
    pattern: str | None = None,
    *,
    keep_default: bool = False,
) -> Base:
    """The pattern and special tokens to use with these ranks.

    A given pattern is used, with the special tokens of the vocabulary that the ranks are; without
    one, the pattern of that vocabulary. What is no known vocabulary gets the given pattern, or
    that of ``qwen``, and its special tokens, unless the ranks use all of their ids.

    Args:
        ranks: the base.
        encoding: the encoding whose ranks they are, when they come from one.
        pattern: the name of an encoding, or a regular expression.
        keep_default: take the pattern of ``qwen`` for any base.

    Raises:
        ValueError: the pattern is no encoding's name, and does not compile.
    """
    own: Pattern | None = None
    recognised = None
    name = None
    if encoding is not None:
        own, name = encoding_pattern(encoding), encoding.name
    elif recognised := recognise(ranks):
        own, name = named_pattern(recognised.name), recognised.name
    if own is not None and pattern is None and not keep_default:
        return Base(own, own.special_tokens, recognised, True, name)
    found = find_pattern(pattern or DEFAULT_PATTERN)
    if own is None:
        found = found.without_taken_specials(ranks)
        return Base(found, found.special_tokens, None, True, None)
    alike = found.cuts_alike(own)
    return Base(own if alike else found, own.special_tokens, recognised, alike, name)


def pattern_note(base: Base, pattern: str | None) -> tuple[str, str] | None:
    """What people should know about the choice: the kind of the note, and its text."""
    if base.name is None or base.own_pattern:
        return None
    return (
        "other pattern",
        f"the base is {base.recognised or base.name}, and the pattern "
        f"{shorten(pattern or DEFAULT_PATTERN)} is not the one of {base.name}: words that are one "
        f"piece here may be several there; its special tokens are kept",
    )
