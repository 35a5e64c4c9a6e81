"""The rows of a run as Markdown, between the markers of the pages that show them.

    python -m benchmarks.harness.render out.json docs/benchmarks.md README.md

A page with the markers ``benchmarks`` gets every row, one with ``speed`` a few.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from ..cases.cases import CASES
from ..peers.engines import OURS
from ..peers.reference import TIKTOKEN

#: The rows of the short table: case, key and corpus, and what to call them there.
SHORT = {
    ("text-numpy", "first", "en"): "English text to numpy",
    ("text-numpy", "first", "code"): "code to numpy",
    ("text-numpy", "first", "zh"): "Chinese text to numpy",
    ("text-numpy", "again", "en"): "English text to numpy, seen before",
    ("text-list", "first", "en"): "English text to a list",
    ("prompts-checked", "100 B, first", "en"): "a prompt of 100 bytes to a list",
    ("batch-list-2", "first", "en"): "documents of 4 KB to lists, 2 threads",
    ("load", "get_encoding + first encode", None): "load, and encode two words",
}


def table(results: dict[str, Any], quick: bool | None = None) -> str:
    """One Markdown table per encoding: a line per case, key and corpus, a column per engine.

    ``quick`` True keeps the cases of ``--quick``, False the others, None all.
    """
    rows = [row for row in results["rows"] if quick is None or CASES[row["case"]].quick == quick]
    engines = results["engines"]
    parts = []
    for encoding in dict.fromkeys(row["encoding"] for row in rows):
        lines: dict[tuple[str, str, str | None], dict[str, dict[str, Any]]] = {}
        for row in rows:
            if row["encoding"] == encoding:
                lines.setdefault((row["case"], row["key"], row["corpus"]), {})[row["engine"]] = row
        header = [encoding, "unit", "tokens", *engines, "ratio"]
        parts.append(f"| {' | '.join(header)} |")
        parts.append("|---|---|---:|" + "---:|" * (len(engines) + 1))
        parts += [_line(line, engines) for line in lines.values()]
        parts.append("")
    return "\n".join(parts)


def _line(line: dict[str, dict[str, Any]], engines: list[str]) -> str:
    any_row = next(iter(line.values()))
    title = ", ".join(
        part for part in (any_row["title"], any_row["key"], any_row["corpus"]) if part
    )
    tokens = next((row["tokens"] for row in line.values() if row["correct"]), any_row["tokens"])
    cells = [_cell(line.get(engine)) for engine in engines]
    note = next((row["reference"] for row in line.values() if row["reference"]), TIKTOKEN)
    if note != TIKTOKEN:
        title += f" (ids by {note})"
    count = "" if tokens is None else f"{tokens:,}"
    return f"| {' | '.join([title, any_row['unit'], count, *cells, _ours(line)])} |"


def _ours(line: dict[str, dict[str, Any]]) -> str:
    """The last cell: how this project compares with the best peer whose ids are exact."""
    ours = line.get(OURS)
    if ours and ours["correct"] is False:
        return "wrong ids"
    return f"{ours['ratio']:.2f}x" if ours and ours["ratio"] is not None else ""


def _cell(row: dict[str, Any] | None) -> str:
    if row is None:
        return "–"
    return number(row["value"]) + (" ✗" if row["correct"] is False else "")


def number(value: float) -> str:
    """Three digits, never an exponent.

    >>> number(1234.5), number(12.345), number(0.00234)
    ('1234', '12.3', '0.00234')
    """
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.3g}"


def caption(results: dict[str, Any]) -> str:
    """The machine, the versions and how the numbers were taken."""
    where = results["machine"]
    memory = f", {where['memory_gb']} GB" if where["memory_gb"] else ""
    clock = " and count its CPU time" if results["clock"] == "cpu" else ""
    versions = ", ".join(f"{name} {version}" for name, version in where["versions"].items())
    return (
        f"{where['cpu']}, {where['cpus']} CPUs{memory}; {where['system']}; Python {where['python']}; "
        f"{where['date']}. {versions}. Corpora: {results['corpora']}. Medians of up to "
        f"{results['rounds']} processes, engines in turn; one-thread cases stay on one CPU{clock}. "
        "`first` is text the engine has not seen (after warming on other text of the same kind), "
        "`again` the same text once more. ✗ marks ids that are not tiktoken's; – marks what an "
        f"engine lacks or does not survive. The ratio is {OURS} to the best peer with exact ids; "
        "above 1 is in favour of this project."
    )


def all_rows(results: dict[str, Any]) -> str:
    """Caption and tables, those of the long cases folded away."""
    body = [caption(results), "", table(results, quick=True)]
    if more := table(results, quick=False):
        body += ["<details><summary>More cases</summary>", "", more, "</details>", ""]
    return "\n".join(body)


def few_rows(results: dict[str, Any]) -> str:
    """The rows of :data:`SHORT` for the first encoding of the run."""
    encoding = results["rows"][0]["encoding"]
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for row in results["rows"]:
        title = SHORT.get((row["case"], row["key"], row["corpus"]))
        if title and row["encoding"] == encoding:
            found.setdefault(title, {})[row["engine"]] = row
    engines = results["engines"]
    header = [encoding, "unit", *engines, "ratio"]
    lines = [f"| {' | '.join(header)} |", "|---|---|" + "---:|" * (len(engines) + 1)]
    for title in SHORT.values():
        if row := found.get(title):
            unit = next(iter(row.values()))["unit"]
            cells = [_cell(row.get(engine)) for engine in engines]
            lines.append(f"| {' | '.join([title, unit, *cells, _ours(row)])} |")
    where = results["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in where["versions"].items())
    return "\n".join([
        *lines, "",
        f"One thread unless said; text that the engine has not seen before unless said. The ratio is "
        f"to the best peer with exact ids, more is better. {where['cpu']}, {where['cpus']} CPUs, "
        f"{where['date']}; {versions}.",
    ])  # fmt: skip


TABLES = {"benchmarks": all_rows, "speed": few_rows}


def into_page(results: dict[str, Any], path: Path) -> None:
    """Puts each table of :data:`TABLES` between its markers in ``path``.

    ValueError when the page has the markers of none.
    """
    text = path.read_text(encoding="utf-8")
    placed = False
    for name, write in TABLES.items():
        before, start, rest = text.partition(f"<!-- {name}:start -->")
        _, end, after = rest.partition(f"<!-- {name}:end -->")
        if start and end:
            text = f"{before}{start}\n{write(results)}\n{end}{after}"
            placed = True
    if not placed:
        raise ValueError(
            f"{path.name} lacks the lines <!-- NAME:start --> and <!-- NAME:end --> that a table "
            f"goes between; NAME is {' or '.join(TABLES)}."
        )
    path.write_text(text, encoding="utf-8")


def main() -> int:
    if len(sys.argv) < 3:
        print("usage: python -m benchmarks.harness.render RESULTS.json PAGE.md...", file=sys.stderr)
        return 2
    results = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    try:
        for page in sys.argv[2:]:
            into_page(results, Path(page))
    except ValueError as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
