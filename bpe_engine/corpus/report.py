"""`CorpusReport`: tokens a byte by source, longest documents, control strings, time by stage."""

from __future__ import annotations

import contextlib
import json
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from .look import Look, look_at
from .manifest import MERGED, Manifest, read_manifest
from .notes import MANY_UNKNOWN, notes_of, share_of
from .plan import Plan, read_plan
from .sealed import read_sealed
from .units import times_path

__all__ = ["CorpusReport", "corpus_report"]

#: Inputs in the chart, the characters of their names, and the percent from which on a row is full.
_SOURCES, _NAME, _FULL = 10, 18, 90


@dataclass
class CorpusReport:
    """The counts of a corpus so far."""

    folder: str
    format: str
    tokenizer: str
    fingerprint: str
    eod: str | None
    #: Units of the plan, and those that exist.
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
    #: Ids of the token for unknown text.
    unknown: int = 0
    #: What hardly anybody wants, one sentence each.
    notes: list[str] = field(default_factory=list)
    #: Rows that are not text, left out or kept as empty documents; ``OUT/refused`` lists them.
    rows_refused: int = 0
    #: The first of them: input, line, reason, and whether an empty document was kept.
    refused: list[tuple[str, int, str, bool]] = field(default_factory=list)
    #: How often, and the input and line of the first.
    controls: dict[str, tuple[int, str, int]] = field(default_factory=dict)
    #: Ids, input, line.
    longest: list[tuple[int, str, int]] = field(default_factory=list)
    #: Documents, bytes of text and ids.
    sources: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    #: Seconds of all processes by stage.
    seconds: dict[str, float] = field(default_factory=dict)
    #: The plan, which leads to the token files.
    plan: Plan | None = field(default=None, repr=False, compare=False)

    def to_json(self) -> str:
        """Returns the report as JSON."""
        return json.dumps(asdict(replace(self, plan=None)), ensure_ascii=False, indent=1)

    def rows_of_summary(self) -> list[tuple[str, str]]:
        """Returns the summary as names and values for people."""
        rate = self.tokens / self.text_bytes if self.text_bytes else 0.0
        merged = ", merged" if self.is_merged else ""
        rows = [
            ("folder", self.folder),
            ("format", f"{self.format}{merged}"),
            ("tokenizer", f"{self.tokenizer} ({self.fingerprint[:12]})"),
            ("end of document", self.eod or "none"),
            ("units", f"{self.done:,} of {self.units:,}"),
            ("inputs", f"{self.inputs:,} ({self.input_bytes:,} bytes)"),
            ("rows read", f"{self.rows:,}"),
            ("documents", f"{self.documents:,} ({self.empty:,} empty)"),
            ("refused", f"{self.rows_refused:,}"),
            ("text", f"{self.text_bytes:,} bytes"),
            ("tokens", f"{self.tokens:,}, {rate:.4f} a byte"),
            ("unknown tokens", f"{self.unknown:,} ({share_of(self.unknown, self.tokens)})"),
            ("control strings", f"{sum(count for count, *_ in self.controls.values()):,}, as text"),
        ]
        rows += [("note", note) for note in self.notes]
        if self.seconds:
            stages = ", ".join(f"{stage} {spent:.1f} s" for stage, spent in self.seconds.items())
            rows.append(("process time", stages))
        return rows

    @property
    def base(self) -> str:
        """The folder of all inputs that were read, with its last slash; tables leave it out."""
        prefix = os.path.commonprefix([*self.sources])
        return prefix[: prefix.rfind("/") + 1]

    def ranked_sources(self) -> list[tuple[str, int, int, int, float | None]]:
        """Returns input, documents, bytes, ids and ids a byte; inputs with most ids first."""
        ranked = sorted(self.sources.items(), key=lambda item: -item[1][2])
        return [
            (uri, *counts, round(counts[2] / counts[1], 4) if counts[1] else None)
            for uri, counts in ranked
        ]

    def _repr_html_(self) -> str | None:
        """Returns the report for notebooks; None without jinja2."""
        from ..html_report.page import framed

        try:
            return framed(self.to_html())
        except ImportError:
            return None

    def to_html(self) -> str:
        """Returns the report as a page. Raises ImportError without jinja2 (the extra ``corpus``)."""
        from ..html_report.page import Column, Page, Part, TableView, Tile, rendered
        from ..html_report.plots import group_bars

        base = self.base
        rate = f"{self.tokens / self.text_bytes:.4f}" if self.text_bytes else "0"
        controls = sum(count for count, *_ in self.controls.values())
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
            Tile(
                share_of(self.unknown, self.tokens),
                "of the tokens are unknown text",
                "bad" if self.unknown >= MANY_UNKNOWN * max(self.tokens, 1) else "good",
            ),
            Tile(f"{controls:,}", "control strings, encoded as text"),
        ]
        place = ("input", "line or row")
        tables: list[tuple[str, str, str, tuple[str, ...], Sequence[Any]]] = [
            (
                "sources",
                "Sources",
                f"Inputs: {len(self.sources):,}{base and f', in {base}'}. Their tokens include BOS and EOD.",
                ("input", "documents", "bytes", "tokens", "tokens a byte"),
                self.ranked_sources(),
            ),
            (
                "longest",
                "Longest documents",
                "",
                (*place, "tokens"),
                [(uri, line, tokens) for tokens, uri, line in self.longest],
            ),
            (
                "controls",
                "Control strings",
                "They are text, not tokens. Each is named with the first place that has it.",
                (*place, "name", "times"),
                [(uri, line, name, count) for name, (count, uri, line) in self.controls.items()],
            ),
            (
                "refused",
                "Refused rows",
                f"The first {len(self.refused):,} of {self.rows_refused:,}; {self.folder}/refused lists "
                "all of them."
                if self.rows_refused > len(self.refused)
                else "",
                (*place, "reason", "kept empty"),
                [(*row[:3], "yes" if row[3] else "no") for row in self.refused],
            ),
            ("time", "Time", "Of all processes.", ("stage", "seconds"), [*self.seconds.items()]),
        ]
        share = 100 / max(self.tokens, 1)
        by_source = {
            _short(uri.removeprefix(base)): tokens * share
            for uri, _, _, tokens, _ in self.ranked_sources()[:_SOURCES]
        }
        plots = [group_bars("Tokens by input", "% of the tokens", {"tokens": by_source})]
        look = look_at(self.plan) if self.plan is not None and self.done == self.units else None
        if look is not None:
            plots.insert(
                0,
                group_bars(
                    "Documents by their number of tokens",
                    "% of the documents",
                    {"documents": look.lengths},
                ),
            )
        charts = [plot for plot in plots if plot is not None]
        parts = [Part("summary", "Summary", tiles=tiles, charts=charts)]
        parts += _documents(look) if look is not None else []
        texts = {"input", "name", "reason", "kept empty", "stage"}
        for name, title, text, columns, rows in tables:
            if rows:
                heads = [Column(head, "text" if head in texts else "number") for head in columns]
                cells = [[self._cell(cell, base) for cell in row] for row in rows]
                view = TableView(f"{name}-table", heads, cells, leaf=25)
                parts.append(Part(name, title, text, tables=[view]))
        state = "complete" if self.done == self.units else f"{self.done:,} of {self.units:,} units"
        average = self.tokens / max(self.documents, 1)
        conclusions = [
            f"{self.documents:,} documents became {self.tokens:,} tokens, {rate} a byte and {average:,.0f} a "
            f"document; the corpus is {state}.",
            f"{self.rows_refused:,} rows were refused, and {controls:,} names of special tokens are "
            "text.",
            *self.notes,
        ]
        provenance = [
            ("tokenizer", f"{self.tokenizer}, fingerprint {self.fingerprint}"),
            ("inputs", f"{self.inputs:,} ({self.input_bytes:,} bytes)"),
        ]
        if look is not None:
            length, fits, filled = look.rows[2]
            conclusions.append(
                f"Of the documents, {fits:.0f}% fit whole into rows of {length:,}. Rows of one document "
                f"each are {filled:.0f}% full: "
                + ("pack them." if filled < _FULL else "packing gains little.")
            )
        subtitle = f"{self.folder}, {self.format}."
        title = (
            f"Corpus {os.path.basename(self.folder.rstrip('/'))}: {self.tokenizer}, {self.format}"
        )
        return rendered(Page(title, subtitle, parts, conclusions, provenance))

    @staticmethod
    def _cell(cell: Any, base: str) -> Any:
        if isinstance(cell, float):
            return round(cell, 4)
        return cell.removeprefix(base) if isinstance(cell, str) else cell


