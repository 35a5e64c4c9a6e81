"""The report on a map of two vocabularies: sections, and a page."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict

from bpe_engine.html_report.charts import bar_chart
from bpe_engine.html_report.page import (
    Cell,
    Column,
    Page,
    Part,
    TableView,
    Tile,
    percent,
    rendered,
)

from ..mapping import VocabularyMap
from ..text import plural, token_text
from .comparison_report import shown
from .sections import Section

#: Tokens of the list: those that become the most tokens.
MOST_TOKENS = 1000

#: Parts of a token that a terminal shows.
SHOWN_PARTS = 12


def title_of(result: VocabularyMap) -> str:
    """Returns the heading of a report."""
    return f"{result.name_a} in {result.name_b}"


def map_sections(result: VocabularyMap, most_rows: int) -> list[Section]:
    """Returns the map as tables of text."""
    sizes: list[tuple[str, ...]] = [
        (f"tokens of {result.name_a}", f"{result.size_a:,}"),
        (f"tokens of {result.name_b}", f"{result.size_b:,}"),
        ("tokens of both", f"{len(result.equal):,}"),
    ]
    lengths: list[tuple[str, ...]] = [
        (str(length), f"{count:,}") for length, count in sorted(_lengths(result).items())
    ]
    rows: list[tuple[str, ...]] = [
        (str(id), shown(result.tokens_a[id]), _shortened(parts))
        for id, parts in _longest(result)[:most_rows]
    ]
    text = f"Tokens of {result.name_b} that other tokens of {result.name_a} become."
    return [
        Section("Summary", " ".join(result.conclusions()), ("size", "number"), sizes, len(sizes)),
        Section("Other tokens", text, ("tokens", "how many"), lengths[:most_rows], len(lengths)),
        Section(
            "Tokens of many parts",
            "The first is the one with the most.",
            ("id", f"token of {result.name_a}", f"tokens of {result.name_b}"),
            rows,
            result.spelled,
        ),
    ]


def map_page(result: VocabularyMap) -> str:
    """Returns the map as a page."""
    tiles = [
        Tile(
            percent(result.overlap), f"of {result.size_a:,} tokens of {result.name_a} are in both"
        ),
        Tile(
            percent(len(result.equal) / max(result.size_b, 1)),
            f"of {result.size_b:,} tokens of {result.name_b} are in both",
        ),
    ]
    corpus = result.corpus
    if corpus is not None and corpus.tokens:
        share = percent(corpus.shared / corpus.tokens)
        tiles.append(Tile(share, f"of the corpus's tokens of {result.name_a} are in both"))
    chart = bar_chart(
        f"How many tokens of {result.name_b} the other tokens of {result.name_a} become",
        "tokens",
        f"tokens of {result.name_a}",
        {"tokens": _lengths(result)},
    )
    rows: list[list[Cell]] = [
        [
            id,
            token_text(result.tokens_a[id]),
            len(parts),
            [token_text(part) for part in parts],
        ]
        for id, parts in _longest(result)
    ]
    columns = [
        Column("id", "id"),
        Column(f"token of {result.name_a}", "token"),
        Column("tokens", "number"),
        Column(f"tokens of {result.name_b}", "tokens"),
    ]
    parts = [Part("summary", "Summary", tiles=tiles, charts=[chart] if chart else [])]
    if rows:
        parts.append(
            Part(
                "parts",
                "Tokens of many parts",
                f"The {plural(len(rows), 'token')} of {result.name_a} that become the most tokens.",
                tables=[TableView("parts-table", columns, rows, leaf=25)],
            )
        )
    return rendered(Page(title_of(result), "", parts, result.conclusions()))


def map_json(result: VocabularyMap) -> str:
    """Returns the map as JSON."""
    plain = {
        "a": result.name_a,
        "b": result.name_b,
        "size_a": result.size_a,
        "size_b": result.size_b,
        "equal": result.equal.tolist(),
        "decompositions": {str(id): ids for id, ids in result.decompositions},
        "at_start": {str(id): ids for id, ids in result.at_start},
        "corpus": None if result.corpus is None else asdict(result.corpus),
    }
    return json.dumps(plain, ensure_ascii=False) + "\n"


def _shortened(parts: list[bytes]) -> str:
    """Returns the first parts of a token, and how many more there are."""
    more = [f"and {len(parts) - SHOWN_PARTS:,} more"] if len(parts) > SHOWN_PARTS else []
    return " ".join([*map(shown, parts[:SHOWN_PARTS]), *more])


def _lengths(result: VocabularyMap) -> Counter[int]:
    """Returns how many tokens have each number of parts."""
    import numpy as np

    return Counter(np.diff(result.decompositions.row_splits).tolist())


def _longest(result: VocabularyMap) -> list[tuple[int, list[bytes]]]:
    """Returns the tokens with the most parts, and the bytes of the parts."""
    import numpy as np

    splits = result.decompositions.row_splits
    order = np.argsort(-np.diff(splits), kind="stable")[: min(result.spelled, MOST_TOKENS)]
    values = result.decompositions.values
    return [
        (
            int(result.decompositions.ids[place]),
            [result.tokens_b[id] for id in values[splits[place] : splits[place + 1]].tolist()],
        )
        for place in order.tolist()
    ]
