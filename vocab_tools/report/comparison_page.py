"""The report on a comparison."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath

from bpe_engine.abilities.visible import SIGNS, visible
from bpe_engine.html_report.page import (
    Cell,
    Column,
    Page,
    Part,
    TableView,
    Tile,
    best,
    columns,
    percent,
)

from ..compare.comparison import MOST_UNKNOWN, Comparison, Measured, rates
from ..compare.segments import Size
from ..text import few, in_order, plural, shorten, token_text

#: Maximum length of a shown token in characters; minimum length of a run shown as a count.
SHOWN_OF_A_TOKEN, LONG_RUN = 40, 8

#: Columns with token counts, and with rates per unit of text.
RATES = [Column(name, "number") for name in ("tokens", "per byte", "per character", "per word")]

#: Explanation of the figures by script.
BY_LINE = (
    "A line counts for the script of most of its letters; a line without letters counts for the "
    "script of the line before."
)


def title_of(comparison: Comparison) -> str:
    """Returns the heading of a report."""
    names = [row.name for row in comparison.rows]
    if len(names) == 1:
        return f"Statistics of {names[0]}"
    return f"{', '.join(names[:-1])} and {names[-1]} compared"


def text_size(size: Size) -> str:
    """Describes the size of a text.

    >>> text_size(Size(1, 2000, 1500, 300))
    '2,000 bytes, 1,500 characters, 300 words'
    """
    parts = [plural(size.bytes, "byte"), plural(size.characters, "character")]
    return ", ".join([*parts, plural(size.words, "word")])


def shown(token: bytes) -> str:
    """Returns a token for a list; a run of one character becomes the character and a count.

    >>> shown(b"token"), shown(b"=" * 64)
    ('token', "'=' × 64")
    """
    text = token.decode(errors="replace")
    if len(text) > LONG_RUN and text == text[0] * len(text):
        return f"{text[0]!r} × {len(text)}"
    return shorten(token_text(token), SHOWN_OF_A_TOKEN)


def readable(token: bytes) -> str:
    """Returns a token for display between other tokens: keeps spaces, marks invisible characters.

    >>> readable(b" end\\n"), readable(b"\\xe4")
    (' end⏎', '\\\\xe4')
    """
    return visible(token.decode(errors="surrogateescape"), {**SIGNS, " ": " "})


def readable_cut(tokens: Sequence[bytes]) -> list[str]:
    r"""Returns the tokens of a text to show side by side.

    The first of several tokens that share a character shows it; ``‥`` stands for the other tokens.

    >>> readable_cut([b" \xe4", b"\xb8", b"\x80"]), readable_cut([b"a\n", b"\xff"])
    ([' 一', '‥', '‥'], ['a⏎', '\\xff'])
    """
    return in_order(tokens, readable)


def _groups(
    comparison: Comparison,
) -> list[tuple[str, Mapping[str, Size], Callable[[Measured], Mapping[str, int]]]]:
    """Returns the text sizes by file and by script, each with a function that counts tokens."""
    return [
        ("file", comparison.files, lambda row: row.files),
        ("script", comparison.scripts, lambda row: row.scripts),
    ]


def labels(paths: list[str]) -> list[str]:
    """Returns the names of files, omitting folders if the names are unique.

    >>> labels(["a/x.txt", "b/y.txt"]), labels(["a/x.txt", "b/x.txt"])
    (['x.txt', 'y.txt'], ['a/x.txt', 'b/x.txt'])
    """
    names = [PurePath(path).name for path in paths]
    return names if len(set(names)) == len(names) else paths


def comparison_page(comparison: Comparison) -> Page:
    """Returns the report on a comparison."""
    parts = [_summary(comparison), _by_group(comparison)]
    parts += [_differing(comparison)] if comparison.differing else []
    parts += [_use(comparison), _tokens(comparison)]
    subtitle = f"Text: {text_size(comparison.total)}, in {plural(len(comparison.files), 'file')}."
    provenance = [("tokenizers", ", ".join(row.name for row in comparison.rows))]
    provenance.append(("text", few(list(comparison.files), 20)))
    title, conclusions = title_of(comparison), comparison.conclusions()
    return Page(title, subtitle, parts, conclusions, provenance)


def _marked(values: Sequence[float | str], format: str) -> list[Cell]:
    """Returns numbers as cells, and marks the smallest of several numbers as the best."""
    cells: list[Cell] = [f"{value:{format}}" for value in values]
    if len(cells) > 1 and len(set(cells)) > 1:
        least = cells[values.index(min(values))]
        cells = [best(cell) if cell == least else cell for cell in cells]
    return cells


def _against_best(row: Measured, least: Measured) -> Tile:
    """Returns the token count of a tokenizer, compared with the best tokenizer's count."""
    if row.unknown_share > MOST_UNKNOWN:
        share = percent(row.unknown_share)
        return Tile(f"{row.tokens:,}", f"tokens, {row.name}: {share} unknown", "bad")
    if row.tokens == least.tokens:
        return Tile(f"{row.tokens:,}", f"tokens, {row.name}: the fewest", "good")
    more = percent(row.tokens / max(least.tokens, 1) - 1)
    return Tile(f"{row.tokens:,}", f"tokens, {row.name}: {more} more")


