"""Defines the parts of a report, and renders them as one HTML file, as Markdown or as text."""

from __future__ import annotations

import functools
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

from ..abilities.visible import CONTINUED
from ..common.system import shown_path

#: A word in a right-to-left script.
_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]+")

#: Escapes of bytes and invisible characters, always left to right.
_ESCAPES = re.compile(r"(?:\\x[0-9a-f]{2}|\\u[0-9a-f]{4}|\\U[0-9a-f]{8})+")

#: A cell: text, a number, a list of tokens (a text, or a text and an id), a list of such lists (a
#: path of merges), or :func:`best`.
Cell = Any


def best(value: Cell) -> Cell:
    """Marks a number as the best in its row."""
    return [value, "best"]


@dataclass(frozen=True)
class Column:
    """A column, with its heading and the kind of its cells."""

    title: str
    #: "text", "number", "id", "token", "tokens", "path", or "cut", a whole text in tokens.
    kind: str = "text"


def columns(titles: Mapping[str, str]) -> list[Column]:
    """Returns columns, given their titles and kinds."""
    return [Column(title, kind) for title, kind in titles.items()]


@dataclass(frozen=True)
class TableView:
    """A table, of which HTML and Markdown show the first `MOST_ROWS` rows."""

    id: str
    columns: Sequence[Column]
    rows: list[list[Cell]]
    #: True if narrow enough to stay a table on a phone.
    is_matrix: bool = False

    def plain_rows(self, most: int) -> list[list[str]]:
        """Returns the first rows as text."""
        kinds = [column.kind for column in self.columns]
        return [list(map(plain, row, kinds)) for row in self.rows[:most]]


@dataclass(frozen=True)
class Tile:
    """A figure of the summary."""

    value: str
    label: str
    #: "good", "bad" or "".
    mood: str = ""


@dataclass(frozen=True)
class Remark:
    """A remark, or a group of remarks with examples."""

    text: str
    #: "error", "warning" or "info".
    severity: str = "warning"
    examples: Sequence[str] = ()
    hidden: int = 0
    code: str = ""
    #: The count with its noun.
    counted: str = ""
    #: The consequence and the remedy.
    why: str = ""
    remedy: str = ""


@dataclass(frozen=True)
class Part:
    """A section of the page."""

    id: str
    title: str
    text: str = ""
    tiles: Sequence[Tile] = ()
    remarks: Sequence[Remark] = ()
    tables: Sequence[TableView] = ()


@dataclass(frozen=True)
class Page:
    """A whole report."""

    title: str
    subtitle: str
    parts: list[Part] = field(default_factory=list)
    #: Sentences with the findings.
    conclusions: Sequence[str] = ()
    #: Names and values of the report's inputs.
    provenance: Sequence[tuple[str, str]] = ()
    #: False if the conclusions are errors.
    is_good: bool = True


def plain(cell: Cell, kind: str = "text") -> str:
    """Returns a cell as text.

    >>> plain(1234, "number"), plain([["a", "b"], ["ab"]], "path"), plain([["a", 5]], "tokens")
    ('1,234', 'a b → ab', 'a')
    """
    if kind == "path":
        return " → ".join(plain(stage, "tokens") for stage in cell)
    if kind in ("tokens", "cut"):
        texts = (token if isinstance(token, str) else str(token[0]) for token in cell)
        return ("|" if kind == "cut" else " ").join(texts)
    if isinstance(cell, list):
        cell = cell[0]
    if kind == "number" and isinstance(cell, int):
        return f"{cell:,}"
    return "" if cell is None else str(cell)


#: Maximum number of rows per table in HTML and Markdown; JSON has all rows.
MOST_ROWS = 1000

#: Markup characters in cells of Markdown tables; HTML is escaped earlier.
_MARKUP = str.maketrans({**{mark: f"\\{mark}" for mark in "\\`*_|[]~"}, "\n": "⏎", "\r": "␍"})


