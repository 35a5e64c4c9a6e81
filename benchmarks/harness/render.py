"""Renders benchmark results: Markdown tables for the manual, and CSV with every row.

    python -m benchmarks.run --json all.json
    python -m benchmarks.harness.render all.json docs/benchmarks.md README.md docs/benchmarks.csv

A page with the marker ``benchmarks`` gets the rows of :data:`MANUAL`, a page with the marker
``speed`` the rows of :data:`SHORT`.
"""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path
from typing import Any

from ..peers.engines import OURS
from ..peers.reference import TIKTOKEN

#: Identifies a row of a table: case, key and corpus.
Key = tuple[str, str, str | None]

#: Rows of the README's table, with their titles.
SHORT: dict[Key, str] = {
    ("text-list", "first", "en"): "English text",
    ("text-list", "first", "code"): "code",
    ("text-list", "first", "zh"): "Chinese text",
    ("text-list", "first", "multi"): "text of many languages",
    ("text-list", "again", "en"): "English text, seen before",
    ("text-numpy", "first", "en"): "English text to numpy",
    ("prompts-checked", "100 B, first", "en"): "a prompt of 100 bytes",
    ("batch-list-2", "first", "en"): "documents of 4 KB, 2 threads",
    ("decode-list", "text", "en"): "decode",
    ("load", "get_encoding + first encode", None): "load, and encode two words",
}

#: Rows of the manual's table.
MANUAL: tuple[Key, ...] = (
    *(("text-numpy", "first", corpus) for corpus in ("en", "code", "messy", "multi", "zh")),
    ("text-numpy", "again", "en"),
    *(("text-list", "first", corpus) for corpus in ("en", "code", "messy", "multi", "zh")),
    ("text-list", "again", "en"),
    ("text-count", "first", "en"),
    *(("prompts-checked", f"{size}, first", "en") for size in ("11 B", "100 B", "1 KB")),
    ("batch-list-2", "first", "en"),
    ("batch-numpy-2", "first", "en"),
    ("decode-list", "text", "en"),
    ("load", "get_encoding + first encode", None),
    ("memory", "loaded", None),
    ("memory", "at the end", None),
    ("piece-list-a", "first", None),
    ("piece-list-random-letters-1e5", "first", None),
)

#: One line of a table: the row of each engine.
Line = dict[str, dict[str, Any]]


def _lines(results: dict[str, Any]) -> dict[tuple[str, Key], Line]:
    """Groups the rows of a run by encoding and key, keeping their order."""
    lines: dict[tuple[str, Key], Line] = {}
    for row in results["rows"]:
        key = (row["encoding"], (row["case"], row["key"], row["corpus"]))
        lines.setdefault(key, {})[row["engine"]] = row
    return lines


def _cells(line: Line, engines: list[str], title: str | None = None) -> list[str]:
    """Returns the cells of a line: title, unit, tokens, a figure per engine, and the ratio."""
    row = next(iter(line.values()))
    if title is None:
        title = ", ".join(part for part in (row["title"], row["key"], row["corpus"]) if part)
        note = next((each["reference"] for each in line.values() if each["reference"]), TIKTOKEN)
        title += f" (ids by {note})" if note != TIKTOKEN else ""
    tokens = next((each["tokens"] for each in line.values() if each["correct"]), row["tokens"])
    count = "" if tokens is None else f"{tokens:,}"
    figures = [_figure(line.get(engine)) for engine in engines]
    return [title, row["unit"], count, *figures, _ratio(line.get(OURS))]


def _figure(row: dict[str, Any] | None) -> str:
    if row is None:
        return "–"
    return number(row["value"]) + (" ✗" if row["correct"] is False else "")


def _ratio(ours: dict[str, Any] | None) -> str:
    if ours and ours["correct"] is False:
        return "wrong ids"
    return f"{ours['ratio']:.2f}x" if ours and ours["ratio"] is not None else ""


def number(value: float) -> str:
    """Formats a number with three significant digits, without an exponent.

    >>> number(1234.5), number(12.345), number(0.00234)
    ('1234', '12.3', '0.00234')
    """
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.3g}"


def table(results: dict[str, Any], keys: tuple[Key, ...] | None = None) -> str:
    """Returns a Markdown table per encoding, or only the rows ``keys`` of the first encoding."""
    engines, lines = results["engines"], _lines(results)
    encodings = list(dict.fromkeys(encoding for encoding, _ in lines))
    parts = []
    for encoding in encodings if keys is None else encodings[:1]:
        parts.append(f"| {' | '.join([encoding, 'unit', 'tokens', *engines, 'ratio'])} |")
        parts.append("|---|---|---:|" + "---:|" * (len(engines) + 1))
        chosen = [line for (name, _), line in lines.items() if name == encoding]
        if keys is not None:
            chosen = [lines[encoding, key] for key in keys if (encoding, key) in lines]
        parts += [f"| {' | '.join(_cells(line, engines))} |" for line in chosen]
        parts.append("")
    return "\n".join(parts)


