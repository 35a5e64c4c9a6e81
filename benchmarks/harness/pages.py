"""Tables between the markers of a page."""

from __future__ import annotations

__all__ = ["into_page"]

END = "<!-- end -->"


def into_page(page: str, name: str, rows: str) -> str:
    r"""A page with a table between its markers.

    >>> print(into_page("a\n<!-- train: english -->\nold\n<!-- end -->\nb", "train: english", "| new |"))
    a
    <!-- train: english -->
    | new |
    <!-- end -->
    b

    Raises ValueError when the page has no such markers.
    """
    start = f"<!-- {name} -->\n"
    before, found, rest = page.partition(start)
    old, end, after = rest.partition(END)
    if not (found and end) or "<!--" in old:
        raise ValueError(f"the page has no line {start.strip()} with {END} below it")
    return f"{before}{start}{rows}\n{end}{after}"
