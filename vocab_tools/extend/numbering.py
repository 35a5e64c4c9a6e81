"""Assigns free ids after the base to new tokens."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from ..notes import Note
from ..ranks import MAX_ID
from ..text import plural, show
from .learn_result import Step

#: First id after Qwen's special tokens: the default start for Qwen's pattern.
QWEN_START_ID = 151851


class Taken(NamedTuple):
    """Ids in use, and the requested first id of new tokens."""

    ranks: Mapping[bytes, int]
    special_tokens: Mapping[str, int]
    #: The user's value; None for the default.
    start_id: int | None
    #: True for the pattern and the special tokens of ``qwen``.
    is_qwen: bool

    @property
    def default(self) -> int:
        """The default first id."""
        return QWEN_START_ID if self.is_qwen else 0


def number_merges(steps: Sequence[Step], taken: Taken, notes: list[Note]) -> list[Step]:
    """Assigns ids to the new tokens of merges.

    Raises ValueError if the start id collides, or if the last id would be too large.
    """
    count = sum(step.novelty == "new" for step in steps)
    first = _first_id(taken, count, notes)
    if first + count - 1 > MAX_ID:
        raise ValueError(f"the last id would be {first + count - 1}, above {MAX_ID}")
    ids = itertools.count(first)
    steps = [replace(step, id=next(ids)) if step.novelty == "new" else step for step in steps]
    for step in steps:
        if step.novelty == "in base":
            parts = f"{show(step.left)} + {show(step.right)}"
            why = "the base has this token, but its merges do not reach it here; not written again"
            notes.append(Note("repeated merge", f"{parts}: {why}"))
    return steps


def _first_id(taken: Taken, count: int, notes: list[Note]) -> int:
    """Returns the id of the first of ``count`` new tokens."""
    ranks, special_tokens, start_id, is_qwen = taken
    asked = taken.default if start_id is None else start_id
    first = first_free_id(ranks, special_tokens, asked, count)
    if start_id is not None and first != start_id:
        auto = first_free_id(ranks, special_tokens, taken.default, count)
        raise ValueError(_collision(taken, start_id, count, first, auto))
    if start_id is None and is_qwen and first != QWEN_START_ID:
        text = f"the ids from {QWEN_START_ID} are taken; the new tokens start at {first}"
        notes.append(Note("start id", text))
    return first


def first_free_id(
    ranks: Mapping[bytes, int], special_tokens: Mapping[str, int], start: int, count: int
) -> int:
    """Returns the first of ``count`` consecutive free ids, from ``start`` on and after all ranks.

    >>> first_free_id({b"a": 0, b"b": 5}, {"<end>": 7}, 0, 2)
    8
    """
    first = max(start, max(ranks.values()) + 1)
    for taken in sorted(special_tokens.values()):
        if first <= taken < first + max(count, 1):
            first = taken + 1
    return first


def _collision(ids: Taken, start_id: int, count: int, free: int, auto: int) -> str:
    """Explains why a start id cannot be used; ``free`` is the next usable id."""
    ranks = ids.ranks
    tokens = {number: token for token, number in ranks.items()}
    specials = {number: name for name, number in ids.special_tokens.items()}
    used = range(start_id, start_id + max(count, 1))
    clash = next((number for number in used if number in tokens or number in specials), None)

    def owner(number: int) -> str:
        if number in specials:
            return f"the special token {specials[number]}"
        return f"the token {show(tokens[number])}"

    if clash is None:
        reason = (
            f"is below the largest rank, {max(ranks.values())}: new tokens must come after the base"
        )
    elif clash == start_id:
        reason = f"is taken by {owner(clash)}"
    else:
        reason = f"leads into id {clash}, taken by {owner(clash)} ({plural(count, 'new token')})"
    way_out = (
        f"the first free id is {free} (--start-id auto takes it)"
        if auto == free
        else f"the first free id is {free} from there on (--start-id auto takes {auto})"
    )
    return f"the start id {start_id} {reason}; {way_out}"
