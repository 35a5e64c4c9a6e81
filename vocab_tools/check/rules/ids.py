"""Rules about ids: new ids that the base already uses, and unused ids."""

from __future__ import annotations

from ...ranks import count_ids
from ...text import show
from ..context import Context
from ..findings import RULES, Found, Outcome


@RULES.rule("error", "new tokens that the vocabulary had before")
def shadow(context: Context) -> Outcome:
    """The base already has these tokens, and a loader may keep either id.

    Do: Delete them from the extension; `learn` and `propose` skip known words.
    """
    return context.loaded.shadows


@RULES.rule("error", "new tokens that rank before tokens of the base, and so take its text")
def below_base(context: Context) -> Outcome:
    """Ids are the order of merging: a new token below the base's last id merges before older
    tokens, so text without new words changes.

    Do: Use ids after the base, as `learn --start-id auto` does.
    """
    end = _base_end(context)
    extra = context.loaded.extra.items()
    return [f"{number} {show(token)}" for token, number in extra if number < end]


@RULES.rule("warning", "unused ids below the largest")
def id_gap(context: Context) -> Outcome:
    """The embedding table has rows for unused ids. Nothing breaks, but sizes are easily confused.

    Do: Nothing for a published vocabulary; otherwise number the tokens without gaps.
    """
    return _gaps(context, 0, _base_end(context))


@RULES.rule("warning", "unused ids between the vocabulary and its new tokens")
def extra_gap(context: Context) -> Outcome:
    """Ids between the base and the new tokens stay unused, and get rows in the embedding table.

    Do: Pass the special tokens of the model (`--special-tokens tokenizer.json`), so that new ids
    follow the last used one.
    """
    end = max(context.loaded.extra.values(), default=-1) + 1
    return _gaps(context, _base_end(context), end)


def _base_end(context: Context) -> int:
    return max(context.loaded.base.values(), default=-1) + 1


def _gaps(context: Context, start: int, end: int) -> Found:
    clipped = ((max(first, start), min(last, end - 1)) for first, last in context.unused)
    gaps = [(first, last) for first, last in clipped if first <= last]
    return Found(named_ranges(gaps), count_ids(gaps))


def named_ranges(ranges: list[tuple[int, int]]) -> list[str]:
    """Describes ranges of ids for messages.

    >>> named_ranges([(1, 3), (7, 7)])
    ['1 to 3 (3 ids)', '7']
    """
    return [
        str(first) if first == last else f"{first} to {last} ({last - first + 1:,} ids)"
        for first, last in ranges
    ]
