"""The sections of a report on learning, for the terminal and for Markdown."""

from __future__ import annotations

from dataclasses import dataclass

from ..check import CheckResult, Finding
from ..check.folder import FolderResult
from ..corpus.effect import CorpusEffect
from ..extend.learn_result import LearnResult, bare, bare_pieces
from ..text import few, id_range, plural, quoted, quoted_list, show

#: Rows of a table in Markdown; HTML and JSON have all of them.
MOST_ROWS = 1000


@dataclass(frozen=True)
class Section:
    """A heading, a sentence, and the first rows of a table."""

    title: str
    text: str
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]
    #: The number of all rows.
    total: int


def sections(
    result: LearnResult, effect: CorpusEffect | None = None, most_rows: int = MOST_ROWS
) -> list[Section]:
    """Returns the sections on a result, with tables of up to ``most_rows`` rows."""
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
    learned = sum(path.id is not None for path in result.words)
    rows: list[tuple[str, ...]] = [
        ("ranks of the base", f"{len(result.base):,}"),
        ("special tokens", f"{len(result.special_tokens):,}"),
        ("words that became one token", f"{learned:,} of {result.listed:,}"),
        ("words that were tokens already", f"{len(result.skipped):,}"),
        ("words that the pre-tokenizer would split", f"{len(result.refused):,}"),
    ]
    text = f"{plural(len(ids), 'new token')}, {id_range(ids)}."
    return Section("Summary", text, ("what", "how many"), rows, len(rows))


def _words(result: LearnResult, most_rows: int) -> Section:
    rows: list[tuple[str, ...]] = [
        (
            bare(path.word.encode()),
            f"{path.frequency:,}",
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
    by_products = sorted(result.by_products(), key=lambda made: -made.use)
    rows: list[tuple[str, ...]] = [
        (
            bare(made.token),
            str(made.id),
            f"{made.use:,}",
            " + ".join(bare_pieces([made.left, made.right])),
            few([bare(word.encode()) for word in made.words]),
        )
        for made in by_products[:most_rows]
    ]
    text = "Tokens that are not words. Other text that contains them changes, too."
    columns = ("token", "id", "use", "made of", "on the way to")
    return Section("By-products", text, columns, rows, len(by_products))


def _conflicts(result: LearnResult, most_rows: int) -> Section:
    why = {path.word: path.reason or "" for path in result.not_one_token}
    why |= {
        path.word: "is one token as a piece of its own only; merging takes another way"
        for path in result.words
        if path.id is not None and not path.reached
    }
    why |= {
        word: f"would be pre-tokenized to {quoted_list(cut)}"
        for word, cut in result.refused.items()
    }
    rows: list[tuple[str, ...]] = [(bare(word.encode()), reason) for word, reason in why.items()]
    rows += [
        (show(step.token), f"was {step.novelty} when {show(step.left)} + {show(step.right)} merged")
        for step in result.steps
        if step.novelty == "in base"
    ]
    rows += [
        (bare(word.encode()), f"is already a token, {number}")
        for word, number in result.skipped.items()
    ]
    text = "Words and merges without a new token."
    return Section("Conflicts", text, ("what", "why"), rows[:most_rows], len(rows))


def _corpus(effect: CorpusEffect, most_rows: int) -> Section:
    saved = effect.tokens_before - effect.tokens_after
    share = saved / effect.tokens_before if effect.tokens_before else 0
    rows: list[tuple[str, ...]] = [
        (quoted(change.text), f"{change.count:,}", str(change.before), str(change.after))
        for change in effect.unexpected[:most_rows]
    ]
    text = (
        f"{effect.tokens_before:,} tokens before, {effect.tokens_after:,} after "
        f"({share:.2%} fewer). {effect.changed:,} of {plural(effect.pieces, 'piece')} changed"
        + ("; the table has those that hold none of the new words." if rows else ".")
    )
    columns = ("piece", "times", "before", "after")
    return Section("Corpus", text, columns, rows, len(effect.unexpected))


def check_sections(result: CheckResult, most_rows: int = MOST_ROWS) -> list[Section]:
    """Returns the findings of a check, as sections: a summary, and one section for each finding."""
    rows: list[tuple[str, ...]] = [
        (name.replace("_", " "), f"{size:,}") for name, size in result.sizes.items()
    ]
    rows += [(name, f"{count:,}") for name, count in result.round_trip_counts.items()]
    known = f", recognized as {result.recognized}" if result.recognized else ""
    verdict = "no errors" if result.ok else "there are errors"
    text = f"Pattern {result.pattern}{known}: {verdict}."
    parts = [Section("Summary", text, ("what", "how many"), rows, len(rows))]
    return parts + [_finding(finding, most_rows) for finding in result.findings]


def folder_sections(result: FolderResult, most_rows: int = MOST_ROWS) -> list[Section]:
    """Returns the findings about a model's folder, as sections: the tokenizers, and one section
    for each finding."""
    rows: list[tuple[str, ...]] = [
        (
            source.name,
            source.kind,
            f"{source.size:,}",
            f"{source.added_tokens:,}",
            f"{source.compared:,}",
            f"{source.differing:,}",
            f"{source.left_out:,}",
        )
        for source in result.sources
    ]
    counts = ("texts compared", "texts differing", "left out")
    columns = ("tokenizer", "kind", "ids", "added tokens", *counts)
    text = f"{result.path}: {'no errors' if result.ok else 'there are errors'}."
    parts = [Section("Tokenizers", text, columns, rows, len(rows))]
    return parts + [_finding(finding, most_rows) for finding in result.findings]


def _finding(finding: Finding, most_rows: int) -> Section:
    examples: list[tuple[str, ...]] = [(example,) for example in finding.examples[:most_rows]]
    title = f"{finding.severity}: {finding.code} ({finding.counted})"
    # The count may be of texts, or of more than a finding keeps: no report has further examples.
    return Section(title, finding.message, ("example",), examples, len(finding.examples))
