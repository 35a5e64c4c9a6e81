"""`Brief`: results with a short representation, and a report in notebooks."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["Brief", "in_notebook", "set_reports"]

#: Makes the report on a result. Reports are about results, so the package names the function.
_reports: list[Callable[[object], str | None]] = []

_LONGEST = 60


def set_reports(framed: Callable[[object], str | None]) -> None:
    """Names the function that returns the report on a result as a frame for a notebook, or None."""
    _reports[:] = [framed]


def in_notebook(result: object) -> str | None:
    """Returns the report on a result as a frame for a notebook; None if it has none."""
    return _reports[0](result) if _reports else None


class Brief:
    """A result whose representation is short: long values are cut, and collections counted.

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


def _brief(value: object) -> str:
    if isinstance(value, (dict, list, tuple, set, frozenset)) and value:
        return f"<{len(value):,} item{'s' * (len(value) > 1)}>"
    shown = repr(value)
    return shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 1]}…"
