"""What to say to a name that is not known but may be a misspelling of one that is."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["did_you_mean"]


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """``" Did you mean 'x'?"``, or "" when no known name is close.

    >>> did_you_mean("o20k_base", ["gpt2", "o200k_base", "cl100k_base"])
    " Did you mean 'o200k_base'?"
    >>> did_you_mean("cl100k", ["gpt2", "cl100k_base"])
    " Did you mean 'cl100k_base'?"
    >>> did_you_mean("nonsense", ["gpt2"])
    ''
    """
    # Costs more to import than the rest of the package, and only errors need it.
    import difflib

    spelled = {_plain(other): other for other in known}
    # Longer names than any that is known are cut, so that the comparison stays cheap.
    plain = _plain(name)[:100]
    begun = [other for other in spelled if len(plain) > 2 and other.startswith(plain)]
    close = begun[:2] or difflib.get_close_matches(plain, spelled, n=2, cutoff=0.75)
    names = " or ".join(repr(spelled[match]) for match in close)
    return f" Did you mean {names}?" if names else ""


def _plain(name: str) -> str:
    """The name without what is easily confused: case, and the kinds of hyphen."""
    return name.lower().replace("_", "-").replace(" ", "-")
