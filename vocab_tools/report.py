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
    """A heading, a sentence, and the first rows of a table."""

    title: str
    text: str
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]
    #: How many rows there are in all.
    total: int


def sections(
    result: LearnResult, effect: CorpusEffect | None = None, most_rows: int = MOST_ROWS
) -> list[Section]:
    """What there is to tell about a result, with tables of up to ``most_rows`` rows."""
    parts = [
        _summary(result),
        _words(result, most_rows),
        _by_products(result, most_rows),
        _conflicts(result, most_rows),
    ]
    if effect is not None:
        parts.append(_corpus(effect, most_rows))
    if result.notes:
        rows: list[tuple[str, ...]] = [(note,) for note in result.notes[:most_rows]]
        text = "Warnings and hints."
        parts.append(Section("Remarks", text, ("remark",), rows, len(result.notes)))
    return parts


def _summary(result: LearnResult) -> Section:
    ids = list(result.tokens.values())
    span = f", ids {ids[0]} to {ids[-1]}" if ids else ""
    learned = sum(path.id is not None for path in result.words)
    rows: list[tuple[str, ...]] = [
        ("ranks of the base", str(len(result.base))),
        ("special tokens", str(len(result.special_tokens))),
        ("words that became one token", f"{learned} of {len(result.words)}"),
        ("words that were tokens already", str(len(result.skipped))),
        ("words that the pre-tokeniser would split", str(len(result.refused))),
    ]
    text = f"{len(ids)} new tokens{span}."
    return Section("Summary", text, ("what", "how many"), rows, len(rows))


def _words(result: LearnResult, most_rows: int) -> Section:
    rows: list[tuple[str, ...]] = [
        (
            path.word,
            str(path.frequency),
            "" if path.id is None else str(path.id),
            result.path_text(path),
        )
        for path in result.words[:most_rows]
    ]
    columns = ("word", "frequency", "id", "path")
    return Section(
        "Words", "Each word, from the pieces of the base.", columns, rows, len(result.words)
    )


def _by_products(result: LearnResult, most_rows: int) -> Section:
    by_products = result.by_products()
    rows: list[tuple[str, ...]] = [
        (show(made.token), str(made.id), made.why, ", ".join(show(token) for token in made.makes))
        for made in by_products[:most_rows]
    ]
    text = "Tokens that are none of the words. Other text that holds them changes, too."
    columns = ("token", "id", "why", "makes")
    return Section("By-products", text, columns, rows, len(by_products))


def _conflicts(result: LearnResult, most_rows: int) -> Section:
    rows: list[tuple[str, ...]] = [
        (word, f"would be pre-tokenized to {cut}") for word, cut in result.refused.items()
    ]
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
    text = "Words and merges that gave no new token."
    return Section("Conflicts", text, ("what", "why"), rows[:most_rows], len(rows))


def _corpus(effect: CorpusEffect, most_rows: int) -> Section:
    saved = effect.tokens_before - effect.tokens_after
    share = saved / effect.tokens_before if effect.tokens_before else 0
    rows: list[tuple[str, ...]] = [
        (change.text, str(change.count), str(change.before), str(change.after))
        for change in effect.unexpected[:most_rows]
    ]
    text = (
        f"{effect.tokens_before} tokens before, {effect.tokens_after} after "
        f"({share:.2%} fewer). {effect.changed} of {effect.pieces} pieces changed; the table has "
        f"those that hold none of the new words."
    )
    columns = ("piece", "times", "before", "after")
    return Section("Corpus", text, columns, rows, len(effect.unexpected))


def as_json(result: LearnResult, effect: CorpusEffect | None = None) -> str:
    """Everything, as JSON."""
    plain = to_plain(result)
    plain["corpus"] = None if effect is None else asdict(effect)
    return json.dumps(plain, ensure_ascii=False, indent=2) + "\n"


#: What Markdown would take as markup in the cell of a table; HTML is escaped before.
_MARKDOWN = str.maketrans({**{mark: f"\\{mark}" for mark in "\\`*_|[]~"}, "\n": "⏎", "\r": "␍"})


def as_markdown(result: LearnResult, effect: CorpusEffect | None = None) -> str:
    """The sections, as Markdown."""

    def cell(text: str) -> str:
        return escape(text, quote=False).translate(_MARKDOWN)

    lines = ["# New tokens", ""]
    for part in sections(result, effect):
        lines += [f"## {part.title}", "", part.text, ""]
        if part.rows:
            lines.append("| " + " | ".join(part.columns) + " |")
            lines.append("|" + " --- |" * len(part.columns))
            lines += ["| " + " | ".join(map(cell, row)) + " |" for row in part.rows]
            lines += ["", *_rest(part)]
    return "\n".join(lines).rstrip() + "\n"


def _rest(part: Section) -> list[str]:
    hidden = part.total - len(part.rows)
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
            for row in part.rows:
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
