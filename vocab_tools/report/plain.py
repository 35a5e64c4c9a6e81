"""Renders reports as JSON and Markdown."""

from __future__ import annotations

import json
from html import escape

from ..check import CheckResult
from ..check.folder import FolderResult
from ..compare.comparison import Comparison
from ..corpus.effect import CorpusEffect
from ..embedding import EmbeddingPlan
from ..extend.learn_result import LearnResult, to_plain
from ..extend.propose import Proposal
from ..text import plural, show
from ..train import TrainResult
from .comparison_report import comparison_sections, title_of
from .sections import MOST_ROWS, Section, check_sections, folder_sections, sections
from .titles import (
    check_title,
    folder_title,
    learn_title,
    plan_title,
    proposal_title,
    train_title,
)


def learn_json(result: LearnResult, effect: CorpusEffect | None = None) -> str:
    """Returns everything that was learned, as JSON."""
    plain = to_plain(result)
    plain["corpus"] = None if effect is None else effect.to_plain()
    return json.dumps(plain, ensure_ascii=False, indent=2) + "\n"


def check_json(result: CheckResult | FolderResult) -> str:
    """Returns everything that was found, as JSON."""
    return json.dumps(result.to_plain(), ensure_ascii=False, indent=1) + "\n"


def learn_markdown(result: LearnResult, effect: CorpusEffect | None = None) -> str:
    """Returns the result of learning as Markdown."""
    return _markdown(learn_title(result, effect), sections(result, effect))


def check_markdown(result: CheckResult) -> str:
    """Returns the result of a check as Markdown."""
    return _markdown(check_title(result), check_sections(result))


def folder_markdown(result: FolderResult) -> str:
    """Returns the result of a check of a model's folder as Markdown."""
    return _markdown(folder_title(result), folder_sections(result))


def comparison_markdown(result: Comparison) -> str:
    """Returns a comparison as Markdown."""
    return _markdown(title_of(result), comparison_sections(result, MOST_ROWS))


def train_json(result: TrainResult) -> str:
    """Returns what was trained, as JSON."""
    steps = [
        {
            "id": result.ranks[merge.token],
            "left": show(merge.left),
            "right": show(merge.right),
            "frequency": merge.frequency,
            "corpus": merge.corpus,
        }
        for merge in result.merges
    ]
    plain = {**result.to_plain(), "bytes_per_token": result.bytes_per_token, "steps": steps}
    return json.dumps(plain, ensure_ascii=False, indent=1) + "\n"


def proposal_json(proposal: Proposal) -> str:
    """Returns everything that is proposed, as JSON."""
    return json.dumps(proposal.to_plain(), ensure_ascii=False, indent=1) + "\n"


def proposal_markdown(proposal: Proposal) -> str:
    """Returns a proposal as Markdown."""
    rows: list[tuple[str, ...]] = [
        (
            word.word,
            *(f"{n:,}" for n in (word.frequency, word.tokens_now, word.new_ids, word.saved)),
        )
        for word in proposal.by_gain()[:MOST_ROWS]
    ]
    text = (
        f"{plural(len(proposal.words), 'word')} with {plural(proposal.new_ids, 'new id')} save "
        f"{proposal.saved:,} of {proposal.tokens_before:,} tokens."
    )
    columns = ("word", "frequency", "tokens now", "new ids", "saved")
    part = Section("Words", text, columns, rows, len(proposal.words))
    return _markdown(proposal_title(proposal), [part])


def train_markdown(result: TrainResult) -> str:
    """Returns the result of training as Markdown."""
    rows: list[tuple[str, ...]] = [
        (str(result.ranks[merge.token]), show(merge.token), f"{merge.frequency:,}")
        for merge in result.merges[:MOST_ROWS]
    ]
    text = (
        f"{plural(result.size, 'token')}; {result.bytes_per_token:.2f} bytes per token of the "
        "training text. The merges, in the order of learning:"
    )
    columns = ("id", "token", "count of the pair")
    part = Section("Merges", text, columns, rows, len(result.merges))
    return _markdown(train_title(result), [part])


def plan_markdown(plan: EmbeddingPlan) -> str:
    """Returns the plan of an embedding table as Markdown."""
    sizes: list[tuple[str, ...]] = [
        (name.replace("_", " "), f"{size:,}") for name, size in plan.sizes.items()
    ]
    made: list[tuple[str, ...]] = [(str(number), str(ids)) for number, ids in plan.items()]
    parts = [
        Section("Sizes", "", ("size", "number"), sizes, len(sizes)),
        Section("Parts", "", ("id", "ids of the base"), made[:MOST_ROWS], len(made)),
    ]
    return _markdown(plan_title(plan), parts)


#: Characters that are markup in the cell of a Markdown table; HTML is escaped before.
_MARKUP = str.maketrans({**{mark: f"\\{mark}" for mark in "\\`*_|[]~"}, "\n": "⏎", "\r": "␍"})


def _markdown(title: str, parts: list[Section]) -> str:
    def cell(text: str) -> str:
        return escape(text, quote=False).translate(_MARKUP)

    lines = [f"# {title}", ""]
    for part in parts:
        lines += [f"## {part.title}", "", part.text, ""]
        if part.rows:
            lines.append("| " + " | ".join(part.columns) + " |")
            lines.append("|" + " --- |" * len(part.columns))
            lines += ["| " + " | ".join(map(cell, row)) + " |" for row in part.rows]
            hidden = part.total - len(part.rows)
            rest = [f"And {hidden} more; the JSON report has all of them.", ""]
            lines += ["", *(rest if hidden > 0 else [])]
    return "\n".join(lines).rstrip() + "\n"
