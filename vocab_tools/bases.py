"""Recognizes published vocabularies, to find the pattern and special tokens of a base."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import bpe_engine
from bpe_engine import vocabulary
from bpe_engine.common.values import checked
from bpe_engine.hf import UnsupportedTokenizer
from bpe_engine.read import sources
from bpe_engine.read.opening import encoding_of_ranks, open_tokenizer
from bpe_engine.read.published_ranks import published_name
from bpe_engine.read.sidecar import read_sidecar

from .arguments import checked_special_tokens
from .patterns import Pattern, encoding_pattern, find_pattern, named_pattern
from .ranks import RankSource, check_source, check_special_tokens, load_ranks
from .text import plural, shorten

#: Name of the pattern for an unknown base.
DEFAULT_PATTERN = "qwen"


@dataclass(frozen=True)
class Recognized:
    """The published vocabulary that a base equals or extends."""

    name: str
    #: Number of tokens in the base beyond the published vocabulary.
    more: int

    def __str__(self) -> str:
        """Returns the name and the number of further tokens, for messages.

        >>> str(Recognized("r50k_base", 3)), str(Recognized("qwen", 0))
        ('r50k_base and 3 more tokens', 'qwen')
        """
        more = f" and {plural(self.more, 'more token', 'more tokens')}" if self.more else ""
        return self.name + more


@dataclass(frozen=True)
class Base:
    """Ranks with a pattern and special tokens, as :func:`open_base` returns them.

    Functions that take a source of ranks also take a base, so that a program that calls several
    functions opens the source only once.
    """

    ranks: dict[bytes, int] = field(repr=False)
    pattern: Pattern
    special_tokens: Mapping[str, int]
    #: Published vocabulary that the base equals or extends, if any.
    recognized: Recognized | None
    #: True if the pattern belongs to the base.
    own_pattern: bool
    #: Name of the encoding, recognized or given; None for an unknown base.
    name: str | None

    @property
    def is_qwen(self) -> bool:
        """True if the base uses the pattern and the special tokens of ``qwen``."""
        specials = self.special_tokens == named_pattern("qwen").special_tokens
        return self.pattern.name == "qwen" and specials


def open_base(
    source: RankSource | Base,
    pattern: str | None = None,
    special_tokens: Mapping[str, int] | None = None,
    *,
    extra: Sequence[RankSource] = (),
) -> Base:
    """Reads a source of ranks, and finds the pattern and the special tokens.

    Args:
        source: a rank file, ranks, an encoding or its name; a base is returned unchanged.
        pattern: the name of an encoding, or a regular expression that cuts text into pieces. By
            default the pattern of ``source``, if ``source`` is an encoding or has the ranks of a
            published vocabulary; otherwise ``qwen``.
        special_tokens: names and ids to use; by default the special tokens of ``source``, if
            ``source`` is an encoding, or else of the named encoding.
        extra: additional ranks of the base.

    Raises:
        ValueError: the source is a tokenizer without ranks, such as a model over characters.
        ValueError: the pattern is neither the name of an encoding nor a valid expression, or ranks
            give a token two ids or an id two tokens.
        TypeError: an argument has a wrong type; the message names the argument.

    >>> open_base("gpt2").recognized
    Recognized(name='r50k_base', more=0)
    """
    if isinstance(source, Base):
        return source
    source = opened(source, extra)
    found = identify(load_ranks(source), source, pattern)
    if special_tokens is None:
        return found
    specials = checked_special_tokens(special_tokens)
    check_special_tokens(specials)
    return replace(found, special_tokens=specials)


def recognize(ranks: Mapping[bytes, int]) -> Recognized | None:
    """Returns the published vocabulary that these ranks equal or extend.

    >>> recognize(dict(bpe_engine.get_encoding("p50k_base").mergeable_ranks))
    Recognized(name='p50k_base', more=0)
    """
    name = published_name(ranks)
    if name is None:
        return None
    return Recognized(name, len(ranks) - len(bpe_engine.get_encoding(name).mergeable_ranks))


def opened(source: RankSource, extra: Sequence[RankSource] = ()) -> RankSource:
    """Loads a source of ranks with its extension, for :func:`identify` to find the pattern.

    The name of an encoding, a ``tokenizer.json``, ``tekken.json`` or a folder becomes an encoding;
    a rank file is returned as a path, so that the check can read its lines.

    Raises:
        ValueError: the source is a tokenizer without ranks, such as a model over characters.
        TypeError: the argument is not a source of ranks.

    >>> opened("gpt2")
    <Encoding 'gpt2' bc98d100a6f5>
    """
    check_source(source)
    if isinstance(source, (str, os.PathLike)):
        source = _opened(sources.recognize(source))
    if not extra:
        return source
    ranks, own = load_ranks(source, *checked(extra)), _own_pattern(source)
    if own is None:
        return ranks
    form = "NFC" if own.nfc else None
    name = own.name or "extended"
    return vocabulary.make_encoding(name, ranks, own.pat_str, own.special_tokens, form)


def _opened(source: sources.Source) -> RankSource:
    if source.format == "tiktoken":
        return source.path
    try:
        return encoding_of_ranks(open_tokenizer(source.folder or source.path))
    except UnsupportedTokenizer as error:
        raise NoRanksError(
            f"{source.path} is not a base, since it has no ranks ({error}); give an encoding, a rank "
            "file, or a byte-level tokenizer.json"
        ) from None


class NoRanksError(UnsupportedTokenizer):
    """Error for a tokenizer that ranks and one pattern cannot express. The message says why."""


def _own_pattern(source: RankSource) -> Pattern | None:
    """Returns the pattern and special tokens of an encoding, or of a rank file's sidecar."""
    if isinstance(source, bpe_engine.Encoding):
        return encoding_pattern(source)
    found = None if isinstance(source, Mapping) else read_sidecar(os.fspath(source))
    if not found or not found.get("pattern"):
        return None
    nfc = found.get("normalization") == "NFC"
    return Pattern(None, found["pattern"], found.get("special_tokens") or {}, nfc=nfc).named()


