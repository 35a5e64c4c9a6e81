"""`CorpusReport`: tokens per byte by source, longest documents and control strings."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace

from ..abilities.visible import plural
from ..common.system import SEPARATORS, base_name
from ..html_report.page import Cell, Page, Part, TableView, Tile, columns
from .look import Look, look_at
from .manifest import MERGED, Manifest, read_manifest
from .notes import MANY_UNKNOWN, notes_of, share_of
from .plan import Plan, read_plan

__all__ = ["CorpusReport", "corpus_report"]

#: Minimum percentage of ids in a row that counts as full.
_FULL = 90


@dataclass
class CorpusReport:
    """The counts of a corpus so far."""

    folder: str
    format: str
    tokenizer: str
    fingerprint: str
    eod: str | None
    #: Numbers of units in the plan, and of units written.
    units: int
    done: int
    is_merged: bool
    inputs: int
    input_bytes: int
    rows: int = 0
    documents: int = 0
    empty: int = 0
    text_bytes: int = 0
    tokens: int = 0
    #: Occurrences of the unknown token.
    unknown: int = 0
    #: Warnings, one sentence each.
    notes: list[str] = field(default_factory=list)
    #: Rows that are not text, dropped or kept as empty documents; ``OUT/refused`` lists them.
    rows_refused: int = 0
    #: The first refused rows: input, line, reason, and true if an empty document was kept.
    refused: list[tuple[str, int, str, bool]] = field(default_factory=list)
    #: By control string: count, and input and line of the first occurrence.
    controls: dict[str, tuple[int, str, int]] = field(default_factory=dict)
    #: Number of ids, input and line of each longest document.
    longest: list[tuple[int, str, int]] = field(default_factory=list)
    #: By input: number of documents, bytes of text and ids.
    sources: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    #: The plan, through which `page` reads the token files.
    plan: Plan | None = field(default=None, repr=False, compare=False)

    def to_json(self) -> str:
        """Returns the report as JSON."""
        return json.dumps(asdict(replace(self, plan=None)), ensure_ascii=False, indent=1)

    @property
    def base(self) -> str:
        """The common folder of all inputs, with a trailing slash; omitted in tables."""
        prefix = os.path.commonprefix([*self.sources])
        return prefix[: max(map(prefix.rfind, SEPARATORS)) + 1]

    def ranked_sources(self) -> list[tuple[str, int, int, int, float | None]]:
        """Returns input, documents, bytes, ids and ids per byte of each input, most ids first."""
        ranked = sorted(self.sources.items(), key=lambda item: -item[1][2])
        return [
            (uri, *counts, round(counts[2] / counts[1], 4) if counts[1] else None)
            for uri, counts in ranked
        ]

    def page(self) -> Page:
        """Returns the report as a page, which the terminal prints."""
        look = look_at(self.plan) if self.plan is not None and self.done == self.units else None
        rate = f"{self.tokens / self.text_bytes:.4f}" if self.text_bytes else "0"
        controls = sum(count for count, *_ in self.controls.values())
        state = "complete" if self.done == self.units else f"{self.done:,} of {self.units:,} units"
        average = self.tokens / max(self.documents, 1)
        conclusions = [
            f"{self.documents:,} documents became {self.tokens:,} tokens, {rate} a byte and {average:,.0f} a "
            f"document; the corpus is {state}.",
            f"{plural(self.rows_refused, 'row was', 'rows were')} refused, and "
            f"{plural(controls, 'name of a special token is', 'names of special tokens are')} text.",
            *self.notes,
        ]
        if look is not None:
            length, fits, filled = look.rows[2]
            conclusions.append(
                f"Of the documents, {fits:.0f}% fit whole into rows of {length:,}. Rows of one document "
                f"each are {filled:.0f}% full: "
                + ("pack them." if filled < _FULL else "packing gains little.")
            )
        name = base_name(self.folder)
        title = f"Corpus {name}: {self.tokenizer}, {self.format}"
        parts = [self._summary(rate, controls), *_of_documents(look), *self._lists()]
        return Page(title, f"{self.folder}, {self.format}.", parts, conclusions)

    def _summary(self, rate: str, controls: int) -> Part:
        unknown = share_of(self.unknown, self.tokens)
        are_many = self.unknown >= MANY_UNKNOWN * max(self.tokens, 1)
        tiles = [
            Tile(f"{self.tokens:,}", "tokens"),
            Tile(f"{self.documents:,}", f"documents, {self.empty:,} empty"),
            Tile(rate, "tokens a byte"),
            Tile(
                f"{self.done:,}",
                f"of {self.units:,} units",
                "good" if self.done == self.units else "bad",
            ),
            Tile(f"{self.rows_refused:,}", "rows refused", "bad" if self.refused else "good"),
            Tile(unknown, "of the tokens are unknown text", "bad" if are_many else "good"),
            Tile(f"{controls:,}", "control strings, encoded as text"),
        ]
        rows: list[list[Cell]] = [
            ["format", f"{self.format}{', merged' if self.is_merged else ''}"],
            ["tokenizer", f"{self.tokenizer}, fingerprint {self.fingerprint}"],
            ["end of document", self.eod or "none"],
            ["inputs", f"{self.inputs:,} ({self.input_bytes:,} bytes)"],
            ["rows read", f"{self.rows:,}"],
            ["text", f"{self.text_bytes:,} bytes"],
        ]
        table = TableView("summary-table", columns({"corpus": "text", "value": "text"}), rows)
        return Part("summary", "Summary", tiles=tiles, tables=[table])

    def _lists(self) -> Iterator[Part]:
        base = self.base
        place = {"input": "text", "line or row": "number"}
        numbers = dict.fromkeys(("documents", "bytes", "tokens", "tokens a byte"), "number")
        inputs = f"Inputs: {len(self.sources):,}{base and f', in {base}'}. Their tokens include BOS and EOD."
        first = ""
        if self.rows_refused > len(self.refused):
            first = f"The first {len(self.refused):,} of {self.rows_refused:,}; "
        refused = f"{first}{self.folder}/refused lists all of them."
        lists: list[tuple[str, str, str, dict[str, str], Iterable[Sequence[Cell]]]] = [
            ("sources", "Sources", inputs, {"input": "text", **numbers}, self.ranked_sources()),
            (
                "longest",
                "Longest documents",
                "",
                {**place, "tokens": "number"},
                [(uri, line, tokens) for tokens, uri, line in self.longest],
            ),
            (
                "controls",
                "Control strings",
                "They are text, not tokens. Each is listed with its first occurrence.",
                {**place, "name": "text", "times": "number"},
                [(uri, line, name, count) for name, (count, uri, line) in self.controls.items()],
            ),
            (
                "refused",
                "Refused rows",
                refused,
                {**place, "reason": "text", "kept empty": "text"},
                [(*row[:3], "yes" if row[3] else "no") for row in self.refused],
            ),
        ]
        for id, title, text, heads, rows in lists:
            cells = [
                [it.removeprefix(base) if isinstance(it, str) else it for it in row] for row in rows
            ]
            if cells:
                table = TableView(f"{id}-table", columns(heads), cells)
                yield Part(id, title, text, tables=[table])


def _of_documents(look: Look | None) -> Iterator[Part]:
    if look is None:
        return
    heads = columns(dict.fromkeys(("ids a row", "fit whole, %", "filled, %"), "number"))
    rows: list[list[Cell]] = [
        [length, f"{fits:.1f}", f"{filled:.1f}"] for length, fits, filled in look.rows
    ]
    text = (
        f"How many of the first {look.documents:,} documents fit whole, and how full rows are that have "
        "one document each. Packing fills rows with several."
    )
    by_length = columns({"ids a document": "text", "% of the documents": "number"})
    lengths: list[list[Cell]] = [[name, f"{share:.1f}"] for name, share in look.lengths.items()]
    tables = [TableView("rows-table", heads, rows), TableView("lengths-table", by_length, lengths)]
    yield Part("rows", "Rows for training", text, tables=tables)
    cut = columns({"the first document, cut": "cut"})
    yield Part("sample", "A sample", tables=[TableView("sample-table", cut, [[look.sample]])])


def corpus_report(out: str | os.PathLike[str] | Plan) -> CorpusReport:
    """Reports on a corpus, even while units are still being written.

    Args:
        out: The folder, or its plan.

    Raises:
        CorpusError: The plan is missing, or a manifest is damaged.
    """
    plan = out if isinstance(out, Plan) else read_plan(out)
    total = Manifest(plan.sha256, MERGED)
    done = 0
    for unit in range(len(plan.units)):
        manifest = read_manifest(plan, unit)
        if manifest is None:
            continue
        done += 1
        total.add(manifest)
    return CorpusReport(
        folder=plan.out,
        format=plan.options.format,
        tokenizer=plan.tokenizer,
        fingerprint=plan.fingerprint,
        eod=plan.options.eod,
        units=len(plan.units),
        done=done,
        is_merged=read_manifest(plan, MERGED) is not None,
        inputs=len(plan.inputs),
        input_bytes=sum(source.size for source in plan.inputs),
        rows=total.rows,
        documents=total.written,
        empty=total.empty,
        text_bytes=total.bytes,
        tokens=total.tokens,
        unknown=total.unknown,
        notes=notes_of(plan, total),
        rows_refused=total.left_out + total.kept_empty,
        refused=total.refused,
        controls=total.controls,
        longest=total.longest,
        sources=total.sources,
        plan=plan,
    )
