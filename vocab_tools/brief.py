"""`Brief`: results with a short representation, shown as a report in notebooks."""

from __future__ import annotations

import os
from typing import Any

_LONGEST = 60


def in_notebook(result: object) -> str | None:
    """Returns the report on a result as a frame for a notebook; None if the result has no
    report."""
    # Imported through the package, because reports import the results.
    import vocab_tools

    framed: str | None = vocab_tools.framed(result)
    return framed


class Brief:
    """A result whose representation is short: long values are cut, collections are counted, and
    nested results are named.

    >>> class Result(Brief):
    ...     def __init__(self):
    ...         self.tokens, self.size = {b"a": 1, b"b": 2}, 300
    >>> Result()
    Result(tokens=<2 items>, size=300)
    """

    def __repr__(self) -> str:
        parts = [f"{name}={_brief(value)}" for name, value in vars(self).items() if name[0] != "_"]
        return f"{type(self).__name__}({', '.join(parts)})"

    def _repr_html_(self) -> str | None:
        """Returns the report on the result as HTML, for notebooks."""
        return in_notebook(self)


class Reported(Brief):
    """A result that can be saved as a report."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the report with :func:`vocab_tools.write_report`: .html, .md or .json."""
        import vocab_tools

        result: Any = self
        vocab_tools.write_report(path, result)


def _brief(value: object) -> str:
    if isinstance(value, (dict, list, tuple, set, frozenset)) and value:
        return f"<{len(value):,} item{'s' * (len(value) > 1)}>"
    shown = f"{type(value).__name__}(…)" if isinstance(value, Brief) else repr(value)
    return shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 1]}…"
