"""Notes on a corpus whose ids are correct but probably unintended."""

from __future__ import annotations

from ..abilities.visible import plural
from ..texts.documents import AUTO
from .manifest import Manifest
from .plan import Plan

__all__ = ["MANY_UNKNOWN", "notes_of", "share_of"]

#: Minimum share of unknown tokens for a note.
MANY_UNKNOWN = 0.01


def notes_of(plan: Plan, total: Manifest) -> list[str]:
    """Returns notes on the units whose counts are in `total`.

    A note counted in manifests states its number of rows.
    """
    notes = [f"{plural(rows, 'row')}: {note}" for note, rows in total.notes.items()]
    if total.unknown >= MANY_UNKNOWN * max(total.tokens, 1):
        notes.append(
            f"{total.unknown:,} of {total.tokens:,} tokens ({share_of(total.unknown, total.tokens)}) are "
            "unknown text, which a model cannot read: choose a tokenizer that knows the text"
        )
    separator = plan.options.separator
    if separator not in (None, AUTO):
        whole = [
            source.uri
            for source in plan.inputs
            if source.kind == "text" and total.sources.get(source.uri, (0, 0, 0))[0] == 1
        ]
        if whole:
            more = f", and {len(whole) - 1:,} more files are" if len(whole) > 1 else " is"
            notes.append(
                f"{whole[0]}{more} one document: no separator {separator!r} is between two"
            )
    return notes


def share_of(part: int, whole: int) -> str:
    """Returns a share in percent.

    >>> share_of(1, 8), share_of(0, 0), share_of(1, 10_000_000)
    ('12.5 %', '0 %', '< 0.1 %')
    """
    share = 100 * part / max(whole, 1)
    return "0 %" if not part else "< 0.1 %" if share < 0.05 else f"{share:.1f} %"
