"""The rows of a run as Markdown, and the README's table between its markers.

python -m benchmarks.render out.json README.md
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from .cases import CASES
from .engines import OURS
from .reference import TIKTOKEN

START, END = "<!-- benchmarks:start -->", "<!-- benchmarks:end -->"


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
        header = [encoding, "unit", "tokens", *engines, f"{OURS} / best peer"]
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
    ours = line.get(OURS)
    ratio = f"{ours['ratio']:.2f}x" if ours and ours["ratio"] is not None else ""
    if ours and ours["correct"] is False:
        ratio = "wrong ids"
    note = next((row["reference"] for row in line.values() if row["reference"]), TIKTOKEN)
    if note != TIKTOKEN:
        title += f" (ids by {note})"
    count = "" if tokens is None else f"{tokens:,}"
    return f"| {' | '.join([title, any_row['unit'], count, *cells, ratio])} |"


def _cell(row: dict[str, Any] | None) -> str:
    if row is None:
        return "–"
    return _number(row["value"]) + (" ✗" if row["correct"] is False else "")


def _number(value: float) -> str:
    """Three digits, never an exponent.

    >>> _number(1234.5), _number(12.345), _number(0.1234)
    ('1234', '12.3', '0.123')
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
        "engine lacks or does not survive. A ratio above 1 is in favour of this project."
    )


def into_readme(results: dict[str, Any], path: Path) -> None:
    """Puts the tables between the markers of ``path``; ValueError when it has no markers."""
    text = path.read_text(encoding="utf-8")
    before, start, rest = text.partition(START)
    _, end, after = rest.partition(END)
    if not (start and end):
        raise ValueError(
            f"{path.name} lacks the lines {START} and {END}, which the table goes between."
        )
    body = [caption(results), "", table(results, quick=True)]
    if more := table(results, quick=False):
        body += ["<details><summary>More cases</summary>", "", more, "</details>", ""]
    path.write_text(f"{before}{START}\n" + "\n".join(body) + f"\n{END}{after}", encoding="utf-8")


def main() -> int:
    if len(sys.argv) != 3:
        print("usage: python -m benchmarks.render RESULTS.json README.md", file=sys.stderr)
        return 2
    results = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    try:
        into_readme(results, Path(sys.argv[2]))
    except ValueError as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
