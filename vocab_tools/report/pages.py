"""The reports on learning, proposals, training, embeddings, checks and maps.

A report is a :class:`bpe_engine.html_report.page.Page`, written as HTML or Markdown, or printed.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from bpe_engine.html_report.page import Cell, Page, Part, Remark, TableView, Tile, columns, percent

from ..bases import Recognized
from ..check.check_result import CheckResult
from ..check.explanations import explain
from ..check.findings import Finding
from ..check.folder.folder_result import FolderResult
from ..corpus.effect import CorpusEffect
from ..embedding.plan import EmbeddingPlan
from ..extend.learn_result import LearnResult, WordPath
from ..extend.propose import Proposal
from ..mapping import VocabularyMap
from ..notes import NoteGroup, grouped
from ..text import id_range, in_order, plural, shorten, token_text
from ..train.train_result import TrainResult

#: Maximum number of examples for a kind of note.
MOST_NOTES = 50

#: Maximum length of a token or word in characters; maximum number of pieces in a cut word.
LONGEST_TOKEN, MOST_PIECES = 48, 12

#: Maximum number of a word's stages to show; how many of these come from the start.
MOST_STAGES, FIRST_STAGES = 6, 1

#: Maximum number of tokens listed in a map's report, longest decompositions first.
MOST_MAPPED = 1000


def _base(recognized: Recognized | None, size: int) -> str:
    if recognized is not None:
        return str(recognized)
    return f"a vocabulary of {size:,} ranks" if size else "a vocabulary"


def _files(names: Iterable[str]) -> str:
    """Returns the name of the first file and the number of other files, for a title."""
    first, *others = [os.path.basename(os.fspath(name)) for name in names] or [""]
    return f", from {first}{f' and {len(others)} more' if others else ''}" if first else ""


def _chip(token: bytes | str) -> str:
    token = token.encode() if isinstance(token, str) else token
    return shorten(token_text(token), LONGEST_TOKEN)


def _chips(tokens: Sequence[bytes]) -> list[str]:
    """Returns the first tokens of a word as texts with whole characters."""
    shown = [shorten(text, LONGEST_TOKEN) for text in in_order(tokens)[:MOST_PIECES]]
    return shown if len(tokens) <= MOST_PIECES else [*shown[:-1], "…"]


def _named_tokens(ids: Iterable[int], token: Callable[[int], bytes | None]) -> list[list[Cell]]:
    """Returns the texts of consecutive tokens with their ids."""
    numbers = list(ids)
    tokens = [token(number) or b"" for number in numbers]
    texts = in_order(tokens) if all(tokens) else map(token_text, tokens)
    return [[text or str(number), number] for text, number in zip(texts, numbers)]


def _tables(*tables: TableView) -> list[TableView]:
    """Returns the tables that have rows."""
    return [table for table in tables if table.rows]


# ---- Learning ----


def learn_page(result: LearnResult, effect: CorpusEffect | None = None) -> Page:
    """Returns the report on learning."""
    base = _base(result.recognized, len(result.base))
    known = f"{result.recognized}, " if result.recognized else ""
    subtitle = (
        f"Base: {known}{plural(len(result.base), 'rank')} and "
        f"{plural(len(result.special_tokens), 'special token')}. Pattern: {result.pattern.label}."
    )
    parts = [_learn_summary(result, effect), _words(result)]
    parts += [] if effect is None else [_corpus(effect, result.extended)]
    parts += [*_conflicts(result), *_by_products(result)]
    files = [] if effect is None else [part.name for part in effect.files]
    title = f"{plural(len(result.tokens), 'new token')} for {base}{_files(files)}"
    return Page(title, subtitle, parts, _learned(result, effect))


def _learned(result: LearnResult, effect: CorpusEffect | None) -> list[str]:
    one = sum(path.id is not None for path in result.words)
    found = [
        f"{one:,} of {plural(result.listed, 'word')} became one token, with "
        f"{plural(len(result.tokens), 'new id')}."
    ]
    if effect is not None and effect.tokens_before:
        saved = effect.tokens_before - effect.tokens_after
        found.append(
            f"The corpus has {percent(saved / effect.tokens_before)} fewer tokens: "
            f"{saved / max(len(result.tokens), 1):,.1f} for each new id."
        )
        others = sum(change.count for change in effect.unexpected)
        found.append(
            f"{percent(others / max(effect.pieces, 1))} of its pieces change without a new word in them."
            if others
            else "No piece changes without a new word in it."
        )
    return found


def _learn_summary(result: LearnResult, effect: CorpusEffect | None) -> Part:
    ids = list(result.tokens.values())
    one = sum(path.id is not None for path in result.words)
    mood = "bad" if result.listed > one else "good"
    tiles = [
        Tile(f"{len(ids):,}", f"new token{'' if len(ids) == 1 else 's'}, {id_range(ids)}"),
        Tile(f"{one:,}", f"of {plural(result.listed, 'word')} became one token", mood),
    ]
    if effect is not None:
        before, after = effect.tokens_before, effect.tokens_after
        saved = (before - after) / max(before, 1)
        label = f"fewer tokens of the corpus: {before:,} → {after:,}"
        tiles.append(Tile(percent(saved), label, "good" if saved > 0 else ""))
        others = sum(change.count for change in effect.unexpected)
        label = f"of {effect.pieces:,} pieces changed without a new word in them"
        tiles.append(Tile(f"{others:,}", label, "bad" if others else "good"))
    if result.skipped:
        tiles.append(Tile(f"{len(result.skipped):,}", "already tokens of the base"))
    if result.refused:
        tiles.append(Tile(f"{len(result.refused):,}", "left out: several pieces", "bad"))
    return Part("summary", "Summary", tiles=tiles)


def _words(result: LearnResult) -> Part:
    def row(path: WordPath) -> list[Cell]:
        stages = [_chips(stage) for stage in result.stages(path)]
        if len(stages) > MOST_STAGES:
            stages[FIRST_STAGES : 1 - MOST_STAGES + FIRST_STAGES] = [["…"]]
        after = 1 if path.id is not None else len(path.pieces)
        counts = [path.frequency, len(path.base_pieces), after]
        return [_chip(path.word), *counts, path.id, stages]

    paths = sorted(result.words, key=lambda path: -path.frequency)
    heads = {"word": "token", "frequency": "number", "tokens before": "number", "after": "number"}
    heads |= {"id": "id", "merges, from the pieces of the base": "path"}
    table = TableView("words-table", columns(heads), [row(path) for path in paths])
    text = f"{plural(len(paths), 'word')}, the most frequent first."
    return Part("words", "Words", text, tables=_tables(table))


def _conflicts(result: LearnResult) -> list[Part]:
    rows: list[list[Cell]] = [
        [_chip(path.word), path.reason or "does not become one token", []]
        for path in result.not_one_token
    ]
    rows += [
        [_chip(path.word), "is one token as a whole piece only", []]
        for path in result.words
        if path.id is not None and not path.reached
    ]
    rows += [
        [_chip(word), "is cut into", _chips([piece.encode() for piece in cut])]
        for word, cut in result.refused.items()
    ]
    rows += [
        [_chip(step.token), f"was {step.novelty}, and is made of", _chips([step.left, step.right])]
        for step in result.steps
        if step.novelty == "in base"
    ]
    rows += [
        [_chip(word), f"is a token already, with id {number}", []]
        for word, number in result.skipped.items()
    ]
    heads = columns({"word or token": "token", "what": "text", "pieces": "tokens"})
    remarks = [_remark(group) for group in grouped(result.notes, MOST_NOTES)]
    tables = _tables(TableView("conflicts-table", heads, rows))
    if not remarks and not tables:
        return []
    text = "Words and merges without a new token, and remarks about the others."
    return [Part("conflicts", "Conflicts and remarks", text, remarks=remarks, tables=tables)]


#: Kinds of notes whose words are rows in the table of conflicts.
_IN_TABLE = frozenset(
    ["not one token", "own piece only", "repeated merge", "split", "already a token"]
)


def _remark(group: NoteGroup) -> Remark:
    severity = "error" if group.kind == "not one token" else "warning"
    heads = [note.head for note in group.shown if note.words]
    if heads:
        return Remark("; ".join(heads), severity)
    if group.total == 1:
        return Remark(str(group.shown[0]), severity)
    if group.kind in _IN_TABLE:
        return Remark(group.title, severity)
    return Remark(group.title, severity, list(map(str, group.shown)), group.hidden)


def _by_products(result: LearnResult) -> list[Part]:
    rows: list[list[Cell]] = [
        [
            _chip(made.token),
            *(made.id, made.use, len(made.words)),
            _chips([made.left, made.right]),
            [_chip(word) for word in made.words[:8]],
        ]
        for made in sorted(result.by_products(), key=lambda made: -made.use)
    ]
    heads = {"token": "token", "id": "id", "use": "number", "words": "number"}
    heads |= {"made of": "tokens", "on the way to": "tokens"}
    text = (
        "Tokens that are not words, but steps on the way to them. Other text that holds "
        "them changes, too. Use is the frequency of their words together."
    )
    tables = _tables(TableView("by-products-table", columns(heads), rows))
    return [Part("by-products", "By-products", text, tables=tables)] if rows else []


def _corpus(effect: CorpusEffect, ranks: Mapping[bytes, int]) -> Part:
    """Returns the token counts by file and by script, and the pieces that change unexpectedly."""
    tokens = {number: token for token, number in ranks.items()}
    tables = []
    counts = dict.fromkeys(("tokens before", "after", "saved", "share"), "number")
    for name, parts in [("file", effect.files), ("script", effect.scripts)]:
        rows: list[list[Cell]] = [
            [part.name, part.before, part.after, part.before - part.after, percent(part.saved)]
            for part in parts
        ]
        tables.append(TableView(f"corpus-{name}", columns({name: "text", **counts}), rows))
    heads = {"changed, with no new word in it": "token", "times": "number"}
    heads |= {"tokens before": "tokens", "after": "tokens"}
    changed: list[list[Cell]] = [
        [
            *(_chip(change.text), change.count),
            *(_named_tokens(ids, tokens.get) for ids in (change.before, change.after)),
        ]
        for change in effect.unexpected
    ]
    tables += _tables(TableView("corpus-changed", columns(heads), changed))
    text = f"{effect.changed:,} of {plural(effect.pieces, 'piece')} changed."
    return Part("corpus", "Corpus", text, tables=tables)


# ---- Checks ----


def check_page(result: CheckResult) -> Page:
    """Returns the report on a check."""
    known = f"Base: {result.recognized}. " if result.recognized else ""
    tiles = _verdict(result.findings, "in the vocabulary")
    tiles += [Tile(f"{size:,}", name.replace("_", " ")) for name, size in result.sizes.items()]
    classes: list[list[Cell]] = [[name, count] for name, count in result.round_trip_counts.items()]
    heads = columns({"round-trip class": "text", "ids": "number"})
    parts = [Part("summary", "Summary", tiles=tiles), *_findings(result.findings)]
    if result.corpus is not None:
        ids = {token: number for number, token in result.tokens.items()}
        parts.append(_corpus(result.corpus, ids))
    text = "The number of ids by the encoding of the token's text."
    tables = [TableView("classes-table", heads, classes)]
    parts.append(Part("classes", "Round trip", text, tables=tables))
    subtitle = f"{known}Pattern: {shorten(result.pattern, 120)}."
    new = result.sizes.get("extra_ranks", 0)
    more = f" with {plural(new, 'new token')}" if new else ""
    title = f"Check of {_base(result.recognized, result.sizes.get('ranks', 0))}{more}"
    return Page(title, subtitle, parts, _verdicts(result.findings), is_good=result.ok)


def folder_page(result: FolderResult) -> Page:
    """Returns the report on a check of a model's folder."""
    heads = {"tokenizer": "text", "kind": "text"}
    names = ("ids", "added tokens", "compared", "differing", "left out")
    heads |= dict.fromkeys(names, "number")
    rows: list[list[Cell]] = [
        [one.name, one.kind, one.size, one.added_tokens, one.compared, one.differing, one.left_out]
        for one in result.sources
    ]
    text = "The compared texts, and the texts with other ids."
    tables = [TableView("sources", columns(heads), rows)]
    parts = [
        Part("summary", "Summary", tiles=_verdict(result.findings, "in the folder")),
        # These findings count texts or tokens, but their examples are lines about files.
        *_findings(result.findings, hides=False),
        Part("tokenizers", "Tokenizers", text, tables=tables),
    ]
    title = f"Check of {os.path.basename(os.path.abspath(result.path))}"
    return Page(title, result.path, parts, _verdicts(result.findings), is_good=result.ok)


