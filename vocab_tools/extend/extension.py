"""Extends a vocabulary in one step: proposes words of a corpus, learns and checks them."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from bpe_engine.atomic_write import write_at_once
from bpe_engine.texts import Paths

from ..arguments import checked_path
from ..bases import Base, open_base
from ..brief import Brief
from ..check import CheckResult, check_vocabulary
from ..corpus.effect import CorpusEffect, corpus_effect
from ..ranks import RankSource
from ..text import plural
from .learn import learn_merges
from .learn_result import LearnResult, to_plain
from .propose import MIN_FREQUENCY, ProgressFunction, Proposal, named, propose_words

#: Kinds of notes about the spelling of a word list, which do not apply to proposed words.
OF_LISTS = ("spaced form", "repeated word")


@dataclass(repr=False)
class Extension(Brief):
    """The words of a corpus as new tokens: each step's result."""

    proposal: Proposal
    learned: LearnResult
    #: The corpus before and after.
    effect: CorpusEffect
    #: The check of the extended vocabulary.
    checked: CheckResult

    @property
    def ok(self) -> bool:
        """True if the check found no errors."""
        return self.checked.ok

    def dump(self) -> bytes:
        """Returns the new tokens as a rank file."""
        return self.learned.dump()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes what :meth:`dump` returns; a file that exists is replaced.

        Raises:
            ValueError: the check found errors. ``learned.save`` writes the tokens nevertheless.
            OSError: the file cannot be written.
        """
        if not self.ok:
            codes = [f.code for f in self.checked.findings if f.severity == "error"]
            raise ValueError(f"nothing is written, since the check found errors: {codes}")
        write_at_once(checked_path(path), self.dump())

    def to_plain(self) -> dict[str, Any]:
        """Returns everything as plain types, for JSON."""
        return {
            "proposal": self.proposal.to_plain(),
            "learned": {**to_plain(self.learned), "corpus": self.effect.to_plain()},
            "check": self.checked.to_plain(),
        }


def extend_vocabulary(
    base: RankSource | Base,
    corpus: Paths,
    new_ids: int = 2000,
    *,
    pattern: str | None = None,
    special_tokens: Mapping[str, int] | None = None,
    min_frequency: int = MIN_FREQUENCY,
    scripts: Collection[str] = (),
    exclude: Collection[str] = (),
    start_id: int | None = None,
    whole_characters: bool = False,
    prune: bool = False,
    field: str = "text",
    errors: str = "strict",
    progress: ProgressFunction | None = None,
) -> Extension:
    """Extends a vocabulary with the words of a corpus that save the most tokens.

    :func:`vocab_tools.propose_words`, :func:`vocab_tools.learn_merges`,
    :func:`vocab_tools.corpus_effect` and :func:`vocab_tools.check_vocabulary`, one after the other.
    The corpus is read twice. Nothing is written.

    Args:
        base: a rank file, ranks, or an encoding.
        corpus: text files; JSON lines, Parquet, Arrow, CSV and packed files are understood.
        new_ids: the most ids to use, for the words and for the by-products on their way.
        pattern: the name of an encoding, or a regular expression; by default ``base``'s.
        special_tokens: names and ids that are taken; by default those of ``base``.
        min_frequency: how often a word must occur.
        scripts: propose only words whose letters are all of these scripts.
        exclude: words not to propose, with their space.
        start_id: the id of the first new token, as :func:`vocab_tools.learn_merges` takes it.
        whole_characters: learn no token that cuts a character or crosses into one.
        prune: leave out new tokens that no word needs.
        field: the field of JSON lines and Parquet that has the text.
        errors: "strict", or "replace" to read bytes that are not UTF-8 as U+FFFD.
        progress: called with the name of a step, what is done of it and all of it.

    Returns:
        The results of the steps: ``proposal``, ``learned``, ``effect`` and ``checked``; ``save``
        writes the new tokens.

    Raises:
        ValueError, TypeError: no word is worth a token, or as in the functions above.
        OSError: a file cannot be read.
        ImportError: reading Parquet needs the package pyarrow.

    >>> import tempfile, pathlib
    >>> text = pathlib.Path(tempfile.mkdtemp()) / "text.txt"
    >>> _ = text.write_text("low lower lower slow " * 5)
    >>> base = {bytes([byte]): byte for byte in range(256)}
    >>> extension = extend_vocabulary(base, [text], 5, start_id=256)
    >>> extension.learned.tokens
    {b' l': 256, b'er': 257, b'ow': 258, b' low': 259, b' lower': 260}
    >>> extension.effect.tokens_before, extension.effect.tokens_after, extension.ok
    (105, 37, True)
    """
    step = functools.partial(_step, progress)
    corpus = named(corpus)
    found = open_base(base, pattern)
    proposal = propose_words(
        found,
        corpus,
        new_ids,
        pattern=pattern,
        min_frequency=min_frequency,
        scripts=scripts,
        exclude=exclude,
        field=field,
        errors=errors,
        progress=progress,
    )
    if not proposal.words:
        raise ValueError(no_words(proposal, new_ids))
    learned = learn_merges(
        found,
        proposal,
        pattern=pattern,
        special_tokens=special_tokens,
        start_id=start_id,
        whole_characters=whole_characters,
        prune=prune,
        progress=step("learning"),
    )
    learned.notes = [note for note in learned.notes if note.kind not in OF_LISTS]
    effect = effect_of(learned, corpus, field, errors, step("reading the corpus"))
    checked = check_vocabulary(
        found,
        learned.tokens,
        pattern=pattern,
        special_tokens=special_tokens,
        words=proposal.frequencies,
        progress=step("checking"),
    )
    return Extension(proposal, learned, effect, checked)


def _step(progress: ProgressFunction | None, name: str) -> Callable[[int, int], None] | None:
    return None if progress is None else functools.partial(progress, name)


def effect_of(
    result: LearnResult,
    corpus: Paths,
    field: str = "text",
    errors: str = "strict",
    progress: Callable[[int, int], None] | None = None,
) -> CorpusEffect:
    """Returns what the new tokens change on a corpus."""
    return corpus_effect(
        corpus,
        result.pattern.encoding(result.base, {}),
        result.pattern.encoding(result.extended, {}),
        [word.word for word in result.words if word.id is not None],
        nfc=result.pattern.nfc,
        field=field,
        errors=errors,
        progress=progress,
    )


def no_words(proposal: Proposal, new_ids: int) -> str:
    """Returns the reason why nothing is proposed."""
    if proposal.tokens_before == 0:
        return "the corpus is empty; nothing is written"
    return (
        f"no word is worth {plural(new_ids, 'new id')} or fewer; nothing is written. Give more "
        "text, more ids (-n), or a lower --min-frequency"
    )
