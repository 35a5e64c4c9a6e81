"""Adds tokens to a definition, and plans their rows in an embedding table."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from bpe_engine import vocabulary

from ..embedding.plan import EmbeddingPlan, plan_of
from ..ranks import RankSource, load_ranks
from ..text import show
from .definition import Definition, by_id


def extended(definition: Definition, extra: Sequence[RankSource]) -> Definition:
    """Returns the definition with the tokens of rank files, which merge after all others.

    Raises ValueError when a token or an id is taken, or when the result could not be written as a
    list of merges.
    """
    new = load_ranks(*extra)
    _check_free(definition, new)
    tokens = by_id({**definition.tokens, **new})
    if definition.merges is None:
        return dataclasses.replace(definition, tokens=tokens)
    if reason := definition.list_differs_from(definition.order):
        raise ValueError(f"tokens cannot be added to these merges: {reason}")
    order = {**definition.order}
    order.update({token: place for place, token in enumerate(new, len(order))})
    splits = vocabulary.token_splits(order)
    merges = [*definition.merges, *(splits[token] for token in new if token in splits)]
    unreached = [token for token in new if token not in splits]
    if unreached and not definition.whole_pieces and definition.unreached:
        raise ValueError(
            f"merging does not reach {show(unreached[0])}, which is a token only as a piece of its "
            f"own; looking pieces up whole would change what {show(definition.unreached[0])} "
            f"of the base becomes"
        )
    whole = definition.whole_pieces or bool(unreached)
    return dataclasses.replace(definition, tokens=tokens, merges=merges, whole_pieces=whole)


def _check_free(definition: Definition, new: dict[bytes, int]) -> None:
    taken = {number: repr(name) for name, number in definition.others.items()}
    taken |= {number: show(token) for token, number in definition.tokens.items()}
    taken |= {number: repr(name) for name, number in definition.special_tokens.items()}
    for token, number in new.items():
        if token in definition.tokens:
            raise ValueError(
                f"{show(token)} is a token of the base already, {definition.tokens[token]}"
            )
        if number in taken:
            raise ValueError(
                f"the id {number} of {show(token)} is that of {taken[number]} in the base; learn "
                f"the tokens with --start-id {max(taken) + 1} or above"
            )


def plan(base: Definition, whole: Definition) -> EmbeddingPlan:
    """Returns the embedding plan of an extended definition.

    Raises ValueError if a byte of a new token is not a token of the base.
    """
    ids = {place: base.tokens[token] for token, place in base.order.items()}
    new = {token: number for token, number in whole.tokens.items() if token not in base.tokens}
    made_of = vocabulary.merge_bytes(base.order, list(new)) if new else []
    parts = [None if places is None else [ids[place] for place in places] for places in made_of]
    taken = [*base.special_tokens.values(), *base.others.values()]
    return plan_of(base.tokens, new, parts, taken)
