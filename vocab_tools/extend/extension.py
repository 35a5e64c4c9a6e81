"""Extends a vocabulary in one step: proposes words of a corpus, learns them, checks the result."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bpe_engine.common.atomic_write import write_at_once
from bpe_engine.texts.listed import Paths, given_paths

from ..arguments import checked_options, checked_path, progress_of
from ..bases import Base, open_base
from ..brief import Brief
from ..check import check_vocabulary
from ..check.check_result import CheckResult
from ..corpus.effect import CorpusEffect, corpus_effect
from ..ranks import RankSource
from ..text import plural
from .learn import learn_merges
from .learn_result import LearnResult, to_plain
from .propose import ExtendOptions, ProgressFunction, Proposal, propose_words

#: Kinds of notes about the spelling of a word list, which do not apply to proposed words.
OF_LISTS = ("spaced form", "repeated word")


@dataclass(repr=False)
class Extension(Brief):
    """An extension by words of a corpus, with the result of each step."""

    proposal: Proposal
    learned: LearnResult
    #: The effect of the new tokens on the corpus.
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
        """Writes the result of :meth:`dump` to a file, replacing an existing file.

        Raises:
            ValueError: the check found errors. ``learned.save`` writes the tokens regardless.
            OSError: the file cannot be written.
        """
        if not self.ok:
            codes = [f.code for f in self.checked.findings if f.severity == "error"]
            raise ValueError(f"nothing is written, since the check found errors: {codes}")
        write_at_once(checked_path(path), self.dump())

    def to_plain(self) -> dict[str, Any]:
        """Returns all results as plain types, for JSON."""
        return {
            "proposal": self.proposal.to_plain(),
            "learned": {**to_plain(self.learned), "corpus": self.effect.to_plain()},
            "check": self.checked.to_plain(),
        }


def extend_vocabulary(
    base: RankSource | Base,
    corpus: Paths,
    options: ExtendOptions | None = None,
    *,
    progress: ProgressFunction | None = None,
) -> Extension:
    """Extends a vocabulary with the words of a corpus that save the most tokens.

    Calls :func:`vocab_tools.propose_words`, :func:`vocab_tools.learn_merges`,
    :func:`vocab_tools.corpus_effect` and :func:`vocab_tools.check_vocabulary`. Reads the corpus
    twice, and writes no files.

    Args:
        base: a rank file, ranks, or an encoding; use :func:`vocab_tools.open_base` to set a
            different pattern or special tokens, or to add ranks.
        corpus: text files; also JSON lines, Parquet, Arrow, CSV and compressed files.
        options: how many ids to use, which words to propose, and how to learn words.
        progress: called with the name of a step, the work done and the total work.

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
    >>> extension = extend_vocabulary(base, [text], ExtendOptions(5, start_id=256))
    >>> extension.learned.tokens
    {b' l': 256, b'er': 257, b'ow': 258, b' low': 259, b' lower': 260}
    >>> extension.effect.tokens_before, extension.effect.tokens_after, extension.ok
    (105, 37, True)
    """
    chosen = checked_options(options, ExtendOptions)
    step = functools.partial(progress_of, progress)
    corpus = given_paths(corpus)
    found = open_base(base)
    proposal = propose_words(found, corpus, chosen, progress=progress)
    if not proposal.words:
        raise ValueError(no_words(proposal, chosen.new_ids))
    learned = learn_merges(
        found,
        proposal,
        start_id=chosen.start_id,
        whole_characters=chosen.whole_characters,
        progress=step("learning"),
    )
    learned.notes = [note for note in learned.notes if note.kind not in OF_LISTS]
    reading = step("reading the corpus")
    effect = effect_of(learned, corpus, chosen.field, chosen.errors, reading)
    words, checking = proposal.frequencies, step("checking")
    checked = check_vocabulary(found, learned.tokens, words=words, progress=checking)
    return Extension(proposal, learned, effect, checked)


def effect_of(
    result: LearnResult,
    corpus: Paths,
    field: str = "text",
    errors: str = "strict",
    progress: Callable[[int, int], None] | None = None,
) -> CorpusEffect:
    """Returns the effect of the new tokens on a corpus."""
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
    """Returns the reason why no word is proposed."""
    if proposal.tokens_before == 0:
        return "the corpus is empty; nothing is written"
    return (
        f"no word is worth {plural(new_ids, 'new id')} or fewer; nothing is written. Give more "
        "text, more ids (-n), or a lower --min-frequency"
    )
