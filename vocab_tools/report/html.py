"""The HTML reports on learning, training and embeddings, and on checks."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from bpe_engine.html_report.charts import Chart, bar_chart
from bpe_engine.html_report.page import (
    Cell,
    Column,
    Page,
    Part,
    Remark,
    TableView,
    Tile,
    percent,
    rendered,
)
from bpe_engine.html_report.plots import LinePlot, growth, rank_frequency

from ..check import CheckResult, Finding
from ..check.explanations import explain
from ..check.folder import FolderResult
from ..corpus.effect import CorpusEffect
from ..embedding import EmbeddingPlan
from ..extend.learn_result import LearnResult, WordPath
from ..extend.propose import Proposal
from ..notes import NoteGroup, grouped
from ..text import id_range, in_order, plural, shorten, token_text
from ..train import TrainResult
from .titles import (
    check_title,
    folder_title,
    learn_title,
    plan_title,
    proposal_title,
    train_title,
)

#: Examples of a kind of notes.
MOST_NOTES = 50

#: Characters of a token or word that are shown, and pieces of a word that is cut.
LONGEST_TOKEN, MOST_PIECES = 48, 12

#: Stages on the way of a word that are shown, and how many of them from its beginning.
MOST_STAGES, FIRST_STAGES = 6, 1


def learn_page(result: LearnResult, effect: CorpusEffect | None = None) -> str:
    """Returns the result of learning as a page."""
    known = f"{result.recognized}, " if result.recognized else ""
    subtitle = (
        f"Base: {known}{plural(len(result.base), 'rank')} and "
        f"{plural(len(result.special_tokens), 'special token')}. Pattern: {result.pattern.label}."
    )
    parts: list[Part | None] = [_summary(result, effect), _words(result)]
    if effect is not None:
        parts.append(_corpus(result, effect))
    parts += [_conflicts(result), _by_products(result)]
    shown = [part for part in parts if part is not None]
    return rendered(
        Page(learn_title(result, effect), subtitle, shown, _conclusions(result, effect))
    )


def _conclusions(result: LearnResult, effect: CorpusEffect | None) -> list[str]:
    one = sum(path.id is not None for path in result.words)
    found = [
        f"{one:,} of {plural(result.listed, 'word')} became one token, with "
        f"{plural(len(result.tokens), 'new id')}."
    ]
    if effect is not None and effect.tokens_before:
        saved = effect.tokens_before - effect.tokens_after
        per_id = saved / max(len(result.tokens), 1)
        found.append(
            f"The corpus has {percent(saved / effect.tokens_before)} fewer tokens: {per_id:,.1f} for "
            "each new id."
        )
        others = sum(change.count for change in effect.unexpected)
        share = others / max(effect.pieces, 1)
        found.append(
            f"{percent(share)} of its pieces change without a new word in them."
            if others
            else "No piece changes without a new word in it."
        )
    return found


def _saved(result: LearnResult, effect: CorpusEffect | None) -> LinePlot | None:
    """Plots the tokens that the new ids save, in the order of learning: of the corpus, or else of
    the listed words."""
    saves: Counter[bytes] = Counter()
    if effect is not None:
        saves.update(effect.saved_by_token)
    else:
        for path in result.words:
            if path.id is not None:
                saves[path.word.encode()] += (len(path.base_pieces) - 1) * path.frequency
    ordered = sorted(result.tokens, key=lambda token: result.tokens[token])
    sums = list(itertools.accumulate(saves[token] for token in ordered))
    of = "of the listed words" if effect is None else "of the corpus"
    title = f"Tokens saved {of}, over the number of new ids"
    return growth(title, "new ids, in the order of learning", "tokens", {"saved": sums})


def _summary(result: LearnResult, effect: CorpusEffect | None) -> Part:
    ids = list(result.tokens.values())
    one = sum(path.id is not None for path in result.words)
    failed = result.listed - one
    tiles = [
        Tile(f"{len(ids):,}", f"new token{'' if len(ids) == 1 else 's'}, {id_range(ids)}"),
        Tile(
            f"{one:,}",
            f"of {plural(result.listed, 'word')} became one token",
            "bad" if failed else "good",
        ),
    ]
    if effect is not None:
        saved = (effect.tokens_before - effect.tokens_after) / max(effect.tokens_before, 1)
        before, after = effect.tokens_before, effect.tokens_after
        mood = "good" if saved > 0 else ""
        tiles.append(
            Tile(percent(saved), f"fewer tokens of the corpus: {before:,} → {after:,}", mood)
        )
        others = sum(change.count for change in effect.unexpected)
        label = f"of {effect.pieces:,} pieces changed without a new word in them"
        tiles.append(Tile(f"{others:,}", label, "bad" if others else "good"))
    if result.skipped:
        tiles.append(Tile(f"{len(result.skipped):,}", "already tokens of the base"))
    if result.refused:
        tiles.append(Tile(f"{len(result.refused):,}", "left out: several pieces", "bad"))
    lengths = bar_chart(
        "Tokens of a word, before and after",
        "tokens",
        "words",
        {
            "before": Counter(len(path.base_pieces) for path in result.words),
            "after": Counter(
                1 if path.id is not None else len(path.pieces) for path in result.words
            ),
        },
    )
    characters = bar_chart(
        "Length of the new tokens, in characters",
        "characters",
        "tokens",
        {"tokens": _lengths(result.tokens)},
    )
    charts = [chart for chart in (_saved(result, effect), lengths, characters) if chart is not None]
    return Part("summary", "Summary", tiles=tiles, charts=charts)


def _lengths(tokens: Iterable[bytes]) -> Counter[int]:
    """Counts tokens by their number of characters."""
    return Counter(len(token.decode(errors="replace")) for token in tokens)


def _conflicts(result: LearnResult) -> Part | None:
    remarks = [_remark(group) for group in grouped(result.notes, MOST_NOTES)]
    rows: list[list[Cell]] = []
    rows += [
        [_chip(path.word.encode()), path.reason or "does not become one token", []]
        for path in result.not_one_token
    ]
    rows += [
        [_chip(path.word.encode()), "is one token as a piece of its own only", []]
        for path in result.words
        if path.id is not None and not path.reached
    ]
    rows += [
        [
            _chip(word.encode()),
            "is cut into",
            _chips([piece.encode() for piece in cut]),
        ]
        for word, cut in result.refused.items()
    ]
    rows += [
        [
            token_text(step.token),
            f"was {step.novelty}, and is made of",
            _chips([step.left, step.right]),
        ]
        for step in result.steps
        if step.novelty == "in base"
    ]
    rows += [
        [_chip(word.encode()), f"is a token already, with id {number}", []]
        for word, number in result.skipped.items()
    ]
    tables = []
    if rows:
        columns = [Column("word or token", "token"), Column("what"), Column("pieces", "tokens")]
        tables.append(TableView("conflicts-table", columns, rows, leaf=10))
    if not remarks and not rows:
        return None
    text = "Words and merges without a new token, and remarks about the others."
    return Part("conflicts", "Conflicts and remarks", text, remarks=remarks, tables=tables)


#: Kinds of notes whose words the table of conflicts has, each with what became of it.
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


def _chip(token: bytes) -> str:
    return shorten(token_text(token), LONGEST_TOKEN)


def _chips(tokens: Sequence[bytes]) -> list[str]:
    """Returns the tokens of a word, or its first ones, with its characters whole."""
    shown = [shorten(text, LONGEST_TOKEN) for text in in_order(tokens)[:MOST_PIECES]]
    return shown if len(tokens) <= MOST_PIECES else [*shown[:-1], "…"]


def _words(result: LearnResult) -> Part:
    def row(path: WordPath) -> list[Cell]:
        stages = [_chips(stage) for stage in result.stages(path)]
        if len(stages) > MOST_STAGES:
            stages[FIRST_STAGES : 1 - MOST_STAGES + FIRST_STAGES] = [["…"]]
        after = 1 if path.id is not None else len(path.pieces)
        return [
            _chip(path.word.encode()),
            path.frequency,
            len(path.base_pieces),
            after,
            path.id,
            stages,
        ]

    paths = sorted(result.words, key=lambda path: -path.frequency)
    columns = [
        Column("word", "token"),
        Column("frequency", "number"),
        Column("tokens before", "number"),
        Column("after", "number"),
        Column("id", "id"),
        Column("merges, from the pieces of the base", "path"),
    ]
    text = f"{plural(len(paths), 'word')}, the most frequent first."
    tables = [TableView("words-table", columns, [row(path) for path in paths])] if paths else []
    return Part("words", "Words", text, tables=tables)


def _by_products(result: LearnResult) -> Part | None:
    made = sorted(result.by_products(), key=lambda by_product: -by_product.use)
    if not made:
        return None
    rows: list[list[Cell]] = [
        [
            _chip(by_product.token),
            by_product.id,
            by_product.use,
            len(by_product.words),
            _chips([by_product.left, by_product.right]),
            [_chip(word.encode()) for word in by_product.words[:8]],
        ]
        for by_product in made
    ]
    columns = [
        Column("token", "token"),
        Column("id", "id"),
        Column("use", "number"),
        Column("words", "number"),
        Column("made of", "tokens"),
        Column("on the way to", "tokens"),
    ]
    text = (
        "Tokens that are not words, but steps on the way to them. Other text that holds "
        "them changes, too. Use is the frequency of their words together."
    )
    return Part(
        "by-products", "By-products", text, tables=[TableView("by-products-table", columns, rows)]
    )


def _corpus(result: LearnResult, effect: CorpusEffect) -> Part:
    tokens = {number: token for token, number in result.extended.items()}
    return Part(
        "corpus",
        "Corpus",
        f"{effect.changed:,} of {effect.pieces:,} pieces changed.",
        tables=corpus_tables(effect, lambda number: tokens.get(number, b"")),
        charts=corpus_charts(effect),
    )


def corpus_charts(effect: CorpusEffect) -> list[Chart]:
    """Charts the pieces by their number of tokens."""
    lengths = {"before": effect.lengths_before, "after": effect.lengths_after}
    chart = bar_chart("Tokens of a piece of the corpus", "tokens", "pieces", lengths)
    return [] if chart is None else [chart]


def corpus_tables(effect: CorpusEffect, token: Callable[[int], bytes]) -> list[TableView]:
    """Makes tables of tokens by file and by script, and of pieces that changed unexpectedly."""
    tables = []
    for name, parts in [("file", effect.files), ("script", effect.scripts)]:
        rows: list[list[Cell]] = [
            [part.name, part.before, part.after, part.before - part.after, percent(part.saved)]
            for part in parts
        ]
        columns = [
            Column(name),
            Column("tokens before", "number"),
            Column("after", "number"),
            Column("saved", "number"),
            Column("share", "number"),
        ]
        tables.append(TableView(f"corpus-{name}", columns, rows))
    if effect.unexpected:
        changed: list[list[Cell]] = [
            [
                _chip(change.text.encode()),
                change.count,
                _named_tokens(change.before, token),
                _named_tokens(change.after, token),
            ]
            for change in effect.unexpected
        ]
        columns = [
            Column("changed, with no new word in it", "token"),
            Column("times", "number"),
            Column("tokens before", "tokens"),
            Column("after", "tokens"),
        ]
        tables.append(TableView("corpus-changed", columns, changed, leaf=20))
    return tables


def _named_tokens(ids: Iterable[int], token: Callable[[int], bytes | None]) -> list[list[Cell]]:
    """Returns the texts of tokens that follow one another, each with its id."""
    numbers = list(ids)
    tokens = [token(number) or b"" for number in numbers]
    texts = in_order(tokens) if all(tokens) else map(token_text, tokens)
    return [[text or str(number), number] for text, number in zip(texts, numbers)]


def check_page(result: CheckResult) -> str:
    """Returns the result of a check as a page."""
    known = f"Base: {result.recognized}. " if result.recognized else ""
    tiles = _verdict(result.findings, "in the vocabulary")
    tiles += [Tile(f"{size:,}", name.replace("_", " ")) for name, size in result.sizes.items()]
    counts_by_length = _lengths(result.tokens.values())
    lengths = bar_chart(
        "Length of the tokens, in characters", "characters", "tokens", {"tokens": counts_by_length}
    )
    classes: list[list[Cell]] = [[name, count] for name, count in result.round_trip_counts.items()]
    columns = [Column("round-trip class"), Column("ids", "number")]
    parts = [
        Part("summary", "Summary", tiles=tiles, charts=[lengths] if lengths else []),
        *_findings(result.findings),
    ]
    if result.corpus is not None:
        tables = corpus_tables(result.corpus, lambda number: result.tokens.get(number, b""))
        text = f"{result.corpus.changed:,} of {result.corpus.pieces:,} pieces changed."
        charts = corpus_charts(result.corpus)
        parts.append(Part("corpus", "Corpus", text, tables=tables, charts=charts))
    text = "The number of ids by what the text of a token is encoded as."
    parts.append(
        Part("classes", "Round trip", text, tables=[TableView("classes-table", columns, classes)])
    )
    subtitle = f"{known}Pattern: {shorten(result.pattern, 120)}."
    verdicts = _verdicts(result.findings)
    return rendered(Page(check_title(result), subtitle, parts, verdicts, is_good=result.ok))


def _verdicts(findings: Sequence[Finding]) -> list[str]:
    """Returns the verdict as a sentence, and the errors."""
    errors = [finding for finding in findings if finding.severity == "error"]
    if not errors:
        warnings = sum(finding.severity == "warning" for finding in findings)
        return [f"No errors, {plural(warnings, 'kind')} of warnings."]
    each = [f"{finding.code}: {finding.message} ({finding.counted})" for finding in errors]
    return [f"{plural(len(errors), 'kind')} of errors.", *each]


def proposal_page(proposal: Proposal) -> str:
    """Returns proposed words as a page."""
    saved: list[int] = []
    for word in proposal.words:
        # A word counts when the last of its ids is there; it may need none of its own.
        saved += [saved[-1] if saved else 0] * word.new_ids
        if saved:
            saved[-1] += word.saved
    plot = growth("Tokens saved, over the number of new ids", "new ids", "tokens", {"saved": saved})
    rows: list[list[Cell]] = [
        [
            _chip(word.word.encode()),
            word.frequency,
            word.tokens_now,
            word.new_ids,
            word.saved,
            f"{word.saved_per_id:,.1f}",
        ]
        for word in proposal.by_gain()
    ]
    names = ("frequency", "tokens now", "new ids", "saved", "saved per id")
    columns = [Column("word", "token"), *(Column(name, "number") for name in names)]
    share = proposal.saved / max(proposal.tokens_before, 1)
    conclusions = [
        f"{plural(len(proposal.words), 'word')} with {plural(proposal.new_ids, 'new id')} save "
        f"{percent(share)} of {proposal.tokens_before:,} tokens."
    ]
    remarks = [
        Remark(f"left out: {plural(count, 'piece')}, {reason}", "info")
        for reason, count in sorted(proposal.left_out.items())
    ]
    parts = [
        Part("summary", "Summary", remarks=remarks, charts=[plot] if plot else []),
        Part(
            "words",
            "Words",
            "The words that save the most first. Saved counts what a word and its by-products save in "
            "all words that contain them; it adds up to the tokens saved in all.",
            tables=[TableView("words-table", columns, rows)] if rows else [],
        ),
    ]
    subtitle = f"Pattern: {proposal.pattern.label}." if proposal.pattern else ""
    return rendered(Page(proposal_title(proposal), subtitle, parts, conclusions))


def train_page(result: TrainResult) -> str:
    """Returns the result of training as a page."""
    tokens, texts = sum(result.corpus_tokens), sum(result.corpus_bytes)
    tiles = [
        Tile(
            f"{result.size:,}",
            f"tokens, {plural(len(result.special_tokens), 'special one')} included",
        ),
        Tile(f"{len(result.merges):,}", "merges"),
        Tile(f"{result.bytes_per_token:.2f}", "bytes per token of the training text"),
        Tile(f"{texts:,}", f"bytes of text, {tokens:,} tokens"),
    ]
    if result.held_out is not None:
        size, count = result.held_out
        label = f"bytes per token of {size:,} bytes of held-out text"
        tiles.insert(3, Tile(f"{size / max(count, 1):.2f}", label))
    frequencies = [merge.frequency for merge in result.merges]
    saved = list(itertools.accumulate(frequencies))
    charts = [
        growth(
            "Tokens saved of the training text, over the number of merges",
            "merges",
            "tokens",
            {"saved": saved},
        ),
        bar_chart(
            "Length of the new tokens, in characters",
            "characters",
            "tokens",
            {"tokens": _lengths(result.new_tokens)},
        ),
        rank_frequency(
            {"merges": sorted(frequencies, reverse=True)},
            "Count of the pair of each merge",
            "merges, the most frequent first",
        ),
    ]
    corpora: list[list[Cell]] = [
        [number, size, count, f"{size / count:.2f}" if count else "", served]
        for number, (size, count, served) in enumerate(
            zip(result.corpus_bytes, result.corpus_tokens, result.served()), 1
        )
    ]
    names = ("bytes", "tokens", "bytes per token", "merges")
    columns = [Column("corpus", "id"), *(Column(name, "number") for name in names)]
    tables = [TableView("corpora", columns, corpora)] if len(corpora) > 1 else []
    merged: list[list[Cell]] = [
        [
            result.ranks[merge.token],
            _chip(merge.token),
            _chips([merge.left, merge.right]),
            merge.frequency,
        ]
        for merge in result.merges
    ]
    columns = [Column("id", "id"), Column("token", "token"), Column("made of", "tokens")]
    columns.append(Column("count of the pair", "number"))
    notes = [Remark(note) for note in result.notes]
    shown = [chart for chart in charts if chart is not None]
    parts = [
        Part("summary", "Summary", tiles=tiles, remarks=notes, tables=tables, charts=shown),
        Part(
            "merges",
            "Merges",
            "In the order of learning; the last are the rarest.",
            tables=[TableView("merges-table", columns, merged, leaf=25)] if merged else [],
        ),
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
    subtitle = f"Pattern: {shorten(result.cutting.pattern, 120)}."
    return rendered(Page(train_title(result), subtitle, parts, conclusions))


def plan_page(plan: EmbeddingPlan) -> str:
    """Returns the plan of an embedding table as a page."""
    sizes: list[list[Cell]] = [[name.replace("_", " "), size] for name, size in plan.sizes.items()]
    parts_of = bar_chart(
        "Parts of a new token", "parts", "tokens", {"tokens": Counter(map(len, plan.values()))}
    )
    made: list[list[Cell]] = [
        [number, _chip(plan.tokens.get(number, b"")), len(ids), _named_tokens(ids, plan.tokens.get)]
        for number, ids in plan.items()
    ]
    columns = [Column("id", "id"), Column("token", "token"), Column("parts", "number")]
    columns.append(Column("tokens of the base", "tokens"))
    parts = [
        Part(
            "summary",
            "Summary",
            tables=[TableView("sizes", [Column("size"), Column("number", "number")], sizes)],
            charts=[parts_of] if parts_of else [],
        ),
        Part(
            "made-of",
            "Parts of the new tokens",
            "A new row begins as the mean of the rows of its parts, unless another method is chosen.",
            tables=[TableView("made-of-table", columns, made, leaf=25)] if made else [],
        ),
    ]
    rows, base = plan.sizes["rows"], plan.sizes["base_max_id_plus_one"]
    unused = sum(last - first + 1 for first, last in plan.gaps)
    conclusions = [
        f"The table needs {rows:,} rows, {rows - base:,} more than the base has ids.",
        f"{plural(len(plan), 'new token')}"
        + (f", and {plural(unused, 'unused id')} among them." if unused else "."),
    ]
    return rendered(Page(plan_title(plan), "", parts, conclusions))


def folder_page(result: FolderResult) -> str:
    """Returns the result of a check of a model's folder as a page."""
    counts = ("compared", "differing", "left out")
    columns = [
        Column("tokenizer"),
        Column("kind"),
        *(Column(name, "number") for name in ("ids", "added tokens", *counts)),
    ]
    rows: list[list[Cell]] = [
        [
            source.name,
            source.kind,
            source.size,
            source.added_tokens,
            source.compared,
            source.differing,
            source.left_out,
        ]
        for source in result.sources
    ]
    text = "The texts that were compared, and those with other ids."
    parts = [
        Part("summary", "Summary", tiles=_verdict(result.findings, "in the folder")),
        # Their counts may be of texts or tokens, and their examples are lines about files.
        *_findings(result.findings, hides=False),
        Part("tokenizers", "Tokenizers", text, tables=[TableView("sources", columns, rows)]),
    ]
    title = folder_title(result)
    verdicts = _verdicts(result.findings)
    return rendered(Page(title, result.path, parts, verdicts, is_good=result.ok))


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
    if not findings:
        return []
    remarks = [
        Remark(
            f"{finding.message} ({finding.counted})",
            finding.severity,
            finding.examples,
            max(finding.count - len(finding.examples), 0)
            if hides and len(finding.examples) > 1
            else 0,
            finding.code,
            explain(finding.code).why,
            explain(finding.code).remedy,
        )
        for finding in findings
    ]
    return [Part("findings", "Findings", "The most severe first.", remarks=remarks)]
