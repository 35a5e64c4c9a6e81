"""Checks vocabularies: a linter with a rule for each kind of finding.

Each finding has a code, a severity, a count and examples. Errors are defects that break encoding or
decoding; warnings are tokens or words that miss their purpose; other findings are facts worth
knowing. The rule of each finding is a function in :mod:`vocab_tools.check.rules`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Union

import bpe_engine
from bpe_engine.texts.listed import given_paths

from ..arguments import checked_special_tokens
from ..bases import Base, Recognized, identify, opened
from ..ranks import (
    RankFile,
    RankSource,
    as_sources,
    check_special_tokens,
    check_token,
    count_ids,
    read_rank_file,
    read_special_tokens,
)
from ..words import WordSource, listed_words
from . import rules  # noqa: F401 - fills RULES
from .check_result import CheckResult
from .context import Context, Loaded
from .findings import RULES

if TYPE_CHECKING:
    from ..extend.propose import Proposal


Corpus = Union[str, "os.PathLike[str]", Iterable[Union[str, "os.PathLike[str]"]]]


def check_vocabulary(
    base: RankSource | Base,
    extra: RankSource | Sequence[RankSource] = (),
    *,
    pattern: str | None = None,
    special_tokens: Mapping[str, int] | str | os.PathLike[str] | None = None,
    words: WordSource | Mapping[str, int] | Proposal | None = None,
    corpus: Corpus | None = None,
    field: str = "text",
    errors: str = "strict",
    progress: Callable[[int, int], None] | None = None,
) -> CheckResult:
    """Checks a vocabulary, or an extended vocabulary.

    Args:
        base: a rank file, ranks, or an encoding. Defects of rank files are reported.
        extra: the extension: one source, or several in the order of loading.
        pattern: the name of an encoding, or a regular expression. By default the pattern of the
            published vocabulary that ``base`` equals or extends; otherwise ``qwen``.
        special_tokens: names and ids, or a file of special tokens; by default the special tokens of
            the recognized vocabulary.
        words: the words that should become tokens: a file, lines, or a result of
            :func:`vocab_tools.read_words` or :func:`vocab_tools.propose_words`, whose words are
            used unchanged; frequencies are ignored.
        corpus: one or more text files on which to compare the base and the extended vocabulary.
        field: the text field of JSON lines and Parquet in ``corpus``.
        errors: "strict", or "replace" to read bytes of ``corpus`` that are not UTF-8 as U+FFFD.
        progress: called repeatedly with the number of tokens done and the total number of tokens.

    Raises:
        ValueError: a pattern, a special token, the corpus or an id of a mapping is invalid; ids are
            0 to 2**32 - 2.
        TypeError: ``base`` or ``extra`` is not a source of ranks.
        OSError: a file cannot be read.

    >>> base = {bytes([byte]): byte for byte in range(256)} | {b"xyz": 256}
    >>> result = check_vocabulary(base, pattern="gpt2", special_tokens={})
    >>> result.ok, result.round_trip_counts["UNDECODEABLE"]
    (True, 128)
    >>> result.finding("UNREACHABLE_BY_MERGING").examples
    ["256 'xyz': no two tokens make it; merging stops at 'x' 'y' 'z'"]
    """
    source = base.ranks if isinstance(base, Base) else opened(as_sources([base])[0])
    files = [_rank_file(one) for one in (source, *as_sources(extra))]
    loaded = Loaded()
    for file in files:
        loaded.add(file, is_extra=file is not files[0])
    found = base if isinstance(base, Base) else identify(loaded.base, source, pattern)
    if isinstance(special_tokens, (str, os.PathLike)):
        special_tokens = read_special_tokens(special_tokens)
    specials = checked_special_tokens(
        found.special_tokens if special_tokens is None else special_tokens
    )
    check_special_tokens(specials)
    context = Context(
        files,
        loaded,
        found.pattern,
        specials,
        listed=None if words is None else listed_words(words),
        corpus_paths=_paths(corpus),
        field=field,
        errors=errors,
        progress=progress,
    )
    return _checked(context, found.recognized)


def _paths(corpus: Corpus | None) -> list[str | os.PathLike[str]]:
    return [] if corpus is None else [*given_paths(corpus)]


def _rank_file(source: RankSource) -> RankFile:
    if isinstance(source, (str, os.PathLike)):
        return read_rank_file(source)
    if isinstance(source, bpe_engine.Encoding):
        source = dict(source.mergeable_ranks)
    for token, number in source.items():
        check_token(token, number)
    rows = enumerate(source.items(), 1)
    return RankFile("the ranks", [(token, number, line) for line, (token, number) in rows])


def _checked(context: Context, recognized: Recognized | None) -> CheckResult:
    """Applies every rule."""
    audit = context.audit if "tokens" in context.has else None
    sizes = {
        "ranks": len(context.loaded.base),
        "extra_ranks": len(context.loaded.extra),
        "special_tokens": len(context.special_tokens),
        "max_id_plus_one": max(context.used_ids, default=-1) + 1,
        "unused_ids": count_ids(context.unused),
    }
    return CheckResult(
        RULES.findings(context),
        sizes,
        context.pattern.label,
        round_trip=audit.round_trip if audit else {},
        unreached=audit.unreached if audit else {},
        never_whole=audit.never_whole if audit else {},
        corpus=context.corpus,
        unused=context.unused,
        recognized=recognized,
        tokens=context.loaded.by_id,
    )
