"""Which rows an embedding table needs for new tokens, and what each is made of.

Four sizes are often taken for each other: how many *ranks* a vocabulary has, how many *special
tokens*, its *largest id plus one* (ids have gaps), and the *rows* of the table (often padded). A
plan tells them apart, and has a row for every id up to the new maximum. Those of Qwen:

| size                                         | number  |
| -------------------------------------------- | ------- |
| ranks                                        | 151,643 |
| ranks and the 208 special tokens             | 151,851 |
| rows of the table, small models (128 x 1187) | 151,936 |
| rows of the table, large models (256 x 594)  | 152,064 |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import bpe_engine
from bpe_engine import vocabulary

from ..bases import recognise
from ..patterns import named_pattern
from ..ranks import RankSource, as_sources, check_special_tokens, free_ranges, load_ranks


class EmbeddingPlan(dict[int, list[int]]):
    """For every new id, the base ids that made it up: a dict, with the sizes beside it."""

    #: What the vocabulary has before and after; see :func:`embedding_plan`.
    sizes: dict[str, int]
    #: Ids from the base's maximum to the new maximum that stand for no token: ranges of first and
    #: last id.
    gaps: list[tuple[int, int]]
    #: The ids of the base's tokens, whose rows are trained.
    base_ids: list[int]


def embedding_plan(
    base: RankSource,
    extra: RankSource | Sequence[RankSource],
    *,
    special_tokens: Mapping[str, int] | str | None = None,
) -> EmbeddingPlan:
    """For every new id, the ids of the base whose tokens made it up.

    Args:
        base: a rank file, ranks, or an encoding.
        extra: the file, ranks, or list of them, with the new tokens.
        special_tokens: names and ids, or the name of an encoding that has them. By default those
            of the encoding that ``base`` is, or whose published ranks it has or begins with.

    Returns:
        A mapping of new id to base ids, in the order of ids. Its ``sizes`` are ``base_ranks``,
        ``extra_ranks``, ``special_tokens``, ``base_max_id_plus_one`` and ``max_id_plus_one``
        (special tokens included), and ``rows``, how many rows the table needs. Its ``gaps`` are
        the ids between the two maxima that stand for nothing, as ranges of first and last id;
        they get rows too.

    Raises:
        ValueError: a token has two ids, or an id two tokens, or a byte of a new token is no token
            of the base, or an id is not from 0 to 2**32 - 2.
        TypeError: ``extra`` is no source of ranks.

    >>> base = {bytes([byte]): byte for byte in range(256)}
    >>> plan = embedding_plan({**base, b"ab": 256}, {b"abc": 260})
    >>> dict(plan), plan.gaps, plan.sizes["rows"]
    ({260: [256, 99]}, [(257, 259)], 261)
    """
    extras = as_sources(extra)
    ranks = load_ranks(base)
    specials = _special_tokens(base, special_tokens, ranks)
    check_special_tokens(specials)
    both = load_ranks(ranks, *extras)
    taken = {number: name for name, number in specials.items()}
    new = {token: number for token, number in both.items() if token not in ranks}
    for token, number in new.items():
        if number in taken:
            raise ValueError(
                f"the id {number} of {token!r} is taken by the special token {taken[number]}"
            )
    plan = EmbeddingPlan()
    made_of = vocabulary.merge_bytes(ranks, list(new)) if new else []
    for (token, number), parts in zip(new.items(), made_of):
        if parts is None:
            raise ValueError(
                f"{token!r} has a byte that is no token of the base, so nothing says what its "
                f"row is made of; add the single byte to the base"
            )
        plan[number] = parts
    base_size = max([*ranks.values(), *specials.values()]) + 1
    size = max([base_size, *(number + 1 for number in plan)])
    plan.gaps = free_ranges(plan, base_size, size)
    plan.base_ids = list(ranks.values())
    plan.sizes = {
        "base_ranks": len(ranks),
        "extra_ranks": len(plan),
        "special_tokens": len(specials),
        "base_max_id_plus_one": base_size,
        "max_id_plus_one": size,
        "rows": size,
    }
    return plan


def _special_tokens(
    base: RankSource, special_tokens: Mapping[str, int] | str | None, ranks: Mapping[bytes, int]
) -> Mapping[str, int]:
    if isinstance(special_tokens, str):
        return named_pattern(special_tokens).without_taken_specials(ranks).special_tokens
    if special_tokens is not None:
        return special_tokens
    if isinstance(base, bpe_engine.Encoding):
        return vocabulary.special_tokens(base)
    recognised = recognise(ranks)
    return named_pattern(recognised.name).special_tokens if recognised else {}
