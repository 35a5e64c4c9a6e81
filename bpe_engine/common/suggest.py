"""Suggests known names for a misspelt name."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["did_you_mean"]


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Returns ``" Did you mean 'x'?"``, or "" if all known names are too different.

    >>> did_you_mean("o20k_base", ["gpt2", "o200k_base", "cl100k_base"])
    " Did you mean 'o200k_base'?"
    >>> did_you_mean("cl100k", ["gpt2", "cl100k_base"])
    " Did you mean 'cl100k_base'?"
    >>> did_you_mean("nonsense", ["gpt2"])
    ''
    """
    # Imported late, because it is slow to import and needed only for errors.
    import difflib

    spelled = {_plain(other): other for other in known}
    # Known names are short; truncation bounds the cost of the comparison.
    plain = _plain(name)[:100]
    begun = [other for other in spelled if len(plain) > 2 and other.startswith(plain)]
    close = begun[:2] or difflib.get_close_matches(plain, spelled, n=2, cutoff=0.75)
    names = " or ".join(repr(spelled[match]) for match in close)
    return f" Did you mean {names}?" if names else ""


def _plain(name: str) -> str:
    """Normalizes case, spaces and underscores, which are easily confused."""
    return name.lower().replace("_", "-").replace(" ", "-")
