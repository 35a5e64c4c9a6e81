"""Writes reports on learning, training, embeddings, checks and comparisons, as HTML, Markdown or JSON."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bpe_engine.html_report import page
from bpe_engine.written import write_at_once

from ..arguments import checked_path, shown
from ..check import CheckResult
from ..check.folder import FolderResult
from ..compare.comparison import Comparison
from ..corpus.effect import CorpusEffect
from ..embedding import EmbeddingPlan
from ..extend.extension import Extension
from ..extend.learn_result import LearnResult
from ..extend.propose import Proposal
from ..mapping import VocabularyMap
from ..train import TrainResult
from . import comparison_report, html, map_report, plain

__all__ = ["ENDINGS", "check_ending", "framed", "render", "write_report"]

#: The endings of a report's name.
ENDINGS = (".html", ".htm", ".json", ".md")

Result = (
    LearnResult
    | Extension
    | Proposal
    | CheckResult
    | FolderResult
    | Comparison
    | TrainResult
    | EmbeddingPlan
    | VocabularyMap
)


def write_report(
    path: str | os.PathLike[str], result: Result, effect: CorpusEffect | None = None
) -> None:
    """Writes a report of what was learned, found or measured.

    Args:
        path: the file; its ending names the format: .html, .json or .md.
        result: from :func:`vocab_tools.learn_merges`, :func:`vocab_tools.propose_words`,
            :func:`vocab_tools.extend_vocabulary`, :func:`vocab_tools.check_vocabulary`,
            :func:`vocab_tools.check_folder`, :func:`vocab_tools.compare_tokenizers`,
            :func:`vocab_tools.train_vocabulary`, :func:`vocab_tools.embedding_plan` or
            :func:`vocab_tools.map_vocabularies`.
        effect: from :func:`vocab_tools.corpus_effect`; a check has its own.

    Raises:
        ValueError: another ending.
        TypeError: the object has no report.
        ImportError: HTML needs the package jinja2.
        OSError: the file cannot be written.
    """
    check_ending(path)
    write_at_once(path, render(path, result, effect).encode())


def check_ending(path: str | os.PathLike[str]) -> None:
    """Raises ValueError unless the ending names a format, and ImportError when it needs a package
    that is not installed."""
    ending = Path(checked_path(path, "the path of a report")).suffix.lower()
    if ending not in ENDINGS:
        raise ValueError(f"{path}: a report ends in .html, .json or .md, not {ending!r}")
    if ending in (".html", ".htm"):
        page.require_jinja2()


def render(path: str | os.PathLike[str], result: Result, effect: CorpusEffect | None = None) -> str:
    """Returns the contents of a report in the format that the ending of ``path`` names."""
    check_ending(path)
    makers = next((made for kind, made in _MAKERS.items() if isinstance(result, kind)), None)
    if makers is None:
        kinds = ", ".join(kind.__name__ for kind in _MAKERS)
        raise TypeError(f"{shown(result)} has no report; those that have one are {kinds}")
    make = makers[_FORMATS[Path(path).suffix.lower()]]
    return make(result, effect) if isinstance(result, LearnResult) else make(result)


#: The place of a format among the functions of a result.
_FORMATS = {".html": 0, ".htm": 0, ".md": 1, ".json": 2}

#: By result: the functions that write HTML, Markdown and JSON.
_MAKERS: dict[type[Any], tuple[Callable[..., str], Callable[..., str], Callable[..., str]]] = {
    LearnResult: (html.learn_page, plain.learn_markdown, plain.learn_json),
    Extension: (
        lambda found: html.learn_page(found.learned, found.effect),
        lambda found: plain.learn_markdown(found.learned, found.effect),
        lambda found: plain.learn_json(found.learned, found.effect),
    ),
    Proposal: (html.proposal_page, plain.proposal_markdown, plain.proposal_json),
    CheckResult: (html.check_page, plain.check_markdown, plain.check_json),
    FolderResult: (html.folder_page, plain.folder_markdown, plain.check_json),
    Comparison: (
        comparison_report.comparison_page,
        plain.comparison_markdown,
        comparison_report.comparison_json,
    ),
    TrainResult: (html.train_page, plain.train_markdown, plain.train_json),
    VocabularyMap: (map_report.map_page, plain.map_markdown, map_report.map_json),
    EmbeddingPlan: (html.plan_page, plain.plan_markdown, lambda plan: plan.dump().decode()),
}


def framed(result: object) -> str | None:
    """Returns the report on a result for a notebook, in a frame; None if it has none, or without
    jinja2."""
    if isinstance(result, Result):
        with contextlib.suppress(ImportError):
            return page.framed(render("report.html", result))
    return None