def _summary(comparison: Comparison) -> Part:
    total = comparison.total
    tiles = []
    several = len(comparison.rows) > 1
    if several:
        tiles += [_against_best(row, comparison.ranking[0]) for row in comparison.rows]
    else:
        row = comparison.rows[0]
        tiles += [
            Tile(f"{rates(row.tokens, total)['per_word']:.2f}", "tokens per word"),
            Tile(f"{row.tokens:,}", "tokens"),
            Tile(percent(row.used_share), f"of {row.subject.size:,} tokens are used"),
            Tile(f"{row.renyi_efficiency:.3f}", "Renyi efficiency (order 2.5)"),
            Tile(
                f"{row.broken:,}",
                "tokens that hold no whole character",
                "bad" if row.broken else "good",
            ),
        ]
    heads = columns({"tokenizer": "text", "method": "text", "vocabulary": "number"})
    rows: list[list[Cell]] = [
        [
            row.name,
            row.subject.method,
            row.subject.size,
            row.tokens,
            *(f"{value:.3f}" for value in rates(row.tokens, total).values()),
        ]
        for row in comparison.rows
    ]
    table = TableView("overall", [*heads, *RATES], rows)
    return Part("summary", "Summary", tiles=tiles, tables=[table])


def _by_group(comparison: Comparison) -> Part:
    """Returns the tokens by script and by file: a matrix of tokens per character for several
    tokenizers, or the counts and all rates for one tokenizer."""
    tables = []
    several = len(comparison.rows) > 1
    for name, sizes, tokens in reversed(_groups(comparison)):
        names = dict(zip(sizes, labels(list(sizes))))
        found = {
            group: [rates(tokens(row).get(group, 0), size) for row in comparison.rows]
            for group, size in sizes.items()
        }
        headings = [Column(name), Column("bytes", "number")]
        headings += [Column(row.name, "number") for row in comparison.rows] if several else RATES
        lines: list[list[Cell]] = []
        for group, size in sizes.items():
            cells: list[Cell]
            if several:
                cells = _marked([rate["per_character"] for rate in found[group]], ".3f")
            else:
                cells = [tokens(comparison.rows[0]).get(group, 0)]
                cells += [f"{value:.3f}" for value in found[group][0].values()]
            lines.append([names[group], size.bytes, *cells])
        tables.append(TableView(f"by-{name}", headings, lines, is_matrix=True))
    text = f"{'Tokens per character; the fewest are marked.' if several else 'Tokens.'} {BY_LINE}"
    return Part("groups", "By script and file", text, tables=tables)


def _use(comparison: Comparison) -> Part:
    names = ("tokens used", "share", "Renyi efficiency", "single bytes", "parts of characters")
    heads = columns({"tokenizer": "text", **dict.fromkeys((*names, "unknown"), "number")})
    rows: list[list[Cell]] = [
        [
            row.name,
            len(row.times),
            percent(row.used_share),
            f"{row.renyi_efficiency:.3f}",
            row.single_bytes,
            row.broken,
            row.unknown,
        ]
        for row in comparison.rows
    ]
    text = (
        "How much of the vocabulary the text uses; the efficiency is the Renyi entropy of order "
        "2.5, divided by its maximum. Single bytes and parts of characters are tokens that hold no "
        "whole character."
    )
    if len(comparison.rows) > 1:
        text += " The second table has the tokens that two vocabularies share, by their bytes."
    tables = [TableView("use-table", heads, rows), *_overlap(comparison)]
    return Part("use", "Use of the vocabulary", text, tables=tables)


def _tokens(comparison: Comparison) -> Part:
    tables = []
    for number, row in enumerate(comparison.rows):
        pairs = zip(row.longest(), row.rarest())
        rows: list[list[Cell]] = [
            [shown(long), times, shown(rare), rare_times]
            for (long, times), (rare, rare_times) in pairs
        ]
        heads = [Column(f"longest of {row.name}", "token"), Column("times", "number")]
        heads += [Column("rarest", "token"), Column("times", "number")]
        tables.append(TableView(f"tokens-{number}", heads, rows))
    text = "The longest and the rarest tokens that the text uses."
    return Part("tokens", "Longest and rarest tokens", text, tables=tables)


def _overlap(comparison: Comparison) -> list[TableView]:
    """Returns the share of each vocabulary's tokens that each other vocabulary also has."""
    if len(comparison.rows) < 2:
        return []
    known = [row.subject.tokens() for row in comparison.rows]
    heads = [Column("share of the tokens of")]
    heads += [Column(f"in {row.name}", "number") for row in comparison.rows]
    rows: list[list[Cell]] = [
        [row.name, *(percent(len(own & other) / max(len(own), 1)) for other in known)]
        for row, own in zip(comparison.rows, known)
    ]
    return [TableView("overlap", heads, rows, is_matrix=True)]


def _differing(comparison: Comparison) -> Part:
    heads = columns({"text": "id", "tokenizer": "text", "tokens": "number", "cut": "cut"})
    rows: list[list[Cell]] = [
        [number, row.name, len(cut), readable_cut(cut)]
        for number, one in enumerate(comparison.differing, 1)
        for row, cut in zip(comparison.rows, one.cuts)
    ]
    text = "Texts with many more tokens in one tokenizer than in another, some of each script."
    table = TableView("differing-table", heads, rows)
    return Part("differing", "Texts that differ most", text, tables=[table])