def manual_table(results: dict[str, Any]) -> str:
    """Returns the caption and the table for the manual."""
    where = results["machine"]
    memory = f", {where['memory_gb']} GB" if where["memory_gb"] else ""
    clock = " and count its CPU time" if results["clock"] == "cpu" else ""
    versions = ", ".join(f"{name} {version}" for name, version in where["versions"].items())
    caption = (
        f"{where['cpu']}, {where['cpus']} CPUs{memory}; {where['system']}; Python {where['python']}; "
        f"{where['date']}. {versions}. Corpora: {results['corpora']}. Medians of up to "
        f"{results['rounds']} processes, engines in turn; one-thread cases stay on one CPU{clock}. "
        "`first` is text that the engine has not seen (after warming on other text of the same kind), "
        "`again` the same text once more. ✗ marks ids that are not tiktoken's; – marks what an "
        f"engine lacks or does not survive. The ratio is {OURS} to the best peer with exact ids; "
        "above 1 is in favor of this project."
    )
    return f"{caption}\n\n{table(results, MANUAL)}".rstrip()


def short_table(results: dict[str, Any]) -> str:
    """Returns the table for the README: the first encoding of the run."""
    engines, lines, where = results["engines"], _lines(results), results["machine"]
    encoding = results["rows"][0]["encoding"]
    parts = [
        f"| {' | '.join([encoding, 'unit', *engines, 'ratio'])} |",
        "|---|---|" + "---:|" * (len(engines) + 1),
    ]
    for key, title in SHORT.items():
        if line := lines.get((encoding, key)):
            _, unit, _, *figures = _cells(line, engines, title)
            parts.append(f"| {' | '.join([title, unit, *figures])} |")
    versions = ", ".join(f"{name} {version}" for name, version in where["versions"].items())
    parts.append(
        "\nText to lists, one thread, text that the engine has not seen before, unless said. The ratio is "
        f"to the best peer with exact ids, more is better. {where['cpu']}, {where['cpus']} CPUs, "
        f"{where['date']}; {versions}."
    )
    return "\n".join(parts)


def csv_rows(results: dict[str, Any]) -> str:
    """Returns every row of a run, as CSV."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["encoding", "row", "unit", "tokens", *results["engines"], "ratio"])
    for (encoding, _), line in _lines(results).items():
        writer.writerow([encoding, *_cells(line, results["engines"])])
    return out.getvalue()


TABLES = {"benchmarks": manual_table, "speed": short_table}


def into_page(page: str, name: str, rows: str) -> str:
    r"""Replaces the rows between the markers of a page, and returns the new page.

    >>> print(into_page("a\n<!-- speed -->\nold\n<!-- end -->\nb", "speed", "| new |"))
    a
    <!-- speed -->
    | new |
    <!-- end -->
    b

    Raises ValueError for a page without these markers.
    """
    start = f"<!-- {name} -->\n"
    before, found, rest = page.partition(start)
    old, end, after = rest.partition("<!-- end -->")
    if not (found and end) or "<!--" in old:
        raise ValueError(f"the page has no line {start.strip()} with <!-- end --> below it")
    return f"{before}{start}{rows}\n<!-- end -->{after}"


def write(results: dict[str, Any], path: Path) -> None:
    """Writes a CSV file, or puts the tables of :data:`TABLES` between the markers of a page.

    Raises ValueError for a page without markers.
    """
    if path.suffix == ".csv":
        path.write_text(csv_rows(results), encoding="utf-8")
        return
    page = path.read_text(encoding="utf-8")
    names = [name for name in TABLES if f"<!-- {name} -->" in page]
    if not names:
        raise ValueError(f"{path.name} lacks a line <!-- NAME -->; NAME is {' or '.join(TABLES)}")
    for name in names:
        page = into_page(page, name, TABLES[name](results))
    path.write_text(page, encoding="utf-8")


def main() -> int:
    if len(sys.argv) < 3:
        print("usage: python -m benchmarks.harness.render RESULTS.json FILE...", file=sys.stderr)
        return 2
    results = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    try:
        for path in sys.argv[2:]:
            write(results, Path(path))
    except ValueError as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
