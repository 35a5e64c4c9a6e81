"""`Brief`: results with a short representation, and a report in notebooks."""

from __future__ import annotations

import os
from collections.abc import Callable

__all__ = ["Brief", "Reported", "in_notebook", "set_reports"]

Framed = Callable[[object], "str | None"]
Write = Callable[["str | os.PathLike[str]", object], None]

#: Makes the report on a result for a notebook, and writes it to a file. Reports are about results,
#: so the package names the functions.
_reports: list[tuple[Framed, Write]] = []

_LONGEST = 60


def set_reports(framed: Framed, write: Write) -> None:
    """Names the functions that return the report on a result as a frame for a notebook, or None,
    and that write it to a file."""
    _reports[:] = [(framed, write)]


def in_notebook(result: object) -> str | None:
    """Returns the report on a result as a frame for a notebook; None if it has none."""
    return _reports[0][0](result) if _reports else None


class Brief:
    """A result whose representation is short: long values are cut, collections counted, and
    results inside it named.

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
        """Returns the report on the result, for notebooks."""
        return in_notebook(self)


class Reported(Brief):
    """A result that is saved as its report."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the report, as :func:`vocab_tools.write_report` does: .html, .md or .json."""
        _reports[0][1](path, self)


def _brief(value: object) -> str:
    if isinstance(value, (dict, list, tuple, set, frozenset)) and value:
        return f"<{len(value):,} item{'s' * (len(value) > 1)}>"
    shown = f"{type(value).__name__}(…)" if isinstance(value, Brief) else repr(value)
    return shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 1]}…"