def markdown(page: Page) -> str:
    """Returns a report as Markdown."""
    lines = [f"# {page.title}", "", page.subtitle, ""]
    lines += [*(f"- {sentence}" for sentence in page.conclusions), ""]
    for part in page.parts:
        lines += [f"## {part.title}", "", part.text, ""]
        lines += [*(f"- {tile.value} {tile.label}" for tile in part.tiles), ""]
        for remark in part.remarks:
            code = f" {remark.code} ({remark.counted})" if remark.code else ""
            lines += [f"**{remark.severity}{code}**: {_escaped(remark.text)}", ""]
            lines += [*(f"- {_escaped(example)}" for example in remark.examples), ""]
        for table in part.tables:
            lines.append("| " + " | ".join(column.title for column in table.columns) + " |")
            lines.append("|" + " --- |" * len(table.columns))
            lines += [
                "| " + " | ".join(map(_escaped, row)) + " |" for row in table.plain_rows(MOST_ROWS)
            ]
            hidden = len(table.rows) - MOST_ROWS
            rest = [f"And {hidden} more; the JSON report has all of them.", ""]
            lines += ["", *(rest if hidden > 0 else [])]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip() + "\n"


def _escaped(text: str) -> str:
    return escape(text, quote=False).translate(_MARKUP)


def percent(share: float) -> str:
    """Returns a share in percent with adaptive precision.

    >>> percent(0.1234), percent(0.00123), percent(0)
    ('12.3%', '0.12%', '0.0%')
    """
    return f"{share:.2%}" if 0 < abs(share) < 0.01 else f"{share:.1%}"


def isolated(text: str) -> str:
    """Returns text as HTML, with right-to-left words and escapes isolated against reordering in
    lists.

    >>> isolated("a < \u05d0\u05d1, \u05d2")
    'a &lt; <bdi>\u05d0\u05d1</bdi>, <bdi>\u05d2</bdi>'
    """
    return with_escapes(_RIGHT_TO_LEFT.sub(r"<bdi>\g<0></bdi>", escape(text)))


def with_escapes(markup: str) -> str:
    r"""Returns HTML in which escapes and a leading continuation sign are isolated.

    >>> with_escapes(r"\xd7\x9c"), with_escapes("‥\u0e33")
    ('<bdi dir="ltr">\\xd7\\x9c</bdi>', '<bdi>‥</bdi>\u0e33')
    """
    if markup.startswith(CONTINUED):
        markup = f"<bdi>{CONTINUED}</bdi>{markup[1:]}"
    return _ESCAPES.sub(r'<bdi dir="ltr">\g<0></bdi>', markup)


def require_jinja2() -> Any:
    """Returns the package jinja2, or raises an ImportError that names the extra."""
    try:
        import jinja2
    except ImportError as error:
        raise ImportError(
            "HTML reports need the package jinja2; install it with "
            "pip install 'bpe-engine[vocab-tools]', or write a .md or .json report"
        ) from error
    return jinja2


@functools.cache
def _template() -> Any:
    jinja2 = require_jinja2()
    markup = jinja2.utils.markupsafe.Markup
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("bpe_engine.html_report", "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["isolated"] = lambda text: markup(isolated(text))
    environment.filters["escapes"] = lambda text: markup(with_escapes(escape(text)))
    environment.filters["coded"] = lambda text: markup(
        re.sub("`([^`]+)`", r"<code>\1</code>", escape(text))
    )
    environment.filters["number"] = lambda value: f"{value:,}" if value is not None else ""
    return environment.get_template("report.html.j2")


def rendered(page: Page) -> str:
    """Returns the page as HTML. Raises ImportError if jinja2 is not installed."""
    provenance = [*page.provenance, *_made_by()]
    return shown_path(_template().render(page=page, most=MOST_ROWS, provenance=provenance))


def framed(html: str) -> str:
    """Returns a page in a notebook frame that isolates styles and scripts.

    >>> framed("<p>").startswith('<iframe srcdoc="&lt;p&gt;"')
    True
    """
    return (
        f'<iframe srcdoc="{escape(html)}" style="width:100%;height:32rem;border:1px solid #8888;'
        'border-radius:.5rem" title="report"></iframe>'
    )


def _made_by() -> list[tuple[str, str]]:
    from click import get_current_context

    from .. import __version__

    made = [("version", f"bpe_engine {__version__}")]
    context = get_current_context(silent=True)
    if context is not None:
        name = context.find_root().info_name or ""
        made.insert(0, ("command", shlex.join([name, *sys.argv[1:]])))
    return made