def _verdicts(findings: Sequence[Finding]) -> list[str]:
    """Returns the verdict as a sentence, followed by the errors."""
    errors = [finding for finding in findings if finding.severity == "error"]
    if not errors:
        warnings = sum(finding.severity == "warning" for finding in findings)
        return [f"No errors, {plural(warnings, 'kind')} of warnings."]
    each = [f"{finding.code}: {finding.message} ({finding.counted})" for finding in errors]
    return [f"{plural(len(errors), 'kind')} of errors.", *each]


def _verdict(findings: Sequence[Finding], where: str) -> list[Tile]:
    counts: Mapping[str, int] = Counter(finding.severity for finding in findings)
    errors, warnings = counts["error"], counts["warning"]
    return [
        Tile(f"{errors:,}", f"kinds of errors {where}", "bad")
        if errors
        else Tile("no errors", where, "good"),
        Tile(f"{warnings:,}", "kinds of warnings", "bad" if warnings else "good"),
    ]


def _findings(findings: Sequence[Finding], *, hides: bool = True) -> list[Part]:
    remarks = []
    for one in findings:
        hidden = one.count - len(one.examples) if hides and len(one.examples) > 1 else 0
        rule = explain(one.code)
        given = (one.message, one.severity, one.examples, max(hidden, 0), one.code, one.counted)
        remarks.append(Remark(*given, rule.why, rule.remedy))
    part = Part("findings", "Findings", "The most severe first.", remarks=remarks)
    return [part] if remarks else []