def identify(
    ranks: dict[bytes, int], source: RankSource | None = None, pattern: str | None = None
) -> Base:
    """Returns the pattern and special tokens to use with these ranks.

    A given pattern is used without its special tokens, which come from the vocabulary with these
    ranks. Without a given pattern, the pattern also comes from that vocabulary. An unknown
    vocabulary without a given pattern gets the pattern of ``qwen``, and qwen's special tokens
    unless the ranks use all of their ids.

    Args:
        ranks: the base.
        source: the source of the ranks, as :func:`opened` returns it.
        pattern: the name of an encoding, or a regular expression.

    Raises:
        ValueError: the pattern is neither the name of an encoding nor a regular expression.
    """
    own = None if source is None else _own_pattern(source)
    recognized = recognize(ranks)
    name = None
    if own is not None:
        name = source.name if isinstance(source, bpe_engine.Encoding) else str(source)
    elif recognized:
        own, name = named_pattern(recognized.name), recognized.name
    if own is not None and pattern is None:
        return Base(ranks, own, own.special_tokens, recognized, True, name)
    found = find_pattern(pattern or DEFAULT_PATTERN)
    if own is None:
        specials = {} if pattern else found.without_taken_specials(ranks).special_tokens
        return Base(ranks, found, specials, None, True, None)
    alike = found.cuts_alike(own)
    return Base(ranks, own if alike else found, own.special_tokens, recognized, alike, name)


def pattern_note(base: Base) -> tuple[str, str] | None:
    """Returns the kind and the text of a note about a pattern that differs from the base's own."""
    if base.name is None or base.own_pattern:
        return None
    return (
        "other pattern",
        f"the base is {base.recognized or base.name}, and the pattern "
        f"{shorten(base.pattern.label)} is not the one of {base.name}: words that are one "
        f"piece here may be several there; its special tokens are kept",
    )