def _documents(look: Look) -> list[Any]:
    """Returns the parts of a page on rows, and on the first document."""
    from ..html_report.page import Column, Part, TableView

    heads = [Column(name, "number") for name in ("ids a row", "fit whole, %", "filled, %")]
    rows: list[list[Any]] = [
        [length, f"{fits:.1f}", f"{filled:.1f}"] for length, fits, filled in look.rows
    ]
    text = (
        f"How many of the first {look.documents:,} documents fit whole, and how full rows are that have "
        "one document each. Packing fills rows with several."
    )
    cut = [Column("the first document, cut", "cut")]
    return [
        Part("rows", "Rows for training", text, tables=[TableView("rows-table", heads, rows)]),
        Part("sample", "A sample", tables=[TableView("sample-table", cut, [[look.sample]])]),
    ]


def _short(name: str) -> str:
    return name if len(name) <= _NAME else f"…{name[1 - _NAME :]}"


def corpus_report(out: str | os.PathLike[str] | Plan) -> CorpusReport:
    """Reports on a corpus, also while it is being written.

    Args:
        out: The folder, or its plan.

    Raises:
        CorpusError: The plan is missing, or a manifest is damaged.
    """
    plan = out if isinstance(out, Plan) else read_plan(out)
    total = Manifest(plan.sha256, MERGED)
    done = 0
    seconds: Counter[str] = Counter()
    for unit in range(len(plan.units)):
        manifest = read_manifest(plan, unit)
        if manifest is None:
            continue
        done += 1
        total.add(manifest)
        with contextlib.suppress(OSError, ValueError):
            # A process may have been killed between the manifest and its times.
            seconds.update(read_sealed(times_path(plan, unit), "delete it"))
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
        seconds=dict(seconds),
        plan=plan,
    )
