"""The titles of reports: what was done, to which base, with which text."""

from __future__ import annotations

import os
from collections.abc import Iterable

from ..bases import Recognized
from ..check import CheckResult
from ..check.folder import FolderResult
from ..corpus.effect import CorpusEffect
from ..embedding import EmbeddingPlan
from ..extend.learn_result import LearnResult
from ..extend.propose import Proposal
from ..text import plural
from ..train import TrainResult


def learn_title(result: LearnResult, effect: CorpusEffect | None) -> str:
    """Returns the title of a report on learning."""
    files = [] if effect is None else [part.name for part in effect.files]
    base = _base(result.recognized, len(result.base))
    return f"{plural(len(result.tokens), 'new token')} for {base}{_files(files)}"


def proposal_title(proposal: Proposal) -> str:
    """Returns the title of a report on proposed words."""
    base = _base(proposal.recognized, 0)
    return f"{plural(len(proposal.words), 'word')} for {base}{_files(proposal.files)}"


def check_title(result: CheckResult) -> str:
    """Returns the title of a report on a check."""
    new = result.sizes.get("extra_ranks", 0)
    more = f" with {plural(new, 'new token')}" if new else ""
    return f"Check of {_base(result.recognized, result.sizes.get('ranks', 0))}{more}"


def folder_title(result: FolderResult) -> str:
    """Returns the title of a report on a model's folder."""
    return f"Check of {os.path.basename(os.path.abspath(result.path))}"


def train_title(result: TrainResult) -> str:
    """Returns the title of a report on training."""
    base = result.base_size > 256 and f", on top of {_base(result.recognized, result.base_size)}"
    return (
        f"A trained vocabulary of {plural(result.size, 'token')}{base or ''}{_files(result.files)}"
    )


def plan_title(plan: EmbeddingPlan) -> str:
    """Returns the title of the report on a plan."""
    return f"{plural(len(plan), 'new row')} of an embedding table of {plan.sizes['rows']:,}"


def _base(recognized: Recognized | None, size: int) -> str:
    if recognized is not None:
        return str(recognized)
    return f"a vocabulary of {size:,} ranks" if size else "a vocabulary"


def _files(names: Iterable[str]) -> str:
    """Returns the first file, and how many there are beside it."""
    first, *others = [os.path.basename(os.fspath(name)) for name in names] or [""]
    return f", from {first}{f' and {len(others)} more' if others else ''}" if first else ""
