"""Reports of what was learned: one set of sections, as HTML, Markdown or JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path

from .corpus import CorpusEffect
from .learn import LearnResult, to_plain
from .ranks import show

#: Rows of a table in HTML and Markdown; JSON has all of them.
MOST_ROWS = 1000


@dataclass(frozen=True)
class Section:
    """A heading, a sentence, and a table."""

    title: str
    text: str
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()


def sections(result: LearnResult, effect: CorpusEffect | None = None) -> list[Section]:
    """What there is to tell about a result."""
    parts = [_summary(result), _words(result), _by_products(result), _conflicts(result)]
    if effect is not None:
        parts.append(_corpus(effect))
    if result.notes:
        rows = tuple((note,) for note in result.notes)
        parts.append(Section("Remarks", "Warnings and hints.", ("remark",), rows))
    return parts


def _summary(result: LearnResult) -> Section:
    ids = list(result.tokens.values())
    span = f", ids {ids[0]} to {ids[-1]}" if ids else ""
    learned = sum(path.id is not None for path in result.words)
    rows = (
        ("ranks of the base", str(len(result.base))),
        ("special tokens", str(len(result.special_tokens))),
        ("words that became one token", f"{learned} of {len(result.words)}"),
        ("words that were tokens already", str(len(result.skipped))),
        ("words that the pre-tokeniser would split", str(len(result.refused))),
    )
    return Section("Summary", f"{len(ids)} new tokens{span}.", ("what", "how many"), rows)


def _words(result: LearnResult) -> Section:
    rows = tuple(
        (
            path.word,
            str(path.frequency),
            "" if path.id is None else str(path.id),
            result.path_text(path),
        )
        for path in result.words
    )
    return Section(
        "Words", "Each word, from the pieces of the base.", ("word", "frequency", "id", "path"), rows
    )


def _by_products(result: LearnResult) -> Section:
    rows = tuple(
        (show(made.token), str(made.id), made.why, ", ".join(show(token) for token in made.makes))
        for made in result.by_products()
    )
    return Section(
        "By-products",
        "Tokens that are none of the words. Other text that holds them changes, too.",
        ("token", "id", "why", "makes"),
        rows,
    )


def _conflicts(result: LearnResult) -> Section:
    rows = [(word, f"would be pre-tokenized to {cut}") for word, cut in result.refused.items()]
    rows += [(word, f"is already a token, {number}") for word, number in result.skipped.items()]
    rows += [(path.word, path.reason or "") for path in result.not_one_token]
    rows += [
        (path.word, "is one token as a piece of its own only; merging takes another way")
        for path in result.words
        if path.id is not None and not path.reached
    ]
    rows += [
        (show(step.token), f"was {step.novelty} when {show(step.left)} + {show(step.right)} merged")
        for step in result.steps
        if step.novelty != "new"
    ]
    return Section(
        "Conflicts", "Words and merges that gave no new token.", ("what", "why"), tuple(rows)
    )


def _corpus(effect: CorpusEffect) -> Section:
    saved = effect.tokens_before - effect.tokens_after
    share = saved / effect.tokens_before if effect.tokens_before else 0
    rows = tuple(
        (change.text, str(change.count), str(change.before), str(change.after))
        for change in effect.unexpected
    )
    return Section(
        "Corpus",
        f"{effect.tokens_before} tokens before, {effect.tokens_after} after "
        f"({share:.2%} fewer). {effect.changed} of {effect.pieces} pieces changed; the table has "
        f"those that hold none of the new words.",
        ("piece", "times", "before", "after"),
        rows,
    )


def as_json(result: LearnResult, effect: CorpusEffect | None = None) -> str:
    """Everything, as JSON."""
    plain = to_plain(result)
    plain["corpus"] = None if effect is None else asdict(effect)
    return json.dumps(plain, ensure_ascii=False, indent=2) + "\n"


def as_markdown(result: LearnResult, effect: CorpusEffect | None = None) -> str:
    """The sections, as Markdown."""

    def cell(text: str) -> str:
        text = text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")
        return text.replace("\n", "⏎").replace("\r", "␍")

    lines = ["# New tokens", ""]
    for part in sections(result, effect):
        lines += [f"## {part.title}", "", part.text, ""]
        if part.rows:
            lines.append("| " + " | ".join(part.columns) + " |")
            lines.append("|" + " --- |" * len(part.columns))
            shown = part.rows[:MOST_ROWS]
            lines += ["| " + " | ".join(map(cell, row)) + " |" for row in shown]
            lines += ["", *_rest(part)]
    return "\n".join(lines).rstrip() + "\n"


def _rest(part: Section) -> list[str]:
    hidden = len(part.rows) - MOST_ROWS
    return [f"And {hidden} more; the JSON report has all of them.", ""] if hidden > 0 else []


_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem }
table { border-collapse: collapse; margin: 1rem 0 }
th, td { border-bottom: 1px solid #8884; padding: .25rem .75rem; text-align: left;
         vertical-align: top; overflow-wrap: anywhere; white-space: pre-wrap }
"""


def as_html(result: LearnResult, effect: CorpusEffect | None = None) -> str:
    """The sections, as one HTML page that needs nothing else."""
    parts = [
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>New tokens</title>',
        f"<style>{_STYLE}</style><h1>New tokens</h1>",
    ]
    for part in sections(result, effect):
        parts.append(f"<h2>{escape(part.title)}</h2><p>{escape(part.text)}</p>")
        if part.rows:
            head = "".join(f"<th>{escape(column)}</th>" for column in part.columns)
            parts.append(f"<table><thead><tr>{head}</tr></thead><tbody>")
            for row in part.rows[:MOST_ROWS]:
                cells = "".join(f"<td>{escape(text)}</td>" for text in row)
                parts.append(f"<tr>{cells}</tr>")
            parts.append("</tbody></table>")
            parts += [f"<p>{escape(line)}</p>" for line in _rest(part) if line]
    return "\n".join([*parts, "</html>"]) + "\n"


#: The renderer for each ending of a file name.
RENDERERS: dict[str, Callable[[LearnResult, CorpusEffect | None], str]] = {
    ".html": as_html,
    ".htm": as_html,
    ".json": as_json,
    ".md": as_markdown,
}


def write_report(
    path: str | os.PathLike[str], result: LearnResult, effect: CorpusEffect | None = None
) -> None:
    """Writes a report in the format that the ending of ``path`` names.

    Raises ValueError for another ending than .html, .json or .md.
    """
    Path(path).write_text(renderer(path)(result, effect), encoding="utf-8")


def renderer(
    path: str | os.PathLike[str],
) -> Callable[[LearnResult, CorpusEffect | None], str]:
    """The renderer for a file of this name; ValueError when there is none."""
    ending = Path(path).suffix.lower()
    if ending not in RENDERERS:
        raise ValueError(f"{path}: a report ends in .html, .json or .md, not {ending!r}")
    return RENDERERS[ending]