# ---- Proposals, training, embeddings ----


def proposal_page(proposal: Proposal) -> Page:
    """Returns the report on proposed words."""
    rows: list[list[Cell]] = [
        [
            *(_chip(word.word), word.frequency, word.tokens_now, word.new_ids, word.saved),
            f"{word.saved_per_id:,.1f}",
        ]
        for word in proposal.by_gain()
    ]
    names = ("frequency", "tokens now", "new ids", "saved", "saved per id")
    heads = columns({"word": "token", **dict.fromkeys(names, "number")})
    remarks = [
        Remark(f"left out: {plural(count, 'piece')}, {reason}", "info")
        for reason, count in sorted(proposal.left_out.items())
    ]
    text = (
        "The words that save the most first. Saved counts what a word and its by-products save in "
        "all words that contain them; it adds up to the tokens saved in all."
    )
    tables = _tables(TableView("words-table", heads, rows))
    parts = [
        Part("summary", "Summary", remarks=remarks),
        Part("words", "Words", text, tables=tables),
    ]
    share = percent(proposal.saved / max(proposal.tokens_before, 1))
    conclusion = (
        f"{plural(len(proposal.words), 'word')} with {plural(proposal.new_ids, 'new id')} save "
        f"{proposal.saved:,} of {plural(proposal.tokens_before, 'token')} ({share}): "
        f"{proposal.saved * 1000 / max(proposal.new_ids, 1):,.0f} per 1,000 ids"
    )
    base = _base(proposal.recognized, 0)
    title = f"{plural(len(proposal.words), 'word')} for {base}{_files(proposal.files)}"
    subtitle = f"Pattern: {proposal.pattern.label}." if proposal.pattern else ""
    return Page(title, subtitle, parts, [conclusion])


