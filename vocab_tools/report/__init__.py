"""Writes reports on results in three formats: HTML, Markdown and JSON."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bpe_engine.common.atomic_write import write_at_once
from bpe_engine.common.system import shown_path
from bpe_engine.common.values import describe
from bpe_engine.html_report.page import Page, markdown, rendered, require_jinja2
from bpe_engine.html_report.page import framed as framed_page

from ..arguments import checked_path
from ..brief import Brief
from ..check.check_result import CheckResult
from ..check.folder.folder_result import FolderResult
from ..compare.comparison import Comparison
from ..corpus.effect import CorpusEffect
from ..embedding.plan import EmbeddingPlan
from ..extend.extension import Extension
from ..extend.learn_result import LearnResult, to_plain
from ..extend.propose import Proposal
from ..mapping import VocabularyMap
from ..text import show
from ..train.train_result import TrainResult
from . import pages
from .comparison_page import comparison_page

#: File name endings of reports.
ENDINGS = (".html", ".htm", ".json", ".md")

#: A result that has a report.
Result = Brief | EmbeddingPlan

#: Functions that make the report on each kind of result.
_PAGES: dict[type[Any], Callable[..., Page]] = {
    LearnResult: pages.learn_page,
    Extension: lambda found: pages.learn_page(found.learned, found.effect),
    Proposal: pages.proposal_page,
    CheckResult: pages.check_page,
    FolderResult: pages.folder_page,
    Comparison: comparison_page,
    TrainResult: pages.train_page,
    VocabularyMap: pages.map_page,
    EmbeddingPlan: pages.plan_page,
}


def write_report(
    path: str | os.PathLike[str], result: Result, effect: CorpusEffect | None = None
) -> None:
    """Writes the report on a result.

    Args:
        path: the file, whose ending selects the format: .html, .json or .md.
        result: a result of :func:`vocab_tools.learn_merges`, :func:`vocab_tools.propose_words`,
            :func:`vocab_tools.extend_vocabulary`, :func:`vocab_tools.check_vocabulary`,
            :func:`vocab_tools.check_folder`, :func:`vocab_tools.compare_tokenizers`,
            :func:`vocab_tools.train_vocabulary`, :func:`vocab_tools.embedding_plan` or
            :func:`vocab_tools.map_vocabularies`.
        effect: a result of :func:`vocab_tools.corpus_effect`; a check already contains its effect.

    Raises:
        ValueError: the ending is unknown.
        TypeError: the object has no report.
        ImportError: HTML needs the package jinja2.
        OSError: the file cannot be written.
    """
    check_ending(path)
    write_at_once(path, render(path, result, effect).encode())


def check_ending(path: str | os.PathLike[str]) -> None:
    """Raises ValueError for an unknown ending, and ImportError if the format needs a package that
    is not installed."""
    ending = Path(checked_path(path, "the path of a report")).suffix.lower()
    if ending not in ENDINGS:
        raise ValueError(f"{path}: a report ends in .html, .json or .md, not {ending!r}")
    if ending in (".html", ".htm"):
        require_jinja2()


def page_of(result: Result, effect: CorpusEffect | None = None) -> Page:
    """Returns the report on a result. Raises TypeError for an object without a report."""
    for kind, make in _PAGES.items():
        if isinstance(result, kind):
            return make(result, effect) if kind is LearnResult else make(result)
    kinds = ", ".join(kind.__name__ for kind in _PAGES)
    raise TypeError(f"{describe(result)} has no report; results with a report are {kinds}")


def render(path: str | os.PathLike[str], result: Result, effect: CorpusEffect | None = None) -> str:
    """Returns the contents of a report in the format that the ending of ``path`` selects."""
    check_ending(path)
    page = page_of(result, effect)
    ending = Path(path).suffix.lower()
    if ending == ".json":
        return as_json(result, effect)
    return shown_path(markdown(page)) if ending == ".md" else rendered(page)


def as_json(result: Result, effect: CorpusEffect | None = None) -> str:
    """Returns the whole result as JSON."""
    if isinstance(result, EmbeddingPlan):
        return result.dump().decode()
    # The JSON of a map is compact, because its lists have a hundred thousand items.
    indent = None if isinstance(result, VocabularyMap) else 1
    return shown_path(json.dumps(_plain(result, effect), ensure_ascii=False, indent=indent)) + "\n"


def _plain(result: Result, effect: CorpusEffect | None) -> dict[str, Any]:
    if isinstance(result, Extension):
        return _plain(result.learned, result.effect)
    if isinstance(result, LearnResult):
        return {**to_plain(result), "corpus": None if effect is None else effect.to_plain()}
    found: Any = result
    plain: dict[str, Any] = found.to_plain()
    if isinstance(result, TrainResult):
        plain["bytes_per_token"] = result.bytes_per_token
        plain["steps"] = [
            {
                "id": result.ranks[merge.token],
                "left": show(merge.left),
                "right": show(merge.right),
                "frequency": merge.frequency,
                "corpus": merge.corpus,
            }
            for merge in result.merges
        ]
    return plain


def framed(result: object) -> str | None:
    """Returns the report on a result as a frame for a notebook; None if the result has no report or
    jinja2 is not installed."""
    with contextlib.suppress(ImportError):
        if isinstance(result, tuple(_PAGES)):
            page: Any = result
            return framed_page(render("report.html", page))
    return None
