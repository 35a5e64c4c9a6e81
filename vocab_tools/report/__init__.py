"""Writes reports on learning, training, embeddings, checks and comparisons, as HTML, Markdown or JSON."""

from __future__ import annotations

import contextlib
import os
from html import escape
from pathlib import Path

from bpe_engine.html_report.page import require_jinja2

from ..check import CheckResult
from ..check.folder import FolderResult
from ..compare.comparison import Comparison
from ..corpus.effect import CorpusEffect
from ..embedding import EmbeddingPlan
from ..extend.learn_result import LearnResult
from ..train import TrainResult
from . import comparison_report, html, plain

__all__ = ["ENDINGS", "check_ending", "framed", "render", "write_report"]

#: The endings of a report's name.
ENDINGS = (".html", ".htm", ".json", ".md")

Result = LearnResult | CheckResult | FolderResult | Comparison | TrainResult | EmbeddingPlan


def write_report(
    path: str | os.PathLike[str], result: Result, effect: CorpusEffect | None = None
) -> None:
    """Writes a report of what was learned, found or measured.

    Args:
        path: the file; its ending names the format: .html, .json or .md.
        result: from :func:`vocab_tools.learn_merges`, :func:`vocab_tools.check_vocabulary`,
            :func:`vocab_tools.check_folder`, :func:`vocab_tools.compare_tokenizers`,
            :func:`vocab_tools.train_vocabulary` or :func:`vocab_tools.embedding_plan`.
        effect: from :func:`vocab_tools.corpus_effect`; a check has its own.

    Raises:
        ValueError: another ending.
        ImportError: HTML needs the package jinja2.
        OSError: the file cannot be written.
    """
    check_ending(path)
    Path(path).write_text(render(path, result, effect), encoding="utf-8")


def check_ending(path: str | os.PathLike[str]) -> None:
    """Raises ValueError unless the ending names a format, and ImportError when it needs a package
    that is not installed."""
    ending = Path(path).suffix.lower()
    if ending not in ENDINGS:
        raise ValueError(f"{path}: a report ends in .html, .json or .md, not {ending!r}")
    if ending in (".html", ".htm"):
        require_jinja2()


def render(path: str | os.PathLike[str], result: Result, effect: CorpusEffect | None = None) -> str:
    """Returns the contents of a report in the format that the ending of ``path`` names."""
    check_ending(path)
    ending = Path(path).suffix.lower()
    if isinstance(result, TrainResult):
        if ending == ".json":
            return plain.train_json(result)
        return plain.train_markdown(result) if ending == ".md" else html.train_page(result)
    if isinstance(result, EmbeddingPlan):
        if ending == ".json":
            return result.dump().decode()
        return plain.plan_markdown(result) if ending == ".md" else html.plan_page(result)
    if isinstance(result, Comparison):
        if ending == ".json":
            return comparison_report.comparison_json(result)
        page = ending != ".md"
        return (
            comparison_report.comparison_page(result) if page else plain.comparison_markdown(result)
        )
    if isinstance(result, FolderResult):
        if ending == ".json":
            return plain.check_json(result)
        return plain.folder_markdown(result) if ending == ".md" else html.folder_page(result)
    if isinstance(result, CheckResult):
        if ending == ".json":
            return plain.check_json(result)
        return plain.check_markdown(result) if ending == ".md" else html.check_page(result)
    if ending == ".json":
        return plain.learn_json(result, effect)
    if ending == ".md":
        return plain.learn_markdown(result, effect)
    return html.learn_page(result, effect)


def framed(result: object) -> str | None:
    """Returns the report on a result for a notebook, in a frame; None if it has none, or without
    jinja2."""
    if isinstance(result, Result):
        with contextlib.suppress(ImportError):
            page = escape(render("report.html", result))
            return (
                f'<iframe srcdoc="{page}" style="width:100%;height:32rem;border:1px solid #8888;'
                'border-radius:.5rem" title="report"></iframe>'
            )
    return None
