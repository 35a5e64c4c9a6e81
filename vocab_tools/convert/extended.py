"""Adds tokens to a definition, and plans their embedding rows."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

from bpe_engine import vocabulary

from ..embedding.plan import EmbeddingPlan, plan_of, texts_of
from ..ranks import RankSource, load_ranks
from ..text import show
from .definition import Definition, by_id
from .encoders import Encoder
from .tokenizer_json import added_rows


def extended(definition: Definition, extra: Sequence[RankSource]) -> Definition:
    """Adds the tokens of rank files to a definition; they merge after all other tokens.

    Raises ValueError for a token or an id that is in use, and for a result that no list of merges
    can express.
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
            f"merging does not reach {show(unreached[0])}, which is a token only as a whole "
            f"piece; looking pieces up whole would change what {show(definition.unreached[0])} "
            f"of the base becomes"
        )
    whole = definition.whole_pieces or bool(unreached)
    return dataclasses.replace(definition, tokens=tokens, merges=merges, whole_pieces=whole)


def with_special(definition: Definition, names: Iterable[str]) -> Definition:
    """Adds special tokens to a definition, with ids after all other ids.

    Raises ValueError for a name that is a token already, is empty or is repeated.
    """
    known = {**definition.others, **definition.special_tokens}
    added: dict[str, int] = {}
    start = max([*definition.tokens.values(), *known.values()], default=-1) + 1
    for name in names:
        taken = known.get(name, definition.tokens.get(name.encode()))
        if not name or name in added or taken is not None:
            reason = "is empty" if not name else "is given twice"
            raise ValueError(
                f"the special token {name!r} {reason if taken is None else f'has the id {taken} already'}"
            )
        added[name] = start + len(added)
    settings = definition.settings
    if settings is not None:
        rows = [*(settings.get("added_tokens") or []), *added_rows(added)]
        settings = {**settings, "added_tokens": rows}
    special = {**definition.special_tokens, **added}
    return dataclasses.replace(definition, special_tokens=special, settings=settings)


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


def plan(
    base: Definition, whole: Definition, encode: Encoder, descriptions: Mapping[str, str]
) -> EmbeddingPlan:
    """Returns the embedding plan of an extended definition.

    Args:
        base: the definition before the extension.
        whole: the definition with new tokens and new special tokens.
        encode: the encoder of the base.
        descriptions: texts by the names of new special tokens.

    Raises ValueError if a byte of a new token is not a token of the base.
    """
    added = {
        name: number
        for name, number in whole.special_tokens.items()
        if name not in base.special_tokens
    }
    texts = list(texts_of(added, descriptions).values())
    ids = {place: base.tokens[token] for token, place in base.order.items()}
    new = {token: number for token, number in whole.tokens.items() if token not in base.tokens}
    made_of = vocabulary.merge_bytes(base.order, list(new)) if new else []
    parts = [None if places is None else [ids[place] for place in places] for places in made_of]
    taken = [*base.special_tokens.values(), *base.others.values()]
    spelled = {name.encode(): number for name, number in added.items()}
    rows = encode(texts) if texts else []
    return plan_of(base.tokens, {**new, **spelled}, [*parts, *rows], taken)