def train_page(result: TrainResult) -> Page:
    """Returns the report on training."""
    tokens, texts = sum(result.corpus_tokens), sum(result.corpus_bytes)
    special = plural(len(result.special_tokens), "special one")
    tiles = [
        Tile(f"{result.size:,}", f"tokens, {special} included"),
        Tile(f"{len(result.merges):,}", "merges"),
        Tile(f"{result.bytes_per_token:.2f}", "bytes per token of the training text"),
        Tile(f"{texts:,}", f"bytes of text, {tokens:,} tokens"),
    ]
    frequencies = [merge.frequency for merge in result.merges]
    by_corpus = zip(result.corpus_bytes, result.corpus_tokens, result.served())
    corpora: list[list[Cell]] = [
        [number, size, count, f"{size / count:.2f}" if count else "", served]
        for number, (size, count, served) in enumerate(by_corpus, 1)
    ]
    names = ("bytes", "tokens", "bytes per token", "merges")
    heads = columns({"corpus": "id", **dict.fromkeys(names, "number")})
    tables = [TableView("corpora", heads, corpora)] if len(corpora) > 1 else []
    merged: list[list[Cell]] = [
        [result.ranks[one.token], _chip(one.token), _chips([one.left, one.right]), one.frequency]
        for one in result.merges
    ]
    heads = columns(
        {"id": "id", "token": "token", "made of": "tokens", "count of the pair": "number"}
    )
    notes = [Remark(note) for note in result.notes]
    merges = _tables(TableView("merges-table", heads, merged))
    text = "In the order of learning; the last are the rarest."
    parts = [
        Part("summary", "Summary", tiles=tiles, remarks=notes, tables=tables),
        Part("merges", "Merges", text, tables=merges),
    ]
    conclusions = [
        f"{plural(len(result.new_tokens), 'token')} were learned in {plural(len(merged), 'merge')}; a "
        f"token covers {result.bytes_per_token:.2f} bytes of the training text."
    ]
    if frequencies:
        last = sum(frequencies[-max(len(frequencies) // 10, 1) :])
        conclusions.append(
            f"The last tenth of the merges saves {percent(last / max(tokens + last, 1))} of the "
            f"tokens; the last merge joins a pair that occurs {plural(frequencies[-1], 'time')}."
        )
    base = result.base_size > 256 and f", on top of {_base(result.recognized, result.base_size)}"
    title = (
        f"A trained vocabulary of {plural(result.size, 'token')}{base or ''}{_files(result.files)}"
    )
    return Page(title, f"Pattern: {shorten(result.cutting.pattern, 120)}.", parts, conclusions)


def plan_page(plan: EmbeddingPlan) -> Page:
    """Returns the report on an embedding plan."""
    sizes: list[list[Cell]] = [[name.replace("_", " "), size] for name, size in plan.sizes.items()]
    made: list[list[Cell]] = [
        [number, _chip(plan.tokens.get(number, b"")), len(ids), _named_tokens(ids, plan.tokens.get)]
        for number, ids in plan.items()
    ]
    heads = {"id": "id", "token": "token", "parts": "number", "tokens of the base": "tokens"}
    text = "A new row begins as the mean of the rows of its parts, unless another method is chosen."
    parts = [
        Part(
            "summary",
            "Summary",
            tables=[TableView("sizes", columns({"size": "text", "number": "number"}), sizes)],
        ),
        Part(
            "made-of",
            "Parts of the new tokens",
            text,
            tables=_tables(TableView("made-of-table", columns(heads), made)),
        ),
    ]
    rows, base = plan.sizes["rows"], plan.sizes["base_max_id_plus_one"]
    unused = sum(last - first + 1 for first, last in plan.gaps)
    conclusions = [
        f"The table needs {rows:,} rows, {rows - base:,} more than the base has ids.",
        f"{plural(len(plan), 'new token')}"
        + (f", and {plural(unused, 'unused id')} among them." if unused else "."),
    ]
    title = f"{plural(len(plan), 'new row')} of an embedding table of {rows:,}"
    return Page(title, "", parts, conclusions)


# ---- Maps ----


def map_page(result: VocabularyMap) -> Page:
    """Returns the report on a map of two vocabularies."""
    a, b = result.name_a, result.name_b
    both, found = len(result.equal), result.decompositions
    tiles = [
        Tile(percent(both / max(size, 1)), f"of {size:,} tokens of {name} are in both")
        for name, size in ((a, len(result.ids)), (b, result.size_b))
    ]
    longest = sorted(filter(found.get, found), key=lambda id: -len(found[id]))[:MOST_MAPPED]
    rows: list[list[Cell]] = [
        [
            id,
            token_text(result.tokens_a[id]),
            len(found[id]),
            [token_text(result.tokens_b[part]) for part in found[id]],
        ]
        for id in longest
    ]
    heads = {"id": "id", f"token of {a}": "token", "tokens": "number", f"tokens of {b}": "tokens"}
    parts = [Part("summary", "Summary", tiles=tiles)]
    if rows:
        text = f"The {plural(len(rows), 'token')} of {a} that become the most tokens."
        table = TableView("parts-table", columns(heads), rows)
        parts.append(Part("parts", "Tokens of many parts", text, tables=[table]))
    return Page(f"{a} in {b}", "", parts, result.conclusions())
